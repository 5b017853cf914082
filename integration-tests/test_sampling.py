"""Randomness belongs to the request: the same request and seed give the same tokens, whatever else runs."""

from support.client import at_once
from support.prompts import SHORT

SAMPLED = {"do_sample": True, "temperature": 0.9, "top_p": 0.95, "top_k": 50, "max_new_tokens": 12}


def test_same_seed_same_tokens_alone_and_under_load(client):
    alone = client.tokens(SHORT[1], seed=7, **SAMPLED)
    calls = [(SHORT[1], 7), *((prompt, 100 + index) for index, prompt in enumerate(SHORT[:7])), (SHORT[1], 7)]
    together = at_once(lambda call: client.tokens(call[0], seed=call[1], **SAMPLED), calls)
    assert together[0] == together[-1] == alone


def test_other_seed_other_tokens(client):
    assert len({tuple(client.tokens(SHORT[1], seed=seed, **SAMPLED)) for seed in range(4)}) > 1


def test_seed_is_reported_and_can_be_used_again(client):
    first = client.generate(SHORT[1], details=True, **SAMPLED)
    again = client.generate(SHORT[1], details=True, seed=first["details"]["seed"], **SAMPLED)
    assert again == first


def test_openai_seed(client):
    payload = {
        "messages": [{"role": "user", "content": "Invent a name."}],
        "max_tokens": 10,
        "temperature": 1,
        "seed": 3,
    }
    texts = {client.post("/v1/chat/completions", payload).json()["choices"][0]["message"]["content"] for _ in range(2)}
    assert len(texts) == 1
