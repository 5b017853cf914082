"""Log-probabilities that a step reports: of the chosen tokens, of the best candidates, and of prompt tokens.

Works on the scores that sampling hands on; prompt logprobs use the model's own logits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.engine.sampler import Sampled

# Prompt positions whose logits exist at once: bounds the memory of a long prompt's logprobs.
_PROMPT_ROWS = 256


@dataclass(frozen=True)
class Logprobs:
    """Device tensors; the host reads them when the step is over."""

    chosen: torch.Tensor
    """(rows,)"""
    top_counts: torch.Tensor | None
    """(rows,) candidates of each row; `None` = no row asked."""
    top_ids: torch.Tensor | None
    """(rows, most candidates), best first."""
    top_logprobs: torch.Tensor | None


@dataclass(frozen=True)
class PromptScores:
    """What is told of prompt tokens; device tensors."""

    logprobs: torch.Tensor
    """(tokens,)"""
    top_ids: torch.Tensor
    """(tokens, candidates), best first."""
    top_logprobs: torch.Tensor


def logprobs(sampled: Sampled, top_n: npt.NDArray[np.int64]) -> Logprobs:
    """Logprobs of the sampled tokens, and of each row's `top_n` best with every tie of the last."""
    total = sampled.scores.logsumexp(-1, keepdim=True)
    chosen = (sampled.scores.gather(-1, sampled.token_ids.unsqueeze(-1)) - total).squeeze(-1)
    chosen = torch.where(sampled.finite, chosen, 0.0)
    if not top_n.any():
        return Logprobs(chosen, None, None, None)
    counts = _counts_with_ties(sampled.scores, top_n)
    # Removed tokens are no candidates; a row that is not finite has none.
    counts = torch.minimum(counts, (sampled.scores > -torch.inf).sum(-1)) * sampled.finite
    values, ids = _best(sampled.scores, max(int(counts.max()), 1))
    return Logprobs(chosen, counts, ids, values - total)


def _counts_with_ties(scores: torch.Tensor, top_n: npt.NDArray[np.int64]) -> torch.Tensor:
    wanted = torch.from_numpy(np.minimum(top_n, scores.shape[-1])).to(scores.device)
    last = scores.topk(int(wanted.max()), -1).values.gather(-1, (wanted - 1).clamp(min=0).unsqueeze(-1))
    return torch.where(wanted > 0, (scores >= last).sum(-1), 0)


def prompt_logprobs(
    hidden: torch.Tensor, next_ids: torch.Tensor, to_logits: Callable[[torch.Tensor], torch.Tensor], top_n: int
) -> PromptScores:
    """Score next_ids (tokens,) given the hidden states (tokens, dim) before each; `top_n` candidates beside each."""
    found = []
    for states, ids in zip(hidden.split(_PROMPT_ROWS), next_ids.split(_PROMPT_ROWS), strict=True):
        logits = to_logits(states)
        total = logits.logsumexp(-1, keepdim=True)
        values, best = _best(logits, min(top_n, logits.shape[-1]))
        found.append((logits.gather(-1, ids.long().unsqueeze(-1)) - total, best, values - total))
    logprobs, best, values = (torch.cat(parts) for parts in zip(*found, strict=True))
    return PromptScores(logprobs.squeeze(-1), best, values)


def _best(scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` best scores of each row and their ids, best first, equals by id."""
    # A stable sort of everything would be dear: sort the few candidates by id first.
    values, ids = scores.topk(count, -1)
    ids, by_id = ids.sort(-1)
    values, order = values.gather(-1, by_id).sort(stable=True, dim=-1, descending=True)
    return values, ids.gather(-1, order)
