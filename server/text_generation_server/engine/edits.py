"""Single tokens whose logits a row moves: those of its logit bias, and end tokens that are barred for a while.

Owns the lists of all slots on the host and packs those of a step, so that the device moves all of them at once. Knows
neither what a bias is for nor which tokens end a sequence.
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
class Edits:
    """What to add to which logits of a step. Three arrays of the same length."""

    rows: npt.NDArray[np.int64]
    token_ids: npt.NDArray[np.int64]
    amounts: npt.NDArray[np.float32]
    """-inf bars a token."""

    def apply(self, logits: torch.Tensor) -> None:
        """Move the logits (rows, vocabulary) in place."""
        places = torch.from_numpy(np.stack((self.rows, self.token_ids))).to(logits.device)
        amounts = torch.from_numpy(self.amounts).to(logits.device)
        logits.index_put_((places[0], places[1]), amounts, accumulate=True)


class TokenEdits:
    """The lists of `count` slots."""

    def __init__(self, count: int):
        nothing = (np.zeros(0, np.int64), np.zeros(0, np.float32))
        self._biases = [nothing] * count
        self._barred = [nothing] * count
        self._biased = np.zeros(count, bool)
        self._min_tokens = np.zeros(count, np.int64)

    def start(self, slot: int, sampling: Sampling) -> None:
        """Take the lists of the sequence that begins in a slot."""
        self._biases[slot] = (sampling.bias_ids.astype(np.int64), sampling.biases.astype(np.float32))
        barred = sampling.end_ids.astype(np.int64)
        self._barred[slot] = (barred, np.full(len(barred), -np.inf, np.float32))
        self._biased[slot] = len(sampling.bias_ids) > 0
        self._min_tokens[slot] = sampling.min_tokens

    def gather(self, slots: npt.NDArray[np.int64], generated: npt.NDArray[np.int64]) -> Edits | None:
        """The edits of a step whose rows are in these slots and have generated so many tokens; `None` for none."""
        biased = np.flatnonzero(self._biased[slots]).tolist()
        barred = np.flatnonzero(generated < self._min_tokens[slots]).tolist()
        found = [(row, self._biases[slots[row]]) for row in biased]
        found += [(row, self._barred[slots[row]]) for row in barred]
        if not found:
            return None
        counts = [len(ids) for _, (ids, _) in found]
        return Edits(
            np.repeat(np.array([row for row, _ in found], np.int64), counts),
            np.concatenate([ids for _, (ids, _) in found]),
            np.concatenate([amounts for _, (_, amounts) in found]),
        )
