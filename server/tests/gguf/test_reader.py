import random
import struct
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest

from text_generation_server.gguf.dequantise import check_types, decode
from text_generation_server.gguf.reader import GgufFile, TensorInfo, open_gguf
from text_generation_server.refusal import Refusal

from .conftest import vocabulary, write_gguf

DECODED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]


def test_metadata_and_tensors_are_those_of_the_library(tiny: Path) -> None:
    ours, theirs = open_gguf(tiny), gguf.GGUFReader(tiny)
    for key, field in theirs.fields.items():
        if not key.startswith("GGUF."):
            assert ours.metadata[key] == field.contents(), key
    assert ours.metadata["tokenizer.ggml.tokens"] == vocabulary()
    for tensor in theirs.tensors:
        info = ours.tensors[tensor.name]
        assert info.shape == tuple(int(size) for size in reversed(tensor.shape))
        assert info.offset == tensor.data_offset
        np.testing.assert_array_equal(decode(ours, info), tensor.data)


@pytest.mark.parametrize("name", DECODED)
def test_quantised_tensors_equal_the_library(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    # The mask keeps every float16 scale below 1.
    raw = np.random.default_rng(1).integers(0, 256, (6, 2 * size), np.uint8) & 0x3B
    tensor = TensorInfo("t", (6, 2 * block), name, 0, raw.size)
    file = GgufFile(Path("x"), {}, {"t": tensor}, memoryview(raw.tobytes()))
    check_types(file)
    expected = gguf.quants.dequantize(raw, kind)
    np.testing.assert_array_equal(decode(file, tensor), expected.astype(np.float16))


def test_plain_types_are_kept(tmp_path: Path) -> None:
    def halve(writer: gguf.GGUFWriter, tensors: dict) -> None:
        tensors["output_norm.weight"] = tensors["output_norm.weight"].astype(np.float16)

    tensors = write_gguf(tmp_path / "m.gguf", halve)
    file = open_gguf(tmp_path / "m.gguf")
    for name in ("output_norm.weight", "token_embd.weight"):
        values = decode(file, file.tensors[name])
        assert values.dtype == tensors[name].dtype
        np.testing.assert_array_equal(values, tensors[name])


def test_a_type_without_decoder_is_refused_by_name() -> None:
    tensor = TensorInfo("blk.0.ffn_up.weight", (1, 1), "I64", 0, 8)
    file = GgufFile(Path("x.gguf"), {}, {"t": tensor}, memoryview(bytes(8)))
    with pytest.raises(Refusal, match=r"'blk.0.ffn_up.weight' has the type I64"):
        check_types(file)


def test_values_that_are_not_finite_are_refused() -> None:
    raw = np.full((1, 34), 0x7C, np.uint8)
    tensor = TensorInfo("bad", (1, 32), "Q8_0", 0, 34)
    file = GgufFile(Path("x.gguf"), {}, {"bad": tensor}, memoryview(raw.tobytes()))
    with pytest.raises(Refusal, match="'bad' at byte 0 holds values that are not finite"):
        decode(file, tensor)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"GG", "not a GGUF file"),
        (b"PK\x03\x04....", "not a GGUF file"),
        (b"GGUF", "byte 4 of 4"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(16), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "1152921504606846976 tensors do not fit"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "metadata entries do not fit"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62) + bytes(16), "a string needs"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(Refusal, match=words):
        open_gguf(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="No such file"):
        open_gguf(tmp_path / "x.gguf")


def test_a_truncated_file_names_the_tensor(tiny: Path) -> None:
    tiny.write_bytes(tiny.read_bytes()[:-4096])
    with pytest.raises(Refusal, match="after the end of the file"):
        open_gguf(tiny)


def test_random_damage_never_ends_in_another_error(tiny: Path, tmp_path: Path) -> None:
    """Truncations and flipped bits of the header: a refusal or a readable file, and no wild allocation."""
    whole = tiny.read_bytes()
    header = min(tensor.offset for tensor in open_gguf(tiny).tensors.values())
    source, path = random.Random(7), tmp_path / "damaged.gguf"
    tracemalloc.start()
    for attempt in range(400):
        damaged = bytearray(whole)
        if attempt % 2:
            damaged = damaged[: source.randrange(len(whole))]
        else:
            for _ in range(source.randint(1, 4)):
                damaged[source.randrange(header)] ^= 1 << source.randrange(8)
        path.write_bytes(damaged)
        try:
            open_gguf(path)
        except Refusal:
            continue
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * len(whole)
