"""The inputs of one step, gathered from rows: token ids, positions, ragged row lengths, and which tokens sample.

Host arithmetic on small arrays, then a few transfers; no device value is read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.attention.base import RaggedRows, token_positions
from text_generation_server.engine.slots import SAMPLE, Slots

if TYPE_CHECKING:
    from text_generation_server._native import Plan


@dataclass(frozen=True)
class StepInputs:
    """What the forward pass and the sampler take."""

    rows: RaggedRows
    token_ids: torch.Tensor
    """(tokens,)"""
    positions: torch.Tensor
    """(tokens,)"""
    last_tokens: torch.Tensor
    """(sampling rows,) index of each sampling row's last token in the step."""
    slots: npt.NDArray[np.int64]
    """(sampling rows,)"""
    lengths: npt.NDArray[np.int64]
    """(sampling rows,) tokens of each row before the sampled one is added."""


def gather_inputs(slots: Slots, plan: Plan) -> StepInputs:
    """The inputs of a plan whose releases, beginnings and blocks are applied already."""
    chosen = plan.slots.astype(np.int64)
    counts = plan.token_counts.astype(np.int64)
    starts = slots.computed[chosen]
    ends = starts + counts
    sampling = (plan.row_flags & SAMPLE) != 0
    assert (counts > 0).all(), "plan: a row runs without a token"
    assert (ends <= slots.known[chosen]).all(), "plan: a row runs past its known tokens"
    assert (ends <= slots.blocks[chosen] * slots.block_size).all(), "plan: a row has too few blocks for its tokens"
    assert (ends[sampling] == slots.known[chosen][sampling]).all(), "plan: a row samples before its last token"
    widest = int(-(-ends.max() // slots.block_size))
    rows = RaggedRows(starts, counts, slots.block_tables[chosen, :widest])
    positions = token_positions(rows)
    flat = np.repeat(chosen, counts) * slots.token_ids.shape[1] + positions
    packed = np.concatenate((flat, positions, (np.cumsum(counts) - 1)[sampling]))
    on_device = torch.from_numpy(packed).to(slots.device, non_blocking=True)
    flat_ids, positions_ids, last = on_device.split((len(flat), len(positions), int(sampling.sum())))
    token_ids = slots.token_ids.view(-1)[flat_ids]
    return StepInputs(rows, token_ids, positions_ids, last, chosen[sampling], ends[sampling])
