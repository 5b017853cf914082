"""Our router's end of the protocol, driven against a shard written with `grpcio` alone: anyone can write one.

The router's `ShardGroup` runs in the example `drive_shards`, which cargo builds.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from grpcio_shard import BLOCKS, VOCAB_SIZE, GrpcioShard, next_token

DRIVER = Path(os.environ.get("TEXT_GENERATION_BINARIES", "")) / "examples" / "drive_shards"
TOKENS = 6
PROMPT = [11, 12, 13, 14, 15]

pytestmark = pytest.mark.skipif(
    not DRIVER.is_file(), reason="TEXT_GENERATION_BINARIES names no folder with the cargo-built binaries"
)


def drive(sockets):
    return subprocess.run([DRIVER, str(TOKENS), *sockets], capture_output=True, text=True, timeout=30)


@pytest.fixture
def serve(stubs, tmp_path):
    """Starts ranks of these classes; returns them and their sockets."""
    servers = []

    def start(*classes):
        shards = [kind(stubs, rank, len(classes)) for rank, kind in enumerate(classes)]
        sockets = [str(tmp_path / f"shard-{shard.rank}") for shard in shards]
        servers.extend(shard.serve(socket) for shard, socket in zip(shards, sockets, strict=True))
        return shards, sockets

    yield start
    for server in servers:
        server.stop(None)


@pytest.mark.parametrize("ranks", [1, 2])
def test_our_router_drives_a_shard_in_plain_grpcio(serve, ranks):
    shards, sockets = serve(*[GrpcioShard] * ranks)
    process = drive(sockets)
    assert process.returncode == 0, process.stderr
    expected = list(PROMPT)
    for _ in range(TOKENS):
        expected.append(next_token(expected))
    assert json.loads(process.stdout) == {
        "vocab_size": VOCAB_SIZE,
        "blocks": BLOCKS,
        "steps": list(range(1, TOKENS + 3)),
        "token_ids": expected[len(PROMPT) :],
        "logprobs": [-0.25] * TOKENS,
    }
    plans = shards[0].plans
    assert [list(plan.token_counts) for plan in plans] == [[3], [2]] + [[1]] * (TOKENS - 1) + [[]]
    assert list(plans[0].new_sequences[0].token_ids) == PROMPT
    assert list(plans[-1].released_slots) == [1]
    assert all(shard.plans == plans for shard in shards)


class Failing(GrpcioShard):
    """Ends the stream at its second plan."""

    def _step(self, rows, plan):
        if plan.step == 2:
            raise RuntimeError("bus error")
        return super()._step(rows, plan)


def test_the_router_names_the_rank_that_fails(serve):
    _, sockets = serve(GrpcioShard, Failing)
    process = drive(sockets)
    assert process.returncode != 0
    assert "rank: 1" in process.stderr
    assert "bus error" in process.stderr
