"""The attention block around the attention itself: projections and rotary positions.

Hands queries, keys and values to the step's attention (see `attention/base.py`), which owns the cache. Knows its own
heads only; `parallel/shard.py` lowers their number to this rank's.
"""

import torch

from text_generation_server.attention.base import AttentionStep
from text_generation_server.layers.linear import Linear
from text_generation_server.layers.parameter import Parameter, Part, Share
from text_generation_server.layers.rotary import rotate
from text_generation_server.models.spec import Attention


class AttentionBlock:
    """One layer's attention."""

    def __init__(self, layer: int, dim: int, spec: Attention):
        module, width = f"layers.{layer}.attention", spec.head_dim
        parts = (Part("q", spec.heads * width), Part("k", spec.kv_heads * width), Part("v", spec.kv_heads * width))
        self.layer = layer
        self.heads = spec.heads
        self.kv_heads = spec.kv_heads
        self.head_dim = width
        self.window = spec.window
        self.qkv = Linear(f"{module}.qkv", dim, parts, bias=spec.qkv_bias, share=Share.COLUMN)
        self.out = Linear(f"{module}.out", spec.heads * width, (Part("", dim),), bias=spec.out_bias, share=Share.ROW)

    def linears(self) -> list[Linear]:
        """Its linear layers."""
        return [self.qkv, self.out]

    def parameters(self) -> list[Parameter]:
        """What a checkpoint must provide."""
        return self.qkv.parameters() + self.out.parameters()

    def __call__(
        self, x: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor], attend: AttentionStep
    ) -> torch.Tensor:
        """x (tokens, dim) -> the same shape; angles as from `RotaryTable.at`."""
        qkv = self.qkv(x).view(len(x), self.heads + 2 * self.kv_heads, self.head_dim)
        rotated = rotate(qkv[:, : self.heads + self.kv_heads], *angles)
        query, key = rotated[:, : self.heads], rotated[:, self.heads :]
        return self.out(attend(self.layer, query, key, qkv[:, self.heads + self.kv_heads :]))
