"""Attention through torch's scaled dot product: the CPU back end, and the reference on any device.

The cache of a layer is (2, kv_heads, blocks * block_size, head_dim): a run of consecutive blocks is then one plain view
a head, so a sequence whose blocks follow each other costs no copy; others are gathered. Query heads that share a
key/value head are treated as the heads of one batch entry, so keys and values are never repeated.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from text_generation_server.attention.base import AttentionBackend, AttentionStep, LayerShape, RaggedRows, flat_slots


@dataclass(frozen=True)
class _Row:
    """One row: tokens `first .. first+count` of the step, over keys `begin .. length` of the sequence."""

    first: int
    count: int
    start: int
    length: int
    run: int | None
    """Cache position of the sequence's first token when its blocks are consecutive."""
    blocks: torch.Tensor | None
    """Else its block ids."""


class SdpaBackend(AttentionBackend):
    """Scaled dot product attention, row by row."""

    name = "sdpa"

    def allocate(self, blocks: int) -> None:
        """(Re)allocate the cache."""
        tokens = blocks * self.block_size
        self.cache = [
            torch.empty(2, layer.kv_heads, tokens, layer.head_dim, dtype=self.dtype, device=self.device)
            for layer in self.layers
        ]

    def copy_blocks(self, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Copy whole blocks, in all layers."""
        for cache in self.cache:
            paged = cache.view(2, cache.shape[1], -1, self.block_size, cache.shape[3])
            paged.index_copy_(2, targets, paged.index_select(2, sources))

    def begin(self, rows: RaggedRows) -> AttentionStep:
        """The attention of a step that runs these rows."""
        slots = torch.from_numpy(flat_slots(rows, self.block_size)).to(self.device)
        return _SdpaStep(self, slots, self._describe(rows))

    def _describe(self, rows: RaggedRows) -> list[_Row]:
        described, first = [], 0
        used = -(-rows.lengths // self.block_size)
        for i, (start, count) in enumerate(zip(rows.starts.tolist(), rows.counts.tolist(), strict=True)):
            table = rows.block_tables[i, : used[i]]
            consecutive = table[-1] - table[0] == len(table) - 1 and bool(np.all(np.diff(table) == 1))
            run = int(table[0]) * self.block_size if consecutive else None
            blocks = None if consecutive else torch.from_numpy(table.astype(np.int64)).to(self.device)
            described.append(_Row(first, count, start, start + count, run, blocks))
            first += count
        return described


# === impl _SdpaStep ===


class _SdpaStep(AttentionStep):
    def __init__(self, backend: SdpaBackend, slots: torch.Tensor, rows: list[_Row]):
        self._backend = backend
        self._slots = slots
        self._rows = rows
        self._masks: dict[tuple[int, int | None], torch.Tensor | None] = {}

    def __call__(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Write, then attend; see the base class."""
        cache, shape = self._backend.cache[layer], self._backend.layers[layer]
        cache[0].index_copy_(1, self._slots, key.transpose(0, 1))
        cache[1].index_copy_(1, self._slots, value.transpose(0, 1))
        if len(self._rows) == 1:
            return self._attend(cache, shape, self._rows[0], query)
        out = query.new_empty(len(query), shape.heads * shape.head_dim)
        for row in self._rows:
            tokens = slice(row.first, row.first + row.count)
            out[tokens] = self._attend(cache, shape, row, query[tokens])
        return out

    def _attend(self, cache: torch.Tensor, shape: LayerShape, row: _Row, query: torch.Tensor) -> torch.Tensor:
        """query (count, heads, head_dim) -> (count, heads * head_dim)."""
        group = shape.heads // shape.kv_heads
        key, value = self._cached(cache, row)
        if row.count == 1:
            if shape.window is not None:
                key, value = key[:, -shape.window :], value[:, -shape.window :]
            # Without a mask between queries, the heads of a group can be the queries of one attention.
            q = query.reshape(1, shape.kv_heads, group, shape.head_dim)
            return F.scaled_dot_product_attention(q, key.unsqueeze(0), value.unsqueeze(0)).view(1, -1)
        q = query.view(row.count, shape.kv_heads, group, shape.head_dim).permute(1, 2, 0, 3)
        key, value = (x.unsqueeze(1).expand(-1, group, -1, -1) for x in (key, value))
        mask = self._mask(row, shape.window)
        out = F.scaled_dot_product_attention(q, key, value, attn_mask=mask, is_causal=mask is None)
        return out.permute(2, 0, 1, 3).reshape(row.count, -1)

    def _cached(self, cache: torch.Tensor, row: _Row) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (kv_heads, length, head_dim) of a row."""
        if row.run is not None:
            return cache[:, :, row.run : row.run + row.length].unbind(0)
        paged = cache.view(2, cache.shape[1], -1, self._backend.block_size, cache.shape[3])
        return paged.index_select(2, row.blocks).flatten(2, 3)[:, :, : row.length].unbind(0)

    def _mask(self, row: _Row, window: int | None) -> torch.Tensor | None:
        """Which keys (length) each query (count) sees; None = the plain causal triangle."""
        if row.start == 0 and (window is None or row.length <= window):
            return None
        wanted = (row.first, window)
        if wanted not in self._masks:
            at = torch.arange(row.start, row.length, device=self._slots.device)[:, None]
            keys = torch.arange(row.length, device=self._slots.device)[None, :]
            mask = keys <= at
            self._masks[wanted] = mask if window is None else mask & (keys > at - window)
        return self._masks[wanted]
