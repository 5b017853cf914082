"""Changes to single logits that requests ask for: biases, and end tokens that are barred before `min_tokens`.

Each row keeps its few tokens on the host; a step packs those of its rows into one scatter. Rows without any cost
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

if TYPE_CHECKING:
    from text_generation_server._native import Sampling


@dataclass(frozen=True)
class Adjustments:
    """Packed changes of one step's logits: three arrays of the same length."""

    rows: npt.NDArray[np.int64]
    """Index of the row within the step."""
    token_ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    """What is added; minus infinity bars the token."""

    def apply(self, logits: torch.Tensor) -> None:
        """Change logits (rows, vocabulary) in place."""
        if len(self.rows):
            places = torch.from_numpy(np.stack((self.rows, self.token_ids))).to(logits.device, non_blocking=True)
            values = torch.from_numpy(self.values).to(logits.device, logits.dtype, non_blocking=True)
            logits.index_put_((places[0], places[1]), values, accumulate=True)


@dataclass(frozen=True)
class _Wishes:
    """What one row asks for."""

    bias_ids: npt.NDArray[np.int64]
    biases: npt.NDArray[np.float32]
    end_ids: npt.NDArray[np.int64]
    min_tokens: int


class AdjustedRows:
    """The rows that change single logits, by slot."""

    def __init__(self) -> None:
        self._wishes: dict[int, _Wishes] = {}

    def start(self, slot: int, sampling: Sampling) -> None:
        """A sequence begins in a slot; whatever the slot's last one asked for is forgotten."""
        self._wishes.pop(slot, None)
        if len(sampling.bias_ids) or sampling.min_tokens:
            self._wishes[slot] = _Wishes(
                np.asarray(sampling.bias_ids, np.int64),
                np.asarray(sampling.biases, np.float32),
                np.asarray(sampling.end_ids, np.int64),
                sampling.min_tokens,
            )

    def gather(self, slots: npt.NDArray[np.int64], generated: npt.NDArray[np.int64]) -> Adjustments:
        """The changes for rows (slots, in the step's order) that have generated so many tokens."""
        rows, ids, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
        for row, slot in enumerate(slots.tolist() if self._wishes else ()):
            wishes = self._wishes.get(slot)
            if wishes is None:
                continue
            barred = wishes.end_ids if generated[row] < wishes.min_tokens else wishes.end_ids[:0]
            ids += [wishes.bias_ids, barred]
            values += [wishes.biases, np.full(len(barred), -np.inf, np.float32)]
            rows.append(np.full(len(wishes.bias_ids) + len(barred), row))
        return Adjustments(np.concatenate(rows), np.concatenate(ids), np.concatenate(values))
