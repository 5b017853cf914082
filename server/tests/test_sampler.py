"""Sampling on small cases: penalties, log-probabilities, reproducibility, rows that do not touch each other.

The distributions themselves are tested in `test_sampler_distributions.py`.
"""

import numpy as np
import pytest
import torch

from tests.plans import Sequence, generate, load_decoder, make_runner, sampling
from tests.sampler_reference import columns, history, no_adjustments
from text_generation_server.engine.adjustments import AdjustedRows
from text_generation_server.engine.logprobs import logprobs
from text_generation_server.engine.randomness import gumbel, row_keys
from text_generation_server.engine.sampler import sample
from text_generation_server.engine.watermark import z_score


def test_noise_is_uniform_and_a_function_of_seed_and_index():
    keys = torch.from_numpy(row_keys(np.array([5, 5, 6], np.uint64), np.array([0, 1, 0])))
    noise = gumbel(keys, torch.arange(100_000))
    uniform = torch.exp(-torch.exp(-noise.double()))
    assert (uniform.mean(1) - 0.5).abs().max() < 0.005 and (uniform.var(1) - 1 / 12).abs().max() < 0.002
    assert torch.corrcoef(uniform).fill_diagonal_(0).abs().max() < 0.02
    assert torch.equal(noise[:1], gumbel(keys[:1], torch.arange(100_000)))


def test_penalties():
    logits = torch.tensor([[2.0, -2.0, 1.0, 1.0, 0.0]])
    rows = columns(sampling(repetition_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25))
    # Prompt 0, 1; generated 2, 2; the last id lies past the length and does not count.
    found = sample(logits, rows, history(1, [[0, 1, 2, 2, 4]], prompt=2, length=4), no_adjustments()).scores
    assert found.tolist() == [[1.0, -4.0, 0.5 - 1.0 - 0.25, 1.0, 0.0]]


def test_rows_that_are_not_finite_are_flagged_and_harm_nobody():
    logits = torch.randn(4, 30)
    clean = logits.clone()
    logits[1, 3], logits[2, 7] = float("nan"), float("inf")
    rows = columns(*[sampling(temperature=1.0, seed=i, top_p=0.9, top_n=2) for i in range(4)])
    got, expected = (sample(given, rows, history(4), no_adjustments()) for given in (logits.clone(), clean))
    assert got.finite.tolist() == [True, False, False, True]
    assert got.token_ids[1:3].tolist() == [0, 0]
    assert torch.equal(got.token_ids[[0, 3]], expected.token_ids[[0, 3]])
    assert logprobs(got, rows["top_n"]).top_counts.tolist() == [2, 0, 0, 2]


@pytest.mark.parametrize(("n", "ids"), [(2, [0, 3]), (3, [0, 3, 1, 4]), (5, [0, 3, 1, 4, 2])])
def test_top_tokens_come_with_ties(n, ids):
    rows = columns(sampling(top_n=n))
    scored = logprobs(sample(torch.tensor([[-1.0, -3, -4, -2, -3]]), rows, history(1), no_adjustments()), rows["top_n"])
    assert scored.top_ids[0, : scored.top_counts[0]].tolist() == ids


def test_a_request_samples_the_same_tokens_in_any_batch_and_after_a_resume(tiny_checkpoint):
    decoder = load_decoder(tiny_checkpoint()[0])
    wanted = {"temperature": 0.9, "top_p": 0.95, "seed": 42, "repetition_penalty": 1.2, "frequency_penalty": 0.1}
    alone = generate(make_runner(decoder), [Sequence([5, 6, 7], sampling(**wanted))], 20)[0]
    strangers = [Sequence([9, i], sampling(temperature=1.0, seed=i, top_k=i)) for i in range(3)]
    among = generate(make_runner(decoder), [*strangers, Sequence([5, 6, 7], sampling(**wanted)), Sequence([1])], 20, 2)
    resumed = generate(make_runner(decoder), [Sequence([5, 6, 7], sampling(**wanted), generated=alone[:9])], 20)[0]
    assert among[3] == alone and resumed == alone


def test_prompt_logprobs_chunk_by_chunk(tiny_checkpoint):
    folder, model = tiny_checkpoint()
    prompt = list(range(10, 50))
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0, :-1].log_softmax(-1)
    expected = expected.gather(-1, torch.tensor(prompt[1:])[:, None])[:, 0]
    for chunk in (1000, 7):
        row = Sequence(prompt, prompt_logprobs=True, prompt_top_n=2)
        generate(make_runner(load_decoder(folder)), [row, Sequence([3, 4])], 2, chunk)
        assert (torch.tensor(row.prompt_scores) - expected).abs().max() < 1e-4
        best = model(torch.tensor([prompt])).logits[0, :-1].topk(2).indices.flatten()
        assert row.prompt_tops == best.tolist()


