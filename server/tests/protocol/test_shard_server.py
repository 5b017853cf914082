"""The native shard server, driven by an ordinary `grpcio` client over its unix socket."""

import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
from toy_shard import CAPACITY, INFO, SAMPLE, connect, result

from text_generation_server import _native


class Stream:
    """One `Steps` stream whose plans are sent one by one."""

    def __init__(self, client):
        self.outbox = queue.Queue()
        self.call = client.Steps(iter(self.outbox.get, None))

    def send(self, plan):
        self.outbox.put(plan)

    def next(self):
        return next(self.call)

    def finish(self):
        self.outbox.put(None)


@pytest.fixture
def open_stream(shard, client, stubs):
    shard.start()
    client.Warmup(stubs.messages.WarmupRequest(), timeout=5)
    streams = []

    def open_one():
        streams.append(Stream(client))
        return streams[-1]

    yield open_one
    shard.gate.set()
    for stream in streams:
        stream.call.cancel()
        stream.finish()


def prompt(messages, slot, tokens, **fields):
    return messages.NewSequence(
        slot=slot, token_ids=tokens, prompt_length=len(tokens), sampling=messages.Sampling(temperature=0), **fields
    )


def decode(messages, step, slots, **fields):
    ones = [1] * len(slots)
    fields = {"token_counts": ones, "row_flags": [SAMPLE] * len(slots), "block_counts": [0] * len(slots)} | fields
    return messages.StepPlan(step=step, slots=slots, **fields)


