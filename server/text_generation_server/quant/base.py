"""The seam for quantised weights: a linear layer computes through a method object.

A method may repack the weights once after loading. `Plain` is the reference; knows nothing of ranks, which the layer
handles around it.
"""

from typing import Protocol

import torch
import torch.nn.functional as F


class LinearMethod(Protocol):
    """How one linear layer stores and multiplies its weights."""

    def prepare(self, weight: torch.Tensor) -> None:
        """Take over the loaded weight (out, in)."""

    def apply(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """x (tokens, in) -> (tokens, out)."""


class Plain:
    """Weights as they are."""

    def __init__(self) -> None:
        self.weight: torch.Tensor | None = None

    def prepare(self, weight: torch.Tensor) -> None:
        """Keep the weight."""
        self.weight = weight

    def apply(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """x W^T + bias."""
        return F.linear(x, self.weight, bias)
