"""The watermark: the favoured set is the documented one, texts that carry it are told from those that do not."""

import numpy as np
import pytest
import torch

from tests.plans import Sequence, generate, load_decoder, make_runner, sampling
from tests.sampling_reference import is_favoured
from text_generation_server.engine.watermark import detect, favoured

MARK = {"temperature": 1.0, "watermark_gamma": 0.5, "watermark_delta": 4.0}


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.75])
def test_a_share_of_the_vocabulary_is_favoured_and_it_is_the_documented_one(gamma):
    previous = torch.arange(0, 300_000, 1009)
    chosen = favoured(previous, torch.arange(4000), torch.full((len(previous), 1), gamma))
    shares = chosen.float().mean(-1)
    spread = (gamma * (1 - gamma) / 4000) ** 0.5
    assert (shares - gamma).abs().max() < 5 * spread
    assert (chosen.float().mean(0) - gamma).abs().max() < 5 * (gamma * (1 - gamma) / len(previous)) ** 0.5
    for row in (0, 7, 200):
        expected = [is_favoured(int(previous[row]), token, gamma) for token in range(4000)]
        assert chosen[row].tolist() == expected


def test_a_watermarked_text_is_told_from_others(tiny_checkpoint):
    decoder = load_decoder(tiny_checkpoint(max_position_embeddings=256)[0])
    marked = Sequence([5, 6, 7], sampling(seed=1, **MARK))
    plain = Sequence([5, 6, 7], sampling(seed=1, temperature=1.0))
    texts = generate(make_runner(decoder), [marked, plain], 200)
    scores = [detect(text, 0.5).z_score for text in texts]
    assert scores[0] > 6 and abs(scores[1]) < 4
    # Chunks, strangers and a resume change nothing.
    alone = generate(make_runner(decoder), [Sequence([5, 6, 7], sampling(seed=1, **MARK))], 40, 2)[0]
    resumed = Sequence([5, 6, 7], sampling(seed=1, **MARK), generated=alone[:9])
    assert texts[0][:40] == alone == generate(make_runner(decoder), [resumed], 40)[0]


def test_texts_without_a_watermark_score_as_chance_does():
    random = np.random.default_rng(0)
    scores = [detect(random.integers(0, 50_000, 200).tolist(), 0.25).z_score for _ in range(400)]
    assert abs(np.mean(scores)) < 0.2 and abs(np.std(scores) - 1) < 0.15


def test_repeated_pairs_prove_nothing():
    once, often = detect([1, 2, 3], 0.5), detect([1, 2, 3] * 50, 0.5)
    assert (once.pairs, often.pairs) == (2, 3)


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(ValueError, match="fewer than two tokens"):
        detect([4], 0.5)
    with pytest.raises(ValueError, match="gamma is 1"):
        detect([4, 5], 1)
