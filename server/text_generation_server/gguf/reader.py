"""Reads a GGUF file: its metadata, the list of its tensors, and the bytes of one tensor at a time.

Every count and length of the file is checked against the bytes that are left before anything is allocated, so that a
truncated or damaged file ends in a refusal that names the offset. Knows nothing of what the metadata means, nor how
quantised values are decoded. It exists because the `gguf` library needs seconds to open a file with a vocabulary.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from text_generation_server.refusal import Refusal

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32
_MAX_DIMENSIONS = 4
_MAX_ELEMENTS = 1 << 48
_STRING, _ARRAY = 8, 9
# Value type of the metadata -> struct code. Strings and arrays are read by hand.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# The least bytes that one entry of a list takes; bounds the counts of a damaged header.
_MIN_METADATA_BYTES = 8 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the file.

    `shape` is in the order of numpy (outermost first, the reverse of the file), in elements; `type_name` is ggml's
    name (`Q4_1`); `offset` and `size` are in bytes from the start of the file.
    """

    name: str
    shape: tuple[int, ...]
    type_name: str
    offset: int
    size: int


@dataclass(frozen=True)
class GgufFile:
    """An open GGUF file. `metadata` maps keys to Python values; `tensors` maps names to `TensorInfo`."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]
    data: memoryview

    def raw(self, tensor: TensorInfo) -> np.ndarray:
        """The bytes of a tensor as read-only uint8, shape `[rows, bytes of a row]`; not copied."""
        rows = math.prod(tensor.shape[:-1])
        content = np.frombuffer(self.data, np.uint8, count=tensor.size, offset=tensor.offset)
        return content.reshape(rows, tensor.size // rows)


def open_gguf(path: Path) -> GgufFile:
    """Open and check a GGUF file.

    Raises:
        Refusal: not a GGUF file, of an unknown version, truncated, damaged, or with an unknown tensor type.
    """
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except ValueError:
        raise Refusal(f"{path} is an empty file", "Download the file again.") from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}", "Check the path and its permissions.") from None
    return _Cursor(path, data).read_file()


# === impl parsing ===


class _Cursor:
    """A position in the header, and the checks of everything that is read there."""

    def __init__(self, path: Path, data: memoryview):
        self.path = path
        self.data = data
        self.position = 0

    def read_file(self) -> GgufFile:
        if bytes(self.data[:4]) != _MAGIC:
            start = bytes(self.data[:4])
            raise Refusal(
                f"{self.path} is not a GGUF file: it starts with {start!r} instead of {_MAGIC!r}",
                "Give a .gguf file, a model folder or a Hub id.",
            )
        self.position = 4
        version = self.scalar("I")
        if version not in _VERSIONS:
            raise Refusal(
                f"{self.path} is GGUF version {version}, this server reads {_VERSIONS[0]} and {_VERSIONS[1]}",
                "Use a little-endian file of a current llama.cpp.",
            )
        tensor_count = self.count("tensors", _MIN_TENSOR_BYTES)
        metadata_count = self.count("metadata entries", _MIN_METADATA_BYTES)
        metadata = {}
        for _ in range(metadata_count):
            key = self.string()
            metadata[key] = self.value(key)
        infos = [self.tensor_info() for _ in range(tensor_count)]
        alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise self.damaged(f"general.alignment is {alignment!r}")
        start = -(-self.position // alignment) * alignment
        return GgufFile(self.path, metadata, self.place(infos, start), self.data)

    def damaged(self, reason: str) -> Refusal:
        return Refusal(
            f"{self.path} is damaged or truncated at byte {self.position} of {len(self.data)}: {reason}",
            "Download the file again, and compare its checksum with the publisher's.",
        )

    def need(self, size: int, what: str) -> None:
        if size > len(self.data) - self.position:
            raise self.damaged(f"{what} needs {size} bytes, {len(self.data) - self.position} are left")

    def scalar(self, code: str) -> Any:
        size = struct.calcsize(f"<{code}")
        self.need(size, "a value")
        (value,) = struct.unpack_from(f"<{code}", self.data, self.position)
        self.position += size
        return value

    def count(self, what: str, smallest: int) -> int:
        """A number of things that take at least `smallest` bytes each."""
        number = self.scalar("Q")
        if number > (len(self.data) - self.position) // smallest:
            raise self.damaged(f"{number} {what} do not fit into the file")
        return number

    def string(self) -> str:
        length = self.scalar("Q")
        self.need(length, "a string")
        text = bytes(self.data[self.position : self.position + length])
        self.position += length
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            raise self.damaged("a string is not UTF-8") from None

    def value(self, key: str) -> Any:
        kind = self.scalar("I")
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array(key)
        if kind not in _SCALARS:
            raise self.damaged(f"{key!r} has the unknown value type {kind}")
        return self.scalar(_SCALARS[kind])

    def array(self, key: str) -> list[Any]:
        kind = self.scalar("I")
        if kind == _STRING:
            return self.strings(self.count("strings", 8))
        if kind not in _SCALARS:
            raise self.damaged(f"{key!r} is an array of the unsupported value type {kind}")
        code = _SCALARS[kind]
        number = self.count("array elements", struct.calcsize(f"<{code}"))
        values = struct.unpack_from(f"<{number}{code}", self.data, self.position)
        self.position += struct.calcsize(f"<{number}{code}")
        return list(values)

    def strings(self, number: int) -> list[str]:
        """The strings of an array. Apart from `string`, for speed: vocabularies hold hundreds of thousands."""
        unpack, data, end = struct.Struct("<Q").unpack_from, self.data, len(self.data)
        position, texts = self.position, []
        for index in range(number):
            self.position = position
            if position + 8 > end:
                raise self.damaged(f"the array ends before its string {index}")
            (length,) = unpack(data, position)
            position += 8
            if length > end - position:
                raise self.damaged(f"string {index} of an array needs {length} bytes")
            try:
                texts.append(str(data[position : position + length], "utf-8"))
            except UnicodeDecodeError:
                raise self.damaged(f"string {index} of an array is not UTF-8") from None
            position += length
        self.position = position
        return texts

    def tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.string()
        dimensions = self.scalar("I")
        if not 1 <= dimensions <= _MAX_DIMENSIONS:
            raise self.damaged(f"tensor {name!r} has {dimensions} dimensions")
        shape = tuple(self.scalar("Q") for _ in range(dimensions))
        if min(shape) < 1 or math.prod(shape) > _MAX_ELEMENTS:
            raise self.damaged(f"tensor {name!r} has the shape {list(shape)}")
        return name, shape[::-1], self.scalar("I"), self.scalar("Q")

    def place(self, infos: list[tuple[str, tuple[int, ...], int, int]], start: int) -> dict[str, TensorInfo]:
        """Check that every tensor lies inside the file; offsets in the file count from `start`."""
        # Imported late: the library takes half a second, and a converted model is served without opening its file.
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        tensors: dict[str, TensorInfo] = {}
        for name, shape, kind, offset in infos:
            try:
                quantisation = GGMLQuantizationType(kind)
            except ValueError:
                raise Refusal(
                    f"{self.path}: tensor {name!r} has the type number {kind}, which this server does not know",
                    "Use a file with another quantisation, such as Q4_K_M or Q8_0, or upgrade the package `gguf`.",
                ) from None
            block, block_bytes = GGML_QUANT_SIZES[quantisation]
            if shape[-1] % block:
                raise self.damaged(f"rows of {name!r} hold {shape[-1]} values, not a multiple of {block}")
            size = math.prod(shape) // block * block_bytes
            if start + offset + size > len(self.data):
                raise self.damaged(f"tensor {name!r} ends at byte {start + offset + size}, after the end of the file")
            if name in tensors:
                raise self.damaged(f"tensor {name!r} is listed twice")
            tensors[name] = TensorInfo(name, shape, quantisation.name, start + offset, size)
        return tensors
