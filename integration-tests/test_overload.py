"""More requests than there is room for are refused at once, in the words of each API, and the others are not hurt."""

import time
from contextlib import contextmanager

import pytest

from support.requests import endless_stream, idle, unanswered
from support.server import wait_for

AT_ONCE_SECONDS = 2
CHAT = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2}
GENERATE = {"inputs": "a", "parameters": {"max_new_tokens": 2}}


@contextmanager
def full(client):
    """Both places are taken."""
    wait_for(lambda: idle(client), 15, "idle before")
    # The second one waits: a stream is answered with its first token, so that errors before it have a status.
    with endless_stream(client) as first, unanswered(client):
        next(first.frames())
        wait_for(lambda: client.metric("tgi_queue_size") == 1, 15, "one runs and one waits")
        yield
    wait_for(lambda: idle(client), 15, "idle afterwards")


@pytest.mark.parametrize("path", ["/generate", "/generate_stream", "/"])
def test_one_too_many_gets_429_of_tgi(narrow_server, path):
    client = narrow_server.client
    with full(client):
        began = time.monotonic()
        reply = client.post(path, GENERATE)
        assert time.monotonic() - began < AT_ONCE_SECONDS
    assert reply.status == 429
    assert reply.json() == {"error": "Model is overloaded", "error_type": "overloaded"}
    assert int(reply.headers["retry-after"]) >= 1


@pytest.mark.parametrize("stream", [False, True])
def test_one_too_many_gets_429_of_openai(narrow_server, stream):
    client = narrow_server.client
    with full(client):
        reply = client.post("/v1/chat/completions", CHAT | {"stream": stream})
    assert reply.status == 429
    assert "overloaded" in reply.json()["error"]["message"]


def test_a_place_that_becomes_free_is_given_away(narrow_server):
    client = narrow_server.client
    with full(client):
        assert client.post("/generate", GENERATE).status == 429
    assert client.post("/generate", GENERATE).status == 200
    assert client.metric('tgi_request_failure{err="overloaded"}') >= 1
