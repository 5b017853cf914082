"""A declared parameter: its place in the decoder, its shape, and how ranks share it. The loader fills it.

Knows nothing of checkpoints or devices. `parallel/shard.py` turns the declarations of a whole model into those of one
rank; everything here is about the declaration that it finds.
"""

from dataclasses import dataclass, field
from enum import Enum

import torch


class Share(Enum):
    """How the ranks of a model share a parameter."""

    REPLICATED = "replicated"
    COLUMN = "column"
    """Each rank owns a range of output features (dimension 0) of every part."""
    ROW = "row"
    """Each rank owns a range of input features (dimension 1)."""
    VOCABULARY = "vocabulary"
    """Like COLUMN, but the last rank may own fewer rows; what is missing is zero."""


@dataclass(frozen=True)
class Part:
    """One tensor of a checkpoint inside a fused parameter: `rows` of dimension 0, stacked in order."""

    name: str
    rows: int


@dataclass
class Parameter:
    """A tensor that a checkpoint must provide. Sizes are those of this rank."""

    module: str
    """Path of the module in the decoder: `layers.0.attention.qkv`."""
    leaf: str
    """`weight` or `bias`."""
    parts: tuple[Part, ...]
    columns: int | None
    """Size of dimension 1; `None` for a vector."""
    share: Share = Share.REPLICATED
    as_stored: bool = False
    """Keep the type of the checkpoint instead of the model's; what computes with it converts."""
    tensor: torch.Tensor | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape on this rank."""
        rows = sum(part.rows for part in self.parts)
        return (rows,) if self.columns is None else (rows, self.columns)

    @property
    def path(self) -> str:
        """Full name in the decoder."""
        return f"{self.module}.{self.leaf}"

    @property
    def data(self) -> torch.Tensor:
        """The tensor; only after loading."""
        assert self.tensor is not None, f"`{self.path}` is used before it is loaded"
        return self.tensor
