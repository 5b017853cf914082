"""Decoding on the CPU: the server with one stream and with eight, and `transformers.generate` on the same weights and
dtype, turn by turn in the same run. Prints the medians of the three speeds and the two ratios.

    python -m benchmarks.cpu_decode --launcher .venv/bin/text-generation-launcher --model FOLDER
"""

import argparse
import asyncio
import statistics
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.http_load import load, prompt
from benchmarks.processes import free_port, running, wait_ready
from benchmarks.reporting import report

TOKENS = 64
PROMPT_TOKENS = 16
DTYPE = "float32"


class Reference:
    """`transformers.generate` on the model, one sequence."""

    def __init__(self, folder: Path):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, DTYPE)).eval()
        self._inputs = tokenizer(prompt(0, PROMPT_TOKENS), return_tensors="pt")

    def tokens_per_second(self) -> float:
        """Speed of one generation, the prompt included."""
        began = time.perf_counter()
        with torch.inference_mode():
            self._model.generate(**self._inputs, do_sample=False, min_new_tokens=TOKENS, max_new_tokens=TOKENS)
        return TOKENS / (time.perf_counter() - began)


def rounds(launcher: Path, folder: Path, count: int) -> dict[str, list[float]]:
    """Tokens a second of each contestant, turn by turn, so that a busy minute of the machine hits all of them."""
    reference = Reference(folder)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(launcher), "--model-id", str(folder), "--dtype", DTYPE, "--port", str(port)]
    found: dict[str, list[float]] = {"transformers": [], "one_stream": [], "eight_streams": []}
    with running(command) as process:
        wait_ready(process, url)
        for _ in range(count + 1):
            found["transformers"].append(reference.tokens_per_second())
            for name, streams in (("one_stream", 1), ("eight_streams", 8)):
                figures = asyncio.run(load(url, streams, streams, PROMPT_TOKENS, TOKENS))
                found[name].append(float(str(figures["tokens_per_second"])))
    # The first round warms caches and allocators.
    return {name: values[1:] for name, values in found.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launcher", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="a prepared model folder")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = rounds(options.launcher, options.model, options.rounds)
    median = {name: statistics.median(values) for name, values in found.items()}
    report(
        "cpu_decode",
        dtype=DTYPE,
        rounds=found,
        tokens_per_second=median,
        one_stream_over_transformers=round(median["one_stream"] / median["transformers"], 2),
        eight_streams_over_one=round(median["eight_streams"] / median["one_stream"], 2),
    )


if __name__ == "__main__":
    main()
