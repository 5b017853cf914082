"""Runs every example of docs/clients.md as a reader would, each in a process of its own, against the shared server."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "clients.md"
ADDRESS = "http://localhost:3000"
SECONDS = 150
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# Outside the checkout, and kept between runs.
NPM_FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "text-generation" / "npm"
NPM_PACKAGES = ("openai",)
# They pin older packages than the tests use, and live in an environment of their own (`make test-integration`).
FRAMEWORKS = ("langchain", "llama_index", "litellm")
FRAMEWORKS_PYTHON = ROOT / ".venv-clients" / "bin" / "python"


def name_of(block: tuple[str, str]) -> str:
    found = re.search(r"(?:from|import) (\w+)|/(generate|v1)", block[1].replace("import asyncio\n", ""))
    return f"{block[0]}-{found[1] or found[2]}" if found else block[0]


def command_of(language: str, code: str, folder: Path) -> list[str]:
    """The command that runs an example, whose file it writes."""
    if language == "javascript":
        return javascript(code)
    file = folder / f"example.{language}"
    file.write_text(code)
    if language == "sh":
        return ["sh", "-eu", str(file)]
    framework = any(name in code for name in FRAMEWORKS)
    return [str(FRAMEWORKS_PYTHON) if framework else sys.executable, str(file)]


def javascript(code: str) -> list[str]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed: the JavaScript example was not run")
    if not (NPM_FOLDER / "node_modules" / NPM_PACKAGES[0]).is_dir():
        NPM_FOLDER.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(NPM_FOLDER)]
        done = subprocess.run([*install, *NPM_PACKAGES], capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            # The registry is no part of what is tested here.
            pytest.skip(f"npm could not fetch {NPM_PACKAGES}: {done.stderr.strip()[-300:]}")
    # Beside the packages, where imports are looked up.
    file = NPM_FOLDER / f"example-{os.getpid()}.mjs"
    file.write_text(code)
    return [node, str(file)]


def test_the_page_has_examples_of_every_client() -> None:
    text = "\n".join(code for _, code in BLOCKS)
    for client in ("curl", "text_generation", "huggingface_hub", "openai", "langchain_openai", "langchain_huggingface"):
        assert client in text
    assert {language for language, _ in BLOCKS} == {"sh", "python", "javascript"}
    assert "llama_index" in text and "litellm" in text


@pytest.mark.parametrize("block", BLOCKS, ids=name_of)
def test_an_example_runs(block: tuple[str, str], server, tmp_path: Path) -> None:
    language, code = block
    assert ADDRESS in code
    command = command_of(language, code.replace(ADDRESS, f"http://localhost:{server.port}"), tmp_path)
    # Without it, LiteLLM looks up prices on the internet.
    variables = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=variables, cwd=tmp_path)
    finally:
        if language == "javascript":
            Path(command[-1]).unlink()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.strip()
