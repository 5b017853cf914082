import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import text_generation_server
from text_generation_server import logs

SERVER = Path(text_generation_server.__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = "from text_generation_server.cli import main; main()"
    return subprocess.run([sys.executable, "-c", script, *arguments], cwd=SERVER, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--merge-lora"], "--merge-lora is not supported"),
        (["--extension", ".bin"], "--extension .bin is not supported"),
        (["--trust-remote-code"], "--trust-remote-code is not supported"),
        ([], "./absent does not exist"),
    ],
)
def test_refusals_are_two_lines(arguments: list[str], cause: str) -> None:
    result = run("download-weights", "./absent", *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0] == f"Error: {cause}"
    assert len(result.stderr.splitlines()) == 2


def test_wrong_usage_is_exit_code_2() -> None:
    assert run("prepare").returncode == 2
    assert run("prepare", "--config", "/absent.json").returncode == 2


@pytest.mark.slow
def test_env_is_json_with_the_facts() -> None:
    facts = json.loads(run("env", "--json").stdout)
    assert facts["python"].startswith("3.")
    assert facts["cpu_count"] >= 1
    assert facts["memory_total"] >= facts["memory_available"] > 0
    assert {"torch", "triton", "transformers", "numpy", "devices"} <= facts.keys()


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    root, package = logging.getLogger(), logging.getLogger("text_generation_server")
    before = (root.handlers[:], root.level, package.level)
    yield logging.getLogger("text_generation_server.x")
    root.handlers[:], level, own = before
    root.setLevel(level)
    package.setLevel(own)


def test_json_lines(logger: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("debug", as_json=True)
    logger.warning("größer\nline", extra=logs.fields(seconds=1.5, path=Path("/a")))
    (line,) = capsys.readouterr().err.splitlines()
    value = json.loads(line)
    assert value.pop("timestamp").endswith("Z")
    assert value == {
        "level": "WARN",
        "message": "größer\nline",
        "target": "text_generation_server.x",
        "seconds": 1.5,
        "path": "/a",
    }


@pytest.mark.parametrize(
    ("directive", "level"),
    [
        ("info", logging.INFO),
        ("WARN", logging.WARNING),
        ("error,text_generation_server=trace", logs.TRACE),
        ("tower=debug", logging.INFO),
        ("tower=debug,warn", logging.WARNING),
    ],
)
def test_levels(logger: logging.Logger, directive: str, level: int) -> None:
    logs.set_up(directive, as_json=True)
    assert logger.getEffectiveLevel() == level
