"""Reads a SentencePiece model (`tokenizer.model`): its pieces and the settings that encoding depends on.

The file is one Protocol Buffers message; the few fields that matter are read here, so that no package is needed. Knows
nothing of `tokenizer.json`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TypeAlias

from text_generation_server.refusal import Refusal

_Value: TypeAlias = "int | bytes"
_Fields: TypeAlias = "dict[int, list[_Value]]"

# Field numbers of the messages.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE, _PIECE_KIND = 1, 2, 3
_ALGORITHM, _SUFFIX, _BYTE_FALLBACK = 3, 24, 35
_UNKNOWN_ID, _BEGIN_ID, _END_ID, _PADDING_ID = 40, 41, 42, 43
_CHARACTER_MAP, _DUMMY_PREFIX, _REMOVE_SPACES, _ESCAPE_SPACES = 2, 3, 4, 5


class Kind(IntEnum):
    """What a piece is for."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Algorithm(IntEnum):
    """How text is cut into pieces."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


@dataclass(frozen=True)
class Piece:
    """One token; of two candidates, the one with the higher score is taken."""

    text: str
    score: float
    kind: Kind


@dataclass(frozen=True)
class SentencePieceModel:
    """A model: pieces by id, ids of the special roles (`None` = it has none), and how text is prepared.

    `character_map` is the compiled table of the normalizer, empty if characters stay as they are.
    """

    pieces: list[Piece]
    algorithm: Algorithm
    unknown: int | None
    begin: int | None
    end: int | None
    padding: int | None
    byte_fallback: bool
    character_map: bytes
    dummy_prefix: bool
    remove_extra_spaces: bool
    escape_spaces: bool
    space_as_suffix: bool


def read_model(path: Path, data: bytes) -> SentencePieceModel:
    """The model in `data`, the contents of `path`.

    Raises:
        Refusal: it is something else, or damaged.
    """
    try:
        fields = _fields(data)
        pieces = [_piece(_fields(_bytes(value))) for value in fields.get(_PIECES, [])]
        if not pieces:
            raise ValueError("no pieces")
        trainer, normalizer = (_fields(_last(fields, number, b"")) for number in (_TRAINER, _NORMALIZER))

        def role(number: int, default: int) -> int | None:
            index = _signed(_last(trainer, number, default))
            if index >= len(pieces):
                raise ValueError(f"the id {index} is beyond {len(pieces)} pieces")
            return index if index >= 0 else None

        return SentencePieceModel(
            pieces=pieces,
            algorithm=Algorithm(_last(trainer, _ALGORITHM, Algorithm.UNIGRAM)),
            unknown=role(_UNKNOWN_ID, 0),
            begin=role(_BEGIN_ID, 1),
            end=role(_END_ID, 2),
            padding=role(_PADDING_ID, -1),
            byte_fallback=bool(_last(trainer, _BYTE_FALLBACK, 0)),
            character_map=_bytes(_last(normalizer, _CHARACTER_MAP, b"")),
            dummy_prefix=bool(_last(normalizer, _DUMMY_PREFIX, 1)),
            remove_extra_spaces=bool(_last(normalizer, _REMOVE_SPACES, 1)),
            escape_spaces=bool(_last(normalizer, _ESCAPE_SPACES, 1)),
            space_as_suffix=bool(_last(trainer, _SUFFIX, 0)),
        )
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise Refusal(
            f"{path} is neither a SentencePiece model nor a list of ranks: {error}",
            "Fetch the file again; if it is whole, put the tokenizer.json that belongs to the model beside it.",
        ) from None


# === impl the wire format ===


def _fields(data: _Value) -> _Fields:
    found: _Fields = {}
    for number, value in _read(_bytes(data)):
        found.setdefault(number, []).append(value)
    return found


def _read(data: bytes) -> Iterator[tuple[int, _Value]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            length, at = _varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown wire type {wire} at byte {at}")
        if at + length > len(data):
            raise ValueError(f"cut off at byte {at}")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError(f"a number without end at byte {at}")


def _piece(fields: _Fields) -> Piece:
    (score,) = struct.unpack("<f", _bytes(_last(fields, _PIECE_SCORE, bytes(4))))
    text = _bytes(_last(fields, _PIECE_TEXT, b"")).decode()
    return Piece(text, score, Kind(_last(fields, _PIECE_KIND, Kind.NORMAL)))


def _last(fields: _Fields, number: int, default: _Value) -> _Value:
    return fields.get(number, [default])[-1]


def _bytes(value: _Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number in place of a text")
    return value


def _signed(value: _Value) -> int:
    if isinstance(value, bytes):
        raise ValueError("a text in place of a number")
    return value - (1 << 64) if value >= 1 << 63 else value
