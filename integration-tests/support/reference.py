"""The reference: the prepared model run by `transformers` in float32, on the same folder that the shard reads.

A greedy completion is checked by teacher forcing: one forward pass over prompt and completion, whose argmax at each
position must be the next token. That equals comparing with `generate`, and takes a fraction of the time.
"""

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Reference:
    """A model and its tokenizer."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def encode(self, prompt: str) -> list[int]:
        return self.tokenizer.encode(prompt)

    @torch.inference_mode()
    def first_difference(self, prompt: str, completion: list[int]) -> str | None:
        """Where a completion (ids) stops being greedy; `None` when it is greedy all along."""
        prompt_ids = self.encode(prompt)
        logits = self.model(torch.tensor([prompt_ids + completion])).logits[0, len(prompt_ids) - 1 : -1]
        for index, (token, row) in enumerate(zip(completion, logits, strict=True)):
            best = int(row.argmax())
            if best != token:
                gap = float(row[best] - row[token])
                return f"{prompt!r}: token {index} is {token}, the reference has {best} (ahead by {gap:.2e})"
        return None
