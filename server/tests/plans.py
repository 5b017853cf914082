"""Plans as plain data, and a driver that runs sequences through a runner the way the router does."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import torch

from text_generation_server.attention.base import LayerShape
from text_generation_server.attention.sdpa import SdpaBackend
from text_generation_server.engine.build import choose_products
from text_generation_server.engine.runner import Runner, StepOutput
from text_generation_server.engine.slots import Slots
from text_generation_server.models.decoder import Decoder
from text_generation_server.models.registry import describe_model
from text_generation_server.weights.index import CheckpointIndex
from text_generation_server.weights.loader import load_weights

BLOCK = 16


def load_decoder(folder, dtype=torch.float32, own_products=True):
    family = describe_model(folder)
    decoder = Decoder(family.spec)
    if own_products:
        choose_products(decoder, torch.device("cpu"), dtype)
    load_weights(decoder.parameters(), CheckpointIndex(folder), family, 0, dtype, torch.device("cpu"))
    decoder.ready(family.spec.max_positions)
    return decoder


def make_runner(decoder, backend=SdpaBackend, sequences=32, blocks=400, max_tokens=256, collectives=None):
    shapes = [LayerShape(b.heads, b.kv_heads, b.head_dim, b.window) for b in (x.attention for x in decoder.layers)]
    weight = decoder.final_norm.weight.data
    attention = backend(shapes, BLOCK, weight.dtype, weight.device)
    attention.allocate(blocks)
    return Runner(decoder, attention, Slots(sequences, max_tokens, BLOCK, weight.device), collectives)


def sampling(**values):
    defaults = dict(
        temperature=0.0,
        top_k=0,
        top_p=1.0,
        typical_p=1.0,
        repetition_penalty=1.0,
        frequency_penalty=0.0,
        presence_penalty=0.0,
        seed=0,
        top_n=0,
        min_p=0.0,
        bias_ids=[],
        biases=[],
        min_tokens=0,
        end_ids=[],
        watermark_gamma=0.5,
        watermark_delta=0.0,
        raw_logprobs=False,
    )
    return SimpleNamespace(**{**defaults, **values})


@dataclass
class Sequence:
    prompt: list[int]
    sampling: SimpleNamespace = field(default_factory=sampling)
    prompt_logprobs: bool = False
    prompt_top_n: int = 0
    generated: list[int] = field(default_factory=list)
    slot: int = -1
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[list[tuple[int, float]]] = field(default_factory=list)
    prompt_scores: list[float] = field(default_factory=list)
    prompt_tops: list[int] = field(default_factory=list)


def plan(**values):
    arrays = (
        "released_slots",
        "copy_from",
        "copy_to",
        "slots",
        "token_counts",
        "row_flags",
        "block_counts",
        "block_ids",
    )
    found = {name: np.array(values.pop(name, []), np.uint32) for name in arrays}
    return SimpleNamespace(**{"epoch": 1, "step": 1, "reset": False, "new_sequences": [], **found, **values})


class Driver:
    """Runs sequences to a length; each joins at once, and prompts go in chunks."""

    def __init__(self, runner, shuffle_blocks=False):
        self.runner = runner
        self.free = list(range(399, -1, -1))
        if shuffle_blocks:
            np.random.default_rng(0).shuffle(self.free)
        self.slots = list(range(len(runner.slots.live)))
        self.rows: list[Sequence] = []
        self.released: list[int] = []
        self.new: list = []

    def add(self, sequence):
        sequence.slot = self.slots.pop(0)
        self.rows.append(sequence)
        tokens = sequence.prompt + sequence.generated
        self.new.append(
            SimpleNamespace(
                slot=sequence.slot,
                token_ids=np.array(tokens, np.uint32),
                prompt_length=len(sequence.prompt),
                computed=0,
                block_ids=np.zeros(0, np.uint32),
                sampling=sequence.sampling,
                prompt_logprobs=sequence.prompt_logprobs,
                prompt_top_n=sequence.prompt_top_n,
            )
        )
        return sequence

    def remove(self, sequence):
        self.rows.remove(sequence)
        self.slots.append(sequence.slot)
        self.released.append(sequence.slot)
        self.free += sequence.blocks

    def step(self, chunk=1 << 30) -> StepOutput:
        slots, counts, flags, block_counts, blocks = [], [], [], [], []
        for row in self.rows:
            known = len(row.prompt) + len(row.generated)
            count = min(known - row.computed, chunk)
            row.computed += count
            need = -(-row.computed // BLOCK) - len(row.blocks)
            mine = [self.free.pop() for _ in range(need)]
            row.blocks += mine
            blocks += mine
            slots.append(row.slot)
            counts.append(count)
            flags.append(int(row.computed == known))
            block_counts.append(need)
        made = plan(
            released_slots=self.released,
            new_sequences=self.new,
            slots=slots,
            token_counts=counts,
            row_flags=flags,
            block_counts=block_counts,
            block_ids=blocks,
        )
        self.released, self.new = [], []
        output = self.runner.launch(made).result()
        self._take(output)
        return output

    def _take(self, output):
        by_slot = {row.slot: row for row in self.rows}
        counts = output.top_counts.tolist() or [0] * len(output.slots)
        begin = 0
        for slot, token, logprob, count in zip(output.slots, output.token_ids, output.logprobs, counts, strict=True):
            row = by_slot[int(slot)]
            row.generated.append(int(token))
            row.logprobs.append(float(logprob))
            span = slice(begin, begin + count)
            pairs = zip(output.top_ids[span].tolist(), output.top_logprobs[span].tolist(), strict=True)
            row.top.append(list(pairs))
            begin += count
        for told in output.prompt_logprobs:
            row = by_slot[told.slot]
            assert told.position == len(row.prompt_scores) + 1
            row.prompt_scores += told.logprobs.tolist()
            row.prompt_tops += told.top_ids.tolist()


def generate(runner, sequences, tokens, chunk=1 << 30, shuffle_blocks=False):
    """Generate `tokens` tokens for each sequence, all in one batch."""
    driver = Driver(runner, shuffle_blocks)
    for sequence in sequences:
        driver.add(sequence)
    while driver.rows:
        driver.step(chunk)
        for row in [row for row in driver.rows if len(row.generated) >= tokens]:
            driver.remove(row)
    driver.step()
    return [sequence.generated[:tokens] for sequence in sequences]
