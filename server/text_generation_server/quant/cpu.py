"""Linear layers on a CPU in float32, with weights as the checkpoint stores them.

Weights of 16 bits stay 16 bits wide and are widened in registers: exact, and half the memory and traffic of float32.
Steps of few tokens, whose time is that of reading the weights, run in the native module on all threads; larger ones,
whose time is arithmetic, run in torch. Knows nothing of layers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from text_generation_server._native import CpuMatrix, CpuPool

# Up to this many tokens the native product is the faster one (docs/performance-log.md).
FEW_TOKENS = 32


class CpuProduct:
    """x float32 times weights in float32, float16 or bfloat16."""

    def __init__(self, pool: CpuPool):
        self._pool = pool
        self._weight: torch.Tensor | None = None
        self._matrix: CpuMatrix | None = None

    def prepare(self, weight: torch.Tensor) -> None:
        """Keep the weight, and let the native module read the same memory."""
        self._weight = weight.contiguous()
        # numpy has no bfloat16: 16-bit weights cross as their bits.
        bits = self._weight if weight.dtype == torch.float32 else self._weight.view(torch.uint16)
        self._matrix = CpuMatrix(self._pool, bits.numpy(), str(weight.dtype).removeprefix("torch."))

    def apply(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """x W^T + bias."""
        if len(x) > FEW_TOKENS:
            return F.linear(x, self._weight.to(x.dtype), bias)
        y = x.new_empty(len(x), len(self._weight))
        self._matrix.multiply(x.contiguous().numpy(), y.numpy())
        return y if bias is None else y.add_(bias)
