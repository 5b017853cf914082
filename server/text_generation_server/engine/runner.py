"""Runs one plan: rows, inputs, forward pass, sampling. The result stays on the device until someone asks for it.

`launch` may be called for step N+1 before the result of step N is read: everything that step N+1 needs of step N is in
the rows. Owns the order of a step; which rows run was decided elsewhere.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from text_generation_server.engine.inputs import StepInputs, gather_inputs
from text_generation_server.engine.logprobs import Logprobs, PromptScores, logprobs, prompt_logprobs
from text_generation_server.engine.sampler import Columns, History, Sampled, sample

if TYPE_CHECKING:
    from text_generation_server._native import Plan
    from text_generation_server.attention.base import AttentionBackend
    from text_generation_server.engine.slots import Slots
    from text_generation_server.engine.threads import StepThreads
    from text_generation_server.models.decoder import Decoder
    from text_generation_server.parallel.collectives import Collectives

ROW_NOT_FINITE = 1
"""Bit of `StepResult.row_flags`."""


@dataclass(frozen=True)
class PromptOutput:
    """The packed arrays of a `PromptLogprobs`."""

    slot: int
    position: int
    """Of the first token described."""
    logprobs: npt.NDArray[np.float32]
    top_ids: npt.NDArray[np.uint32]
    top_logprobs: npt.NDArray[np.float32]


@dataclass(frozen=True)
class StepOutput:
    """The packed arrays of a `StepResult`."""

    slots: npt.NDArray[np.uint32]
    token_counts: npt.NDArray[np.uint32]
    row_flags: npt.NDArray[np.uint32]
    token_ids: npt.NDArray[np.uint32]
    logprobs: npt.NDArray[np.float32]
    top_counts: npt.NDArray[np.uint32]
    top_ids: npt.NDArray[np.uint32]
    top_logprobs: npt.NDArray[np.float32]
    prompt_logprobs: list[PromptOutput] = field(default_factory=list)


@dataclass(frozen=True)
class Timings:
    """Microseconds of a step; on a GPU those of the host, which runs ahead."""

    forward_us: int
    sample_us: int


class PendingStep:
    """A launched step."""

    def __init__(
        self,
        slots: npt.NDArray[np.int64],
        sampled: Sampled | None,
        scored: Logprobs | None,
        prompts: list[tuple[int, int, PromptScores]],
        timings: Timings,
    ):
        self.timings = timings
        self._slots = slots
        self._prompts = prompts
        self._tensors: dict[str, torch.Tensor] = {}
        if sampled is not None and scored is not None:
            found = {"ids": sampled.token_ids, "finite": sampled.finite, "chosen": scored.chosen}
            if scored.top_counts is not None:
                found |= {"counts": scored.top_counts, "top": scored.top_ids, "top_lp": scored.top_logprobs}
            # On a GPU these copies queue behind the step; `result` waits for them alone.
            self._tensors = {name: tensor.to("cpu", non_blocking=True) for name, tensor in found.items()}
        self._done = None
        if torch.cuda.is_available() and any(t.is_pinned() for t in self._tensors.values()):
            self._done = torch.cuda.Event()
            self._done.record()

    def result(self) -> StepOutput:
        """Wait for the step and pack what it found."""
        if self._done is not None:
            self._done.synchronize()
        got = {name: tensor.numpy() for name, tensor in self._tensors.items()}
        count = len(self._slots) if got else 0
        counts = got.get("counts", np.zeros(0, np.uint32))
        kept = np.arange(got["top"].shape[1]) < counts[:, None] if "top" in got else None
        none = np.zeros(0, np.float32)
        return StepOutput(
            slots=self._slots[:count].astype(np.uint32),
            token_counts=np.ones(count, np.uint32),
            row_flags=np.where(got["finite"], 0, ROW_NOT_FINITE).astype(np.uint32) if got else np.zeros(0, np.uint32),
            token_ids=got["ids"].astype(np.uint32) if got else np.zeros(0, np.uint32),
            logprobs=got["chosen"].astype(np.float32) if got else none,
            top_counts=counts.astype(np.uint32),
            top_ids=got["top"][kept].astype(np.uint32) if kept is not None else np.zeros(0, np.uint32),
            top_logprobs=got["top_lp"][kept].astype(np.float32) if kept is not None else none,
            prompt_logprobs=[_pack_prompt(*prompt) for prompt in self._prompts],
        )


def _pack_prompt(slot: int, position: int, scores: PromptScores) -> PromptOutput:
    tops = scores.top_ids.flatten().cpu().numpy().astype(np.uint32), scores.top_logprobs.flatten().cpu().numpy()
    return PromptOutput(slot, position, scores.logprobs.cpu().numpy(), *tops)


class Runner:
    """A decoder, its cache and its rows."""

    def __init__(
        self,
        decoder: Decoder,
        attention: AttentionBackend,
        slots: Slots,
        collectives: Collectives | None = None,
        threads: StepThreads | None = None,
    ):
        self.decoder = decoder
        self.attention = attention
        self.slots = slots
        self._collectives = collectives
        self._threads = threads

    @torch.inference_mode()
    def launch(self, plan: Plan) -> PendingStep:
        """Run a plan. Plans must come in order."""
        self.slots.apply(plan)
        if len(plan.copy_from):
            pairs = torch.from_numpy(np.stack((plan.copy_from, plan.copy_to)).astype(np.int64))
            self.attention.copy_blocks(*pairs.to(self.slots.device))
        if not len(plan.slots):
            return PendingStep(np.zeros(0, np.int64), None, None, [], Timings(0, 0))
        began = time.perf_counter()
        inputs = gather_inputs(self.slots, plan)
        if self._threads is not None:
            self._threads.choose(len(inputs.token_ids))
        hidden = self.decoder.hidden(inputs.token_ids, inputs.positions, self.attention.begin(inputs.rows))
        prompts = self._prompt_logprobs(plan, inputs, hidden)
        logits = self.decoder.logits(hidden[inputs.last_tokens]) if len(inputs.slots) else None
        forwarded = time.perf_counter()
        sampled = scored = None
        if logits is not None:
            sampled, scored = self._sample(inputs, logits)
        self.slots.advance(plan)
        timings = Timings(int((forwarded - began) * 1e6), int((time.perf_counter() - forwarded) * 1e6))
        return PendingStep(inputs.slots, sampled, scored, prompts, timings)

    def _sample(self, inputs: StepInputs, logits: torch.Tensor) -> tuple[Sampled | None, Logprobs | None]:
        """Sample on rank 0, tell the other ranks, and append the ids to the rows."""
        rows, ends = torch.from_numpy(np.stack((inputs.slots, inputs.lengths))).to(logits.device)
        sampled = scored = None
        if self._collectives is None or self._collectives.rank == 0:
            parameters = {name: column[inputs.slots] for name, column in self.slots.sampling.items()}
            history = self._history(inputs, parameters, rows, ends)
            generated = history.lengths - history.prompt_lengths
            sampled = sample(logits, parameters, history, self.slots.adjusted.gather(inputs.slots, generated))
            scored = logprobs(sampled, parameters["top_n"])
            chosen = sampled.token_ids.to(torch.int32)
        else:
            chosen = torch.empty(len(rows), dtype=torch.int32, device=logits.device)
        if self._collectives is not None:
            self._collectives.broadcast(chosen)
        self.slots.token_ids[rows, ends] = chosen
        return sampled, scored

    def _history(self, inputs: StepInputs, parameters: Columns, rows: torch.Tensor, ends: torch.Tensor) -> History:
        """What the sampler looks back on; ids are gathered only for rows that need them."""
        needs_ids = (
            (parameters["repetition_penalty"] != 1)
            | (parameters["frequency_penalty"] != 0)
            | (parameters["presence_penalty"] != 0)
        ).any()
        known = self.slots.token_ids
        ids = known[rows, : int(inputs.lengths.max())] if needs_ids else known[:0]
        last = known[rows, ends - 1] if parameters["watermark_delta"].any() else known[:0, 0]
        return History(ids, last, inputs.lengths, self.slots.prompt_length[inputs.slots])

    def _prompt_logprobs(
        self, plan: Plan, inputs: StepInputs, hidden: torch.Tensor
    ) -> list[tuple[int, int, PromptScores]]:
        """(slot, position of the first token described, scores) of the rows that asked for them."""
        found: list[tuple[int, int, PromptScores]] = []
        first = 0
        for slot, start, count in zip(
            plan.slots.tolist(), inputs.rows.starts.tolist(), inputs.rows.counts.tolist(), strict=True
        ):
            end = min(start + count, int(self.slots.prompt_length[slot]) - 1)
            if self.slots.prompt_logprobs[slot] and end > start:
                next_ids = self.slots.token_ids[slot, start + 1 : end + 1]
                states = hidden[first : first + end - start]
                top_n = int(self.slots.prompt_top_n[slot])
                found.append((slot, start + 1, prompt_logprobs(states, next_ids, top_n, self.decoder.logits)))
            first += count
        return found
