"""Chooses one token a row, each row by its own parameters, on the device.

Order: logit bias and barred end tokens, watermark, repetition penalty, frequency and presence penalty, temperature,
top-k, top-p, min-p, typical-p, choice. Rows that need none of it cost an argmax. History is read from the rows' token
ids, so nothing has to be kept in step with them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.engine.adjustments import Adjustments
from text_generation_server.engine.randomness import gumbel, row_keys
from text_generation_server.engine.watermark import mark

Columns = dict[str, npt.NDArray]


@dataclass(frozen=True)
class Sampled:
    """The outcome of a step's sampling."""

    token_ids: torch.Tensor
    """(rows,) int64; 0 where the logits were not finite."""
    finite: torch.Tensor
    """(rows,) whether all logits were finite."""
    scores: torch.Tensor
    """(rows, vocabulary) float32: what logprobs are reported of. The logits that were sampled from, or the model's own
    where the row asks for raw logprobs."""


@dataclass(frozen=True)
class History:
    """What penalties and watermark look back on."""

    token_ids: torch.Tensor
    """(rows, longest) ids, in the order of the sequence; without rows when no penalty needs them."""
    last: torch.Tensor
    """(rows,) the newest id of each row."""
    lengths: npt.NDArray[np.int64]
    """(rows,) how many of them count."""
    prompt_lengths: npt.NDArray[np.int64]


def sample(logits: torch.Tensor, parameters: Columns, history: History, adjustments: Adjustments) -> Sampled:
    """Sample each row of logits (rows, vocabulary), float32, changed in place.

    `parameters` holds a column (rows,) for each plain field of `Sampling`.
    """
    finite = logits.sum(-1).isfinite()
    plain = np.flatnonzero(parameters["raw_logprobs"])
    raw_rows = torch.from_numpy(plain).to(logits.device)
    # Indexing copies: these rows keep the model's own logits.
    raw = logits[raw_rows] if len(plain) else None
    adjustments.apply(logits)
    _watermark(logits, parameters, history)
    scores = _penalise(logits, parameters, history)
    random = np.flatnonzero(parameters["temperature"] > 0)
    if len(random) == 0:
        chosen = scores.argmax(-1)
    elif len(random) == len(scores):
        scores = _warp(scores, parameters)
        chosen = _draw(scores, parameters, history)
    else:
        rows = torch.from_numpy(random).to(scores.device)
        mine = {name: column[random] for name, column in parameters.items()}
        past = History(history.token_ids, history.last, history.lengths[random], history.prompt_lengths[random])
        warped = _warp(scores[rows], mine)
        chosen = scores.argmax(-1)
        chosen[rows] = _draw(warped, mine, past)
        scores[rows] = warped
    if raw is not None:
        scores[raw_rows] = raw
    return Sampled(torch.where(finite, chosen, 0), finite, scores)


# === watermark and penalties ===


def _watermark(logits: torch.Tensor, parameters: Columns, history: History) -> None:
    marked = np.flatnonzero(parameters["watermark_delta"] > 0)
    if len(marked):
        rows = torch.from_numpy(marked).to(logits.device)
        gamma, delta = (_column(parameters[f"watermark_{name}"][marked], logits) for name in ("gamma", "delta"))
        logits[rows] = mark(logits[rows], history.last[rows], gamma, delta)


def _penalise(logits: torch.Tensor, parameters: Columns, history: History) -> torch.Tensor:
    repetition = parameters["repetition_penalty"]
    frequency, presence = parameters["frequency_penalty"], parameters["presence_penalty"]
    penalised = np.flatnonzero((repetition != 1) | (frequency != 0) | (presence != 0))
    if len(penalised) == 0:
        return logits
    rows = torch.from_numpy(penalised).to(logits.device)
    ids = history.token_ids[rows].long()
    lengths, prompts = (_column(x[penalised], logits) for x in (history.lengths, history.prompt_lengths))
    at = torch.arange(ids.shape[1], device=ids.device)
    scores = logits[rows]
    seen = torch.zeros_like(scores).scatter_add_(1, ids, (at < lengths).to(scores.dtype))
    generated = torch.zeros_like(scores).scatter_add_(1, ids, ((at >= prompts) & (at < lengths)).to(scores.dtype))
    factor = _column(repetition[penalised], scores)
    repeated = torch.where(scores < 0, scores * factor, scores / factor)
    scores = torch.where(seen > 0, repeated, scores)
    scores -= generated * _column(frequency[penalised], scores)
    scores -= (generated > 0) * _column(presence[penalised], scores)
    logits[rows] = scores
    return logits


