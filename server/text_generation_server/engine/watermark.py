"""The watermark: which tokens are favoured after which token, and how a text is tested for it.

After each token, a share `gamma` of the vocabulary is favoured: a token is in it when a hash of the pair (token before
it, token) falls below gamma. The hash is integer arithmetic that is the same on every device, so the watermark of a
request does not depend on its batch or on where it ran. Knows nothing of rows, of logits and of text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from text_generation_server.engine.randomness import token_keys, uniform


@dataclass(frozen=True)
class Detection:
    """What the tokens of a text tell."""

    pairs: int
    """Different pairs of neighbouring tokens: a repeated pair proves nothing more."""
    favoured: int
    """How many of them end in a favoured token."""
    z_score: float
    """Standard deviations above what a text without the watermark has; above 4 is no accident (1 in 30,000)."""


def favoured(previous: torch.Tensor, ids: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """Whether each of `ids`, (ids,) or (rows, ids), is favoured after `previous` (rows,); gamma (rows, 1) float32."""
    return uniform(token_keys(previous), ids) < gamma


def detect(token_ids: Sequence[int], gamma: float) -> Detection:
    """Test a text, as the tokens of the model that may have written it, for a watermark of share `gamma`.

    Raises:
        ValueError: fewer than two tokens, or a gamma that is no share.
    """
    if not 0 < gamma < 1:
        raise ValueError(f"gamma is {gamma}; give the share that the server was started with, above 0 and below 1")
    pairs = sorted(set(pairwise(token_ids)))
    if not pairs:
        raise ValueError("a text of fewer than two tokens has nothing to test")
    previous, following = torch.tensor(pairs, dtype=torch.int64).unbind(-1)
    share = torch.full((len(pairs), 1), gamma, dtype=torch.float32)
    hits = int(favoured(previous, following.unsqueeze(-1), share).sum())
    spread = math.sqrt(len(pairs) * gamma * (1 - gamma))
    return Detection(len(pairs), hits, (hits - gamma * len(pairs)) / spread)
