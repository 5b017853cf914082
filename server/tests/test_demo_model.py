"""Greedy tokens of the demo model equal those of transformers, in float32: alone, among strangers, chunked."""

import json
import os
from pathlib import Path

import pytest
import torch

from tests.plans import Sequence, generate, load_decoder, make_runner

WORDS = [
    "The capital of",
    "Once upon a time",
    "In 1969 the first",
    "def main():",
    "Water boils at",
    "My favourite",
    "A list:",
    "Why",
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    from text_generation_server.cli import default_cache_folder
    from text_generation_server.prepare.config import PrepareConfig
    from text_generation_server.prepare.model import prepare

    settings = PrepareConfig(
        model_id=None,
        revision=None,
        num_shard=1,
        load_format="auto",
        huggingface_hub_cache=None,
        weights_cache_override=None,
        cache_folder=default_cache_folder(),
        output=Path(os.devnull),
        log_level="info",
        log_json=False,
    )
    return Path(prepare(settings).folder)


def compare(folder, count, tokens):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompts = [tokenizer(f"{WORDS[i % len(WORDS)]} {' and'.join(WORDS[: i // 8])}").input_ids for i in range(count)]
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == 49152
    expected = []
    with torch.inference_mode():
        for prompt in prompts:
            ids = torch.tensor([prompt])
            mask = torch.ones_like(ids)
            out = model.generate(
                ids,
                attention_mask=mask,
                do_sample=False,
                min_new_tokens=tokens,
                max_new_tokens=tokens,
                eos_token_id=None,
            )
            expected.append(out[0, len(prompt) :].tolist())
    runner = make_runner(load_decoder(folder))
    assert [generate(runner, [Sequence(prompt)], tokens)[0] for prompt in prompts] == expected
    for chunk in (1 << 30, 5):
        for first in range(0, count, 16):
            batch = [Sequence(prompt) for prompt in prompts[first : first + 16]]
            assert generate(runner, batch, tokens, chunk, shuffle_blocks=True) == expected[first : first + 16]


def test_greedy_tokens(demo):
    compare(demo, 8, 16)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_greedy_tokens_in_full(demo):
    compare(demo, 100, 64)
