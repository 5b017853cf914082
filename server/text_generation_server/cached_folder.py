"""Folders of generated files in the cache: complete or absent, made by one process at a time, made anew when a file is
lost. Knows nothing of what the files mean.
"""

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from text_generation_server.locks import hold_lock
from text_generation_server.logs import fields
from text_generation_server.refusal import Refusal

logger = logging.getLogger(__name__)

_MANIFEST = "conversion.json"
_IDENTITY_LENGTH = 12


def identity(version: int, sources: Iterable[Path]) -> str:
    """A short text that changes when a source does (path, size or time), or the `version` of what is made of them.

    Raises:
        Refusal: a source cannot be read.
    """
    lines = [str(version)]
    for path in sources:
        try:
            status = path.stat()
        except OSError as error:
            raise Refusal(f"{path} cannot be read: {error.strerror}", "Check the path and its permissions.") from None
        lines += [str(path), str(status.st_size), str(status.st_mtime_ns)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_IDENTITY_LENGTH]


def make_once(folder: Path, source: Path, what: str, write: Callable[[Path], None]) -> Path:
    """`folder`, filled by `write` unless it is complete already; `what` names the contents ("the converted model").

    `write` gets an empty folder beside its final place. What it raises goes through.

    Raises:
        Refusal: the folder cannot be written.
    """
    if _is_complete(folder):
        logger.info(f"using {what} in the cache", extra=fields(folder=str(folder)))
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder.with_name(folder.name + ".lock"), "converts the same file"):
            if not _is_complete(folder):
                _make(folder, source, what, write)
    except OSError as error:
        raise Refusal(
            f"{what} cannot be written to {folder.parent}: {error.strerror or error}",
            "Free space there or make it writable, or choose another folder for the cache.",
        ) from None
    return folder


# === impl details ===


def _is_complete(folder: Path) -> bool:
    try:
        sizes = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))["files"]
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _make(folder: Path, source: Path, what: str, write: Callable[[Path], None]) -> None:
    started = time.monotonic()
    logger.info(f"making {what}", extra=fields(source=str(source), folder=str(folder)))
    temporary = folder.with_name(folder.name + ".partial")
    # Left by a process that was killed; only the holder of the lock gets here.
    for rest in (temporary, folder):
        if rest.exists():
            shutil.rmtree(rest)
    temporary.mkdir()
    try:
        write(temporary)
        sizes = {file.name: file.stat().st_size for file in temporary.iterdir()}
        manifest = json.dumps({"source": str(source), "files": sizes}, ensure_ascii=False, indent=2)
        (temporary / _MANIFEST).write_text(manifest + "\n", encoding="utf-8")
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    logger.info(f"made {what}", extra=fields(seconds=round(time.monotonic() - started, 1)))
