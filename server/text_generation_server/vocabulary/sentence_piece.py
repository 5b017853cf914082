"""Says a SentencePiece model in the terms of `tokenizer.json`, so that both give the same ids.

SentencePiece keeps user-defined symbols whole in the prepared text. Here a pre-tokenizer isolates them; as added tokens
they would be cut out before the text is prepared, and spaces beside them would be lost or added.
"""

import base64
from dataclasses import replace
from pathlib import Path

from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary import parts
from text_generation_server.vocabulary.parts import SPACE, Part
from text_generation_server.vocabulary.sentence_piece_file import Algorithm, Kind, Piece, SentencePieceModel
from text_generation_server.vocabulary.settings import Settings
from text_generation_server.vocabulary.tokenizer_json import OWN_TOKENIZER, Vocabulary

# Characters with a meaning in regular expressions, of which only some may be escaped in every dialect.
_ESCAPED = frozenset("\\.+*?()|[]{}^$")
_ALGORITHMS = (Algorithm.BPE, Algorithm.UNIGRAM)
_ASCII = 128
# How much worse than the worst piece it is to take the name of a byte or control token for text.
_NEVER = 10.0
# The name of a byte in a text: a cut behind its first character keeps it from being taken for the byte.
_BYTE_NAME = r"<(?=0x[0-9A-F]{2}>)"
# With merges that can only happen to a whole text.
_WHOLE_BYTE_NAME = r"\A<(?=0x[0-9A-F]{2}>\z)"


def vocabulary_of(path: Path, model: SentencePieceModel, settings: Settings) -> Vocabulary:
    """The vocabulary of the model in `path`.

    Raises:
        Refusal: the model uses something that `tokenizer.json` cannot say.
    """
    _check(path, model)
    pieces = _renamed(path, model, settings)
    adds_prefix = model.dummy_prefix and settings.flag("add_prefix_space") is not False
    # Since `legacy` is there, models were trained with a space in front of the whole text only, not of each part
    # between special tokens.
    only_first = adds_prefix and settings.flag("legacy") is False
    symbols = [piece.text for piece in pieces if piece.kind == Kind.USER_DEFINED]
    bpe = model.algorithm == Algorithm.BPE
    if bpe:
        pieces = _with_plain_bytes(path, pieces)
    ids = {piece.text: index for index, piece in enumerate(pieces)}
    roles = {"bos_token": model.begin, "eos_token": model.end, "unk_token": model.unknown, "pad_token": model.padding}
    return Vocabulary(
        source=path,
        model=_bpe(model, pieces, ids, bool(symbols)) if bpe else _unigram(model, pieces),
        ids=ids,
        normalizer=_normalizer(model, adds_prefix and not only_first),
        pre_tokenizer=_pre_tokenizer(symbols, bpe, only_first),
        decoder=parts.space_marks_decoder(adds_prefix),
        specials={piece.text for piece in pieces if piece.kind in (Kind.CONTROL, Kind.UNKNOWN)},
        roles={role: pieces[index].text for role, index in roles.items() if index is not None},
    )


# === impl checks ===


def _check(path: Path, model: SentencePieceModel) -> None:
    texts = [piece.text for piece in model.pieces]
    problem = None
    if model.algorithm not in _ALGORITHMS:
        problem = f"it cuts text into {model.algorithm.name.lower()}s"
    elif model.space_as_suffix or not model.escape_spaces:
        problem = "it marks spaces in another way than in front of words"
    elif len(set(texts)) != len(texts):
        twice = next(text for index, text in enumerate(texts) if texts.index(text) != index)
        problem = f"the piece {twice!r} is there twice"
    elif any(piece.kind == Kind.UNUSED for piece in model.pieces):
        unused = next(piece.text for piece in model.pieces if piece.kind == Kind.UNUSED)
        problem = f"it has pieces that must not be used ({unused!r})"
    if problem is not None:
        raise Refusal(f"{path} cannot be converted: {problem}", OWN_TOKENIZER)


