"""Starts the router alone, in front of the fake shard: the whole HTTP API without weights, fast enough for thousands of
requests. Knows where the test binaries are and the router's command line."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .client import Client
from .server import free_port, wait_for

# As the demo model's tokenizer has it: special tokens come first, and are not text.
VOCABULARY, FIRST_PLAIN_TOKEN = "49152", "17"
READY_SECONDS = 60
STOP_SECONDS = 10


def binaries() -> Path:
    """The folder of the built programs, as the Makefile names it."""
    return Path(os.environ["TEXT_GENERATION_BINARIES"])


@contextmanager
def ended(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended at the end of the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def faked(folder: Path, model: Path, *arguments: str) -> Iterator[tuple[Client, subprocess.Popen[bytes]]]:
    """A router that is ready, and its process. `arguments` are the router's."""
    socket, port = folder / "shard-0", free_port()
    shard = [str(binaries() / "fake-shard"), "--socket", str(socket), "--vocab-size", VOCABULARY]
    shard += ["--lowest-token-id", FIRST_PLAIN_TOKEN]
    router = [str(binaries() / "text-generation-router"), "--hostname", "127.0.0.1", "--port", str(port)]
    router += ["--tokenizer-name", str(model), "--master-shard-uds-path", str(socket), *arguments]
    with ended(shard, folder / "shard.log"):
        wait_for(socket.exists, READY_SECONDS, "the fake shard listens")
        with ended(router, folder / "router.log") as process:
            client = Client(port)
            wait_for(lambda: is_ready(client, process, folder / "router.log"), READY_SECONDS, "the router is ready")
            yield client, process


def is_ready(client: Client, process: subprocess.Popen[bytes], log: Path) -> bool:
    """Whether `/health` answers 200. Fails when the router has ended."""
    assert process.poll() is None, log.read_text(errors="replace")
    try:
        return client.get("/health").status == 200
    except OSError:
        return False
