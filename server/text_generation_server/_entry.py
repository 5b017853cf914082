"""The console scripts of the two Rust programs. Owns what Python must settle before Rust takes over: signals, the
command line and the exit code. Knows nothing of what the programs do.
"""

import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from text_generation_server import _native


def launcher() -> NoReturn:
    """Run `text-generation-launcher` and exit with its code."""
    _run("text-generation-launcher", _native.launcher_main)


def router() -> NoReturn:
    """Run `text-generation-router` and exit with its code."""
    _run("text-generation-router", _native.router_main)


def _run(program: str, main: Callable[[list[str]], int]) -> NoReturn:
    # Python's own handler would raise KeyboardInterrupt after Rust has ended the program well.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main([program, *sys.argv[1:]]))
