"""Edited copies of a model folder, as users have them: other templates, other end tokens. Weights are linked, not
copied."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def edited(source: Path, target: Path) -> Path:
    """A copy of a model folder that may be changed."""
    target.mkdir()
    for file in source.iterdir():
        if file.suffix == ".safetensors":
            (target / file.name).symlink_to(file)
        elif file.is_file():
            shutil.copy(file, target / file.name)
    return target


def rewrite(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes a JSON file; one that does not exist begins empty."""
    content = json.loads(file.read_text()) if file.exists() else {}
    change(content)
    file.write_text(json.dumps(content))
