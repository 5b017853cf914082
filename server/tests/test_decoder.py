"""The decoder against transformers, on tiny random checkpoints: every option of the family, chunked and not."""

import pytest
import torch

from tests.plans import Driver, Sequence, generate, load_decoder, make_runner

OPTIONS = {
    "plain": {},
    "tied": {"tie_word_embeddings": True},
    "attention bias": {"attention_bias": True},
    "mlp bias": {"mlp_bias": True},
    "head dim": {"head_dim": 32},
    "all heads": {"num_key_value_heads": 6},
    "one kv head": {"num_key_value_heads": 1},
    "gelu": {"hidden_act": "gelu_pytorch_tanh"},
    "linear": {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "llama3": {
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        }
    },
    "yarn": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}},
    "base": {"rope_theta": 500000.0},
}


def tokens(count, seed=0, vocabulary=151):
    return torch.randint(0, vocabulary, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


@torch.inference_mode()
def logits_of(runner, ids, chunk):
    """Logits of every position, from a run in chunks."""
    found = []
    keep = runner.decoder.hidden

    def spy(*arguments):
        hidden = keep(*arguments)
        found.append(runner.decoder.logits(hidden))
        return hidden

    runner.decoder.hidden = spy
    driver = Driver(runner, shuffle_blocks=True)
    row = driver.add(Sequence(ids))
    while not row.generated:
        driver.step(chunk)
    del runner.decoder.hidden
    return torch.cat(found)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("chunk", [1000, 7])
def test_logits_equal_transformers(tiny_checkpoint, options, chunk):
    folder, model = tiny_checkpoint(**options)
    ids = tokens(50)
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0]
    assert (logits_of(make_runner(load_decoder(folder)), ids, chunk) - expected).abs().max() < 1e-4


@pytest.mark.parametrize("chunk", [1000, 7, 1])
@pytest.mark.parametrize("window", [None, 9])
def test_mistral_with_and_without_window(tiny_checkpoint, window, chunk):
    folder, model = tiny_checkpoint("mistral", sliding_window=window)
    ids = tokens(50)
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0]
    assert (logits_of(make_runner(load_decoder(folder)), ids, chunk) - expected).abs().max() < 1e-4


def test_dynamic_rope_decodes_like_transformers_past_the_trained_positions(tiny_checkpoint):
    folder, model = tiny_checkpoint(
        rope_scaling={"rope_type": "dynamic", "factor": 2.0}, max_position_embeddings=32, num_hidden_layers=1
    )
    ids = tokens(20)
    mine = generate(make_runner(load_decoder(folder), max_tokens=64), [Sequence(ids)], 30)[0]
    theirs = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, 20).long(),
        max_new_tokens=30,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    assert mine == theirs[0, 20:].tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_close(tiny_checkpoint, dtype):
    folder, model = tiny_checkpoint()
    ids = tokens(30)
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0]
    got = logits_of(make_runner(load_decoder(folder, dtype)), ids, 9)
    assert (got - expected).norm() / expected.norm() < 0.06


@pytest.mark.parametrize("chunk", [1000, 5])
def test_greedy_tokens_alone_and_among_strangers(tiny_checkpoint, chunk):
    folder, model = tiny_checkpoint()
    decoder = load_decoder(folder)
    prompts = [tokens(3 + 5 * i, seed=i) for i in range(8)]
    expected = []
    for prompt in prompts:
        out = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt)).long(),
            max_new_tokens=24,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        expected.append(out[0, len(prompt) :].tolist())
    alone = [generate(make_runner(decoder), [Sequence(prompt)], 24, chunk)[0] for prompt in prompts]
    together = generate(make_runner(decoder), [Sequence(p) for p in prompts], 24, chunk, shuffle_blocks=True)
    assert alone == expected
    assert together == expected
