"""A linear layer: declared parameters, a method that computes, and a reduction where ranks share the input features.

Written as for one device. `parallel/shard.py` shrinks the parameters and sets `reduce`; `use` replaces the method.
"""

from collections.abc import Callable

import torch

from text_generation_server.layers.parameter import Parameter, Part, Share
from text_generation_server.quant.base import LinearMethod, Plain


class Linear:
    """y = x W^T + b, with W made of one or more parts stacked along its rows."""

    def __init__(
        self, module: str, in_features: int, parts: tuple[Part, ...], *, bias: bool, share: Share = Share.REPLICATED
    ):
        self.weight = Parameter(module, "weight", parts, in_features, share)
        # The bias of a row-shared layer is added once, after the reduction: every rank holds all of it.
        bias_share = Share.REPLICATED if share is Share.ROW else share
        self.bias = Parameter(module, "bias", parts, None, bias_share) if bias else None
        self._method: LinearMethod = Plain()
        self.reduce: Callable[[torch.Tensor], torch.Tensor] | None = None

    def use(self, method: LinearMethod, *, as_stored: bool) -> None:
        """Compute with this method; before loading. `as_stored`: it takes the weight in the checkpoint's type."""
        self._method = method
        self.weight.as_stored = as_stored

    def parameters(self) -> list[Parameter]:
        """What a checkpoint must provide."""
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    def loaded(self) -> None:
        """Hand the loaded weight to the method."""
        self._method.prepare(self.weight.data)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x (tokens, in) -> (tokens, out)."""
        bias = None if self.bias is None else self.bias.data
        if self.reduce is None:
            return self._method.apply(x, bias)
        y = self.reduce(self._method.apply(x, None))
        return y if bias is None else y + bias
