"""Starts the release router in front of the fake shard, so that nothing but the router is measured. Knows the command
lines of both and the demo model's vocabulary; knows no benchmark.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import free_port, running, wait_ready

# The demo model's tokenizer: special tokens come first, and are not text.
VOCABULARY, FIRST_PLAIN_TOKEN = 49_152, 17
SOCKET_SECONDS = 10


def command_line(description: str | None) -> argparse.Namespace:
    """The options that say what to start: `binaries` and `model`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", type=Path, required=True, help="folder with the release binaries")
    parser.add_argument("--model", type=Path, required=True, help="a prepared model folder (its tokenizer is used)")
    return parser.parse_args()


@contextmanager
def faked_router(
    options: argparse.Namespace, shard_arguments: list[str], router_arguments: list[str]
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A router that is ready, and its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "shard-0"
        shard = [str(options.binaries / "fake-shard"), "--socket", str(socket), "--vocab-size", str(VOCABULARY)]
        shard += ["--lowest-token-id", str(FIRST_PLAIN_TOKEN), *shard_arguments]
        router = [str(options.binaries / "text-generation-router"), "--hostname", "127.0.0.1", "--port", str(port)]
        router += ["--tokenizer-name", str(options.model), "--master-shard-uds-path", str(socket), *router_arguments]
        with running(shard):
            wait_for_socket(socket)
            with running(router) as process:
                wait_ready(process, url)
                yield process, url


def wait_for_socket(path: Path) -> None:
    """Waits until the fake shard listens.

    Raises:
        TimeoutError: it does not, within 10 s.
    """
    end = time.monotonic() + SOCKET_SECONDS
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"no socket at {path} after {SOCKET_SECONDS} s")
        time.sleep(0.02)
