"""RMS normalisation: x / rms(x) * weight, the mean square in float32."""

import torch
import torch.nn.functional as F

from text_generation_server.layers.parameter import Parameter, Part


class RmsNorm:
    """Normalises the last dimension."""

    def __init__(self, module: str, dim: int, eps: float):
        self.weight = Parameter(module, "weight", (Part("", dim),), None)
        self._shape = (dim,)
        self._eps = eps

    def parameters(self) -> list[Parameter]:
        """What a checkpoint must provide."""
        return [self.weight]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x (tokens, dim) -> the same shape and dtype."""
        if x.dtype == torch.float32:
            return F.rms_norm(x, self._shape, self.weight.data, self._eps)
        # The product with the weight stays in the model's dtype, as checkpoints were trained.
        return F.rms_norm(x.float(), self._shape, None, self._eps).to(x.dtype) * self.weight.data
