"""Log-probabilities that a step reports: of the chosen tokens, of the best candidates, and of prompt tokens.

Works on the scores that sampling leaves for it; prompt logprobs use the model's own logits.
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
    # The order among equals is by id. A stable sort of everything would be dear: sort the few candidates by id first.
    values, ids = sampled.scores.topk(max(int(counts.max()), 1), -1)
    ids, by_id = ids.sort(-1)
    values, order = values.gather(-1, by_id).sort(stable=True, dim=-1, descending=True)
    return Logprobs(chosen, counts, ids.gather(-1, order), values - total)


def _counts_with_ties(scores: torch.Tensor, top_n: npt.NDArray[np.int64]) -> torch.Tensor:
    wanted = torch.from_numpy(np.minimum(top_n, scores.shape[-1])).to(scores.device)
    last = scores.topk(int(wanted.max()), -1).values.gather(-1, (wanted - 1).clamp(min=0).unsqueeze(-1))
    return torch.where(wanted > 0, (scores >= last).sum(-1), 0)


@dataclass(frozen=True)
class PromptScores:
    """Of prompt tokens that follow each other; device tensors."""

    logprobs: torch.Tensor
    """(tokens,)"""
    top_ids: torch.Tensor
    """(tokens, candidates), best first."""
    top_logprobs: torch.Tensor
    """(tokens, candidates)"""


def prompt_logprobs(
    hidden: torch.Tensor, next_ids: torch.Tensor, top_n: int, to_logits: Callable[[torch.Tensor], torch.Tensor]
) -> PromptScores:
    """Scores of next_ids (tokens,) given the hidden states (tokens, dim) before each, with `top_n` candidates each."""
    parts = []
    for states, ids in zip(hidden.split(_PROMPT_ROWS), next_ids.split(_PROMPT_ROWS), strict=True):
        logits = to_logits(states)
        total = logits.logsumexp(-1, keepdim=True)
        chosen = (logits.gather(-1, ids.long().unsqueeze(-1)) - total).squeeze(-1)
        best = logits.topk(min(top_n, logits.shape[-1]), -1)
        parts.append((chosen, best.indices, best.values - total))
    return PromptScores(*(torch.cat(column) for column in zip(*parts, strict=True)))
