"""Requests that stay in the server until they are dropped, in the three shapes that a client can drop."""

import json
import socket
from contextlib import contextmanager

from .client import Client, Stream

# More tokens than any test waits for.
ENDLESS = {"max_new_tokens": 1500, "details": True}
PROMPT = "Count as far as you can: 1, 2, 3, 4,"


def endless_stream(client: Client) -> Stream:
    """An open `/generate_stream` that goes on for a long time."""
    return client.stream("/generate_stream", {"inputs": PROMPT, "parameters": ENDLESS})


@contextmanager
def unanswered(client: Client):
    """A `/generate` that was sent and not answered; dropped at the end of the block."""
    body = json.dumps({"inputs": PROMPT, "parameters": ENDLESS}).encode()
    head = f"POST /generate HTTP/1.1\nhost: test\ncontent-type: application/json\ncontent-length: {len(body)}\n\n"
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        yield connection


def idle(client: Client) -> bool:
    """Whether nothing runs and nothing waits."""
    return all(
        client.metric(name) == 0
        for name in ("tgi_batch_current_size", "tgi_batch_current_max_tokens", "tgi_queue_size")
    )
