"""What must hold after any request whatever: an ordinary one still gets the same answer, and nothing is left behind."""

from collections.abc import Iterator
from contextlib import contextmanager

from .client import Client
from .requests import idle
from .server import wait_for

PROMPT = "The three primary colours are"
TOKENS = 8
IDLE_SECONDS = 20


@contextmanager
def unharmed(client: Client) -> Iterator[None]:
    """Checks a server before and after the block."""
    before = client.generate(PROMPT, max_new_tokens=TOKENS)["generated_text"]
    yield
    wait_for(lambda: idle(client), IDLE_SECONDS, "nothing runs, waits or holds blocks")
    assert client.generate(PROMPT, max_new_tokens=TOKENS)["generated_text"] == before
