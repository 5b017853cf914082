"""Small GGUF files for the tests, written with the `gguf` library, and the real demo file."""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from tokenizers.pre_tokenizers import ByteLevel

HIDDEN, LAYERS, HEADS, KV_HEADS, FFN, HEAD = 64, 2, 4, 2, 96, 16
SPECIALS = ["<|bos|>", "<|eos|>", "<|eot|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "1 2", "12 3"]


def vocabulary() -> list[str]:
    merged = [merge.replace(" ", "") for merge in MERGES]
    return SPECIALS + sorted(ByteLevel.alphabet()) + merged


def write_gguf(path: Path, change: Callable[[gguf.GGUFWriter, dict], None] | None = None) -> dict[str, np.ndarray]:
    """Write a tiny model; returns its tensors in float32. `change(writer, tensors)` may alter either before."""
    writer = gguf.GGUFWriter(path, "llama")
    tokens = vocabulary()
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    random = np.random.default_rng(0)

    def matrix(*shape: int) -> np.ndarray:
        return random.normal(0, 0.05, shape).astype(np.float32)

    tensors = {"token_embd.weight": matrix(len(tokens), HIDDEN), "output_norm.weight": 1 + matrix(HIDDEN)}
    for layer in range(LAYERS):
        own = {
            "attn_norm": 1 + matrix(HIDDEN),
            "attn_q": matrix(HEADS * HEAD, HIDDEN),
            "attn_k": matrix(KV_HEADS * HEAD, HIDDEN),
            "attn_v": matrix(KV_HEADS * HEAD, HIDDEN),
            "attn_output": matrix(HIDDEN, HEADS * HEAD),
            "ffn_norm": 1 + matrix(HIDDEN),
            "ffn_gate": matrix(FFN, HIDDEN),
            "ffn_up": matrix(FFN, HIDDEN),
            "ffn_down": matrix(HIDDEN, FFN),
        }
        tensors |= {f"blk.{layer}.{name}.weight": value for name, value in own.items()}
    if change is not None:
        change(writer, tensors)
    for name, value in tensors.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_gguf(path)
    return path


@pytest.fixture(scope="session")
def demo_file() -> Path:
    from text_generation_server.cli import default_cache_folder
    from text_generation_server.prepare.demo import find_or_fetch

    return find_or_fetch(default_cache_folder())


@pytest.fixture(scope="session")
def demo_folder(demo_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from text_generation_server.gguf.convert import convert

    return convert(demo_file, tmp_path_factory.mktemp("cache"))
