"""A closed-loop load on `/generate_stream`: so many clients, each of which sends its next request when the last one has
ended. Prints tokens a second, time to first token, and the gaps between tokens.

Every prompt differs in its first words, so that no prefix is shared. Knows the stream's frames and nothing else.

    python -m benchmarks.http_load --url http://127.0.0.1:3000 --streams 8 --requests 32 --tokens 64
"""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp

from benchmarks.reporting import milliseconds, percentile, report

TIMEOUT_SECONDS = 600


@dataclass
class Tally:
    """What the clients saw. Times in seconds."""

    first_token: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    tokens: int = 0
    errors: list[str] = field(default_factory=list)


def prompt(number: int, words: int) -> str:
    """A prompt of about so many tokens; each number gives another one."""
    return f"Story number {number}:" + " and then it went on" * max(1, words // 5)


async def token_times(session: aiohttp.ClientSession, url: str, payload: dict[str, object]) -> AsyncIterator[float]:
    """The time at which each token arrives.

    Raises:
        RuntimeError: the server answered or sent an error.
    """
    async with session.post(f"{url}/generate_stream", json=payload) as response:
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {await response.text()}")
        async for line in response.content:
            if not line.startswith(b"data:"):
                continue
            if b'"error"' in line and "error" in json.loads(line[5:]):
                raise RuntimeError(line.decode().strip())
            yield time.perf_counter()


async def one_request(session: aiohttp.ClientSession, url: str, payload: dict[str, object], tally: Tally) -> None:
    """Sends a request, reads its stream, and counts."""
    last = began = time.perf_counter()
    try:
        async for now in token_times(session, url, payload):
            (tally.gaps if last != began else tally.first_token).append(now - last)
            tally.tokens += 1
            last = now
    except (RuntimeError, aiohttp.ClientError, asyncio.TimeoutError) as error:
        tally.errors.append(str(error) or type(error).__name__)


async def load(url: str, streams: int, requests: int, words: int, tokens: int) -> dict[str, object]:
    """Runs the load, greedy, and returns the figures."""
    tally, numbers = Tally(), iter(range(requests))
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def client() -> None:
            for number in numbers:
                payload = {"inputs": prompt(number, words), "parameters": {"max_new_tokens": tokens}}
                await one_request(session, url, payload, tally)

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(streams)))
        seconds = time.perf_counter() - began
    return figures(tally, seconds) | {"streams": streams, "requests": requests, "max_new_tokens": tokens}


def figures(tally: Tally, seconds: float) -> dict[str, object]:
    """The tally as figures; the first three errors in their own words."""
    return {
        "tokens_per_second": round(tally.tokens / seconds, 2),
        "tokens": tally.tokens,
        "seconds": round(seconds, 3),
        "first_token_ms": {f"p{p}": milliseconds(percentile(tally.first_token, p / 100)) for p in (50, 99)},
        "between_tokens_ms": {f"p{p}": milliseconds(percentile(tally.gaps, p / 100)) for p in (50, 99)},
        "errors": len(tally.errors),
        "error_examples": tally.errors[:3],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:3000")
    parser.add_argument("--streams", type=int, default=8, help="clients at once")
    parser.add_argument("--requests", type=int, default=32, help="requests in all")
    parser.add_argument("--prompt-tokens", type=int, default=32, help="length of each prompt, about")
    parser.add_argument("--tokens", type=int, default=64, help="tokens to generate for each request, at most")
    options = parser.parse_args()
    result = asyncio.run(
        load(options.url.rstrip("/"), options.streams, options.requests, options.prompt_tokens, options.tokens)
    )
    report("http_load", **result)


if __name__ == "__main__":
    main()
