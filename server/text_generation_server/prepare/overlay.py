"""Joins a model folder with files that lie elsewhere: a folder of links, in the cache, that looks like one model."""

import hashlib
import os
import shutil
from pathlib import Path

from text_generation_server.refusal import Refusal

_FOLDER = "joined"
_WEIGHT_SUFFIXES = (".safetensors", ".safetensors.index.json")


def overlay_weights(folder: Path, weights: Path, cache: Path) -> Path:
    """A folder with everything of `folder` but its weights, and the weights of `weights`.

    Raises:
        Refusal: `weights` is no folder, or the cache cannot be written.
    """
    if not weights.is_dir():
        raise Refusal(
            f"the folder of weights {weights} does not exist", "Correct --weights-cache-override, or leave it out."
        )
    links = {file.name: file for file in folder.iterdir() if not file.name.endswith(_WEIGHT_SUFFIXES)}
    links |= {file.name: file for file in weights.iterdir() if file.name.endswith(_WEIGHT_SUFFIXES)}
    return _joined(links, cache)


def overlay_files(folder: Path, others: Path, cache: Path) -> Path:
    """A folder with everything of `folder`, and the files of `others` in place of those of the same name.

    Raises:
        Refusal: the cache cannot be written.
    """
    return _joined({file.name: file for source in (folder, others) for file in source.iterdir()}, cache)


# === impl details ===


def _joined(links: dict[str, Path], cache: Path) -> Path:
    text = "\n".join(f"{name} {file.absolute()}" for name, file in sorted(links.items()))
    joined = cache / _FOLDER / hashlib.sha256(text.encode()).hexdigest()[:16]
    if joined.is_dir():
        return joined
    temporary = joined.with_name(f"{joined.name}.{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        for name, file in links.items():
            (temporary / name).symlink_to(file.absolute())
        os.replace(temporary, joined)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        # Another process may have made the same folder in the meantime; its links are the same.
        if not joined.is_dir():
            way_out = "Make the cache folder writable, or choose another one."
            raise Refusal(f"{joined} cannot be written: {error.strerror}", way_out) from None
    return joined
