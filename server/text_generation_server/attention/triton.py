"""Attention through the project's own Triton kernels: the default on a GPU.

The cache of a layer is (2, blocks, kv_heads, block_size, head_dim): one block of one head is contiguous. The list of
tiles is made on the host once a step and serves all layers with the same grouping.
"""

import numpy as np
import torch

from text_generation_server.attention.base import AttentionBackend, AttentionStep, RaggedRows, flat_slots
from text_generation_server.kernels.paged_attention import paged_attention, queries_per_tile
from text_generation_server.kernels.write_cache import write_cache


class TritonBackend(AttentionBackend):
    """One launch for all rows of a step, whatever their lengths."""

    name = "triton"

    def allocate(self, blocks: int) -> None:
        """(Re)allocate the cache."""
        self.cache = [
            torch.zeros(
                2, blocks, layer.kv_heads, self.block_size, layer.head_dim, dtype=self.dtype, device=self.device
            )
            for layer in self.layers
        ]

    def copy_blocks(self, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Copy whole blocks, in all layers."""
        for cache in self.cache:
            cache.index_copy_(1, targets, cache.index_select(1, sources))

    def begin(self, rows: RaggedRows) -> AttentionStep:
        """The attention of a step that runs these rows."""
        return _TritonStep(self, rows)


# === impl _TritonStep ===


class _TritonStep(AttentionStep):
    def __init__(self, backend: TritonBackend, rows: RaggedRows):
        self._backend = backend
        firsts = np.cumsum(rows.counts) - rows.counts
        self._slots = self._send(flat_slots(rows, backend.block_size))
        self._tables = self._send(rows.block_tables)
        self._rows = self._send(np.stack((rows.starts, rows.counts, firsts)).astype(np.int32))
        groups = {layer.heads // layer.kv_heads for layer in backend.layers}
        self._tiles = {group: self._send(_tiles(rows.counts, queries_per_tile(group))) for group in groups}

    def __call__(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Write, then attend; see the base class."""
        shape, cache = self._backend.layers[layer], self._backend.cache[layer]
        write_cache(key, value, cache, self._slots)
        tiles = self._tiles[shape.heads // shape.kv_heads]
        return paged_attention(query, cache, self._tables, self._rows, tiles, shape.window).flatten(1)

    def _send(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._backend.device, non_blocking=True)


def _tiles(counts: np.ndarray, queries: int) -> np.ndarray:
    """Row and first query (2, tiles) of each tile."""
    per_row = -(-counts // queries)
    row = np.repeat(np.arange(len(counts)), per_row)
    index = np.arange(len(row)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    return np.stack((row, index * queries)).astype(np.int32)
