"""Fixtures of the protocol tests: stubs generated from `proto/shard.proto` by another compiler than ours, a socket,
and a toy shard on the native `ShardServer`. Knows nothing of models.
"""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from toy_shard import ToyShard, connect

REPOSITORY = Path(__file__).parents[3]


@dataclass
class Stubs:
    """The two generated modules."""

    messages: ModuleType
    services: ModuleType


@pytest.fixture(scope="session")
def stubs(tmp_path_factory):
    protoc = pytest.importorskip("grpc_tools.protoc")
    folder = tmp_path_factory.mktemp("stubs")
    code = protoc.main(
        ["protoc", f"-I{REPOSITORY / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}", "shard.proto"]
    )
    assert code == 0
    sys.path.insert(0, str(folder))
    try:
        yield Stubs(importlib.import_module("shard_pb2"), importlib.import_module("shard_pb2_grpc"))
    finally:
        sys.path.remove(str(folder))


@pytest.fixture
def shard(tmp_path):
    shard = ToyShard(str(tmp_path / "shard.sock"))
    yield shard
    shard.close()


@pytest.fixture
def client(shard, stubs):
    with connect(shard.socket) as channel:
        yield stubs.services.ShardStub(channel)
