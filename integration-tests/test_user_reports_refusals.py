"""Faults of refusals that users of such servers have reported: errors under status 200, limits that hold on some routes
only, overload that breaks connections, prompts in logs, prompts that make the server connect."""

import json
import socket
import threading
from contextlib import contextmanager

import pytest

from support.client import JSON_HEADERS, at_once
from support.fake import faked
from support.invariants import unharmed

HELLO = [{"role": "user", "content": "Hello"}]
SECRET = "xylophone-7731"


@pytest.mark.parametrize(
    "fields", [{"top_p": 2}, {"max_tokens": 9000}, {"messages": [{"role": "alien", "content": "a"}]}], ids=str
)
def test_errors_of_a_stream_have_a_status(guarded, fields):
    reply = guarded.post("/v1/chat/completions", {"messages": HELLO, "stream": True, **fields})
    assert reply.status == 400
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.json()["error"]["message"]


def post_routes(client) -> list[str]:
    paths = client.get("/api-doc/openapi.json").json()["paths"]
    return [
        path.replace("{model_name}", "m").replace("{model_version}", "1") for path in paths if "post" in paths[path]
    ]


@pytest.mark.parametrize("megabytes", [3, 40])
def test_large_bodies_are_refused_on_every_route(guarded, megabytes):
    limit, body = 2_000_000, json.dumps({"inputs": "a" * (megabytes * 1_000_000)}).encode()
    for path in post_routes(guarded):
        reply = guarded.request("POST", path, body, JSON_HEADERS)
        assert reply.status == 413, f"{path}: {reply.text}"
        assert str(limit) in json.dumps(reply.json()["error"])


def test_large_bodies_leave_the_memory_as_it_was(tmp_path, demo_folder):
    import psutil

    body = json.dumps({"inputs": "a" * 40_000_000}).encode()
    with faked(tmp_path, demo_folder) as (client, process):
        for path in post_routes(client):
            client.request("POST", path, b'{"inputs":"a"}', JSON_HEADERS)
        before = psutil.Process(process.pid).memory_info().rss
        replies = at_once(lambda path: client.request("POST", path, body, JSON_HEADERS), ["/generate"] * 4)
        assert [reply.status for reply in replies] == [413] * 4
        assert psutil.Process(process.pid).memory_info().rss - before < 40_000_000


@pytest.mark.parametrize("letter", ["a", "7", " word", "漢"])
def test_prompts_far_too_long_are_refused_by_their_size(tmp_path, demo_folder, letter):
    """At once, and before a small request that came later: nobody waits for the work that a refusal saves."""
    prompt = letter * (2_000_000 // len(letter.encode()))
    flags = ("--payload-limit", "20000000", "--max-total-tokens", "2048")
    with faked(tmp_path, demo_folder, *flags) as (client, _), unharmed(client):

        def call(index: int):
            inputs = prompt if index < 8 else "hi"
            return client.post("/generate", {"inputs": inputs, "parameters": {"max_new_tokens": 1}})

        *refused, small = at_once(call, list(range(9)))
        assert [reply.status for reply in refused] == [422] * 8
        assert all("2000000 bytes" in reply.text or "bytes, at least" in reply.text for reply in refused)
        assert small.status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xef\xbb\xbf" + b'{"inputs":"a"}',
        b'{"inputs":"\xff"}',
        rb'{"inputs":"\ud83d"}',
        rb'{"inputs":"\udc00x"}',
        b'{"inputs":"a","parameters":{"temperature":NaN}}',
        b'{"inputs":"a","parameters":{"temperature":1e400}}',
        b'{"inputs":' + b"[" * 100_000,
        b'{"inputs":"a","parameters":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b'{"inputs":"a"}{"inputs":"b"}',
        b'["a",{"max_new_tokens":1}]',
        b'{"inputs":"a","inputs":"b"}',
        b'{"inputs":""}',
        b"null",
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
@pytest.mark.parametrize("path", ["/generate", "/generate_stream", "/tokenize", "/invocations", "/vertex"])
def test_bodies_that_break_parsers_are_refused(guarded, path, body):
    reply = guarded.request("POST", path, body, JSON_HEADERS)
    if path == "/tokenize" and body == b'{"inputs":""}':
        assert reply.json() == []
    else:
        assert reply.status in (400, 422), reply.text
        assert reply.json()["error"]


def test_more_calls_than_places_are_refused_cleanly(narrow_server):
    client = narrow_server.client
    with unharmed(client):
        payload = {"inputs": "Count: 1, 2,", "parameters": {"max_new_tokens": 8}}
        replies = at_once(lambda _: client.post("/generate", payload), list(range(20)))
        assert {reply.status for reply in replies} <= {200, 429}
        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)
        many = client.post("/v1/completions", {"prompt": ["a", "b", "c"], "max_tokens": 2})
        assert many.status == 429, many.text


def test_prompts_never_reach_logs_or_metrics(server):
    client = server.client
    with unharmed(client):
        prompt = f"My password is {SECRET}."
        assert client.post("/generate", {"inputs": prompt, "parameters": {"max_new_tokens": 2}}).status == 200
        assert client.post("/generate", {"inputs": f"{prompt} " * 3000}).status == 422
        assert (
            client.post(
                "/generate", {"inputs": prompt, "parameters": {"grammar": {"type": "json", "value": SECRET}}}
            ).status
            == 422
        )
        assert client.post("/v1/chat/completions", {"messages": [{"role": SECRET, "content": prompt}]}).status == 400
        assert client.request("POST", "/generate", f'{{"inputs":"{SECRET}'.encode(), JSON_HEADERS).status == 400
    assert SECRET not in server.output
    assert SECRET not in client.get("/metrics").text


@contextmanager
def listening():
    """A port that counts connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        seen: list[object] = []

        def accept() -> None:
            while True:
                try:
                    seen.append(listener.accept()[1])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1], seen
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_markup_of_an_image_in_a_text_connects_to_nobody(guarded):
    with listening() as (port, seen):
        text = f"What is ![](http://127.0.0.1:{port}/x.png)?"
        assert guarded.post("/generate", {"inputs": text, "parameters": {"max_new_tokens": 2}}).status == 200
        chat = {"messages": [{"role": "user", "content": text}], "max_tokens": 2}
        assert guarded.post("/v1/chat/completions", chat).status == 200
        part = {"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{port}/x.png"}}
        chat["messages"][0]["content"] = [part]
        assert guarded.post("/v1/chat/completions", chat).status == 400
    assert not seen
