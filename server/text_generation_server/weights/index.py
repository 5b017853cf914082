"""Which file of a checkpoint holds which tensor, and reading slices of them, memory-mapped.

Owns the files; knows nothing of what the tensors mean.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from text_generation_server.refusal import Refusal

_INDEX = "model.safetensors.index.json"
_FETCH_AGAIN = "delete the file and fetch the model again"
_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
# Files that trainers leave beside a model and that hold no weights of it.
_NOT_WEIGHTS = ("arguments", "args", "training", "adapter", "consolidated")


class CheckpointIndex:
    """The tensors of a model folder by name.

    Raises:
        Refusal: no safetensors files, one that is missing, truncated or damaged, or one name in two files.
    """

    def __init__(self, folder: Path):
        self._files: dict[str, safe_open] = {}
        self._paths: dict[str, Path] = {}
        for path in _weight_files(folder):
            handle = _open(path)
            for name in handle.keys():  # noqa: SIM118 (a handle is no dict)
                if name in self._files:
                    raise Refusal(
                        f"tensor `{name}` is in `{self._paths[name].name}` and in `{path.name}`",
                        f"remove the file that does not belong to the model from `{folder}`",
                    )
                self._files[name] = handle
                self._paths[name] = path

    def names(self) -> set[str]:
        """All tensor names."""
        return set(self._files)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, without reading it."""
        return tuple(self._files[name].get_slice(name).get_shape())

    def dtype(self, name: str) -> torch.dtype | None:
        """Type of a tensor; None for one that models do not compute in."""
        return _DTYPES.get(self._files[name].get_slice(name).get_dtype())

    def read(self, name: str, dim: int, begin: int, end: int) -> torch.Tensor:
        """The range begin..end along dimension 0 or 1 of a tensor; a whole tensor is not copied from the mapping."""
        view = self._files[name].get_slice(name)
        if (begin, end) == (0, view.get_shape()[dim]):
            return self._files[name].get_tensor(name)
        return view[begin:end] if dim == 0 else view[:, begin:end]


def _weight_files(folder: Path) -> list[Path]:
    index = folder / _INDEX
    if index.is_file():
        try:
            names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise Refusal(f"`{index}` cannot be read: {error!r}", _FETCH_AGAIN) from error
        return [folder / name for name in names]
    files = sorted(p for p in folder.glob("*.safetensors") if not any(word in p.name for word in _NOT_WEIGHTS))
    if not files:
        raise Refusal(
            f"no `*.safetensors` file in `{folder}`", "fetch the model's weights, or use --load-format dummy to measure"
        )
    return files


def _open(path: Path) -> safe_open:
    try:
        return safe_open(path, framework="pt", device="cpu")
    except FileNotFoundError:
        raise Refusal(f"weight file `{path}` is missing", "fetch the model again") from None
    except (SafetensorError, OSError) as error:
        raise Refusal(f"weight file `{path}` is truncated or damaged: {error}", _FETCH_AGAIN) from error
