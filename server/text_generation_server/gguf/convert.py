"""Converts a GGUF file into a Hugging Face model folder, once: later calls find the folder in the cache.

Owns where such a folder lies. What the file means is up to the modules beside this one.
"""

from pathlib import Path

from text_generation_server.cached_folder import identity, make_once

# Raise this whenever the same file would give another folder.
_CONVERTER_VERSION = 1
_FOLDER = "gguf"


def convert(path: Path, cache: Path) -> Path:
    """The folder with the converted model; made now unless `cache` holds it.

    Raises:
        Refusal: the file cannot be read or converted, or the cache cannot be written.
    """
    path = path.resolve()
    folder = cache / _FOLDER / f"{path.stem}-{identity(_CONVERTER_VERSION, [path])}"

    def write(target: Path) -> None:
        # Imported late: numpy and the decoders are not needed for a model that is converted already.
        from text_generation_server.gguf.folder import write_folder

        write_folder(path, target)

    return make_once(folder, path, "the converted model", write)
