"""Starts the real launcher, watches it, and ends it. Knows its command line and its process tree, and no API."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from .client import Client

COMMANDS = Path(sys.executable).parent
LAUNCHER = COMMANDS / "text-generation-launcher"
READY_SECONDS = 240
STOP_SECONDS = 30
# Small enough to start fast, large enough for every test.
DEFAULTS = ("--dtype", "float32", "--max-total-tokens", "2048")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(condition: Callable[[], object], seconds: float, what: str, every: float = 0.05) -> None:
    """Polls until the condition holds.

    Raises:
        AssertionError: it did not, in time.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"after {seconds} s still not: {what}"
        time.sleep(every)


class Server:
    """A launcher with everything below it."""

    def __init__(
        self, folder: Path, *arguments: str, port: int | None = None, command: Path = LAUNCHER, **environment: str
    ) -> None:
        self.port = port or free_port()
        self.log = folder / f"launcher-{self.port}.log"
        self.client = Client(self.port)
        self.process = subprocess.Popen(
            [command, "--port", str(self.port), *DEFAULTS, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        """Everything printed so far."""
        return self.log.read_text(errors="replace")

    def last_lines(self, count: int) -> str:
        """The end of the output, blank lines left out."""
        return "\n".join([line for line in self.output.splitlines() if line.strip()][-count:])

    def health(self) -> int:
        """The status of `/health`; 0 when nobody listens."""
        try:
            return self.client.get("/health").status
        except OSError:
            return 0

    def wait_ready(self) -> "Server":
        """Waits for `/health` to answer 200."""

        def ready_or_dead() -> bool:
            assert self.process.poll() is None, f"the launcher ended:\n{self.last_lines(40)}"
            return self.health() == 200

        try:
            wait_for(ready_or_dead, READY_SECONDS, "ready", every=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.last_lines(40)}") from None
        return self

    def wait_exit(self, seconds: float = STOP_SECONDS) -> int:
        """The launcher's exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s:\n{self.last_lines(40)}") from None

    def stop(self) -> int:
        """Ends the server as a service manager does."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait_exit()

    def descendants(self) -> list[psutil.Process]:
        """Every process below the launcher."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def shards(self) -> list[psutil.Process]:
        """The shard processes, rank by rank (they are started in that order)."""
        found = [process for process in self.descendants() if is_shard(process)]
        return sorted(found, key=lambda process: (process.create_time(), process.pid))

    def exits_with(self, *words: str, seconds: float = STOP_SECONDS) -> None:
        """Checks that the launcher fails by itself, and that its last two lines hold these words."""
        assert self.wait_exit(seconds) not in (0, None), self.last_lines(40)
        said = self.last_lines(2).lower()
        assert all(word.lower() in said for word in words), self.last_lines(40)

    def destroy(self) -> None:
        """Ends whatever is left, without manners."""
        if self.process.poll() is None:
            for process in [*self.descendants(), psutil.Process(self.process.pid)]:
                with_suppressed_absence(process.kill)
            self.process.wait(10)


def is_shard(process: psutil.Process) -> bool:
    """Whether a process runs `text-generation-server serve`, under whatever title."""
    try:
        words = " ".join([process.name(), *process.cmdline()])
    except psutil.NoSuchProcess:
        return False
    return "text-generation-server" in words and " serve" in words


def with_suppressed_absence(call: Callable[[], object]) -> None:
    """Calls something that fails when a process is gone already."""
    try:
        call()
    except psutil.NoSuchProcess:
        return


def gone(processes: list[psutil.Process]) -> bool:
    """Whether none of the processes runs any more; a corpse that waits for its parent does not run."""
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


@contextmanager
def launched(folder: Path, *arguments: str, ready: bool = True, **options: Any) -> Iterator[Server]:
    """A server for one test; nothing is left of it afterwards. `options` are those of `Server`."""
    server = Server(folder, *arguments, **options)
    try:
        yield server.wait_ready() if ready else server
    finally:
        server.destroy()
