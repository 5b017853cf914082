"""The interface of attention over a paged cache.

A back end owns the layout of the cache's tensors. Once a step it turns the step's rows into metadata that all layers
share (an `AttentionStep`); a layer's call then writes the new keys and values and attends. Knows no model and no plan.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch


@dataclass(frozen=True)
class LayerShape:
    """What attention needs to know of one layer, on this rank."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int | None

    @property
    def cache_elements(self) -> int:
        """Cache values a token."""
        return 2 * self.kv_heads * self.head_dim


@dataclass(frozen=True)
class RaggedRows:
    """The rows of a step, host side. Row i adds `counts[i]` tokens after `starts[i]` cached ones."""

    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    block_tables: npt.NDArray[np.int32]
    """(rows, blocks of the longest row); entries past a row's length mean nothing."""

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Cached tokens of each row after this step."""
        return self.starts + self.counts


class AttentionStep(ABC):
    """Attention of one step, the same for all layers."""

    @abstractmethod
    def __call__(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Write key and value (tokens, kv_heads, head_dim) into the cache, then attend.

        query is (tokens, heads, head_dim). Returns (tokens, heads * head_dim).
        """


class AttentionBackend(ABC):
    """Attention with a cache of `blocks` blocks of `block_size` tokens."""

    name: str

    def __init__(self, layers: list[LayerShape], block_size: int, dtype: torch.dtype, device: torch.device):
        self.layers = layers
        self.block_size = block_size
        self.dtype = dtype
        self.device = device
        self.cache: list[torch.Tensor] = []

    @abstractmethod
    def allocate(self, blocks: int) -> None:
        """(Re)allocate the cache; its content is undefined."""

    @abstractmethod
    def copy_blocks(self, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Copy whole blocks, in all layers."""

    @abstractmethod
    def begin(self, rows: RaggedRows) -> AttentionStep:
        """The attention of a step that runs these rows."""

    def block_bytes(self) -> int:
        """Bytes of one block over all layers."""
        return self.block_size * sum(layer.cache_elements for layer in self.layers) * self.dtype.itemsize


def flat_slots(rows: RaggedRows, block_size: int) -> npt.NDArray[np.int64]:
    """Where each new token goes: block * block_size + offset, row after row."""
    row = np.repeat(np.arange(len(rows.counts)), rows.counts)
    position = token_positions(rows)
    blocks = rows.block_tables[row, position // block_size].astype(np.int64)
    return blocks * block_size + position % block_size


def token_positions(rows: RaggedRows) -> npt.NDArray[np.int64]:
    """The position of each new token in its sequence, row after row."""
    firsts = np.cumsum(rows.counts) - rows.counts
    return np.arange(int(rows.counts.sum())) + np.repeat(rows.starts - firsts, rows.counts)