def status_of(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


def test_nothing_is_answered_before_the_weights_are_loaded(shard, client, stubs):
    messages = stubs.messages
    assert client.Health(messages.HealthRequest(), timeout=5).state == messages.STARTING
    shard.server.loading("3 of 30 layers")
    health = client.Health(messages.HealthRequest(), timeout=5)
    assert (health.state, health.detail) == (messages.LOADING, "3 of 30 layers")
    code, details = status_of(lambda: client.Info(messages.InfoRequest(), timeout=5))
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert "3 of 30 layers" in details
    assert status_of(lambda: client.Warmup(messages.WarmupRequest(), timeout=5))[0] == code
    assert status_of(lambda: next(client.Steps(iter([]))))[0] == code


def test_info_and_warmup(shard, client, stubs):
    messages = stubs.messages
    shard.start()
    info = client.Info(messages.InfoRequest(), timeout=5)
    assert info.protocol_version == 1
    assert {name: getattr(info, name) for name in INFO} == INFO
    assert client.Health(messages.HealthRequest(), timeout=5).state == messages.LOADED
    asked = messages.WarmupRequest(max_total_tokens=9, max_sequences=8, max_step_tokens=7, max_cache_tokens=6)
    first = client.Warmup(asked, timeout=5)
    assert {name: getattr(first, name) for name in CAPACITY} == CAPACITY
    seen = shard.request
    assert (seen.max_total_tokens, seen.max_sequences, seen.max_step_tokens, seen.max_cache_tokens) == (9, 8, 7, 6)
    assert client.Warmup(messages.WarmupRequest(), timeout=5) == first
    assert client.Health(messages.HealthRequest(), timeout=5).state == messages.READY


def test_loaded_refuses_missing_and_unknown_arguments(shard):
    with pytest.raises(TypeError):
        shard.server.loaded(rank=0)
    with pytest.raises(TypeError, match="unexpected"):
        shard.server.loaded(**INFO, colour="blue")


def test_a_refused_warmup_can_be_repeated(shard, client, stubs):
    messages = stubs.messages
    shard.server.loaded(**INFO)

    def refuse():
        shard.server.wait_warmup()
        shard.server.refuse_warmup("needs 9 GiB, 8 GiB are free")

    thread = threading.Thread(target=refuse)
    thread.start()
    code, details = status_of(lambda: client.Warmup(messages.WarmupRequest(), timeout=5))
    assert (code, details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "needs 9 GiB, 8 GiB are free")
    thread.join()
    shard.start()
    assert client.Warmup(messages.WarmupRequest(), timeout=5).blocks == CAPACITY["blocks"]


def test_steps_carry_arrays_both_ways(shard, open_stream, stubs):
    messages = stubs.messages
    stream = open_stream()
    stream.call.initial_metadata()  # Arrives before any plan is sent.
    sampling = messages.Sampling(temperature=0.5, top_k=3, top_p=0.9, seed=2**64 - 1, top_n=2)
    sampling.MergeFrom(messages.Sampling(bias_ids=[6], biases=[-2.5], min_tokens=2, end_ids=[1], raw_logprobs=True))
    first = prompt(messages, 2, [5, 6, 7], computed=0, block_ids=[9], prompt_logprobs=True)
    first.sampling.CopyFrom(sampling)
    stream.send(decode(messages, 1, [2], token_counts=[3], new_sequences=[first], copy_from=[1], copy_to=[2]))
    answer = stream.next()
    assert (answer.step, answer.rank, list(answer.slots), list(answer.token_ids)) == (1, 0, [2], [8])
    assert list(answer.logprobs) == [-0.5]
    assert (answer.timings.wait_us, answer.timings.forward_us, answer.timings.sample_us) == (1, 2, 3)

    stream.send(decode(messages, 2, [2], block_counts=[1], block_ids=[4]))
    assert list(stream.next().token_ids) == [9]
    stream.send(messages.StepPlan(step=3, released_slots=[2]))
    assert list(stream.next().slots) == []
    plans = shard.plans
    assert [(plan.step, plan.reset) for plan in plans] == [(1, True), (2, False), (3, False)]
    assert plans[0].token_counts.dtype == np.uint32
    assert plans[0].copy_to.tolist() == [2]
    assert plans[1].block_ids.tolist() == [4]
    assert plans[2].released_slots.tolist() == [2]
    sequence = plans[0].new_sequences[0]
    assert (sequence.token_ids.tolist(), sequence.block_ids.tolist()) == ([5, 6, 7], [9])
    assert sequence.prompt_logprobs
    assert (sequence.sampling.temperature, sequence.sampling.seed, sequence.sampling.top_n) == (0.5, 2**64 - 1, 2)
    assert (sequence.sampling.bias_ids.tolist(), sequence.sampling.biases.tolist()) == ([6], [-2.5])
    assert (sequence.sampling.min_tokens, sequence.sampling.end_ids.tolist()) == (2, [1])
    assert sequence.sampling.raw_logprobs
    with pytest.raises(ValueError, match="read-only"):
        plans[0].slots[0] = 1


def test_plans_queue_up_and_a_half_closed_stream_is_answered(shard, client, open_stream, stubs):
    messages = stubs.messages
    shard.gate.clear()
    stream = open_stream()
    stream.send(decode(messages, 1, [0], new_sequences=[prompt(messages, 0, [1])]))
    stream.send(decode(messages, 2, [0]))
    stream.finish()
    shard.gate.set()
    assert [list(answer.token_ids) for answer in stream.call] == [[2], [3]]
    again = open_stream()
    again.send(decode(messages, 7, [0], new_sequences=[prompt(messages, 0, [50])]))
    assert list(again.next().token_ids) == [51]
    assert shard.plans[-1].reset


def test_health_answers_while_a_step_runs(shard, client, open_stream, stubs):
    messages = stubs.messages
    shard.gate.clear()
    stream = open_stream()
    stream.send(decode(messages, 1, [0], new_sequences=[prompt(messages, 0, [1])]))
    while not shard.plans:
        time.sleep(0.001)
    time.sleep(0.05)
    assert client.Health(messages.HealthRequest(), timeout=5).step_running_us >= 50_000
    shard.gate.set()
    stream.next()
    health = client.Health(messages.HealthRequest(), timeout=5)
    assert (health.step_running_us, health.last_step) == (0, 1)


def test_a_second_stream_is_refused_and_a_cancelled_one_makes_room(shard, open_stream, stubs):
    messages = stubs.messages
    shard.gate.clear()
    stream = open_stream()
    stream.send(decode(messages, 1, [0], new_sequences=[prompt(messages, 0, [1])]))
    while not shard.plans:
        time.sleep(0.001)
    second = open_stream()
    assert status_of(second.next)[0] == grpc.StatusCode.ALREADY_EXISTS
    stream.call.cancel()
    third = open_stream()
    third.send(decode(messages, 1, [1], new_sequences=[prompt(messages, 1, [30])]))
    shard.gate.set()
    assert list(third.next().token_ids) == [31]  # The answer of the cancelled stream went nowhere.


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"slots": [1, 2]}, "token_counts"), ({"step": 5}, "step 5 follows step 1"), ({"new": True}, "sampling")],
)
def test_a_malformed_plan_ends_the_stream(open_stream, stubs, fields, words):
    messages = stubs.messages
    stream = open_stream()
    stream.send(messages.StepPlan(step=1))
    stream.next()
    new = [messages.NewSequence(slot=0, token_ids=[1])] if fields.pop("new", False) else []
    stream.send(messages.StepPlan(**({"step": 2} | fields), new_sequences=new))
    code, details = status_of(stream.next)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert words in details


