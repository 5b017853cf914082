"""A lock between processes, held through a file. The system frees it when its holder dies, however it dies."""

import contextlib
import fcntl
import logging
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def hold_lock(path: Path, doing: str) -> Iterator[None]:
    """Hold the lock at `path`, waiting for it if need be; `doing` says what its holder does, for the log.

    Raises:
        OSError: the file cannot be opened.
    """
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info(f"waiting for another process that {doing}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
