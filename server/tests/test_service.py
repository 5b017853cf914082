"""A whole shard process: configuration file in, shard protocol out, driven by grpcio."""

import importlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest
import torch

REPOSITORY = Path(__file__).parents[2]
SERVE = "import sys; from text_generation_server.service import serve; sys.exit(serve(sys.argv[1]))"


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    protoc = pytest.importorskip("grpc_tools.protoc")
    folder = tmp_path_factory.mktemp("stubs")
    arguments = [
        "",
        f"-I{REPOSITORY / 'proto'}",
        f"--python_out={folder}",
        f"--grpc_python_out={folder}",
        "shard.proto",
    ]
    assert protoc.main(arguments) == 0
    sys.path.insert(0, str(folder))
    yield importlib.import_module("shard_pb2"), importlib.import_module("shard_pb2_grpc")
    sys.path.remove(str(folder))


class Process:
    def __init__(self, tmp_path, folder, rank=0, world_size=1, **changes):
        self.socket = str(tmp_path / f"shard-{rank}.sock")
        config = {
            "rank": rank,
            "world_size": world_size,
            "socket": self.socket,
            "model_folder": str(folder),
            "rendezvous": f"file://{tmp_path}/rendezvous",
            "device": "cpu",
            "dtype": None,
            "load_format": "auto",
            "attention": None,
            "memory_fraction": 1.0,
            "threads": 1,
            "rope_scaling": None,
            "rope_factor": None,
            "log": {"level": "info", "json": True},
            **changes,
        }
        path = tmp_path / f"shard-{rank}.json"
        path.write_text(json.dumps(config))
        self.child = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(path)], stderr=subprocess.PIPE, text=True, cwd=REPOSITORY / "server"
        )

    def wait(self, timeout=20):
        try:
            _, errors = self.child.communicate(timeout=timeout)
        finally:
            self.child.kill()
        return self.child.returncode, [json.loads(line) for line in errors.splitlines() if line.startswith("{")]


def warm_up(stubs, process, **wanted):
    """Connect as soon as the shard is loaded."""
    messages, services = stubs
    # By default grpcio names the path as the authority, which HTTP/2 in Rust refuses as malformed.
    channel = grpc.insecure_channel(f"unix:{process.socket}", options=[("grpc.default_authority", "localhost")])
    client = services.ShardStub(channel)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.child.poll() is None:
        try:
            if client.Health(messages.HealthRequest()).state >= messages.LOADED:
                break
        except grpc.RpcError:
            time.sleep(0.05)
    return client


def greedy_plans(messages, prompt, tokens):
    sampling = messages.Sampling(top_p=1, typical_p=1, repetition_penalty=1)
    new = messages.NewSequence(
        slot=0, token_ids=prompt, prompt_length=len(prompt), block_ids=[2, 0, 1], sampling=sampling
    )
    counts = [len(prompt)] + [1] * (tokens - 1)
    for step, count in enumerate(counts):
        news = [new] if step == 0 else []
        yield messages.StepPlan(
            epoch=1, step=step + 1, new_sequences=news, slots=[0], token_counts=[count], row_flags=[1], block_counts=[0]
        )
    yield messages.StepPlan(epoch=1, step=tokens + 1, released_slots=[0])


def test_a_shard_serves_and_ends(stubs, tiny_checkpoint, tmp_path):
    messages, _ = stubs
    folder, model = tiny_checkpoint()
    process = Process(tmp_path, folder)
    client = warm_up(stubs, process)
    info = client.Info(messages.InfoRequest())
    assert (info.vocab_size, info.layers, info.kv_heads, info.dtype) == (151, 3, 3, "float32")
    with pytest.raises(grpc.RpcError) as refused:
        client.Warmup(messages.WarmupRequest(max_total_tokens=4096))
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "4096" in refused.value.details() and "128" in refused.value.details()
    capacity = client.Warmup(messages.WarmupRequest(max_cache_tokens=1000))
    assert (capacity.blocks, capacity.max_total_tokens, capacity.max_sequences) == (63, 128, 64)
    prompt = [7, 3, 99, 12, 5]
    expected = model.generate(
        torch.tensor([prompt]), attention_mask=torch.ones(1, 5), max_new_tokens=20, do_sample=False, eos_token_id=None
    )[0, 5:].tolist()
    for _ in range(2):
        results = list(client.Steps(greedy_plans(messages, prompt, 20)))
        assert [token for result in results for token in result.token_ids] == expected
    process.child.send_signal(signal.SIGTERM)
    assert process.wait()[0] == 0


def test_a_broken_plan_ends_the_stream_and_the_process(stubs, tiny_checkpoint, tmp_path):
    messages, _ = stubs
    process = Process(tmp_path, tiny_checkpoint()[0])
    client = warm_up(stubs, process)
    client.Warmup(messages.WarmupRequest())
    bad = messages.StepPlan(epoch=1, step=1, slots=[3], token_counts=[1], row_flags=[1], block_counts=[0])
    with pytest.raises(grpc.RpcError) as error:
        list(client.Steps(iter([bad])))
    assert error.value.code() == grpc.StatusCode.INTERNAL
    assert "holds no sequence" in error.value.details()
    code, lines = process.wait()
    assert code == 1
    assert "holds no sequence" in lines[-1]["message"] and "Traceback" in lines[-1]["exception"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"surprise": 1}, "surprise"),
        ({"threads": "two"}, "`threads` is 'two'"),
        ({"device": "tpu"}, "tpu"),
        ({"attention": "triton"}, "triton"),
        ({"model_folder": "/nowhere"}, "/nowhere/config.json"),
        ({"world_size": 2}, "3 key/value heads cannot be divided among 2 shards"),
    ],
)
def test_what_cannot_be_served_is_refused_with_its_name(tiny_checkpoint, tmp_path, changes, named):
    code, lines = Process(tmp_path, tiny_checkpoint()[0], **changes).wait()
    assert code == 1
    assert lines[-1]["level"] == "ERROR"
    assert named in lines[-1]["message"]
    assert "exception" not in lines[-1]


def test_three_ranks_equal_one(stubs, tiny_checkpoint, tmp_path):
    messages, _ = stubs
    folder, model = tiny_checkpoint()
    processes = [Process(tmp_path, folder, rank=rank, world_size=3) for rank in range(3)]
    clients = [warm_up(stubs, process) for process in processes]
    warm = [client.Warmup.future(messages.WarmupRequest(max_cache_tokens=1000)) for client in clients]
    assert [call.result().blocks for call in warm] == [63] * 3
    prompt = [7, 3, 99, 12, 5]
    expected = model.generate(
        torch.tensor([prompt]), attention_mask=torch.ones(1, 5), max_new_tokens=20, do_sample=False, eos_token_id=None
    )[0, 5:].tolist()
    streams = [client.Steps(greedy_plans(messages, prompt, 20)) for client in clients]
    results = [list(stream) for stream in streams]
    assert [token for result in results[0] for token in result.token_ids] == expected
    assert all(not result.token_ids for rank in (1, 2) for result in results[rank])
    for process in processes:
        process.child.send_signal(signal.SIGTERM)
    assert [process.wait()[0] for process in processes] == [0, 0, 0]
