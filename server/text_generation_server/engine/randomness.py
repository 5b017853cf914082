"""Counter-based random numbers: a pure function of (seed, token index, vocabulary id).

Integers are hashed with 32-bit arithmetic that wraps the same way on every device, so a request's noise does not depend
on its batch, on the device or on what ran before. Owns the hash; knows nothing of sampling.
"""

import numpy as np
import numpy.typing as npt
import torch

# The finaliser of MurmurHash3 and the golden ratio, as signed 32-bit numbers.
_MULTIPLY_1 = 0x85EBCA6B - (1 << 32)
_MULTIPLY_2 = 0xC2B2AE35 - (1 << 32)
_GOLDEN = 0x9E3779B1 - (1 << 32)


def row_keys(seeds: npt.NDArray[np.uint64], indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Two 32-bit keys (rows, 2) for each pair of seed and token index (splitmix64, twice)."""
    with np.errstate(over="ignore"):
        mixed = _splitmix(_splitmix(seeds.astype(np.uint64)) + indices.astype(np.uint64))
    return np.ascontiguousarray(mixed).view(np.int32).reshape(-1, 2)


def token_keys(values: torch.Tensor) -> torch.Tensor:
    """Two 32-bit keys (rows, 2) for each int32 of (rows,), on the device of the values."""
    first = _mix(values * _GOLDEN)
    return torch.stack((first, _mix(first ^ values)), -1)


def uniform(keys: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Float32 numbers between 0 and 1 for keys (rows, 2) and vocabulary ids: (ids,) or (rows, ids)."""
    ids = ids.to(torch.int32) * _GOLDEN
    bits = _mix(_mix(ids ^ keys[:, :1]) ^ keys[:, 1:])
    # 23 bits and a half: never 0 or 1, and exact in float32.
    return ((bits >> 9 & 0x7FFFFF).float() + 0.5) * 2.0**-23


def gumbel(keys: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Standard Gumbel noise in float32 for keys (rows, 2) and vocabulary ids: (ids,) or (rows, ids)."""
    return uniform(keys, ids).log_().neg_().log_().neg_()


def _splitmix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _mix(x: torch.Tensor) -> torch.Tensor:
    """32-bit finaliser; `>>` keeps the sign, so the bits it shifts in are masked off."""
    x = (x ^ (x >> 16 & 0xFFFF)) * _MULTIPLY_1
    x = (x ^ (x >> 13 & 0x7FFFF)) * _MULTIPLY_2
    return x ^ (x >> 16 & 0xFFFF)
