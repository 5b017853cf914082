"""Decoding on the CPU: the server with one stream and with eight, and `transformers.generate` on the same weights and
dtype, in the same run. Prints the three speeds and the two ratios.

    python -m benchmarks.cpu_decode --launcher .venv/bin/text-generation-launcher --model FOLDER
"""

import argparse
import asyncio
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


def transformers_tokens_per_second(folder: Path) -> float:
    """Speed of `generate` with one sequence, the prompt included, best of two runs."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, DTYPE)).eval()
    inputs = tokenizer(prompt(0, PROMPT_TOKENS), return_tensors="pt")
    best = 0.0
    for _ in range(2):
        began = time.perf_counter()
        with torch.inference_mode():
            model.generate(**inputs, do_sample=False, min_new_tokens=TOKENS, max_new_tokens=TOKENS)
        best = max(best, TOKENS / (time.perf_counter() - began))
    return best


def server_tokens_per_second(launcher: Path, folder: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Figures of the server with one stream and with eight."""
    port = free_port()
    command = [str(launcher), "--model-id", str(folder), "--dtype", DTYPE, "--port", str(port)]
    with running(command) as process:
        url = f"http://127.0.0.1:{port}"
        wait_ready(process, url)
        asyncio.run(load(url, 1, 1, PROMPT_TOKENS, 8))
        one = asyncio.run(load(url, 1, 3, PROMPT_TOKENS, TOKENS))
        eight = asyncio.run(load(url, 8, 16, PROMPT_TOKENS, TOKENS))
    return one, eight


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launcher", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="a prepared model folder")
    options = parser.parse_args()
    reference = transformers_tokens_per_second(options.model)
    one, eight = server_tokens_per_second(options.launcher, options.model)
    single, together = float(str(one["tokens_per_second"])), float(str(eight["tokens_per_second"]))
    report(
        "cpu_decode",
        dtype=DTYPE,
        transformers_tokens_per_second=round(reference, 2),
        one_stream=one,
        eight_streams=eight,
        one_stream_over_transformers=round(single / reference, 2),
        eight_streams_over_one=round(together / single, 2),
    )


if __name__ == "__main__":
    main()
