"""The rows of live sequences: one slot each, preallocated, changed by plans.

Host side: how far each row is, its block table and its sampling parameters, all known without the device, because a
step adds a known number of tokens. Device side: the token ids alone, so that a sampled id is the next step's input
before the host has seen it. Asserts name the rule of the protocol that a plan breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.engine.adjustments import AdjustedRows

if TYPE_CHECKING:
    from text_generation_server._native import NewSequence, Plan

SAMPLE = 1
"""Bit of `StepPlan.row_flags`."""

_SAMPLING_TYPES = {
    "temperature": np.float32,
    "top_k": np.int64,
    "top_p": np.float32,
    "typical_p": np.float32,
    "repetition_penalty": np.float32,
    "frequency_penalty": np.float32,
    "presence_penalty": np.float32,
    "seed": np.uint64,
    "top_n": np.int64,
    "min_p": np.float32,
    "watermark_gamma": np.float32,
    "watermark_delta": np.float32,
    "raw_logprobs": np.bool_,
}


class Slots:
    """`count` rows of at most `max_tokens` tokens."""

    def __init__(self, count: int, max_tokens: int, block_size: int, device: torch.device):
        self.device = device
        self.block_size = block_size
        self.max_tokens = max_tokens
        self.token_ids = torch.zeros(count, max_tokens + 1, dtype=torch.int32, device=device)
        self.known = np.zeros(count, np.int64)
        """Tokens whose ids are in the row."""
        self.computed = np.zeros(count, np.int64)
        """Tokens whose keys and values are cached."""
        self.prompt_length = np.zeros(count, np.int64)
        self.prompt_logprobs = np.zeros(count, bool)
        self.prompt_top_n = np.zeros(count, np.int64)
        self.blocks = np.zeros(count, np.int64)
        self.block_tables = np.zeros((count, -(-max_tokens // block_size)), np.int32)
        self.sampling = {name: np.zeros(count, kind) for name, kind in _SAMPLING_TYPES.items()}
        self.adjusted = AdjustedRows()
        self.live = np.zeros(count, bool)

    def clear(self) -> None:
        """Release every row."""
        self.live[:] = False

    def apply(self, plan: Plan) -> None:
        """Steps a, c and d of a plan: releases, new sequences, new blocks."""
        if plan.reset:
            self.clear()
        self.live[plan.released_slots] = False
        for sequence in plan.new_sequences:
            self._start(sequence)
        assert len(np.unique(plan.slots)) == len(plan.slots), "plan: a slot runs twice"
        assert self.live[plan.slots].all(), "plan: a slot runs that holds no sequence"
        begin = 0
        for slot, count in zip(plan.slots.tolist(), plan.block_counts.tolist(), strict=True):
            if count:
                self._append_blocks(slot, plan.block_ids[begin : begin + count])
                begin += count

    def advance(self, plan: Plan) -> None:
        """After the step's inputs are taken: its tokens are computed, and sampling rows know one more."""
        self.computed[plan.slots] += plan.token_counts
        sampling = (plan.row_flags & SAMPLE) != 0
        self.known[plan.slots[sampling]] += 1

    def _start(self, new: NewSequence) -> None:
        slot, length = new.slot, len(new.token_ids)
        assert slot < len(self.live), f"plan: slot {slot} is not below the capacity of {len(self.live)}"
        assert not self.live[slot], f"plan: slot {slot} begins a sequence while it holds one"
        assert new.computed < length <= self.max_tokens, (
            f"plan: {length} tokens with {new.computed} computed do not fit"
        )
        self.live[slot] = True
        self.known[slot], self.computed[slot] = length, new.computed
        self.prompt_length[slot] = new.prompt_length
        self.prompt_logprobs[slot], self.prompt_top_n[slot] = new.prompt_logprobs, new.prompt_top_n
        ids = torch.from_numpy(np.asarray(new.token_ids).astype(np.int32))
        self.token_ids[slot, :length] = ids.to(self.device, non_blocking=True)
        self.blocks[slot] = 0
        self._append_blocks(slot, new.block_ids)
        for name, column in self.sampling.items():
            column[slot] = getattr(new.sampling, name)
        self.adjusted.start(slot, new.sampling)

    def _append_blocks(self, slot: int, ids: npt.NDArray[np.uint32]) -> None:
        have = self.blocks[slot]
        assert have + len(ids) <= self.block_tables.shape[1], f"plan: slot {slot} has more blocks than its tokens need"
        self.block_tables[slot, have : have + len(ids)] = ids
        self.blocks[slot] += len(ids)
