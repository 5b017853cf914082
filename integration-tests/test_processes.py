"""The life and death of the processes: every way to start wrong, to end well, and to be killed."""

import json
import shutil
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from support.client import JSON_HEADERS, at_once
from support.prompts import SHORT
from support.requests import endless_stream
from support.server import gone, launched, wait_for

ORPHAN_SECONDS = 3
ERROR_SECONDS = 15
STREAMS, TOKENS = 8, 24


# === ending well ===


def test_sigterm_lets_open_streams_finish(tmp_path):
    with launched(tmp_path) as server, ExitStack() as stack:
        parameters = {"max_new_tokens": TOKENS, "details": True}
        open_streams = [
            stack.enter_context(server.client.stream("/generate_stream", {"inputs": prompt, "parameters": parameters}))
            for prompt in SHORT[:STREAMS]
        ]
        frames = [stream.frames() for stream in open_streams]
        first = [next(stream) for stream in frames]
        server.process.send_signal(signal.SIGTERM)
        rest = at_once(list, frames)
        for begin, others in zip(first, rest, strict=True):
            every = [begin, *others]
            assert [frame["index"] for frame in every] == list(range(1, len(every) + 1))
            assert every[-1]["details"]["generated_tokens"] == len(every)
            assert every[-1]["generated_text"] == "".join(
                frame["token"]["text"] for frame in every if not frame["token"]["special"]
            )
        assert server.wait_exit() == 0, server.last_lines(40)


def test_second_signal_ends_at_once(tmp_path):
    with launched(tmp_path) as server, endless_stream(server.client) as stream:
        next(stream.frames())
        below = server.descendants()
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: server.health() != 200, 5, "not ready any more")
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        server.wait_exit(5)
        wait_for(lambda: gone(below), ORPHAN_SECONDS, "no process left")


def test_health_says_why_it_is_not_ready_and_sigterm_ends_the_start(tmp_path):
    with launched(tmp_path, ready=False) as server:
        wait_for(lambda: server.health() == 503, 20, "the port answers before the model is there")
        problem = server.client.get("/health").json()
        assert problem["error_type"] == "healthcheck" and len(problem["error"]) > len("unhealthy")
        reply = server.client.post("/generate", {"inputs": "a"})
        assert reply.status == 503, reply.text
        below = server.descendants()
        assert server.stop() == 0, server.last_lines(40)
        wait_for(lambda: gone(below), ORPHAN_SECONDS, "no process left")


# === being killed ===


def test_nothing_is_left_when_the_launcher_is_killed(tmp_path):
    with launched(tmp_path) as server:
        below = server.descendants()
        assert len(below) >= 2
        server.process.kill()
        wait_for(lambda: gone(below), ORPHAN_SECONDS, "no process left")


def test_killed_shard_ends_clients_with_an_error_and_is_named_last(tmp_path):
    with launched(tmp_path) as server, endless_stream(server.client) as stream:
        frames = stream.frames()
        next(frames)
        began = time.monotonic()
        server.shards()[0].kill()
        *_, last = frames
        assert last["error_type"] == "generation" and "shard" in last["error"].lower()
        assert time.monotonic() - began < ERROR_SECONDS
        assert server.wait_exit() not in (0, None)
        final = server.last_lines(1).lower()
        assert "shard" in final and ("sigkill" in final or "signal" in final), server.last_lines(40)


# === starting wrong ===


def test_port_in_use(tmp_path):
    with socket.socket() as other:
        # The default hostname is every address: the other program holds them all as well.
        other.bind(("0.0.0.0", 0))
        other.listen()
        port = other.getsockname()[1]
        with launched(tmp_path, port=port, ready=False) as server:
            server.exits_with(str(port))


def test_unknown_model(tmp_path):
    with launched(tmp_path, "--model-id", "nobody/no-such-model", ready=False, HF_HUB_OFFLINE="1") as server:
        server.exits_with("nobody/no-such-model")


def test_missing_folder(tmp_path):
    with launched(tmp_path, "--model-id", str(tmp_path / "missing"), ready=False) as server:
        server.exits_with("missing")


def test_unreadable_gguf(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(60))
    with launched(tmp_path, "--model-id", str(tmp_path / "broken.gguf"), ready=False) as server:
        server.exits_with("broken.gguf")


def test_unwritable_cache(tmp_path):
    (tmp_path / "file").touch()
    with launched(tmp_path, "--cache-folder", str(tmp_path / "file" / "cache"), ready=False) as server:
        server.exits_with("cache")


def test_too_little_memory(tmp_path):
    with launched(tmp_path, "--max-batch-total-tokens", "4000000000", ready=False) as server:
        server.exits_with("4000000000 tokens", "fit into memory", "lower --max-batch-total-tokens")


def truncate(folder: Path) -> str:
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    return "model.safetensors"


def drop_a_tensor(folder: Path) -> str:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = sorted(tensors)[-1]
    del tensors[name]
    save_file(tensors, path, {"format": "pt"})
    return name


def change_architecture(folder: Path) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": ["NoSuchForCausalLM"]}))
    return "NoSuchForCausalLM"


@pytest.mark.parametrize("spoil", [truncate, drop_a_tensor, change_architecture])
def test_spoilt_model_is_refused_by_name(tmp_path, demo_folder, spoil):
    folder = tmp_path / "model"
    shutil.copytree(demo_folder, folder)
    culprit = spoil(folder)
    with launched(tmp_path, "--model-id", str(folder), ready=False) as server:
        server.exits_with(culprit)


@pytest.mark.parametrize("flag", ["--quantize=awq", "--speculate=2", "--lora-adapters=a"])
def test_feature_that_does_not_exist_yet_is_refused_by_name(tmp_path, flag):
    with launched(tmp_path, flag, ready=False) as server:
        server.exits_with(flag.split("=")[0])


# === one request never hurts another ===


def test_requests_of_all_kinds_at_once(client):
    good = {"inputs": SHORT[0], "parameters": {"max_new_tokens": 6}}
    bodies = [json.dumps(good).encode(), b"{", json.dumps(good | {"inputs": ""}).encode()] * 4
    replies = at_once(lambda body: client.request("POST", "/generate", body, JSON_HEADERS), bodies)
    assert [reply.status for reply in replies] == [200, 400, 422] * 4
    assert len({reply.body for reply in replies[::3]}) == 1
