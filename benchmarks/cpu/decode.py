"""Decoding on the CPU inside one process: the shard's runner against `transformers.generate`, same weights, dtype and
threads, interleaved in one run. Prints medians and ratios; knows nothing of the router.

    OMP_WAIT_POLICY=passive PYTHONPATH=server python -m benchmarks.cpu.decode --model FOLDER --threads 2
"""

import argparse
import statistics
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from benchmarks.reporting import report
from tests.plans import Driver, Sequence, load_decoder, make_runner

PROMPT_TOKENS = 16


def prompt(index: int) -> list[int]:
    """Token ids that differ by index."""
    return [(index * 7919 + i * 104729) % 40_000 + 100 for i in range(PROMPT_TOKENS)]


def runner_speed(runner: object, streams: int, tokens: int) -> float:
    """Tokens a second over all streams, prompts included."""
    driver = Driver(runner)
    rows = [driver.add(Sequence(prompt(i))) for i in range(streams)]
    began = time.perf_counter()
    for _ in range(tokens):
        driver.step()
    seconds = time.perf_counter() - began
    for row in rows:
        driver.remove(row)
    driver.step()
    return streams * tokens / seconds


def transformers_speed(model: torch.nn.Module, tokens: int) -> float:
    """Tokens a second of `generate` with one sequence, the prompt included."""
    ids = torch.tensor([prompt(0)])
    began = time.perf_counter()
    with torch.inference_mode():
        model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens
        )
    return tokens / (time.perf_counter() - began)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a prepared model folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dtype = getattr(torch, options.dtype)
    with torch.inference_mode():
        runner = make_runner(load_decoder(options.model, dtype))
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype).eval()
    found: dict[str, list[float]] = {"transformers": [], "one": [], "eight": []}
    for _ in range(options.rounds + 1):
        found["transformers"].append(transformers_speed(model, options.tokens))
        found["one"].append(runner_speed(runner, 1, options.tokens))
        found["eight"].append(runner_speed(runner, 8, options.tokens))
    # The first round warms caches and allocators.
    median = {name: statistics.median(values[1:]) for name, values in found.items()}
    report(
        "cpu_runner_decode",
        dtype=options.dtype,
        threads=options.threads,
        tokens_per_second={name: round(value, 2) for name, value in median.items()},
        one_over_transformers=round(median["one"] / median["transformers"], 2),
        eight_over_one=round(median["eight"] / median["one"], 2),
    )


if __name__ == "__main__":
    main()
