"""Writes a safetensors file tensor after tensor, so that a large model never lies in memory whole.

Knows the file format only: an 8-byte length, a JSON header, then the data in the order of the header.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# The data starts at a multiple of this, so that mapped tensors are aligned for every type.
_ALIGNMENT = 64


@dataclass(frozen=True)
class Entry:
    """One tensor to write. `dtype` is safetensors' name; `size` is in bytes; `load` gives the values when needed."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    load: Callable[[], np.ndarray]


def write(path: Path, entries: list[Entry]) -> None:
    """Write `entries` to a new file at `path`.

    Raises:
        OSError: the file cannot be written (disk full, no permission).
        ValueError: an entry gave another number of bytes than it announced.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for entry in entries:
        offsets = [end, end + entry.size]
        header[entry.name] = {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": offsets}
        end += entry.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in entries:
            values = np.ascontiguousarray(entry.load())
            if values.nbytes != entry.size:
                raise ValueError(f"{entry.name} has {values.nbytes} bytes instead of {entry.size}")
            file.write(values.data.cast("B"))
