"""The wheel's commands and the binaries that cargo builds are the same programs."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from support.server import COMMANDS, gone, launched, wait_for

BINARIES = Path(os.environ.get("TEXT_GENERATION_BINARIES", ""))
PROGRAMS = ("text-generation-launcher", "text-generation-router")

pytestmark = pytest.mark.skipif(
    not (BINARIES / PROGRAMS[0]).is_file(),
    reason="TEXT_GENERATION_BINARIES names no folder with the cargo-built binaries",
)


def run(program: Path, *arguments: str) -> tuple[int, str, str]:
    environment = os.environ | {"COLUMNS": "100", "PATH": f"{COMMANDS}:{os.environ['PATH']}"}
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("--no-such-flag",)])
def test_wheel_and_binary_print_the_same(program, arguments):
    wheel = run(COMMANDS / program, *arguments)
    assert wheel == run(BINARIES / program, *arguments)
    assert wheel[0] == (2 if arguments == ("--no-such-flag",) else 0)


def test_shard_command_knows_its_version():
    version = run(COMMANDS / "text-generation-server", "--version")[1].split()[-1]
    assert version == run(COMMANDS / PROGRAMS[0], "--version")[1].split()[-1]


def test_env_prints_versions_and_devices():
    code, output, _ = run(COMMANDS / PROGRAMS[0], "env")
    assert code == 0
    assert "torch" in output.lower() and "rust" in output.lower()


@pytest.mark.parametrize("folder", [COMMANDS, BINARIES], ids=["wheel", "binary"])
def test_ctrl_c_ends_the_launcher(tmp_path, folder):
    path = f"{folder}:{COMMANDS}:{os.environ['PATH']}"
    with launched(tmp_path, command=folder / PROGRAMS[0], ready=False, PATH=path) as server:
        wait_for(lambda: server.health() == 503, 20, "the port answers")
        below = server.descendants()
        server.process.send_signal(signal.SIGINT)
        assert server.wait_exit() == 0, server.last_lines(40)
        wait_for(lambda: gone(below), 3, "no process left")
        assert "Traceback" not in server.output
