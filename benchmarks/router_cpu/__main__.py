"""Runs the release router against the fake shard and measures the router's CPU time for each streamed token; in the
same run measures a bare loopback write of a frame of the same size; prints the ratio and the router's resident memory.

The fake shard costs CPU as well, but in its own process. Idle time of the router is subtracted by nothing: it is part
of what a token costs.

    python -m benchmarks.router_cpu --binaries target/release --model FOLDER
"""

import asyncio
import json
import urllib.request

from benchmarks.faked_router import command_line, faked_router
from benchmarks.http_load import load
from benchmarks.processes import cpu_seconds, resident_mebibytes
from benchmarks.reporting import report
from benchmarks.router_cpu.bare_write import Rhythm, cpu_per_frame

STREAMS = 64
ROUNDS = 3
TOKENS = 128
STEP_MICROSECONDS = 10_000


def frame_bytes(url: str) -> int:
    """Size of a typical frame of `/generate_stream`, with the chunk head that HTTP/1.1 puts around it."""
    body = json.dumps({"inputs": "a", "parameters": {"max_new_tokens": 16}}).encode()
    request = urllib.request.Request(f"{url}/generate_stream", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        frames = [len(line) + 1 for line in response if line.startswith(b"data:")]
    size = sorted(frames)[len(frames) // 2]
    return size + len(f"{size:x}\r\n\r\n")


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
    shard = ["--step-us", str(STEP_MICROSECONDS)]
    router = ["--max-concurrent-requests", str(2 * STREAMS)]
    with faked_router(command_line(__doc__), shard, router) as (process, url):
        report("router_cpu", **measure(process.pid, url))


if __name__ == "__main__":
    main()
