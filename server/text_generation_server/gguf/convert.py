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
from typing import Any

from text_generation_server.gguf.metadata import Metadata
from text_generation_server.gguf.reader import open_gguf
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
    started = time.monotonic()
    logger.info("converting the GGUF file", extra=fields(file=str(path), folder=str(folder)))
    temporary = folder.with_name(folder.name + ".partial")
    # Left by a converter that was killed; only the holder of the lock gets here.
    for rest in (temporary, folder):
        if rest.exists():
            shutil.rmtree(rest)
    temporary.mkdir()
    try:
        _write_folder(path, temporary)
        sizes = {file.name: file.stat().st_size for file in temporary.iterdir()}
        manifest = {"source": str(path), "converter_version": _CONVERTER_VERSION, "files": sizes}
        _write_json(temporary / _MANIFEST, manifest)
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    logger.info("converted the GGUF file", extra=fields(seconds=round(time.monotonic() - started, 1)))


# === impl content ===


def _write_folder(path: Path, folder: Path) -> None:
    # Imported late: numpy and the decoders are not needed for a model that is converted already.
    from text_generation_server.gguf import dequantise, safetensors_file
    from text_generation_server.gguf.families import FAMILIES
    from text_generation_server.gguf.tokenizer import read_vocabulary, write_tokenizer

    file = open_gguf(path)
    metadata = Metadata(file)
    family = FAMILIES.get(metadata.architecture)
    if family is None:
        known = ", ".join(FAMILIES)
        raise metadata.refuse(f"the architecture {metadata.architecture!r} is not supported as GGUF (only {known})")
    dequantise.check_types(file)
    vocabulary = read_vocabulary(metadata)
    config = family.config(metadata)
    weights = family.weights(metadata, config)
    largest = max(weights, key=lambda weight: weight.tensor.size)
    ids: dict[str, Any] = {
        "bos_token_id": vocabulary.bos,
        "eos_token_id": vocabulary.stops[0] if len(vocabulary.stops) == 1 else vocabulary.stops or None,
        "pad_token_id": vocabulary.padding,
    }
    config |= {**ids, "vocab_size": len(vocabulary.tokens)}
    config["torch_dtype"] = dequantise.TORCH_NAMES[dequantise.stored_type(largest.tensor)]
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", {key: value for key, value in ids.items() if value is not None})
    write_tokenizer(metadata, vocabulary, folder)
    safetensors_file.write(folder / "model.safetensors", [_entry(file, weight) for weight in weights])


def _entry(file: Any, weight: Any) -> Any:
    from text_generation_server.gguf import dequantise, safetensors_file

    def load() -> Any:
        values = dequantise.decode(file, weight.tensor)
        return values if weight.rows is None else weight.rows(values)

    return safetensors_file.Entry(
        name=weight.name,
        dtype=dequantise.stored_type(weight.tensor),
        shape=weight.tensor.shape,
        size=dequantise.stored_size(weight.tensor),
        load=load,
    )


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
