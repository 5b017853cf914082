"""What a decoder looks like, as frozen data: the whole difference between one model and another.

A family file builds a `DecoderSpec` from a Hugging Face configuration; `models/decoder.py` builds the decoder from the
spec. Owns the vocabulary of descriptions; knows no tensor, no device and no model by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from text_generation_server.models.hf_config import HfConfig

__all__ = [
    "Attention",
    "DecoderSpec",
    "Family",
    "FamilyBuilder",
    "Gated",
    "HfConfig",
    "LayerSpec",
    "Rope",
    "RopeScaling",
    "WeightNames",
]


@dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are stretched beyond the positions that a model was trained on."""

    kind: Literal["linear", "dynamic", "llama3", "yarn"]
    factor: float
    original_positions: int
    """Positions of the unscaled model; unused by `linear`."""
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    """Multiplies cosine and sine; `None` = the definition's own value."""


@dataclass(frozen=True)
class Rope:
    """Rotary position embedding of the first `dim` values of each head, halves rotated against each other."""

    dim: int
    base: float
    scaling: RopeScaling | None = None


@dataclass(frozen=True)
class Attention:
    """Softmax attention with grouped key/value heads."""

    heads: int
    kv_heads: int
    head_dim: int
    rope: Rope
    qkv_bias: bool = False
    out_bias: bool = False
    window: int | None = None
    """A token sees this many newest tokens, itself included; `None` = all."""


@dataclass(frozen=True)
class Gated:
    """down(activation(gate(x)) * up(x))."""

    hidden: int
    activation: str
    bias: bool = False


@dataclass(frozen=True)
class LayerSpec:
    """One residual block: x += mixer(norm(x)); x += mlp(norm(x))."""

    mixer: Attention
    mlp: Gated


@dataclass(frozen=True)
class DecoderSpec:
    """A whole decoder."""

    vocab_size: int
    dim: int
    layers: tuple[LayerSpec, ...]
    norm_eps: float
    tie: bool
    """The head shares the embedding's weights."""
    max_positions: int
    """The longest sequence that the positions allow."""


@dataclass(frozen=True)
class WeightNames:
    """Where a family's checkpoints keep each parameter.

    `modules` maps module paths of the decoder to module paths of the checkpoint; `*` stands for a layer's number. A
    part of a fused module is named after a slash: `layers.*.attention.qkv/q`. `ignored` are tensors (with `*`) that
    old checkpoints hold and nobody needs.
    """

    modules: dict[str, str]
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """What a family file returns."""

    spec: DecoderSpec
    names: WeightNames


FamilyBuilder = Callable[[HfConfig], Family]
