"""Writes a step's keys and values into a paged cache: one program a token and key/value head.

The cache is (2, blocks, kv_heads, block_size, head_dim). The reference is `write_cache_reference`.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _write(  # noqa: PLR0913 (a kernel takes flat arguments)
    key,
    value,
    cache,
    slots,
    key_stride,
    value_stride,
    half,
    block_size,
    kv_heads,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    column = tl.arange(0, WIDTH)
    inside = column < HEAD_DIM
    slot = tl.load(slots + token)
    cell = (((slot // block_size) * kv_heads + head) * block_size + slot % block_size) * HEAD_DIM
    k = tl.load(key + token * key_stride + head * HEAD_DIM + column, mask=inside)
    v = tl.load(value + token * value_stride + head * HEAD_DIM + column, mask=inside)
    tl.store(cache + cell + column, k, mask=inside)
    tl.store(cache + half + cell + column, v, mask=inside)


def write_cache(key: torch.Tensor, value: torch.Tensor, cache: torch.Tensor, slots: torch.Tensor) -> None:
    """Write key and value (tokens, kv_heads, head_dim) at slots (tokens,) int64 = block * block_size + offset."""
    _, _, kv_heads, block_size, head_dim = cache.shape
    _write[(len(slots), kv_heads)](
        key,
        value,
        cache,
        slots,
        key.stride(0),
        value.stride(0),
        cache.stride(0),
        block_size,
        kv_heads,
        HEAD_DIM=head_dim,
        WIDTH=triton.next_power_of_2(head_dim),
    )


def write_cache_reference(key: torch.Tensor, value: torch.Tensor, cache: torch.Tensor, slots: torch.Tensor) -> None:
    """The same in plain torch."""
    block_size = cache.shape[3]
    for half, new in zip(cache, (key, value), strict=True):
        half[slots // block_size, :, slots % block_size] = new
