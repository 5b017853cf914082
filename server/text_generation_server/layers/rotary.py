"""Rotary position embedding: tables of cosines and sines by position, and their application.

One table serves all layers with the same `Rope`. Dynamic scaling gives each position the frequencies of a sequence that
ends there, so a token's keys depend on its position only: not on chunking, batch or reuse of cached prefixes.
"""

import math

import torch

from text_generation_server.models.spec import Rope, RopeScaling


class RotaryTable:
    """cos and signed sin for the positions 0 .. positions-1, each (positions, dim)."""

    def __init__(self, rope: Rope, positions: int, dtype: torch.dtype, device: torch.device):
        angles, magnitude = _angles(rope, positions)
        cos, sin = angles.cos() * magnitude, angles.sin() * magnitude
        self._cos = torch.cat((cos, cos), -1).to(device, dtype)
        # The sign of the rotated half is folded in: x*cos + swap(x)*sin needs no negation.
        self._sin = torch.cat((-sin, sin), -1).to(device, dtype)
        self._half = rope.dim // 2

    def at(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin of the tokens at these positions, each (tokens, 1, dim)."""
        return self._cos[positions].unsqueeze(1), self._sin[positions].unsqueeze(1)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate x (tokens, heads, dim) by the angles of its tokens."""
    half = x.shape[-1] // 2
    swapped = torch.cat((x[..., half:], x[..., :half]), -1)
    return torch.addcmul(x * cos, swapped, sin)


# === frequencies ===


def _angles(rope: Rope, positions: int) -> tuple[torch.Tensor, float]:
    """Angles (positions, dim/2) in float32, and the factor of cos and sin."""
    scaling, at = rope.scaling, torch.arange(positions, dtype=torch.float32)
    if scaling is not None and scaling.kind == "dynamic":
        return _dynamic_angles(rope, scaling, at), 1.0
    frequencies, magnitude = _frequencies(rope.dim, rope.base), 1.0
    if scaling is not None and scaling.kind == "linear":
        frequencies = frequencies / scaling.factor
    elif scaling is not None and scaling.kind == "llama3":
        frequencies = _llama3(frequencies, scaling)
    elif scaling is not None:
        frequencies, magnitude = _yarn(frequencies, rope, scaling)
    return torch.outer(at, frequencies), magnitude


def _frequencies(dim: int, base: float) -> torch.Tensor:
    return 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))


def _dynamic_angles(rope: Rope, scaling: RopeScaling, at: torch.Tensor) -> torch.Tensor:
    angles = torch.outer(at, _frequencies(rope.dim, rope.base))
    original = scaling.original_positions
    lengths = at[original:].double() + 1
    stretch = scaling.factor * lengths / original - (scaling.factor - 1)
    bases = rope.base * stretch ** (rope.dim / (rope.dim - 2))
    exponents = torch.arange(0, rope.dim, 2).double() / rope.dim
    angles[original:] = (at[original:, None].double() / bases[:, None] ** exponents).float()
    return angles


def _llama3(frequencies: torch.Tensor, scaling: RopeScaling) -> torch.Tensor:
    """Long waves are stretched by the factor, short ones kept, those between blended."""
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    turns = scaling.original_positions * frequencies / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies / scaling.factor * (1 - keep) + frequencies * keep


def _yarn(frequencies: torch.Tensor, rope: Rope, scaling: RopeScaling) -> tuple[torch.Tensor, float]:
    def index_of(turns: float) -> float:
        """The dimension whose wave makes this many turns over the original positions."""
        return rope.dim * math.log(scaling.original_positions / (turns * 2 * math.pi)) / (2 * math.log(rope.base))

    low = max(math.floor(index_of(scaling.beta_fast)), 0)
    high = min(math.ceil(index_of(scaling.beta_slow)), rope.dim - 1)
    ramp = ((torch.arange(rope.dim // 2).float() - low) / max(high - low, 0.001)).clamp(0, 1)
    magnitude = scaling.attention_factor
    if magnitude is None:
        magnitude = 0.1 * math.log(scaling.factor) + 1.0
    return frequencies / scaling.factor * ramp + frequencies * (1 - ramp), magnitude
