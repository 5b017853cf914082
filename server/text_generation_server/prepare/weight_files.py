"""Which files of a model hold its weights, and whether they are whole. Reads headers only.

The choice of files is one function of their names, used for folders and for listings of the Hub alike.
"""

import json
from pathlib import Path

from text_generation_server.refusal import Refusal

INDEX = "model.safetensors.index.json"
_SUFFIX = ".safetensors"
# Other safetensors that lie beside the weights: Mistral's own format, adapters, states of a training run.
_NOT_WEIGHTS = ("consolidated", "adapter", "arguments", "args", "training", "optimizer", "original")
_PICKLES = (".bin", ".pt", ".pth")
_NOT_PICKLED_WEIGHTS = ("training_args", "optimizer", "scheduler", "rng_state")
# The format bounds its header to this many bytes.
_MAX_HEADER_BYTES = 100_000_000
_LFS_POINTER = b"version https://git-lfs"
_FETCH_AGAIN = "Fetch the file again; it is cut short or damaged."


def choose_weights(names: list[str]) -> list[str]:
    """The safetensors files to serve among the top-level files `names`, sorted. The index decides if there is one."""
    top = [name for name in names if "/" not in name and name.endswith(_SUFFIX)]
    return sorted(name for name in top if not any(part in name for part in _NOT_WEIGHTS))


def check_weights(folder: Path) -> None:
    """Check that every weight file is there, and as long as its header says.

    Raises:
        Refusal: names the file.
    """
    names = _whole_index(folder) or choose_weights([file.name for file in folder.iterdir()])
    if not names:
        raise no_weights(str(folder), [file.name for file in folder.iterdir()])
    for name in names:
        _check_file(folder / name)


def read_index(folder: Path) -> list[str]:
    """The weight files that the index in a folder names, sorted; none if there is no index.

    Raises:
        Refusal: the index is damaged, or names a file outside the folder.
    """
    path = folder / INDEX
    if not path.is_file():
        return []
    try:
        names = sorted({str(name) for name in json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise Refusal(f"{path} is not an index of weights (no JSON, or no `weight_map`)", _FETCH_AGAIN) from None
    if any("/" in name or not name.endswith(_SUFFIX) for name in names):
        raise Refusal(f"{path} names files that are not *{_SUFFIX} files beside it", _FETCH_AGAIN)
    return names


def no_weights(where: str, names: list[str]) -> Refusal:
    """The error for a model without safetensors; `names` are the files that it has."""
    pickles = [name for name in sorted(names) if name.endswith(_PICKLES) and not name.startswith(_NOT_PICKLED_WEIGHTS)]
    if not pickles:
        listed = ", ".join(sorted(names)[:8]) or "nothing"
        return Refusal(
            f"{where} holds no *{_SUFFIX} files (found: {listed})",
            "Fetch the weights too, or try the server with random ones: --load-format dummy.",
        )
    script = (
        "from transformers import AutoModelForCausalLM as M, AutoTokenizer as T; "
        f"M.from_pretrained('{where}', dtype='auto').save_pretrained('converted'); "
        f"T.from_pretrained('{where}').save_pretrained('converted')"
    )
    return Refusal(
        f"{where} holds its weights as pickles only ({pickles[0]}), which can run code when loaded",
        f'Convert them once, if you trust them, and serve the folder `converted`: python -c "{script}"',
    )


# === impl details ===


def _whole_index(folder: Path) -> list[str]:
    names = read_index(folder)
    absent = [name for name in names if not (folder / name).is_file()]
    if absent:
        raise Refusal(
            f"{folder} lacks {absent[0]} ({len(absent)} of {len(names)} weight files that {INDEX} names are missing)",
            "Finish the download of the model; every part is needed.",
        )
    return names


def _check_file(path: Path) -> None:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            if start == _LFS_POINTER[:8]:
                raise Refusal(
                    f"{path} is a Git LFS pointer, not the weights themselves",
                    f"Run `git lfs pull` in {path.parent}.",
                )
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
                raise Refusal(f"{path} is not a whole safetensors file: no header in its {size} bytes", _FETCH_AGAIN)
            header = json.loads(file.read(length))
        end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}", "Check its permissions.") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise Refusal(f"{path} has a damaged safetensors header", _FETCH_AGAIN) from None
    expected = 8 + length + end
    if size != expected:
        raise Refusal(f"{path} has {size} bytes instead of the {expected} that its header announces", _FETCH_AGAIN)
