"""From a shard's configuration to a loaded model with its attention: device, dtype, ranks, weights.

Owns the defaults that depend on the device. Knows neither plans nor the protocol.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from text_generation_server._native import CpuPool
from text_generation_server.attention.base import AttentionBackend, LayerShape
from text_generation_server.attention.select import select_attention
from text_generation_server.config import ShardConfig
from text_generation_server.engine.threads import StepThreads
from text_generation_server.models.decoder import Decoder
from text_generation_server.models.registry import describe_model
from text_generation_server.models.spec import Family
from text_generation_server.parallel.collectives import Collectives
from text_generation_server.parallel.divide import check_divisible
from text_generation_server.parallel.mesh import join
from text_generation_server.parallel.shard import shard_decoder
from text_generation_server.quant.cpu import FEW_TOKENS, CpuProduct
from text_generation_server.refusal import Refusal
from text_generation_server.weights.dummy import fill_dummy
from text_generation_server.weights.index import CheckpointIndex
from text_generation_server.weights.loader import load_weights

PROTOCOL_VERSION = 1
BLOCK_SIZE = 16
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_LOAD_FORMATS = ("auto", "dummy")


@dataclass(frozen=True)
class Shard:
    """A loaded model, ready for warm-up."""

    decoder: Decoder
    attention: AttentionBackend
    collectives: Collectives | None
    device: torch.device
    dtype: str
    rank: int
    world_size: int
    threads: StepThreads | None

    def details(self) -> dict[str, Any]:
        """The fields of `InfoResponse`."""
        first = self.attention.layers[0]
        return {
            "rank": self.rank,
            "world_size": self.world_size,
            "dtype": self.dtype,
            "device": _device_name(self.device),
            "vocab_size": self.decoder.spec.vocab_size,
            "layers": len(self.decoder.layers),
            "kv_heads": first.kv_heads,
            "head_dim": first.head_dim,
            "block_size": BLOCK_SIZE,
            "max_positions": self.decoder.spec.max_positions,
            "attention": self.attention.name,
            "capabilities": ["prompt_logprobs"],
        }


def build_shard(config: ShardConfig, progress: Callable[[str], None]) -> Shard:
    """Load the model that a configuration names. `progress` is told, for people, what is going on.

    Raises:
        Refusal: anything in the configuration or the model folder that cannot be served.
    """
    device, dtype = _device(config), _dtype(config)
    if config.load_format not in _LOAD_FORMATS:
        raise Refusal(
            f"load format `{config.load_format}` does not exist", f"choose one of: {', '.join(_LOAD_FORMATS)}"
        )
    backend = select_attention(config.attention, device)
    family = describe_model(Path(config.model_folder), config.rope_scaling, config.rope_factor)
    check_divisible(family.spec, config.world_size)
    torch.set_num_threads(config.threads or max(len(os.sched_getaffinity(0)) // config.world_size, 1))
    progress("waiting for the other shards" if config.world_size > 1 else "building the model")
    collectives = join(config.rank, config.world_size, config.rendezvous, device)
    decoder = Decoder(family.spec)
    if collectives is not None:
        shard_decoder(decoder, collectives)
    progress("loading weights")
    threads = choose_products(decoder, device, _DTYPES[dtype])
    with torch.inference_mode():
        _load(config, decoder, family, _DTYPES[dtype], device)
        decoder.ready(family.spec.max_positions)
    shapes = [LayerShape(b.heads, b.kv_heads, b.head_dim, b.window) for b in (x.attention for x in decoder.layers)]
    attention = backend(shapes, BLOCK_SIZE, _DTYPES[dtype], device)
    return Shard(decoder, attention, collectives, device, dtype, config.rank, config.world_size, threads)


def choose_products(decoder: Decoder, device: torch.device, dtype: torch.dtype) -> StepThreads | None:
    """How the linear layers of a decoder that is not loaded yet compute on this device, with torch's threads. Returns
    how steps use torch's threads beside own products; None where torch computes everything."""
    if device.type != "cpu" or dtype != torch.float32:
        return None
    pool = CpuPool(torch.get_num_threads())
    for linear in (*decoder.linears, decoder.head.linear):
        linear.use(CpuProduct(pool), as_stored=True)
    # A tied head reads the embedding's memory.
    decoder.embedding.weight.as_stored = True
    return StepThreads(FEW_TOKENS)


def _load(config: ShardConfig, decoder: Decoder, family: Family, dtype: torch.dtype, device: torch.device) -> None:
    if config.load_format == "dummy":
        fill_dummy(decoder.parameters(), dtype, device)
    else:
        load_weights(
            decoder.parameters(), CheckpointIndex(Path(config.model_folder)), family, config.rank, dtype, device
        )


def _device(config: ShardConfig) -> torch.device:
    if config.device not in ("auto", "cpu", "cuda"):
        raise Refusal(f"device `{config.device}` does not exist", "choose one of: auto, cpu, cuda")
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise Refusal(
            "device `cuda` was asked for, but torch finds no CUDA device", "use --device cpu, or check the driver"
        )
    if config.device == "cpu" or not available:
        return torch.device("cpu")
    if config.rank >= torch.cuda.device_count():
        raise Refusal(
            f"rank {config.rank} needs a GPU of its own, but there are {torch.cuda.device_count()}", "lower --num-shard"
        )
    device = torch.device("cuda", config.rank)
    torch.cuda.set_device(device)
    return device


def _dtype(config: ShardConfig) -> str:
    if config.dtype is None:
        return "float32" if config.device == "cpu" or not torch.cuda.is_available() else "bfloat16"
    if config.dtype not in _DTYPES:
        raise Refusal(f"dtype `{config.dtype}` does not exist", f"choose one of: {', '.join(_DTYPES)}")
    return config.dtype


def _device_name(device: torch.device) -> str:
    return f"{device} {torch.cuda.get_device_name(device)}" if device.type == "cuda" else str(device)
