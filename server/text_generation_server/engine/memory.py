"""From a warm-up request to a capacity: defaults, the largest step, and the size of the KV cache.

Owns every default of what a shard holds. Runs the largest step once, so that serving cannot meet a size that was never
tried; reports both numbers when something does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from text_generation_server.attention.base import RaggedRows
from text_generation_server.kv.pool import cache_bytes

if TYPE_CHECKING:
    from text_generation_server._native import WarmupRequest
    from text_generation_server.attention.base import AttentionBackend
    from text_generation_server.models.decoder import Decoder

DEFAULT_SEQUENCES = {"cpu": 64, "cuda": 256}
DEFAULT_STEP_TOKENS = {"cpu": 512, "cuda": 2048}


class DoesNotFit(Exception):
    """The memory is too small for what was asked; the message holds both numbers and the way out."""


@dataclass(frozen=True)
class Capacity:
    """What this shard holds; as in `proto/shard.proto`."""

    blocks: int
    max_sequences: int
    max_step_tokens: int
    max_total_tokens: int


@torch.inference_mode()
def find_capacity(
    request: WarmupRequest, decoder: Decoder, attention: AttentionBackend, memory_fraction: float
) -> Capacity:
    """Size the cache for a request. The cache itself is not allocated yet.

    Raises:
        DoesNotFit: less memory than the longest sequence needs, or than was asked for.
    """
    kind = attention.device.type
    sequences = request.max_sequences or DEFAULT_SEQUENCES[kind]
    step_tokens = max(request.max_step_tokens or DEFAULT_STEP_TOKENS[kind], sequences)
    positions = decoder.spec.max_positions
    if request.max_total_tokens > positions:
        raise DoesNotFit(
            f"sequences of {request.max_total_tokens} tokens were asked for; the model has {positions} positions\n"
            "Lower --max-total-tokens."
        )
    step_bytes = _try_largest_step(decoder, attention, step_tokens, sequences)
    fitting = cache_bytes(attention.device, memory_fraction, step_bytes) // attention.block_bytes()
    blocks, total = _blocks(request, attention.block_size, fitting, positions)
    # More blocks than all rows together can use would lie idle.
    blocks = min(blocks, sequences * -(-total // attention.block_size))
    return Capacity(blocks, sequences, step_tokens, total)


def _blocks(request: WarmupRequest, block_size: int, fitting: int, positions: int) -> tuple[int, int]:
    """(blocks, longest sequence in tokens)."""
    blocks = fitting
    if request.max_cache_tokens:
        blocks = -(-request.max_cache_tokens // block_size)
        if blocks > fitting:
            raise DoesNotFit(
                f"a KV cache of {request.max_cache_tokens} tokens was asked for; {fitting * block_size} fit into memory"
                "\nLower --max-batch-total-tokens or --max-batch-size."
            )
    room = blocks * block_size
    if request.max_total_tokens > room or room == 0:
        raise DoesNotFit(
            f"sequences of {request.max_total_tokens or 1} tokens were asked for, but the KV cache holds {room}\n"
            "Lower --max-total-tokens, or free memory."
        )
    return blocks, request.max_total_tokens or min(positions, room)


def _try_largest_step(decoder: Decoder, attention: AttentionBackend, tokens: int, sequences: int) -> int:
    """Run the largest step once, on a cache of its own size; the bytes it took on a GPU beside weights and cache."""
    device, block_size = attention.device, attention.block_size
    tokens = min(tokens, decoder.spec.max_positions)
    blocks = -(-tokens // block_size)
    attention.allocate(blocks)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    rows = RaggedRows(np.zeros(1, np.int64), np.array([tokens]), np.arange(blocks, dtype=np.int32)[None])
    ids = torch.zeros(tokens, dtype=torch.int32, device=device)
    hidden = decoder.hidden(ids, torch.arange(tokens, device=device), attention.begin(rows))
    # Sampling with every warper holds a few copies of the logits and of their order.
    logits = decoder.logits(hidden[: min(sequences, tokens)])
    if device.type != "cuda":
        attention.cache = []
        return 0
    ordered = logits.sort(-1)
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - before
    del ordered, logits, hidden
    attention.cache = []
    torch.cuda.empty_cache()
    return peak
