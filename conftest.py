"""What holds for the tests of every folder."""

import signal


def pytest_configure() -> None:
    """A shell starts background jobs with SIGINT ignored, and programs that the tests start would inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
