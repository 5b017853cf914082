"""Runs the release router against the fake shard and measures the router's CPU time for each streamed token; in the
same run measures a bare loopback write of a frame of the same size; prints the ratio and the router's resident memory.

The fake shard costs CPU as well, but in its own process. Idle time of the router is subtracted by nothing: it is part
of what a token costs.

    python -m benchmarks.router_cpu --binaries target/release --model FOLDER
"""

import argparse
import asyncio
import json
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.http_load import load
from benchmarks.processes import cpu_seconds, free_port, resident_mebibytes, running, wait_ready
from benchmarks.reporting import report
from benchmarks.router_cpu.bare_write import Rhythm, cpu_per_frame

STREAMS = 64
ROUNDS = 3
TOKENS = 128
STEP_MICROSECONDS = 10_000
# The demo model's tokenizer: special tokens come first, and are not text.
VOCABULARY, FIRST_PLAIN_TOKEN = 49_152, 17


def frame_bytes(url: str) -> int:
    """Size of a typical frame of `/generate_stream`, with the chunk head that HTTP/1.1 puts around it."""
    body = json.dumps({"inputs": "a", "parameters": {"max_new_tokens": 16}}).encode()
    request = urllib.request.Request(f"{url}/generate_stream", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        frames = [len(line) + 1 for line in response if line.startswith(b"data:")]
    size = sorted(frames)[len(frames) // 2]
    return size + len(f"{size:x}\r\n\r\n")


def wait_for_socket(path: Path) -> None:
    """Waits until the fake shard listens.

    Raises:
        TimeoutError: it does not, within 10 s.
    """
    end = time.monotonic() + 10
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"no socket at {path} after 10 s")
        time.sleep(0.02)


def measure(router_pid: int, url: str) -> dict[str, object]:
    """The figures of a router that is ready."""
    idle = resident_mebibytes(router_pid)
    asyncio.run(load(url, STREAMS, STREAMS, 16, 16))
    before = cpu_seconds(router_pid)
    result = asyncio.run(load(url, STREAMS, STREAMS * ROUNDS, 16, TOKENS))
    router = (cpu_seconds(router_pid) - before) / max(1, int(str(result["tokens"])))
    size = frame_bytes(url)
    bare = cpu_per_frame(size, Rhythm(STREAMS, ROUNDS, TOKENS, STEP_MICROSECONDS / 1e6))
    return {
        "router_us_per_token": round(router * 1e6, 2),
        "bare_write_us_per_frame": round(bare * 1e6, 2),
        "ratio": round(router / bare, 2),
        "frame_bytes": size,
        "resident_mib_idle": idle,
        "resident_mib_after": resident_mebibytes(router_pid),
        "load": result,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", type=Path, required=True, help="folder with the release binaries")
    parser.add_argument("--model", type=Path, required=True, help="a prepared model folder (its tokenizer is used)")
    options = parser.parse_args()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shard-0"
        shard = [str(options.binaries / "fake-shard"), "--socket", str(path), "--step-us", str(STEP_MICROSECONDS)]
        shard += ["--vocab-size", str(VOCABULARY), "--lowest-token-id", str(FIRST_PLAIN_TOKEN)]
        router = [str(options.binaries / "text-generation-router"), "--hostname", "127.0.0.1", "--port", str(port)]
        router += ["--tokenizer-name", str(options.model), "--master-shard-uds-path", str(path)]
        router += ["--max-concurrent-requests", str(2 * STREAMS)]
        with running(shard):
            wait_for_socket(path)
            with running(router) as process:
                wait_ready(process, url)
                report("router_cpu", **measure(process.pid, url))


if __name__ == "__main__":
    main()
