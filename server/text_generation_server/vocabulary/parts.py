"""The parts of a `tokenizer.json` that several formats share. Knows the file's schema, and no format that it is made
from.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

# A piece of text, or of its bytes.
T = TypeVar("T", str, bytes)
Part = dict[str, Any]
SPACE = "\u2581"
_WITHIN_BYTES = 256


def merges_in_order(pieces: Sequence[T]) -> list[tuple[T, T]]:
    """Every pair of pieces that makes another one, for pieces in the order in which they are merged."""
    known = set(pieces)
    merges = []
    for piece in pieces:
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in known and right in known:
                merges.append((left, right))
    return merges


def bpe(
    vocabulary: dict[str, int],
    merges: Sequence[Sequence[str]],
    *,
    unknown: str | None = None,
    whole_words: bool = False,
    byte_fallback: bool = False,
    fuse_unknown: bool = False,
) -> Part:
    """A model of merges. `whole_words` takes a word that is in the vocabulary as it is; `byte_fallback` writes what is
    unknown in bytes."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": fuse_unknown,
        "byte_fallback": byte_fallback,
        "ignore_merges": whole_words,
        "vocab": vocabulary,
        "merges": merges,
    }


def replace(pattern: Part, content: str) -> Part:
    """Replaces a pattern (`{"String": ...}` or `{"Regex": ...}`), as a normalizer or a decoder."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def split(regex: str) -> Part:
    """A pre-tokenizer that isolates what matches."""
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def byte_level(use_regex: bool, prefix_space: bool = False) -> Part:
    """Writes each byte as one visible character; a pre-tokenizer or a decoder."""
    return {"type": "ByteLevel", "add_prefix_space": prefix_space, "trim_offsets": True, "use_regex": use_regex}


def sequence(kind: str, steps: list[Part]) -> Part | None:
    """Several steps as one; `kind` is the field that holds them (`normalizers`, `pretokenizers`, `decoders`)."""
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else {"type": "Sequence", kind: steps}


def space_marks_decoder(prefix: bool) -> Part:
    """Turns marks back into spaces, and bytes into text; `prefix`: without the space that was put in front."""
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    steps = [replace({"String": SPACE}, " "), {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]
    return {"type": "Sequence", "decoders": steps}


def added_token(index: int, content: str, special: bool, **flags: bool) -> Part:
    """A token that is found in the text before it is split; special ones are left out of decoded text."""
    whole = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, **flags}
    return {"id": index, "content": content, **whole, "special": special}


def around(before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> Part | None:
    """The post-processor that puts tokens (text and id) around each text."""
    if not before and not after:
        return None

    def one(name: str, segment: int) -> list[Part]:
        specials = [{"SpecialToken": {"id": text, "type_id": segment}} for text, _ in [*before, *after]]
        text = {"Sequence": {"id": name, "type_id": segment}}
        return [*specials[: len(before)], text, *specials[len(before) :]]

    tokens = {text: {"id": text, "ids": [index], "tokens": [text]} for text, index in [*before, *after]}
    return {
        "type": "TemplateProcessing",
        "single": one("A", 0),
        "pair": one("A", 0) + one("B", 1),
        "special_tokens": tokens,
    }


def byte_names() -> list[str]:
    """The visible character that stands for each byte in byte-level vocabularies, by byte."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    names = {byte: chr(byte) for byte in plain}
    hidden = [byte for byte in range(_WITHIN_BYTES) if byte not in names]
    names |= {byte: chr(_WITHIN_BYTES + place) for place, byte in enumerate(hidden)}
    return [names[byte] for byte in range(_WITHIN_BYTES)]
