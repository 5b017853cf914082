"""What `text-generation-server prepare` is told, and what it answers: two JSON files shared with the launcher.

The fields mirror `PrepareConfig` and `PreparedModel` of the `proto` crate. Knows nothing of how models are prepared.
"""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from text_generation_server.refusal import Refusal

LOAD_FORMATS = ("auto", "dummy")
_START_THROUGH_LAUNCHER = "Start the server with text-generation-launcher, which writes this file."


@dataclass(frozen=True)
class PrepareConfig:
    """What to prepare; `model_id` None = the demo model, `load_format` dummy = no weights are fetched.

    `num_shard` is the number of ranks that will share it.
    """

    model_id: str | None
    revision: str | None
    num_shard: int
    load_format: str
    huggingface_hub_cache: Path | None
    weights_cache_override: Path | None
    cache_folder: Path
    output: Path
    log_level: str
    log_json: bool

    @property
    def wants_weights(self) -> bool:
        """Whether the weights themselves are needed."""
        return self.load_format != "dummy"


@dataclass(frozen=True)
class PreparedModel:
    """Where a prepared model lies, and the name it is served under."""

    folder: Path
    model_id: str
    revision_sha: str | None = None
    pipeline_tag: str | None = None


def read_config(path: Path) -> PrepareConfig:
    """Read and check a configuration file.

    Raises:
        Refusal: unreadable, not JSON, or a field that is missing, unknown or of the wrong type.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(f"the configuration {path} cannot be read: {error}", _START_THROUGH_LAUNCHER) from None
    reader = _Reader(path, values)
    log = _Reader(path, reader.take("log", dict))
    config = PrepareConfig(
        model_id=reader.take("model_id", str, optional=True),
        revision=reader.take("revision", str, optional=True),
        num_shard=reader.take("num_shard", int),
        load_format=reader.take("load_format", str),
        huggingface_hub_cache=reader.take_path("huggingface_hub_cache", optional=True),
        weights_cache_override=reader.take_path("weights_cache_override", optional=True),
        cache_folder=reader.take_path("cache_folder"),
        output=reader.take_path("output"),
        log_level=log.take("level", str),
        log_json=log.take("json", bool),
    )
    reader.finish()
    log.finish()
    if config.load_format not in LOAD_FORMATS:
        raise reader.refuse(f"load_format is {config.load_format!r}, not one of {', '.join(LOAD_FORMATS)}")
    return config


def write_result(model: PreparedModel, output: Path) -> None:
    """Write the answer, whole or not at all.

    Raises:
        Refusal: the file cannot be written.
    """
    values = {**dataclasses.asdict(model), "folder": str(model.folder)}
    temporary = output.with_name(output.name + ".partial")
    try:
        temporary.write_text(json.dumps(values) + "\n", encoding="utf-8")
        os.replace(temporary, output)
    except OSError as error:
        way_out = "Make the folder of that file writable, and free space on its disk."
        raise Refusal(f"the result {output} cannot be written: {error.strerror}", way_out) from None


# === impl reading ===


class _Reader:
    """Takes the fields of one JSON object out, one by one; what is left at the end is unknown."""

    def __init__(self, path: Path, values: Any):
        self.path = path
        if not isinstance(values, dict):
            raise self.refuse("a JSON object is expected")
        self.left = dict(values)

    def refuse(self, reason: str) -> Refusal:
        return Refusal(f"the configuration {self.path} is wrong: {reason}", _START_THROUGH_LAUNCHER)

    def take(self, name: str, kind: type, optional: bool = False) -> Any:
        if name not in self.left and not optional:
            raise self.refuse(f"the field {name!r} is missing")
        value = self.left.pop(name, None)
        if value is None and optional:
            return None
        if not isinstance(value, kind):
            raise self.refuse(f"the field {name!r} must be a {kind.__name__}, not {json.dumps(value)}")
        return value

    def take_path(self, name: str, optional: bool = False) -> Any:
        value = self.take(name, str, optional)
        return None if value is None else Path(value)

    def finish(self) -> None:
        if self.left:
            raise self.refuse(f"the field {min(self.left)!r} is unknown")
