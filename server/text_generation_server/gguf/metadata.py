"""Typed access to the metadata of a GGUF file, with refusals that name the key. Knows no particular key."""

from dataclasses import dataclass
from typing import TypeVar

from text_generation_server.gguf.reader import GgufFile
from text_generation_server.refusal import Refusal

T = TypeVar("T")
ANOTHER_FILE = "Use another GGUF file of the model, or its Hugging Face folder or Hub id."


@dataclass(frozen=True)
class Metadata:
    """The metadata of `file`; keys that start with `.` belong to its architecture (`.block_count`)."""

    file: GgufFile

    @property
    def architecture(self) -> str:
        """The value of `general.architecture`."""
        return self.required("general.architecture", str)

    def required(self, key: str, kind: type[T]) -> T:
        """A value that must be there.

        Raises:
            Refusal: the key is missing, or its value is not a `kind`.
        """
        value = self.optional(key, kind, None)
        if value is None:
            raise self.refuse(f"the metadata {self.full(key)!r} is missing")
        return value

    def optional(self, key: str, kind: type[T], default: T | None) -> T | None:
        """A value that may be missing; raises like `required` if it is of another type."""
        value = self.file.metadata.get(self.full(key))
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.refuse(f"the metadata {self.full(key)!r} is a {type(value).__name__}, not a {kind.__name__}")
        return value

    def full(self, key: str) -> str:
        """The key as it is written in the file."""
        return self.architecture + key if key.startswith(".") else key

    def refuse(self, reason: str, way_out: str = ANOTHER_FILE) -> Refusal:
        """An error about this file."""
        return Refusal(f"{self.file.path}: {reason}", way_out)
