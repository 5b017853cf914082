"""Draws against the exact distribution: a chi-square test for each transformation and for combinations.

Seeds are fixed, so a test that passes once passes always."""

import numpy as np
import pytest
import torch

from tests.plans import sampling
from tests.sampler_reference import columns, history, probabilities
from text_generation_server.engine.adjustments import AdjustedRows
from text_generation_server.engine.sampler import sample
from text_generation_server.engine.watermark import favoured

VOCABULARY = 24
DRAWS = 20_000
# Cells that expect fewer draws are put together: the chi-square law holds for large counts only.
LEAST_EXPECTED = 10

PROMPT, GENERATED = [3, 5, 5, 20], [7, 3, 7, 7, 11]
TRANSFORMATIONS = {
    "temperature": {"temperature": 0.6},
    "hot": {"temperature": 1.8},
    "top_k": {"top_k": 5},
    "top_p": {"top_p": 0.7},
    "min_p": {"min_p": 0.08},
    "typical_p": {"typical_p": 0.6},
    "repetition_penalty": {"repetition_penalty": 1.6},
    "frequency_penalty": {"frequency_penalty": 0.4},
    "presence_penalty": {"presence_penalty": -1.1},
    "logit_bias": {"bias_ids": [0, 7, 9], "biases": [2.5, -100.0, 1.0]},
    "min_tokens": {"min_tokens": 6, "end_ids": [2, 11, 19]},
    "min_tokens reached": {"min_tokens": 5, "end_ids": [2, 11, 19]},
    "watermark": {"watermark_delta": 2.0, "watermark_gamma": 0.5},
}
COMBINATIONS = {
    "warpers": {"temperature": 1.7, "top_k": 12, "top_p": 0.9, "min_p": 0.02, "typical_p": 0.8},
    "penalties": {"repetition_penalty": 1.3, "frequency_penalty": 0.3, "presence_penalty": 0.6, "temperature": 0.8},
    "penalties before warpers": {"repetition_penalty": 2.0, "presence_penalty": 1.0, "top_k": 6, "top_p": 0.8},
    "bias before penalties": {"bias_ids": [3, 7], "biases": [3.0, 3.0], "repetition_penalty": 1.5, "top_p": 0.9},
    "barred before top_k": {"min_tokens": 9, "end_ids": [1, 4, 8], "top_k": 4, "temperature": 1.2},
    "everything": {
        "temperature": 1.4,
        "top_k": 15,
        "top_p": 0.95,
        "min_p": 0.01,
        "typical_p": 0.9,
        "repetition_penalty": 1.2,
        "frequency_penalty": 0.2,
        "presence_penalty": 0.1,
        "bias_ids": [0, 22],
        "biases": [1.5, -1.5],
        "min_tokens": 8,
        "end_ids": [6],
        "watermark_delta": 1.0,
        "watermark_gamma": 0.3,
    },
}
CASES = TRANSFORMATIONS | COMBINATIONS


def draws_of(logits, options):
    """Counts of each token over `DRAWS` rows that differ in their seed alone, and the exact probabilities."""
    options = {"temperature": 1.0, **options}
    wish = sampling(**options)
    rows = columns(*[sampling(**{**options, "seed": seed}) for seed in range(DRAWS)])
    past = history(DRAWS, [PROMPT + GENERATED] * DRAWS, prompt=len(PROMPT))
    adjusted = AdjustedRows()
    for slot in range(DRAWS):
        adjusted.start(slot, wish)
    changes = adjusted.gather(np.arange(DRAWS), np.full(DRAWS, len(GENERATED)))
    chosen = sample(logits.repeat(DRAWS, 1), rows, past, changes).token_ids
    share = torch.tensor([[options.get("watermark_gamma", 0.5)]])
    marked = favoured(torch.tensor(GENERATED[-1:]), share, VOCABULARY)[0].numpy()
    exact = probabilities(logits.numpy(), GENERATED, PROMPT, marked, options)
    return np.bincount(chosen.numpy(), minlength=VOCABULARY), exact


def chi_square(counts, exact):
    """(statistic, degrees of freedom) with rare cells put together."""
    expected = exact * counts.sum()
    rare = expected < LEAST_EXPECTED
    pairs = [(counts[~rare], expected[~rare]), ([counts[rare].sum()], [expected[rare].sum()])]
    found, wanted = (np.concatenate([np.asarray(pair[side], float) for pair in pairs]) for side in (0, 1))
    kept = wanted > 0
    return float(((found[kept] - wanted[kept]) ** 2 / wanted[kept]).sum()), int(kept.sum()) - 1


def critical_value(freedom):
    """The statistic that a right sampler exceeds once in a thousand times (Wilson and Hilferty's approximation)."""
    normal = 3.0902
    return freedom * (1 - 2 / (9 * freedom) + normal * np.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize("name", CASES)
def test_draws_follow_the_exact_distribution(name):
    logits = torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(3)) * 1.5
    counts, exact = draws_of(logits, CASES[name])
    assert not counts[exact == 0].any(), "a token that must not be chosen was chosen"
    statistic, freedom = chi_square(counts, exact)
    assert statistic < critical_value(freedom)


def test_the_test_finds_a_wrong_sampler():
    logits = torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(3)) * 1.5
    counts, _ = draws_of(logits, {"temperature": 1.05})
    _, exact = draws_of(logits, {})
    statistic, freedom = chi_square(counts, exact)
    assert statistic > critical_value(freedom)


@pytest.mark.parametrize("name", CASES)
def test_greedy_is_the_best_token_after_the_penalties(name):
    logits = torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(4)) * 1.5
    options = {**CASES[name], "temperature": 0.0}
    adjusted = AdjustedRows()
    adjusted.start(0, sampling(**options))
    past = history(1, [PROMPT + GENERATED], prompt=len(PROMPT))
    changes = adjusted.gather(np.zeros(1, np.int64), np.array([len(GENERATED)]))
    chosen = sample(logits[None].clone(), columns(sampling(**options)), past, changes).token_ids
    share = torch.tensor([[options.get("watermark_gamma", 0.5)]])
    marked = favoured(torch.tensor(GENERATED[-1:]), share, VOCABULARY)[0].numpy()
    plain = {name: value for name, value in options.items() if name not in ("top_k", "top_p", "min_p", "typical_p")}
    exact = probabilities(logits.numpy(), GENERATED, PROMPT, marked, {**plain, "temperature": 1.0})
    assert chosen.tolist() == [int(exact.argmax())]
