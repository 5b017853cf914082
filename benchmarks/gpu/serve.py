"""The whole server on a GPU, over HTTP, beside the floor of its step: starts the launcher on a model folder, runs
load levels of `streams:requests`, and prints each with the linears-only step of the same batch, measured after the
server has ended. The ratio is what attention, norms, sampling, the scheduler and HTTP add.

    python -m benchmarks.gpu.serve --launcher text-generation-launcher --model /tmp/llama8b --levels 1:4 64:128
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time

from benchmarks.http_load import load
from benchmarks.processes import free_port, running, wait_ready
from benchmarks.reporting import report


def serve_and_load(options: argparse.Namespace) -> dict[int, dict[str, object]]:
    """The figures of each level, by its number of streams."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [options.launcher, "--model-id", options.model, "--port", str(port), *options.arguments]
    began = time.perf_counter()
    with running(command) as process:
        wait_ready(process, url)
        report("ready", seconds=round(time.perf_counter() - began, 1))
        # The first requests compile kernels; they are not counted.
        asyncio.run(load(url, 2, 4, options.prompt_tokens, 8))
        levels = {}
        for streams, requests in options.levels:
            levels[streams] = asyncio.run(load(url, streams, requests, options.prompt_tokens, options.tokens))
            report("level", **levels[streams])
    return levels


def linears_milliseconds(batches: list[int]) -> dict[int, float]:
    """The linears-only step of each batch size, in a process of its own: the server's memory is free again."""
    command = [sys.executable, "-m", "benchmarks.gpu.linears_only", "--batch", *map(str, batches)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    results = [json.loads(line) for line in lines]
    return {result["batch"]: result["milliseconds"] for result in results}


def level(text: str) -> tuple[int, int]:
    """`streams:requests` as numbers."""
    streams, requests = text.split(":")
    return int(streams), int(requests)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launcher", default="text-generation-launcher")
    parser.add_argument("--model", required=True, help="a model folder")
    parser.add_argument("--levels", type=level, nargs="+", default=[(1, 4), (64, 128)])
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("arguments", nargs="*", help="further flags of the launcher, after --")
    options = parser.parse_args()
    levels = serve_and_load(options)
    floors = linears_milliseconds(list(levels))
    for streams, figures in levels.items():
        gap = figures["between_tokens_ms"]["p50"]
        report("ratio", streams=streams, gap_ms=gap, linears_ms=floors[streams], ratio=round(gap / floors[streams], 2))


if __name__ == "__main__":
    main()
