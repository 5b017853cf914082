"""Turns the bytes of one GGUF tensor into an array that safetensors can hold.

Owns the choice of the stored type. Knows nothing of names, models or files on the other side.
"""

import numpy as np

from text_generation_server.gguf.reader import GgufFile, TensorInfo
from text_generation_server.refusal import Refusal

# Unquantised types are kept as they are. Quantised values (a float16 scale times a few bits) become float16: its
# rounding is some hundred times smaller than the quantisation step, bfloat16's would be eight times larger than that,
# and float32 would double the folder for digits that carry no information.
_KEPT = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_STORED = {"F32": "F32", "F16": "F16", "BF16": "BF16"}
_QUANTISED_AS = "F16"
_WIDTHS = {"F32": 4, "F16": 2, "BF16": 2}
# Names of the stored types in `config.json`.
TORCH_NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
# Values decoded at once: bounds the memory of the float32 intermediate to 16 MB.
_CHUNK_VALUES = 4 << 20


def stored_type(tensor: TensorInfo) -> str:
    """The safetensors type of a tensor: `F32`, `F16` or `BF16`."""
    return _STORED.get(tensor.type_name, _QUANTISED_AS)


def stored_size(tensor: TensorInfo) -> int:
    """Bytes of a tensor in the safetensors file."""
    return int(np.prod(tensor.shape, dtype=np.int64)) * _WIDTHS[stored_type(tensor)]


def check_types(file: GgufFile) -> None:
    """Refuse a file with tensors whose type has no decoder, before any work is done.

    Raises:
        Refusal: names the first such tensor and its type.
    """
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    usable = dict.fromkeys(_KEPT, True)
    for tensor in file.tensors.values():
        name = tensor.type_name
        if name not in usable:
            kind = GGMLQuantizationType[name]
            try:
                dequantize(np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8), kind)
                usable[name] = True
            except NotImplementedError:
                usable[name] = False
        if not usable[name]:
            raise Refusal(
                f"{file.path}: tensor {tensor.name!r} has the type {name}, which cannot be decoded",
                "Use a file with another quantisation, such as Q4_K_M or Q8_0.",
            )


def decode(file: GgufFile, tensor: TensorInfo) -> np.ndarray:
    """The values of a tensor in its shape, as float32, float16, or uint16 bit patterns for bfloat16.

    Raises:
        Refusal: a quantised tensor holds values that are not finite, which only a damaged file does.
    """
    rows = file.raw(tensor)
    if tensor.type_name in _KEPT:
        return np.ascontiguousarray(rows).view(_KEPT[tensor.type_name]).reshape(tensor.shape)

    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    kind = GGMLQuantizationType[tensor.type_name]
    values = np.empty((rows.shape[0], tensor.shape[-1]), np.float16)
    step = max(1, _CHUNK_VALUES // tensor.shape[-1])
    for start in range(0, rows.shape[0], step):
        with np.errstate(over="ignore", invalid="ignore"):
            values[start : start + step] = dequantize(rows[start : start + step], kind)
    if not np.isfinite(values).all():
        raise Refusal(
            f"{file.path} is damaged: tensor {tensor.name!r} at byte {tensor.offset} holds values that are not finite",
            "Download the file again, and compare its checksum with the publisher's.",
        )
    return values.reshape(tensor.shape)
