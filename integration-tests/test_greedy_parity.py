"""Greedy tokens equal those of `transformers` in float32: alone, among strangers, and with prompts cut into chunks."""

import pytest

from support.client import Client, at_once
from support.prompts import long, many
from support.reference import Reference
from support.server import launched

QUICK_PROMPTS, QUICK_TOKENS = 8, 16
FULL_PROMPTS, FULL_TOKENS = 100, 64
TOGETHER = 16
CHUNK = 64


@pytest.fixture(scope="module")
def reference(demo_folder) -> Reference:
    return Reference(demo_folder)


def differences(reference: Reference, prompts: list[str], completions: list[list[int]]) -> list[str]:
    found = [reference.first_difference(prompt, ids) for prompt, ids in zip(prompts, completions, strict=True)]
    return [difference for difference in found if difference]


def together(client: Client, prompts: list[str], tokens: int) -> list[list[int]]:
    """Completions, `TOGETHER` at a time, with sampled strangers of other lengths among them."""
    completions: list[list[int]] = []
    for start in range(0, len(prompts), TOGETHER):
        group = prompts[start : start + TOGETHER]
        strangers = [(f"{prompt} and", {"do_sample": True, "seed": 1, "max_new_tokens": 5}) for prompt in group[::4]]
        calls = [(prompt, {"max_new_tokens": tokens}) for prompt in group] + strangers
        completions += at_once(lambda call: client.tokens(call[0], **call[1]), calls)[: len(group)]
    return completions


def test_tokenizer_agrees(client, reference):
    for prompt in many(40):
        ids = [token["id"] for token in client.post("/tokenize", {"inputs": prompt}).json()]
        assert ids == reference.encode(prompt)


def test_quick_alone(client, reference):
    prompts = many(QUICK_PROMPTS)[:4]
    completions = [client.tokens(prompt, max_new_tokens=QUICK_TOKENS) for prompt in prompts]
    assert differences(reference, prompts, completions) == []


def test_quick_together(client, reference):
    prompts = many(QUICK_PROMPTS)
    assert differences(reference, prompts, together(client, prompts, QUICK_TOKENS)) == []


def test_quick_chunked(tmp_path, reference):
    prompts = [long(3 * CHUNK), *many(3), long(2 * CHUNK)]
    with launched(tmp_path, "--max-batch-prefill-tokens", str(CHUNK)) as server:
        completions = together(server.client, prompts, QUICK_TOKENS)
        assert server.stop() == 0
    assert differences(reference, prompts, completions) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_full_alone(client, reference):
    prompts = many(FULL_PROMPTS)
    completions = [client.tokens(prompt, max_new_tokens=FULL_TOKENS) for prompt in prompts]
    assert differences(reference, prompts, completions) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_full_together(client, reference):
    prompts = many(FULL_PROMPTS)
    assert differences(reference, prompts, together(client, prompts, FULL_TOKENS)) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_full_chunked(tmp_path, reference):
    prompts = [f"{long(CHUNK + index)} {prompt}" for index, prompt in enumerate(many(FULL_PROMPTS))]
    with launched(tmp_path, "--max-batch-prefill-tokens", str(CHUNK)) as server:
        completions = together(server.client, prompts, FULL_TOKENS)
        assert server.stop() == 0
    assert differences(reference, prompts, completions) == []