def test_an_older_epoch_is_ignored_and_a_newer_one_resets(shard, open_stream, stubs):
    messages = stubs.messages
    stream = open_stream()
    for epoch, step in [(2, 1), (1, 2), (3, 9)]:
        stream.send(messages.StepPlan(epoch=epoch, step=step))
    assert [(answer.epoch, answer.step) for answer in (stream.next(), stream.next())] == [(2, 1), (3, 9)]
    assert [plan.reset for plan in shard.plans] == [True, True]


def test_replies_are_checked(tmp_path, stubs):
    server = _native.ShardServer(str(tmp_path / "own.sock"))
    server.loaded(**INFO)
    messages = stubs.messages
    with connect(tmp_path / "own.sock") as channel:
        client = stubs.services.ShardStub(channel)
        warmup = client.Warmup.future(messages.WarmupRequest())
        server.wait_warmup()
        server.warmed(**CAPACITY)
        warmup.result(5)
        stream = Stream(client)
        stream.send(messages.StepPlan(step=1))
        stream.send(messages.StepPlan(step=2))
        steps = server.steps()
        first, second = next(steps), next(steps)
        with pytest.raises(ValueError, match="step 2 was answered before step 1"):
            steps.reply(second, None)
        with pytest.raises(TypeError, match="logprobs must be a one-dimensional array of float32"):
            steps.reply(first, SimpleNamespace(**(vars(result([0], [1])) | {"logprobs": np.ones(1)})))
        with pytest.raises(ValueError, match="logprobs has 0 entries"):
            steps.reply(first, SimpleNamespace(**(vars(result([0], [1])) | {"logprobs": np.ones(0, np.float32)})))
        tops = {"top_counts": [2], "top_ids": [7, 8]}
        tops = {name: np.array(values, np.uint32) for name, values in tops.items()}
        tops |= {"top_logprobs": np.array([-1, 9, -2], np.float32)[::2]}
        told = SimpleNamespace(
            slot=0,
            position=1,
            logprobs=np.array([-3.0], np.float32),
            top_ids=np.array([7], np.uint32),
            top_logprobs=np.array([-0.5], np.float32),
        )
        tops |= {"prompt_logprobs": [told]}
        thread = threading.Thread(target=steps.reply, args=(first, SimpleNamespace(**(vars(result([0], [1])) | tops))))
        thread.start()
        thread.join()
        answer = stream.next()
        assert (list(answer.top_ids), list(answer.top_logprobs)) == ([7, 8], [-1, -2])
        told = answer.prompt_logprobs[0]
        assert (told.position, list(told.logprobs), list(told.top_ids), list(told.top_logprobs)) == (
            1,
            [-3],
            [7],
            [-0.5],
        )
        steps.reply(second, None)
        with pytest.raises(ValueError, match="answered twice"):
            steps.reply(second, None)
        stream.finish()
        server.close()
    with pytest.raises(StopIteration):
        next(steps)


def test_fail_tells_an_open_stream_and_health(shard, client, open_stream, stubs):
    messages = stubs.messages
    stream = open_stream()
    stream.send(messages.StepPlan(step=1))
    stream.next()
    shard.server.fail("device fault: bus error")
    assert status_of(stream.next) == (grpc.StatusCode.INTERNAL, "device fault: bus error")
    health = client.Health(messages.HealthRequest(), timeout=5)
    assert (health.state, health.detail) == (messages.FAILED, "device fault: bus error")


def test_a_socket_in_use_is_refused_and_a_dead_one_replaced(tmp_path):
    path = str(tmp_path / "x.sock")
    server = _native.ShardServer(path)
    with pytest.raises(OSError, match="in use"):
        _native.ShardServer(path)
    server.close()
    server.close()
    with pytest.raises(OSError):
        _native.ShardServer(str(tmp_path / "nowhere" / "x.sock"))
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    _native.ShardServer(path).close()


WAITING = """
import sys
from text_generation_server import _native
server = _native.ShardServer(sys.argv[1])
try:
    print("waiting", flush=True)
    {wait}
except KeyboardInterrupt:
    server.close()
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("wait", ["server.wait_warmup()", "next(server.steps())"])
def test_ctrl_c_ends_a_wait(tmp_path, wait):
    command = [sys.executable, "-c", WAITING.format(wait=wait), str(tmp_path / "x.sock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - started < 1
        assert process.wait(5) == 0
