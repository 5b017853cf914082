"""The one decoder, built from a `DecoderSpec`. Written for one device and full precision.

Owns the order of computation. Which part of a parameter this rank holds, how weights are stored and how attention is
computed are decided elsewhere and plugged in.
"""

from functools import cached_property

import torch

from text_generation_server.attention.base import AttentionStep
from text_generation_server.layers.attention import AttentionBlock
from text_generation_server.layers.embedding import Embedding, Head
from text_generation_server.layers.linear import Linear
from text_generation_server.layers.mlp import GatedMlp
from text_generation_server.layers.norm import RmsNorm
from text_generation_server.layers.parameter import Parameter
from text_generation_server.layers.rotary import RotaryTable
from text_generation_server.models.spec import DecoderSpec, LayerSpec, Rope


class Block:
    """One pre-norm residual block."""

    def __init__(self, layer: int, spec: LayerSpec, dim: int, eps: float):
        self.rope = spec.mixer.rope
        self.mixer_norm = RmsNorm(f"layers.{layer}.mixer_norm", dim, eps)
        self.attention = AttentionBlock(layer, dim, spec.mixer)
        self.mlp_norm = RmsNorm(f"layers.{layer}.mlp_norm", dim, eps)
        self.mlp = GatedMlp(f"layers.{layer}.mlp", dim, spec.mlp)

    def parameters(self) -> list[Parameter]:
        """What a checkpoint must provide."""
        parts = (self.mixer_norm, self.attention, self.mlp_norm, self.mlp)
        return [parameter for part in parts for parameter in part.parameters()]

    def __call__(
        self, x: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor], attend: AttentionStep
    ) -> torch.Tensor:
        """x (tokens, dim) -> the same shape. x is changed in place: it is the residual stream."""
        x += self.attention(self.mixer_norm(x), angles, attend)
        x += self.mlp(self.mlp_norm(x))
        return x


class Decoder:
    """Token ids to logits. Declared first, then sharded, loaded, and `ready`."""

    def __init__(self, spec: DecoderSpec):
        self.spec = spec
        self.embedding = Embedding(spec.vocab_size, spec.dim)
        self.layers = [Block(i, layer, spec.dim, spec.norm_eps) for i, layer in enumerate(spec.layers)]
        self.final_norm = RmsNorm("final_norm", spec.dim, spec.norm_eps)
        self.head = Head(self.embedding, spec.vocab_size, spec.dim, tie=spec.tie)
        self._tables: dict[Rope, RotaryTable] = {}

    @cached_property
    def linears(self) -> list[Linear]:
        """The linear layers of all blocks."""
        return [linear for block in self.layers for linear in block.attention.linears() + block.mlp.linears()]

    def parameters(self) -> list[Parameter]:
        """Every parameter that a checkpoint must provide, each once."""
        parts = (self.embedding, *self.layers, self.final_norm, self.head)
        return [parameter for part in parts for parameter in part.parameters()]

    def ready(self, positions: int) -> None:
        """After loading: hand weights to their methods and build rotary tables for sequences of `positions` tokens."""
        for linear in self.linears:
            linear.loaded()
        self.head.loaded()
        # Matrices may be stored in another type than the model's; a norm's weight never is.
        weight = self.final_norm.weight.data
        for rope in {block.rope for block in self.layers}:
            self._tables[rope] = RotaryTable(rope, positions, weight.dtype, weight.device)

    def hidden(self, token_ids: torch.Tensor, positions: torch.Tensor, attend: AttentionStep) -> torch.Tensor:
        """Final hidden states (tokens, dim) of token_ids (tokens,) at positions (tokens,), not yet normalised."""
        x = self.embedding(token_ids).to(self.final_norm.weight.data.dtype)
        angles = {rope: table.at(positions) for rope, table in self._tables.items()}
        for block in self.layers:
            x = block(x, angles[block.rope], attend)
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) in float32 of hidden states (rows, dim)."""
        return self.head(self.final_norm(hidden))
