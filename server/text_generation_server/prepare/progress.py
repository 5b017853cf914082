"""Turns the progress of downloads into log lines, at most one a second. Knows nothing of where the bytes come from."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from text_generation_server.logs import fields

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_LINES = 1.0
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


class Cancelled(Exception):
    """Another file of the same download failed; this one stops early."""


class Progress:
    """Bytes done of `total`, over all files of one download; a total of 0 logs nothing. Thread-safe."""

    def __init__(self, total: int):
        self._total = total
        self._done = 0
        self._next_line = 0.0
        self._cancelled = False
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Make every running download stop at its next piece."""
        self._cancelled = True

    def bar_for(self, name: str) -> Callable[..., "_Bar"]:
        """What huggingface_hub takes as `tqdm_class` for the file `name`."""

        def make(*_: Any, **options: Any) -> _Bar:
            bar = _Bar(self, name)
            bar.update(int(options.get("initial") or 0))
            return bar

        return make

    def add(self, name: str, count: int) -> None:
        """`count` more bytes of the file `name` (fewer, if negative: a restart)."""
        if self._cancelled:
            raise Cancelled
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now < self._next_line or not self._total:
                return
            self._next_line = now + _SECONDS_BETWEEN_LINES
            done = min(self._done, self._total)
        percent = 100 * done // self._total
        message = f"downloading {name}, {percent} %, {amount_of(done, self._total)}"
        logger.info(message, extra=fields(file=name, percent=percent, done_bytes=done, total_bytes=self._total))


class _Bar:
    """The part of tqdm's interface that downloads use."""

    def __init__(self, progress: Progress, name: str):
        self._progress = progress
        self._name = name

    def update(self, count: float | None = 1) -> None:
        self._progress.add(self._name, int(count or 0))

    def close(self) -> None:
        """Nothing to close: lines are written as they come."""

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def amount(count: int) -> str:
    """A number of bytes for people: `3.5 GB`."""
    unit, size = _unit_of(count)
    return f"{count / size:.3g} {unit}"


def amount_of(done: int, total: int) -> str:
    """Two numbers of bytes in one unit: `1.2 of 3.5 GB`."""
    unit, size = _unit_of(total)
    return f"{done / size:.1f} of {total / size:.1f} {unit}"


def _unit_of(count: int) -> tuple[str, float]:
    return next((unit, size) for unit, size in _UNITS if count >= size or size == 1.0)