# === warpers ===


def _warp(scores: torch.Tensor, parameters: Columns) -> torch.Tensor:
    scores = scores / _column(parameters["temperature"], scores)
    if (parameters["top_k"] > 0).any():
        scores = _top_k(scores, parameters["top_k"])
    if (parameters["top_p"] < 1).any():
        scores = _top_p(scores, parameters["top_p"])
    if (parameters["min_p"] > 0).any():
        scores = _min_p(scores, parameters["min_p"])
    if (parameters["typical_p"] < 1).any():
        scores = _typical_p(scores, parameters["typical_p"])
    return scores


def _top_k(scores: torch.Tensor, top_k: npt.NDArray[np.int64]) -> torch.Tensor:
    """Keep the k best of each row, and whatever ties with the k-th."""
    vocabulary = scores.shape[-1]
    limits = np.where((top_k == 0) | (top_k > vocabulary), vocabulary, top_k)
    widest = int(limits[limits < vocabulary].max(initial=1))
    best = scores.topk(widest, -1).values
    kth = best.gather(-1, _column(np.minimum(limits, widest) - 1, scores).long())
    unlimited = _column(limits == vocabulary, scores)
    return torch.where((scores >= kth) | unlimited, scores, -torch.inf)


def _top_p(scores: torch.Tensor, top_p: npt.NDArray[np.float32]) -> torch.Tensor:
    """Remove the least likely tokens whose mass together is at most 1 - p; the best one stays."""
    ordered, ids = scores.sort(-1)
    mass = ordered.softmax(-1).cumsum(-1)
    limit = _column(top_p, scores)
    remove = (mass <= 1 - limit) & (limit < 1)
    remove[:, -1] = False
    return scores.masked_fill(remove.scatter(-1, ids, remove), -torch.inf)


def _min_p(scores: torch.Tensor, min_p: npt.NDArray[np.float32]) -> torch.Tensor:
    """Remove tokens whose probability is below this share of the best one's."""
    # log 0 is minus infinity, which removes nothing.
    least = scores.amax(-1, keepdim=True) + _column(min_p, scores).log()
    return scores.masked_fill(scores < least, -torch.inf)


def _typical_p(scores: torch.Tensor, typical_p: npt.NDArray[np.float32]) -> torch.Tensor:
    """Keep the smallest set of mass p whose surprise is nearest to the expected surprise."""
    logprobs = scores.log_softmax(-1)
    probabilities = logprobs.exp()
    # A removed token has probability 0 and counts for nothing: 0 * -inf would be NaN.
    entropy = -torch.where(probabilities > 0, probabilities * logprobs, 0).sum(-1, keepdim=True)
    ids = (-logprobs - entropy).abs().argsort(stable=True, dim=-1)
    mass = probabilities.gather(-1, ids).cumsum(-1)
    limit = _column(typical_p, scores)
    remove = (mass - probabilities.gather(-1, ids) >= limit) & (limit < 1)
    remove[:, 0] = False
    return scores.masked_fill(remove.scatter(-1, ids, remove), -torch.inf)


# === choice ===


def _draw(scores: torch.Tensor, parameters: Columns, history: History) -> torch.Tensor:
    """One token a row in proportion to exp(score): the largest score plus Gumbel noise."""
    keys = row_keys(parameters["seed"], history.lengths - history.prompt_lengths)
    noise = gumbel(torch.from_numpy(keys).to(scores.device), torch.arange(scores.shape[-1], device=scores.device))
    return (scores + noise).argmax(-1)


def _column(values: npt.NDArray, like: torch.Tensor) -> torch.Tensor:
    """(rows,) on the host -> (rows, 1) on the device."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device).unsqueeze(-1)
