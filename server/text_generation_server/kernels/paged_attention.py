"""Grouped-query attention over a paged cache for ragged rows: decode and chunked prefill in one launch.

A program owns one tile: up to `BLOCK_M` pairs of (query token, query head) that share one key/value head, so keys and
values are loaded once a group. Tiles are listed by the caller, once a step for all layers. The cache is
(blocks, kv_heads, block_size, head_dim). The reference in plain torch is `paged_attention_reference`.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 16
"""Pairs of a tile: the least that `tl.dot` takes."""
_BLOCK_N = 64
_LOG2E = 1.4426950408889634


@triton.jit
def _attend(  # noqa: PLR0913 (a kernel takes flat arguments)
    query,
    key_cache,
    value_cache,
    out,
    tables,
    starts,
    counts,
    firsts,
    tile_rows,
    tile_queries,
    scale,
    query_stride,
    table_stride,
    kv_heads,
    block_size,
    window,
    GROUP: tl.constexpr,
    QUERIES: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    row = tl.load(tile_rows + tile)
    first_query = tl.load(tile_queries + tile)
    start = tl.load(starts + row)
    count = tl.load(counts + row)
    pair = tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    inside = column < HEAD_DIM
    at = first_query + pair // GROUP
    live = (pair < QUERIES * GROUP) & (at < count)
    position = start + at
    token = (tl.load(firsts + row) + at).to(tl.int64)
    place = token * query_stride + (kv_head * GROUP + pair % GROUP) * HEAD_DIM
    q = tl.load(query + place[:, None] + column[None, :], mask=live[:, None] & inside[None, :], other=0.0)

    best = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, WIDTH], tl.float32)
    end = start + tl.minimum(first_query + QUERIES, count)
    begin = tl.maximum(start + first_query - window + 1, 0) // KEYS * KEYS
    for n0 in range(begin, end, KEYS):
        n = n0 + tl.arange(0, KEYS)
        block = tl.load(tables + row * table_stride + n // block_size, mask=n < end, other=0).to(tl.int64)
        cell = ((block * kv_heads + kv_head) * block_size + n % block_size) * HEAD_DIM
        present = (n < end)[:, None] & inside[None, :]
        k = tl.load(key_cache + cell[:, None] + column[None, :], mask=present, other=0.0)
        v = tl.load(value_cache + cell[:, None] + column[None, :], mask=present, other=0.0)
        seen = (n[None, :] <= position[:, None]) & (n[None, :] > position[:, None] - window)
        score = tl.where(seen, tl.dot(q, tl.trans(k), input_precision="ieee") * scale, -1e30)
        top = tl.maximum(best, tl.max(score, 1))
        # A tile may hold no key that a row sees: without the mask its weights would all be one.
        weight = tl.where(seen, tl.exp2(score - top[:, None]), 0.0)
        fade = tl.exp2(best - top)
        total = total * fade + tl.sum(weight, 1)
        sums = sums * fade[:, None] + tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        best = top
    found = sums / tl.maximum(total, 1e-30)[:, None]
    where = token * (kv_heads * GROUP * HEAD_DIM) + (kv_head * GROUP + pair % GROUP) * HEAD_DIM
    tl.store(
        out + where[:, None] + column[None, :], found.to(out.dtype.element_ty), mask=live[:, None] & inside[None, :]
    )


def queries_per_tile(group: int) -> int:
    """Query tokens of one tile when `group` query heads share a key/value head."""
    return max(BLOCK_M // group, 1)


def paged_attention(
    query: torch.Tensor,
    cache: torch.Tensor,
    tables: torch.Tensor,
    rows: torch.Tensor,
    tiles: torch.Tensor,
    window: int | None,
) -> torch.Tensor:
    """Attend with query (tokens, heads, head_dim), whose last two dimensions are contiguous.

    `cache` is (2, blocks, kv_heads, block_size, head_dim), `tables` (rows, blocks) int32; `rows` holds starts, counts
    and first tokens (3, rows) int32, `tiles` row and first query of each tile (2, tiles) int32. Returns (tokens,
    heads, head_dim).
    """
    _, _, kv_heads, block_size, head_dim = cache.shape
    group = query.shape[1] // kv_heads
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    _attend[(tiles.shape[1], kv_heads)](
        query,
        cache[0],
        cache[1],
        out,
        tables,
        rows[0],
        rows[1],
        rows[2],
        tiles[0],
        tiles[1],
        head_dim**-0.5 * _LOG2E,
        query.stride(0),
        tables.stride(0),
        kv_heads,
        block_size,
        window or 1 << 30,
        GROUP=group,
        QUERIES=queries_per_tile(group),
        HEAD_DIM=head_dim,
        WIDTH=max(triton.next_power_of_2(head_dim), 16),
        ROWS=max(triton.next_power_of_2(queries_per_tile(group) * group), BLOCK_M),
        KEYS=_BLOCK_N,
    )
    return out


def paged_attention_reference(
    query: torch.Tensor, cache: torch.Tensor, tables: torch.Tensor, rows: torch.Tensor, window: int | None
) -> torch.Tensor:
    """The same in plain torch and float32, row by row."""
    _, _, kv_heads, _, head_dim = cache.shape
    out = torch.empty_like(query, dtype=torch.float32)
    for table, start, count, first in zip(tables, *rows.tolist(), strict=True):
        length = start + count
        key, value = (
            x[table.long()].transpose(0, 1).reshape(kv_heads, -1, head_dim)[:, :length].float() for x in cache
        )
        q = query[first : first + count].float().view(count, kv_heads, -1, head_dim)
        at = torch.arange(start, length)[:, None]
        keys = torch.arange(length)[None, :]
        seen = (keys <= at) & (keys > at - (window or length))
        scores = torch.einsum("qhgd,hnd->qhgn", q, key) * head_dim**-0.5
        weights = scores.masked_fill(~seen[:, None, None], -torch.inf).softmax(-1)
        out[first : first + count] = torch.einsum("qhgn,hnd->qhgd", weights, value).flatten(1, 2)
    return out