def _renamed(path: Path, model: SentencePieceModel, settings: Settings) -> list[Piece]:
    """The pieces, with the names that the settings give to reserved ones."""
    pieces = list(model.pieces)
    for index, token in settings.added.items():
        if index >= len(pieces) or pieces[index].text == token.content:
            continue
        if any(piece.text == token.content for piece in pieces):
            raise Refusal(f"{path} has the piece {token.content!r} under another id than {index}", OWN_TOKENIZER)
        pieces[index] = replace(pieces[index], text=token.content, kind=Kind.CONTROL)
    return pieces


def _with_plain_bytes(path: Path, pieces: list[Piece]) -> list[Piece]:
    """Pieces whose characters are all pieces themselves, as merging needs it. A character that is only there as a byte
    takes the byte's place."""
    known = {piece.text for piece in pieces if piece.kind in (Kind.NORMAL, Kind.USER_DEFINED)}
    bytes_at = {piece.text: index for index, piece in enumerate(pieces) if piece.kind == Kind.BYTE}
    pieces = list(pieces)
    missing = {c: piece.text for piece in pieces if piece.kind == Kind.NORMAL for c in piece.text if c not in known}
    for character, text in sorted(missing.items()):
        index = bytes_at.get(f"<0x{ord(character):02X}>") if ord(character) < _ASCII else None
        if index is None:
            reason = f"the piece {text!r} holds {character!r}, which is no piece"
            raise Refusal(f"{path} cannot be converted: {reason}", OWN_TOKENIZER)
        pieces[index] = Piece(character, 0.0, Kind.NORMAL)
    return pieces


# === impl parts ===


def _normalizer(model: SentencePieceModel, adds_prefix: bool) -> Part | None:
    steps: list[Part] = []
    if model.character_map:
        table = base64.b64encode(model.character_map).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": table})
    if model.remove_extra_spaces:
        steps += [parts.replace({"Regex": r"\A +| +\z"}, ""), parts.replace({"Regex": " {2,}"}, " ")]
    if adds_prefix:
        steps.append({"type": "Prepend", "prepend": SPACE})
    steps.append(parts.replace({"String": " "}, SPACE))
    return parts.sequence("normalizers", steps)


def _pre_tokenizer(symbols: list[str], bpe: bool, only_first: bool) -> Part | None:
    steps: list[Part] = []
    if only_first:
        steps.append({"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False})
    if symbols:
        longest_first = sorted(symbols, key=len, reverse=True)
        steps.append(parts.split("|".join(_escaped(symbol) for symbol in longest_first)))
    if not bpe:
        steps.append(parts.split(_BYTE_NAME))
    elif symbols:
        steps.append(parts.split(_WHOLE_BYTE_NAME))
    return parts.sequence("pretokenizers", steps)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in _ESCAPED else c for c in text)


def _bpe(model: SentencePieceModel, pieces: list[Piece], ids: dict[str, int], has_symbols: bool) -> Part:
    normal = [piece for piece in pieces if piece.kind == Kind.NORMAL]
    best_first = [piece.text for piece in sorted(normal, key=lambda piece: -piece.score)]
    unknown = None if model.unknown is None else pieces[model.unknown].text
    return parts.bpe(
        ids,
        parts.merges_in_order(best_first),
        unknown=unknown,
        # A symbol that was isolated is a piece as it is.
        whole_words=has_symbols,
        byte_fallback=model.byte_fallback,
        fuse_unknown=True,
    )


def _unigram(model: SentencePieceModel, pieces: list[Piece]) -> Part:
    """The library takes every piece for text, also the names of bytes and control tokens: their scores forbid it."""
    worst = min((piece.score for piece in pieces if piece.kind == Kind.NORMAL), default=0.0)
    never = _NEVER * min(worst, -1.0)
    text_kinds = (Kind.NORMAL, Kind.USER_DEFINED)
    return {
        "type": "Unigram",
        "unk_id": model.unknown,
        "vocab": [[piece.text, piece.score if piece.kind in text_kinds else never] for piece in pieces],
        "byte_fallback": model.byte_fallback,
    }
