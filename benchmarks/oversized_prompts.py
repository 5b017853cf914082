"""Eight prompts of 2 MB at once, with a `--payload-limit` that lets them in, and one-word requests beside them: how
long each refusal takes, how long the small requests take alone and beside, and how much memory the router gains. The
router runs in front of the fake shard, so that nothing but the router is measured.

    python -m benchmarks.oversized_prompts --binaries target/release --model FOLDER
"""

import asyncio
import json
import time

import aiohttp

from benchmarks.faked_router import command_line, faked_router
from benchmarks.processes import resident_mebibytes
from benchmarks.reporting import milliseconds, percentile, report

PROMPT_BYTES = 2_000_000
PROMPTS = 8
PAYLOAD_LIMIT = 16_000_000
MAX_TOTAL_TOKENS = 8192
ALONE = 20
BESIDE = 4
KINDS = {"digits": "7", "letters": "a", "words": " word"}
SMALL = json.dumps({"inputs": "Hello", "parameters": {"max_new_tokens": 1}}).encode()


async def timed(session: aiohttp.ClientSession, url: str, body: bytes, expected: int) -> float:
    """Seconds that a request takes.

    Raises:
        RuntimeError: the answer has another status.
    """
    began = time.perf_counter()
    async with session.post(f"{url}/generate", data=body, headers={"content-type": "application/json"}) as response:
        text = await response.text()
        if response.status != expected:
            raise RuntimeError(f"{response.status}: {text[:200]}")
    return time.perf_counter() - began


async def measure(url: str, router_pid: int, unit: str) -> dict[str, object]:
    """The figures of one kind of prompt."""
    large = json.dumps({"inputs": unit * (PROMPT_BYTES // len(unit))}).encode()
    async with aiohttp.ClientSession() as session:
        alone = [await timed(session, url, SMALL, 200) for _ in range(ALONE)]
        before = resident_mebibytes(router_pid)
        calls = [timed(session, url, large, 422) for _ in range(PROMPTS)]
        calls += [timed(session, url, SMALL, 200) for _ in range(BESIDE)]
        times = await asyncio.gather(*calls)
    return {
        "refused_ms": {
            "p50": milliseconds(percentile(times[:PROMPTS], 0.5)),
            "max": milliseconds(max(times[:PROMPTS])),
        },
        "small_alone_ms": milliseconds(percentile(alone, 0.5)),
        "small_beside_ms": milliseconds(max(times[PROMPTS:])),
        "memory_gain_mib": round(resident_mebibytes(router_pid) - before, 1),
    }


def main() -> None:
    """The command line."""
    router = ["--payload-limit", str(PAYLOAD_LIMIT), "--max-total-tokens", str(MAX_TOTAL_TOKENS)]
    with faked_router(command_line(__doc__), [], router) as (process, url):
        for kind, unit in KINDS.items():
            report("oversized_prompts", kind=kind, **asyncio.run(measure(url, process.pid, unit)))


if __name__ == "__main__":
    main()
