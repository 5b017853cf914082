"""A dropped connection frees what it held at the next step: as a stream, as a whole response, and while queued."""

from contextlib import ExitStack

from support.requests import endless_stream, idle, unanswered
from support.server import wait_for

FREE_SECONDS = 15


def running(client) -> float:
    return client.metric("tgi_batch_current_size")


def test_dropped_streams_free_their_blocks(client):
    with ExitStack() as stack:
        for _ in range(6):
            next(stack.enter_context(endless_stream(client)).frames())
        assert running(client) >= 1
    wait_for(lambda: idle(client), FREE_SECONDS, "idle after six streams were dropped")
    assert client.generate("a", max_new_tokens=2)


def test_dropped_whole_responses_free_their_blocks(client):
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(unanswered(client))
        wait_for(lambda: running(client) >= 3, FREE_SECONDS, "three requests run")
    wait_for(lambda: idle(client), FREE_SECONDS, "idle after three requests were dropped")
    assert client.generate("a", max_new_tokens=2)


def test_dropped_before_the_first_token(client):
    for _ in range(10):
        with unanswered(client):
            pass
    wait_for(lambda: idle(client), FREE_SECONDS, "idle after ten requests were dropped at once")
    assert client.generate("a", max_new_tokens=2)


def test_dropped_while_queued(narrow_server):
    client = narrow_server.client
    with endless_stream(client) as first:
        next(first.frames())
        with unanswered(client):
            wait_for(lambda: client.metric("tgi_queue_size") == 1, FREE_SECONDS, "the second request waits")
        wait_for(lambda: client.metric("tgi_queue_size") == 0, FREE_SECONDS, "the queue is empty again")
        with unanswered(client):
            wait_for(lambda: client.metric("tgi_queue_size") == 1, FREE_SECONDS, "a third request has its place")
    wait_for(lambda: idle(client), FREE_SECONDS, "idle")
    assert client.generate("a", max_new_tokens=2)
