"""Fixtures of the integration tests: one server for most of them, a folder with the prepared demo model, and the end
of the server's log beside every failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.client import Client
from support.invariants import unharmed
from support.server import Server, launched

LOG_LINES = 40
DEMO_MODEL = Path(__file__).resolve().parents[1] / "scripts" / "demo_model.py"


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Server:
    """The demo model in float32, shared by every test that only sends requests."""
    with launched(tmp_path_factory.mktemp("server")) as running:
        yield running
        assert running.stop() == 0, running.last_lines(LOG_LINES)


@pytest.fixture(scope="session")
def narrow_server(tmp_path_factory) -> Server:
    """Room for two requests, of which one runs."""
    folder = tmp_path_factory.mktemp("narrow")
    with launched(folder, "--max-concurrent-requests", "2", "--max-batch-size", "1") as running:
        yield running
        assert running.stop() == 0, running.last_lines(LOG_LINES)


@pytest.fixture
def client(server: Server) -> Client:
    return server.client


@pytest.fixture
def guarded(client: Client) -> Client:
    """A client whose server must be unharmed by the test."""
    with unharmed(client):
        yield client


@pytest.fixture(scope="session")
def demo_folder() -> Path:
    done = subprocess.run([sys.executable, DEMO_MODEL], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    server = item.funcargs.get("server") if hasattr(item, "funcargs") else None
    if report.failed and isinstance(server, Server):
        report.sections.append(("end of the server's log", server.last_lines(LOG_LINES)))
    return report
