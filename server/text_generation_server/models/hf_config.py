"""A checked view of a model's `config.json`.

Owns reading the file and turning wrong or missing values into refusals that name the key. Also reads the two spellings
of rotary parameters (`rope_theta` + `rope_scaling`, and `rope_parameters`). Knows no model.
"""

import json
from pathlib import Path
from typing import Any

from text_generation_server.refusal import Refusal

_MISSING = object()


class HfConfig:
    """The values of a `config.json`, with typed access."""

    def __init__(self, values: dict[str, Any], source: str = "config.json"):
        self._values = values
        self.source = source

    @classmethod
    def read(cls, folder: Path) -> "HfConfig":
        """Read `folder/config.json`.

        Raises:
            Refusal: it is missing, or not a JSON object.
        """
        path = folder / "config.json"
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise Refusal(
                f"`{path}` does not exist", "a model folder needs the model's config.json; check --model-id"
            ) from None
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise Refusal(f"`{path}` cannot be read: {error}", "fetch the model again") from error
        if not isinstance(values, dict):
            raise Refusal(f"`{path}` does not hold a JSON object", "fetch the model again")
        return cls(values, str(path))

    def with_values(self, **values: Any) -> "HfConfig":
        """A copy in which some values are replaced."""
        return HfConfig({**self._values, **values}, self.source)

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self._values.get(key) is not None

    def int(self, key: str, default: Any = _MISSING) -> Any:
        """A positive whole number, or the default when the key is missing or null."""
        return self._typed(
            key, default, lambda v: isinstance(v, int) and not isinstance(v, bool) and v > 0, "a number > 0"
        )

    def float(self, key: str, default: Any = _MISSING) -> Any:
        """A number, or the default."""
        value = self._typed(key, default, lambda v: isinstance(v, int | float) and not isinstance(v, bool), "a number")
        return value if value is default else float(value)

    def bool(self, key: str, default: Any = _MISSING) -> Any:
        """A boolean, or the default."""
        return self._typed(key, default, lambda v: isinstance(v, bool), "true or false")

    def str(self, key: str, default: Any = _MISSING) -> Any:
        """A string, or the default."""
        return self._typed(key, default, lambda v: isinstance(v, str), "a string")

    def section(self, key: str) -> "HfConfig | None":
        """A nested object, or None when it is missing or null."""
        value = self._typed(key, None, lambda v: isinstance(v, dict), "an object")
        return None if value is None else HfConfig(value, f"{self.source}: `{key}`")

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty when missing."""
        value = self._typed(key, [], lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v), "strings")
        return tuple(value)

    def refuse(self, what: str) -> Refusal:
        """A refusal that names this file."""
        return Refusal(f"{self.source}: {what}", "serve another model, or a version of it without this")

    def _typed(self, key: str, default: Any, fits: Any, wanted: str) -> Any:
        value = self._values.get(key)
        if value is None:
            if default is _MISSING:
                raise Refusal(f"{self.source}: `{key}` is missing", "fetch the model again, or complete the file")
            return default
        if not fits(value):
            raise Refusal(f"{self.source}: `{key}` is {value!r}, expected {wanted}", "correct the file")
        return value
