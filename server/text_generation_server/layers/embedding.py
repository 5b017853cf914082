"""The token embedding and the head that turns hidden states into logits.

The embedding is whole on every rank: it is read by row, so a copy costs memory but no time, and no collective is
needed. The head is shared by vocabulary; `gather` joins the ranks' logits. A tied head is a view of the embedding.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from text_generation_server.layers.linear import Linear
from text_generation_server.layers.parameter import Parameter, Part, Share


class Embedding:
    """Token id -> vector."""

    def __init__(self, vocab_size: int, dim: int):
        self.weight = Parameter("embedding", "weight", (Part("", vocab_size),), dim)

    def parameters(self) -> list[Parameter]:
        """What a checkpoint must provide."""
        return [self.weight]

    def __call__(self, token_ids: torch.Tensor) -> torch.Tensor:
        """token_ids (tokens,) -> (tokens, dim)."""
        return F.embedding(token_ids, self.weight.data)


class Head:
    """Hidden state -> logits over the whole vocabulary, in float32."""

    def __init__(self, embedding: Embedding, vocab_size: int, dim: int, *, tie: bool):
        self.linear = Linear("head", dim, (Part("", vocab_size),), bias=False, share=Share.VOCABULARY)
        self.vocab_size = vocab_size
        self.first_row = 0
        """First vocabulary entry of this rank."""
        self.gather: Callable[[torch.Tensor], torch.Tensor] | None = None
        self._tied_to = embedding if tie else None

    def parameters(self) -> list[Parameter]:
        """What a checkpoint must provide: nothing, when the head shares the embedding."""
        return [] if self._tied_to is not None else self.linear.parameters()

    def loaded(self) -> None:
        """Take the weight over; a tied head takes this rank's rows of the embedding."""
        if self._tied_to is not None:
            rows = self.linear.weight.shape[0]
            table = self._tied_to.weight.data[self.first_row : self.first_row + rows]
            self.linear.weight.tensor = F.pad(table, (0, 0, 0, rows - len(table))) if len(table) < rows else table
        self.linear.loaded()

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """hidden (rows, dim) -> (rows, vocabulary)."""
        logits = self.linear(hidden)
        if self.gather is not None:
            logits = self.gather(logits)[:, : self.vocab_size]
        return logits.float()