def test_biases_and_barred_ends_touch_their_rows_alone():
    adjusted = AdjustedRows()
    adjusted.start(3, sampling(bias_ids=[1, 4], biases=[5.0, -100.0], min_tokens=2, end_ids=[0, 4]))
    adjusted.start(5, sampling(min_tokens=9, end_ids=[2]))
    adjusted.start(5, sampling())
    found = torch.zeros(3, 5)
    adjusted.gather(np.array([7, 3, 5]), np.array([0, 1, 0])).apply(found)
    assert found.tolist() == [[0.0] * 5, [-torch.inf, 5.0, 0.0, 0.0, -torch.inf], [0.0] * 5]
    found = torch.zeros(1, 5)
    adjusted.gather(np.array([3]), np.array([2])).apply(found)
    assert found.tolist() == [[0.0, 5.0, 0.0, 0.0, -100.0]]


def test_raw_logprobs_are_those_of_the_model():
    logits = torch.randn(3, 40, generator=torch.Generator().manual_seed(5))
    options = {"temperature": 0.3, "top_k": 4, "repetition_penalty": 1.5, "top_n": 6, "seed": 9}
    rows = columns(*[sampling(**options, raw_logprobs=raw) for raw in (True, False, True)])
    past = history(3, [[1, 2, 3]] * 3, prompt=1)
    adjusted = AdjustedRows()
    adjusted.start(0, sampling(bias_ids=[7], biases=[4.0]))
    found = sample(logits.clone(), rows, past, adjusted.gather(np.arange(3), np.full(3, 2)))
    scored = logprobs(found, rows["top_n"])
    expected = logits.log_softmax(-1)
    for row in (0, 2):
        assert torch.allclose(scored.chosen[row], expected[row, found.token_ids[row]], atol=1e-5)
        assert torch.allclose(scored.top_logprobs[row, :6], expected[row].topk(6).values, atol=1e-5)
    assert scored.top_counts.tolist() == [6, 4, 6]
    assert scored.chosen[1] > expected[1, found.token_ids[1]]


def test_a_row_is_the_same_alone_and_among_strangers():
    generator = torch.Generator().manual_seed(11)
    logits = torch.randn(6, 50, generator=generator) * 3
    kinds = [
        {},
        {"temperature": 0.8, "seed": 3, "top_p": 0.8},
        {"repetition_penalty": 1.4, "raw_logprobs": True},
        {"temperature": 1.3, "seed": 4, "min_p": 0.1, "typical_p": 0.9, "presence_penalty": 0.5},
        {"watermark_delta": 3.0, "watermark_gamma": 0.25},
        {"temperature": 1.0, "seed": 5, "top_k": 3, "frequency_penalty": 0.7},
    ]
    ids = torch.randint(0, 50, (6, 9), generator=generator).tolist()
    adjusted = AdjustedRows()
    adjusted.start(1, sampling(bias_ids=[8, 9], biases=[2.0, -2.0], min_tokens=20, end_ids=[0]))
    slots, generated = np.arange(6), np.full(6, 5)

    def run(chosen):
        rows = columns(*[sampling(**kinds[row], top_n=3) for row in chosen])
        past = history(len(chosen), [ids[row] for row in chosen], prompt=4)
        found = sample(logits[chosen], rows, past, adjusted.gather(slots[chosen], generated[chosen]))
        return found.token_ids, found.scores

    token_ids, scores = run(list(range(6)))
    for row in range(6):
        alone_ids, alone_scores = run([row])
        assert alone_ids[0] == token_ids[row]
        assert torch.equal(alone_scores[0], scores[row])


def test_a_watermark_is_seen_in_marked_text_alone():
    generator = torch.Generator().manual_seed(2)
    texts = {}
    for delta in (0.0, 4.0):
        tokens = [1]
        for _ in range(200):
            rows = columns(sampling(temperature=1.0, seed=6, watermark_delta=delta, watermark_gamma=0.25))
            past = history(1, [tokens], prompt=1)
            logits = torch.randn(1, 500, generator=generator)
            tokens.append(int(sample(logits, rows, past, no_adjustments()).token_ids[0]))
        texts[delta] = tokens
    assert z_score(texts[4.0], 0.25) > 10
    assert abs(z_score(texts[0.0], 0.25)) < 3
    with pytest.raises(ValueError, match="at least two tokens"):
        z_score([1], 0.25)
