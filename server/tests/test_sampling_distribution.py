"""Draws follow the exact distribution, for each transformation and for combinations; rows do not disturb each other."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from tests.plans import sampling
from tests.sampling_reference import adjusted, chi_square, distribution
from tests.test_sampler import columns
from text_generation_server.engine.adjust import History
from text_generation_server.engine.edits import TokenEdits
from text_generation_server.engine.logprobs import logprobs
from text_generation_server.engine.sampler import sample

VOCABULARY = 24
DRAWS = 20_000
NO_ACCIDENT = 4.0
"""Standard deviations; the seeds are fixed, so a test that passes once always does."""


def ids(*values):
    return np.array(values, np.uint32)


def amounts(*values):
    return np.array(values, np.float32)


BIAS = {"bias_ids": ids(3, 9, 20), "biases": amounts(2.5, -4.0, 1.0)}
BARRED = {"min_tokens": 9, "end_ids": ids(0, 7, 11)}
WATERMARK = {"watermark_gamma": 0.25, "watermark_delta": 2.0}
STEPS = {
    "plain": {},
    "temperature": {"temperature": 0.5},
    "bias": BIAS,
    "barred": BARRED,
    "barred no more": BARRED | {"min_tokens": 3},
    "watermark": WATERMARK,
    "repetition": {"repetition_penalty": 1.7},
    "frequency": {"frequency_penalty": 0.9},
    "presence": {"presence_penalty": -1.5},
    "top_k": {"top_k": 5},
    "top_p": {"top_p": 0.7},
    "min_p": {"min_p": 0.2},
    "min_p of 1": {"min_p": 1.0},
    "typical_p": {"typical_p": 0.6},
    "bias and barred": BIAS | BARRED | {"biases": amounts(2.5, -4.0, 100.0)},
    "penalties": {"repetition_penalty": 0.6, "frequency_penalty": 0.4, "presence_penalty": 0.7, "temperature": 1.4},
    "warpers": {"temperature": 1.7, "top_k": 12, "top_p": 0.9, "min_p": 0.05, "typical_p": 0.8},
    "everything": BIAS
    | BARRED
    | WATERMARK
    | {"repetition_penalty": 1.3, "frequency_penalty": 0.3, "presence_penalty": 0.2}
    | {"temperature": 1.6, "top_k": 16, "top_p": 0.95, "min_p": 0.01, "typical_p": 0.9},
}


@dataclass
class Row:
    options: dict
    logits: torch.Tensor
    prompt: list[int] = field(default_factory=lambda: [5, 6, 5, 8])
    generated: list[int] = field(default_factory=lambda: [9, 3, 9])

    def exact(self):
        return distribution(self.logits.numpy(), self.options, self.prompt, self.generated)


def logits_of(seed):
    return torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 2


def run(rows, device="cpu"):
    """Sample rows (options, logits, tokens) together."""
    edits = TokenEdits(len(rows))
    for slot, row in enumerate(rows):
        edits.start(slot, row.options)
    tokens = [row.prompt + row.generated for row in rows]
    longest = max(map(len, tokens))
    # What lies behind the end of a row is left over from earlier sequences.
    padded = [row + [17] * (longest - len(row)) for row in tokens]
    lengths, prompts = (np.array([len(x) for x in which]) for which in (tokens, [row.prompt for row in rows]))
    history = History(torch.tensor(padded, dtype=torch.int32, device=device), lengths, prompts)
    logits = torch.stack([row.logits for row in rows]).to(device)
    packed = edits.gather(np.arange(len(rows)), lengths - prompts)
    return sample(logits, columns(*[row.options for row in rows]), history, packed)


def draw(options):
    """One row, drawn with many seeds at once."""
    row = Row(sampling(**({"temperature": 1.0} | options)), logits_of(3))
    one = {name: values.repeat(DRAWS) for name, values in columns(row.options).items()}
    one["seed"] = np.arange(DRAWS).astype(np.uint64)
    edits = TokenEdits(1)
    edits.start(0, row.options)
    packed = edits.gather(np.zeros(DRAWS, np.int64), np.full(DRAWS, len(row.generated)))
    tokens = torch.tensor([row.prompt + row.generated], dtype=torch.int32)
    lengths, prompts = np.full(DRAWS, tokens.shape[1]), np.full(DRAWS, len(row.prompt))
    history = History(tokens.repeat(DRAWS, 1), lengths, prompts)
    return row, sample(row.logits.repeat(DRAWS, 1), one, history, packed)


@pytest.mark.parametrize("options", STEPS.values(), ids=STEPS.keys())
def test_draws_follow_the_exact_distribution(options):
    row, sampled = draw(options)
    found = np.bincount(sampled.token_ids.numpy(), minlength=VOCABULARY)
    assert chi_square(found, row.exact()) < NO_ACCIDENT


def test_the_test_notices_a_wrong_distribution():
    row = Row(sampling(temperature=1.0), logits_of(3))
    _, sampled = draw({"temperature": 1.1})
    found = np.bincount(sampled.token_ids.numpy(), minlength=VOCABULARY)
    assert chi_square(found, row.exact()) > 2 * NO_ACCIDENT


def test_the_tokens_of_one_seed_follow_the_distribution_too():
    options = sampling(temperature=1.0, seed=99, top_p=0.9)
    rows = [Row(options, logits_of(3), [1], [1] * index) for index in range(3000)]
    found = np.bincount(run(rows).token_ids.numpy(), minlength=VOCABULARY)
    assert chi_square(found, rows[0].exact()) < NO_ACCIDENT


@pytest.mark.parametrize("options", STEPS.values(), ids=STEPS.keys())
def test_greedy_is_the_argmax_and_scores_are_those_of_the_steps(options):
    row = Row(sampling(**(options | {"temperature": 0.0})), logits_of(4))
    sampled = run([row])
    expected = adjusted(row.logits.numpy(), row.options, row.prompt, row.generated)
    assert sampled.token_ids.item() == expected.argmax()
    assert np.allclose(sampled.scores[0], expected, atol=1e-4)


def strangers():
    """Rows of every kind, of different lengths, sampled and greedy."""
    made = []
    for seed, options in enumerate(STEPS.values()):
        for temperature in (0.0, options.get("temperature", 1.0)):
            chosen = sampling(**(options | {"temperature": temperature, "seed": seed, "raw_logprobs": seed % 2 == 0}))
            made.append(Row(chosen, logits_of(seed), list(range(1, 2 + seed)), [seed] * (seed % 5)))
    return made


def test_a_row_alone_equals_the_row_among_strangers():
    rows = strangers()
    top_n = np.arange(len(rows)) % 4
    together = run(rows)
    scored = logprobs(together, top_n)
    for at, row in enumerate(rows):
        alone = run([row])
        assert alone.token_ids.item() == together.token_ids[at].item(), at
        assert torch.equal(alone.scores[0], together.scores[at]), at
        assert logprobs(alone, top_n[at : at + 1]).chosen.item() == pytest.approx(scored.chosen[at].item(), abs=1e-5)
    assert torch.equal(run(rows).token_ids, together.token_ids), "a seed reproduces its tokens"


@pytest.mark.parametrize("options", STEPS.values(), ids=STEPS.keys())
def test_logprobs_are_of_the_distribution_that_was_asked_for(options):
    for temperature in (0.0, 0.8):
        for raw in (False, True):
            row = Row(sampling(**(options | {"temperature": temperature, "raw_logprobs": raw})), logits_of(6))
            scored = logprobs(run([row]), np.array([3]))
            own = row.logits.double().log_softmax(-1).numpy()
            with np.errstate(divide="ignore"):
                expected = own if raw else np.log(row.exact())
            if temperature == 0 and not raw:
                scores = adjusted(row.logits.numpy(), row.options, row.prompt, row.generated)
                expected = torch.tensor(scores).log_softmax(-1).numpy()
            token = run([row]).token_ids.item()
            assert scored.chosen.item() == pytest.approx(expected[token], abs=1e-4)
            count = int(scored.top_counts[0])
            best = np.argsort(-expected, kind="stable")[:count]
            assert scored.top_ids[0, :count].tolist() == best.tolist()
            assert np.allclose(scored.top_logprobs[0, :count], expected[best], atol=1e-4)


def test_extreme_parameters_stay_finite():
    extreme = [
        {"repetition_penalty": 1e-40},
        {"repetition_penalty": 3e38},
        {"repetition_penalty": 1e-40, "temperature": 1e-5},
        {"temperature": 3e38},
        {"temperature": 1e-5, "min_p": 1e-45, "biases": amounts(100.0), "bias_ids": ids(2)},
        {"top_p": 1e-45, "typical_p": 1e-45, "top_k": 4_000_000_000},
    ]
    rows = [Row(sampling(**({"temperature": 1.0} | options)), logits_of(7)) for options in extreme]
    sampled = run(rows)
    scored = logprobs(sampled, np.full(len(rows), 2))
    assert sampled.finite.all() and scored.chosen.isfinite().all()
    counted = torch.arange(scored.top_logprobs.shape[1]) < scored.top_counts[:, None]
    assert scored.top_logprobs[counted].isfinite().all()


@pytest.mark.gpu
def test_a_gpu_chooses_the_same_tokens():
    rows = strangers()
    here, there = run(rows), run(rows, "cuda")
    assert there.token_ids.tolist() == here.token_ids.tolist()
    assert torch.allclose(there.scores.cpu(), here.scores, atol=1e-4)
