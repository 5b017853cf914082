"""The gated MLP: down(activation(gate(x)) * up(x)), with gate and up computed by one matrix product."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from text_generation_server.layers.linear import Linear
from text_generation_server.layers.parameter import Parameter, Part, Share
from text_generation_server.models.spec import Gated
from text_generation_server.refusal import Refusal

# Named as in `hidden_act` of Hugging Face configurations.
_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": F.silu,
    "swish": F.silu,
    "gelu": F.gelu,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}


class GatedMlp:
    """One layer's MLP.

    Raises:
        Refusal: the activation is unknown.
    """

    def __init__(self, module: str, dim: int, spec: Gated):
        if spec.activation not in _ACTIVATIONS:
            known = ", ".join(_ACTIVATIONS)
            raise Refusal(f"activation `{spec.activation}` is not supported", f"supported activations: {known}")
        self._activation = _ACTIVATIONS[spec.activation]
        gate_up = (Part("gate", spec.hidden), Part("up", spec.hidden))
        self.gate_up = Linear(f"{module}.gate_up", dim, gate_up, bias=spec.bias, share=Share.COLUMN)
        self.down = Linear(f"{module}.down", spec.hidden, (Part("", dim),), bias=spec.bias, share=Share.ROW)

    def linears(self) -> list[Linear]:
        """Its linear layers."""
        return [self.gate_up, self.down]

    def parameters(self) -> list[Parameter]:
        """What a checkpoint must provide."""
        return self.gate_up.parameters() + self.down.parameters()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x (tokens, dim) -> the same shape."""
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(self._activation(gate).mul_(up))
