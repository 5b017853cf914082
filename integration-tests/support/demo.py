"""The prepared folder of the demo model, as the launcher itself prepares it."""

import json
import os
import subprocess
from pathlib import Path

from .server import COMMANDS


def cache_folder() -> Path:
    """Where converted models are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "text-generation"


def prepared_folder(scratch: Path, **changes: object) -> Path:
    """Prepares the demo model (or what `changes` to the configuration name) and returns its folder."""
    configuration = {
        "model_id": None,
        "revision": None,
        "load_format": "auto",
        "huggingface_hub_cache": None,
        "weights_cache_override": None,
        "cache_folder": str(cache_folder()),
        "output": str(scratch / "prepared.json"),
        "log": {"level": "info", "json": False},
    }
    path = scratch / "prepare.json"
    path.write_text(json.dumps(configuration | changes))
    subprocess.run([COMMANDS / "text-generation-server", "prepare", "--config", path], check=True, timeout=300)
    return Path(json.loads((scratch / "prepared.json").read_text())["folder"])
