"""A watermark after Kirchenbauer et al., "A Watermark for Large Language Models" (2023), section 3.1.

Before each token a share gamma of the vocabulary, drawn from a hash of the previous token, is favoured: its logits are
raised by delta. Whoever knows the hash finds more favoured tokens in a text than chance allows. Each vocabulary id is
favoured by a hash of its own instead of by a permutation of the whole vocabulary: the set has gamma's share on average,
and is the same on every device and in every batch.
"""

import math
from collections.abc import Sequence

import torch

from text_generation_server.engine.randomness import token_keys, uniform

HASH_KEY = 15485863
"""TGI's key: the previous token's id is multiplied by it before it is hashed."""


def favoured(previous: torch.Tensor, gamma: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """Which tokens are favoured: (rows, vocabulary) bool, for previous ids (rows,) and shares gamma (rows, 1)."""
    ids = torch.arange(vocabulary, device=previous.device)
    return uniform(token_keys(previous.to(torch.int32) * HASH_KEY), ids) < gamma


def mark(logits: torch.Tensor, previous: torch.Tensor, gamma: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    """Logits (rows, vocabulary) with the favoured ones raised; gamma and delta (rows, 1), delta 0 = no watermark."""
    return logits + favoured(previous, gamma, logits.shape[-1]) * delta


def z_score(token_ids: Sequence[int], gamma: float) -> float:
    """How far the count of favoured tokens lies above chance, in standard deviations; above 4 is hardly chance.

    `token_ids` are those of the text; the first only serves as the second's previous token.

    Raises:
        ValueError: fewer than two tokens.
    """
    count = len(token_ids) - 1
    if count < 1:
        raise ValueError(f"a watermark needs at least two tokens to be seen, not {len(token_ids)}")
    ids = torch.tensor(list(token_ids))
    keys = token_keys(ids[:-1].to(torch.int32) * HASH_KEY)
    hits = int((uniform(keys, ids[1:].unsqueeze(-1)) < torch.tensor(gamma)).sum())
    return (hits - gamma * count) / math.sqrt(count * gamma * (1 - gamma))
