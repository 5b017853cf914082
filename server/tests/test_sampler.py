"""Sampling in a run: reproducibility, penalties, barred tokens, logprobs. Distributions have a file of their own."""

import numpy as np
import pytest
import torch

from tests.plans import Sequence, generate, load_decoder, make_runner, sampling
from text_generation_server.engine.adjust import History
from text_generation_server.engine.logprobs import logprobs
from text_generation_server.engine.randomness import gumbel, row_keys
from text_generation_server.engine.sampler import sample

KINDS = {"top_k": np.int64, "seed": np.uint64, "top_n": np.int64, "raw_logprobs": np.bool_}


def columns(*rows):
    """A column for each parameter that is a single value."""
    filled = [vars(row) for row in rows]
    names = [name for name, value in filled[0].items() if not isinstance(value, np.ndarray)]
    return {name: np.array([row[name] for row in filled], KINDS.get(name, np.float32)) for name in names}


def history(count, ids=None, prompt=0, length=None):
    ids = torch.zeros(count, 1, dtype=torch.int32) if ids is None else torch.tensor(ids, dtype=torch.int32)
    length = ids.shape[1] if length is None else length
    return History(ids, np.full(count, length), np.full(count, prompt))


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
    found = sample(logits, rows, history(1, [[0, 1, 2, 2, 4]], prompt=2, length=4)).scores
    assert found.tolist() == [[1.0, -4.0, 0.5 - 1.0 - 0.25, 1.0, 0.0]]


def test_rows_that_are_not_finite_are_flagged_and_harm_nobody():
    logits = torch.randn(4, 30)
    clean = logits.clone()
    logits[1, 3], logits[2, 7] = float("nan"), float("inf")
    rows = columns(*[sampling(temperature=1.0, seed=i, top_p=0.9, top_n=2) for i in range(4)])
    got, expected = sample(logits.clone(), rows, history(4)), sample(clean, rows, history(4))
    assert got.finite.tolist() == [True, False, False, True]
    assert got.token_ids[1:3].tolist() == [0, 0]
    assert torch.equal(got.token_ids[[0, 3]], expected.token_ids[[0, 3]])
    assert logprobs(got, rows["top_n"]).top_counts.tolist() == [2, 0, 0, 2]


@pytest.mark.parametrize(("n", "ids"), [(2, [0, 3]), (3, [0, 3, 1, 4]), (5, [0, 3, 1, 4, 2])])
def test_top_tokens_come_with_ties(n, ids):
    rows = columns(sampling(top_n=n))
    scored = logprobs(sample(torch.tensor([[-1.0, -3, -4, -2, -3]]), rows, history(1)), rows["top_n"])
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
        everything = model(torch.tensor([prompt])).logits[0, :-1].log_softmax(-1)
    expected = everything.gather(-1, torch.tensor(prompt[1:])[:, None])[:, 0]
    best = everything.topk(3, -1)
    for chunk, top_n in ((1000, 3), (7, 3), (7, 0)):
        row = Sequence(prompt, prompt_logprobs=True, prompt_top_n=top_n)
        generate(make_runner(load_decoder(folder)), [row, Sequence([3, 4], prompt_logprobs=True)], 2, chunk)
        assert (torch.tensor(row.prompt_scores) - expected).abs().max() < 1e-4
        assert [[token for token, _ in pairs] for pairs in row.prompt_top] == best.indices[:, :top_n].tolist()
        found = torch.tensor([[logprob for _, logprob in pairs] for pairs in row.prompt_top])
        assert torch.allclose(found, best.values[:, :top_n], atol=1e-4)


def test_barred_tokens_come_only_after_the_least_number_of_tokens(tiny_checkpoint):
    decoder = load_decoder(tiny_checkpoint()[0])
    free = generate(make_runner(decoder), [Sequence([5, 6])], 1)[0]
    barred = sampling(min_tokens=4, end_ids=np.array(free, np.uint32))
    biased = sampling(bias_ids=np.array([9], np.uint32), biases=np.array([100.0], np.float32))
    row, stranger = Sequence([5, 6], barred), Sequence([7], biased)
    tokens, others = generate(make_runner(decoder), [row, stranger], 6)
    assert free[0] not in tokens[:4] and others == [9] * 6
    # Only the first tokens are chosen among fewer: after those, the row is as one that was never barred.
    assert generate(make_runner(decoder), [Sequence([5, 6], generated=tokens[:4])], 6)[0] == tokens
