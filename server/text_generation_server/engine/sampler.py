"""Chooses one token a row, each row by its own parameters, on the device.

Order: the adjustments of single logits, the warpers, the choice. Rows that need none of it cost an argmax.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.engine.adjust import History, adjust, moved_rows
from text_generation_server.engine.columns import Columns
from text_generation_server.engine.edits import Edits
from text_generation_server.engine.randomness import gumbel, row_keys
from text_generation_server.engine.warpers import warp


@dataclass(frozen=True)
class Sampled:
    """The outcome of a step's sampling."""

    token_ids: torch.Tensor
    """(rows,) int64; 0 where the logits were not finite."""
    finite: torch.Tensor
    """(rows,) whether all logits were finite."""
    scores: torch.Tensor
    """(rows, vocabulary) float32, to report logprobs of: those that were sampled from, or the model's own logits."""


def sample(logits: torch.Tensor, parameters: Columns, history: History, edits: Edits | None = None) -> Sampled:
    """Sample each row of logits (rows, vocabulary), float32, changed in place.

    `parameters` holds a column (rows,) for each field of `Sampling` that is a single value.
    """
    finite = logits.sum(-1).isfinite()
    kept = _rows_to_keep(parameters, edits)
    own = logits[torch.from_numpy(kept).to(logits.device)] if len(kept) else None
    adjust(logits, parameters, history, edits)
    chosen, scores = _choose(logits, parameters, history)
    if own is not None:
        scores[torch.from_numpy(kept).to(logits.device)] = own
    return Sampled(torch.where(finite, chosen, 0), finite, scores)


def _rows_to_keep(parameters: Columns, edits: Edits | None) -> npt.NDArray[np.int64]:
    """The rows that report the model's own logits although they are sampled from others."""
    raw = parameters["raw_logprobs"]
    if not raw.any():
        return np.zeros(0, np.int64)
    return np.flatnonzero(raw & (moved_rows(parameters, edits) | (parameters["temperature"] > 0)))


def _choose(scores: torch.Tensor, parameters: Columns, history: History) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids (rows,), and the scores that they were chosen from."""
    random = np.flatnonzero(parameters["temperature"] > 0)
    if len(random) == 0:
        return scores.argmax(-1), scores
    if len(random) == len(scores):
        scores = warp(scores, parameters)
        return _draw(scores, parameters, history), scores
    rows = torch.from_numpy(random).to(scores.device)
    mine = {name: values[random] for name, values in parameters.items()}
    past = History(history.token_ids, history.lengths[random], history.prompt_lengths[random])
    warped = warp(scores[rows], mine)
    chosen = scores.argmax(-1)
    chosen[rows] = _draw(warped, mine, past)
    scores[rows] = warped
    return chosen, scores


def _draw(scores: torch.Tensor, parameters: Columns, history: History) -> torch.Tensor:
    """One token a row in proportion to exp(score): the largest score plus Gumbel noise."""
    keys = row_keys(parameters["seed"], history.lengths - history.prompt_lengths)
    noise = gumbel(torch.from_numpy(keys).to(scores.device), torch.arange(scores.shape[-1], device=scores.device))
    return (scores + noise).argmax(-1)
