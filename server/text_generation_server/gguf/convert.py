"""Converts a GGUF file into a Hugging Face model folder, once: later calls find the folder in the cache.

Owns the cache's layout and its guarantees: a folder is complete or absent, one converter works at a time, a folder that
lost a file is made anew. What the file means is up to the modules beside this one.
"""

import hashlib
import json
import logging
import os
import shutil
import time
from pathlib import Path

from text_generation_server.locks import hold_lock
from text_generation_server.logs import fields
from text_generation_server.refusal import Refusal

logger = logging.getLogger(__name__)

# Raise this whenever the same file would give another folder.
_CONVERTER_VERSION = 1
_MANIFEST = "conversion.json"
_FOLDER = "gguf"


def convert(path: Path, cache: Path) -> Path:
    """The folder with the converted model; made now unless `cache` holds it.

    Raises:
        Refusal: the file cannot be read or converted, or the cache cannot be written.
    """
    path = path.resolve()
    folder = cache / _FOLDER / f"{path.stem}-{_identity(path)}"
    if _is_complete(folder):
        logger.info("using the converted model in the cache", extra=fields(folder=str(folder)))
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder.with_name(folder.name + ".lock"), "converts the same file"):
            if not _is_complete(folder):
                _convert_anew(path, folder)
    except OSError as error:
        raise Refusal(
            f"the converted model cannot be written to {folder.parent}: {error.strerror or error}",
            "Free space there or make it writable, or choose another folder for the cache.",
        ) from None
    return folder


# === impl cache ===


def _identity(path: Path) -> str:
    try:
        status = path.stat()
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}", "Check the path and its permissions.") from None
    text = f"{_CONVERTER_VERSION}\n{path}\n{status.st_size}\n{status.st_mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _is_complete(folder: Path) -> bool:
    try:
        sizes = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))["files"]
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _convert_anew(path: Path, folder: Path) -> None:
    # Imported late: numpy and the decoders are not needed for a model that is converted already.
    from text_generation_server.gguf.folder import write_folder, write_json

    started = time.monotonic()
    logger.info("converting the GGUF file", extra=fields(file=str(path), folder=str(folder)))
    temporary = folder.with_name(folder.name + ".partial")
    # Left by a converter that was killed; only the holder of the lock gets here.
    for rest in (temporary, folder):
        if rest.exists():
            shutil.rmtree(rest)
    temporary.mkdir()
    try:
        write_folder(path, temporary)
        sizes = {file.name: file.stat().st_size for file in temporary.iterdir()}
        manifest = {"source": str(path), "converter_version": _CONVERTER_VERSION, "files": sizes}
        write_json(temporary / _MANIFEST, manifest)
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    logger.info("converted the GGUF file", extra=fields(seconds=round(time.monotonic() - started, 1)))
