"""The steps that move single logits before the distribution is shaped: bias, barred end tokens, watermark, penalties.

They hold for greedy rows too. History is read from the rows' token ids, so nothing has to be kept in step with them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.engine.columns import Columns, column
from text_generation_server.engine.edits import Edits
from text_generation_server.engine.watermark import favoured

# An extreme repetition penalty must not make a finite logit infinite, not even after division by the temperature.
_LARGEST_SCORE = 1e30


@dataclass(frozen=True)
class History:
    """What came before the token to sample."""

    token_ids: torch.Tensor
    """(rows, longest) ids, in the order of the sequence; may be empty where `needs_history` is false."""
    lengths: npt.NDArray[np.int64]
    """(rows,) how many of them count."""
    prompt_lengths: npt.NDArray[np.int64]


def needs_history(parameters: Columns) -> bool:
    """Whether any row looks at the tokens before."""
    return bool((_penalised(parameters) | (parameters["watermark_delta"] != 0)).any())


def moved_rows(parameters: Columns, edits: Edits | None) -> npt.NDArray[np.bool_]:
    """(rows,) whether `adjust` changes a row's logits."""
    moved = _penalised(parameters) | (parameters["watermark_delta"] != 0)
    if edits is not None:
        moved[edits.rows] = True
    return moved


def adjust(logits: torch.Tensor, parameters: Columns, history: History, edits: Edits | None) -> None:
    """Move the logits (rows, vocabulary), float32, in place."""
    if edits is not None:
        edits.apply(logits)
    marked = np.flatnonzero(parameters["watermark_delta"])
    if len(marked):
        _watermark(logits, marked, parameters, history)
    penalised = np.flatnonzero(_penalised(parameters))
    if len(penalised):
        _penalise(logits, penalised, parameters, history)


def _penalised(parameters: Columns) -> npt.NDArray[np.bool_]:
    repetition = parameters["repetition_penalty"] != 1
    return repetition | (parameters["frequency_penalty"] != 0) | (parameters["presence_penalty"] != 0)


def _watermark(logits: torch.Tensor, marked: npt.NDArray[np.int64], parameters: Columns, history: History) -> None:
    rows = torch.from_numpy(marked).to(logits.device)
    last = column(history.lengths[marked] - 1, logits)
    previous = history.token_ids[rows].gather(-1, last).squeeze(-1)
    vocabulary = torch.arange(logits.shape[-1], device=logits.device)
    gamma, delta = (column(parameters[name][marked], logits) for name in ("watermark_gamma", "watermark_delta"))
    logits[rows] += favoured(previous, vocabulary, gamma) * delta


def _penalise(logits: torch.Tensor, penalised: npt.NDArray[np.int64], parameters: Columns, history: History) -> None:
    rows = torch.from_numpy(penalised).to(logits.device)
    ids = history.token_ids[rows].long()
    lengths, prompts = (column(x[penalised], logits) for x in (history.lengths, history.prompt_lengths))
    at = torch.arange(ids.shape[1], device=ids.device)
    scores = logits[rows]
    seen = torch.zeros_like(scores).scatter_add_(1, ids, (at < lengths).to(scores.dtype))
    generated = torch.zeros_like(scores).scatter_add_(1, ids, ((at >= prompts) & (at < lengths)).to(scores.dtype))
    factor = column(parameters["repetition_penalty"][penalised], scores)
    repeated = torch.where(scores < 0, scores * factor, scores / factor).clamp(-_LARGEST_SCORE, _LARGEST_SCORE)
    # Barred tokens stay barred.
    scores = torch.where((seen > 0) & scores.isfinite(), repeated, scores)
    scores -= generated * column(parameters["frequency_penalty"][penalised], scores)
    scores -= (generated > 0) * column(parameters["presence_penalty"][penalised], scores)
    logits[rows] = scores
