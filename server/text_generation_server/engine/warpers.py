"""The steps that shape the distribution of rows that sample: temperature, top-k, top-p, min-p, typical-p, in order.

Each removes tokens by setting their score to -inf. A row in which a step is off passes it unchanged.
"""

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.engine.columns import Columns, column


def warp(scores: torch.Tensor, parameters: Columns) -> torch.Tensor:
    """Shape each row of scores (rows, vocabulary); removed tokens become -inf. Every row samples."""
    scores = scores / column(parameters["temperature"], scores)
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
    kth = best.gather(-1, column(np.minimum(limits, widest) - 1, scores).long())
    unlimited = column(limits == vocabulary, scores)
    return torch.where((scores >= kth) | unlimited, scores, -torch.inf)


def _top_p(scores: torch.Tensor, top_p: npt.NDArray[np.float32]) -> torch.Tensor:
    """Remove the least likely tokens whose mass together is at most 1 - p; the best one stays."""
    ordered, ids = scores.sort(-1)
    mass = ordered.softmax(-1).cumsum(-1)
    limit = column(top_p, scores)
    remove = (mass <= 1 - limit) & (limit < 1)
    remove[:, -1] = False
    return scores.masked_fill(remove.scatter(-1, ids, remove), -torch.inf)


def _min_p(scores: torch.Tensor, min_p: npt.NDArray[np.float32]) -> torch.Tensor:
    """Keep the tokens that are at least this share as probable as the best one."""
    with np.errstate(divide="ignore"):
        share = np.log(min_p)
    return scores.masked_fill(scores < scores.amax(-1, keepdim=True) + column(share, scores), -torch.inf)


def _typical_p(scores: torch.Tensor, typical_p: npt.NDArray[np.float32]) -> torch.Tensor:
    """Keep the smallest set of mass p whose surprise is nearest to the expected surprise."""
    logprobs = scores.log_softmax(-1)
    probabilities = logprobs.exp()
    # A removed token has probability 0 and counts for nothing: 0 * -inf would be NaN.
    entropy = -torch.where(probabilities > 0, probabilities * logprobs, 0).sum(-1, keepdim=True)
    ids = (-logprobs - entropy).abs().argsort(stable=True, dim=-1)
    mass = probabilities.gather(-1, ids).cumsum(-1)
    limit = column(typical_p, scores)
    remove = (mass - probabilities.gather(-1, ids) >= limit) & (limit < 1)
    remove[:, 0] = False
    return scores.masked_fill(remove.scatter(-1, ids, remove), -torch.inf)
