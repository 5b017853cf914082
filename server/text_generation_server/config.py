"""The configuration of a shard process: one JSON file, written by the launcher, checked here.

The fields are those of `ShardConfig` in `proto/src/config.rs`. Owns reading and checking; resolves no default that
depends on the machine.
"""

import json
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from text_generation_server.refusal import Refusal

T = TypeVar("T")
_WAY_OUT = "the launcher writes this file; use a launcher and a server of the same version"


@dataclass(frozen=True)
class LogConfig:
    """How to log."""

    level: str
    json: bool


@dataclass(frozen=True)
class ShardConfig:
    """Everything one shard process needs to know; meanings as in `proto/src/config.rs`."""

    rank: int
    world_size: int
    socket: str
    model_folder: str
    rendezvous: str
    device: str
    load_format: str
    memory_fraction: float
    log: LogConfig
    dtype: str | None = None
    attention: str | None = None
    threads: int | None = None
    rope_scaling: str | None = None
    rope_factor: float | None = None


def read_config(path: str, kind: type[T]) -> T:
    """Read a configuration file into the dataclass `kind`.

    Raises:
        Refusal: unreadable, not JSON, an unknown or missing field, or a value of the wrong type.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Refusal(f"configuration `{path}` cannot be read: {error}", _WAY_OUT) from error
    return _build(values, kind, f"configuration `{path}`")


def _build(values: Any, kind: type[T], where: str) -> T:
    if not isinstance(values, dict):
        raise Refusal(f"{where}: expected an object, found {values!r}", _WAY_OUT)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(values) - set(known)):
        raise Refusal(f"{where}: unknown fields: {', '.join(unknown)}", _WAY_OUT)
    absent = [name for name, field in known.items() if field.default is MISSING and name not in values]
    if absent:
        raise Refusal(f"{where}: missing fields: {', '.join(absent)}", _WAY_OUT)
    hints = get_type_hints(kind)
    return kind(**{name: _checked(value, hints[name], f"{where}: `{name}`") for name, value in values.items()})


def _checked(value: Any, hint: Any, where: str) -> Any:
    if is_dataclass(hint):
        return _build(value, hint, where)  # type: ignore[arg-type]
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    if value is None and NoneType in kinds:
        return None
    # JSON knows one kind of number; bool is an int to Python, but not to us.
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
        return value
    wanted = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
    raise Refusal(f"{where} is {value!r}, expected {wanted}", _WAY_OUT)
