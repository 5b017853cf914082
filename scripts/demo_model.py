"""Prepares the demo model as the launcher does, and prints its folder. For tests and measurements that need the files.

The command `text-generation-server` of the same environment does the work; the folder is the launcher's own cache.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT_SECONDS = 600


def cache_folder() -> Path:
    """Where the launcher keeps converted models."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "text-generation"


def prepared_folder() -> Path:
    """The folder with the demo model's files, made when it is not there.

    Raises:
        subprocess.CalledProcessError: it cannot be prepared; the reason was printed.
    """
    command = Path(sys.executable).parent / "text-generation-server"
    with tempfile.TemporaryDirectory() as scratch:
        configuration, output = Path(scratch) / "prepare.json", Path(scratch) / "prepared.json"
        wanted = {
            "model_id": None,
            "revision": None,
            "num_shard": 1,
            "load_format": "auto",
            "huggingface_hub_cache": None,
            "weights_cache_override": None,
            "cache_folder": str(cache_folder()),
            "output": str(output),
            "log": {"level": "info", "json": False},
        }
        configuration.write_text(json.dumps(wanted))
        subprocess.run(
            [command, "prepare", "--config", configuration], check=True, timeout=TIMEOUT_SECONDS, stdout=sys.stderr
        )
        return Path(json.loads(output.read_text())["folder"])


if __name__ == "__main__":
    print(prepared_folder())
