"""Tells the person at the terminal when the server is ready, with a command that works.

Started beside the launcher by `make serve`; reads the port from the launcher's own arguments, asks `/health` until it
answers 200, prints one curl line and ends. Ends as well when the launcher does. Knows nothing of models.

    announce.py PID [LAUNCHER ARGUMENT...]
"""

import os
import sys
import time
import urllib.error
import urllib.request

DEFAULT_PORT = "3000"
POLL_SECONDS = 0.3


def option(arguments: list[str], names: tuple[str, ...]) -> str | None:
    """The value of a command-line option, written `--name value` or `--name=value`."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in names:
            return value if equals else (arguments[position + 1 :] or [None])[0]
    return None


def alive(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ready(port: str) -> bool:
    """Whether `/health` answers 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def curl_line(port: str, key: bool) -> str:
    """A command that a person can paste."""
    header = ' -H "Authorization: Bearer $API_KEY"' if key else ""
    body = '{"inputs":"The capital of France is","parameters":{"max_new_tokens":20}}'
    return f"curl http://127.0.0.1:{port}/generate -H 'Content-Type: application/json'{header} -d '{body}'"


def main() -> None:
    """Wait, print, end."""
    pid, arguments, began = int(sys.argv[1]), sys.argv[2:], time.monotonic()
    port = option(arguments, ("--port", "-p")) or os.environ.get("PORT", DEFAULT_PORT)
    key = bool(option(arguments, ("--api-key",)) or os.environ.get("API_KEY"))
    while alive(pid):
        if ready(port):
            print(f"\nReady after {time.monotonic() - began:.1f} s. Try:\n\n  {curl_line(port, key)}\n", flush=True)
            return
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
