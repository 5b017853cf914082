"""Byte-level vocabularies that are lists of ranks: `tekken.json` and tiktoken files, said in the terms of
`tokenizer.json`, so that both give the same ids.

A rank is the order in which byte strings are merged. How text is cut into words before that is a regular expression.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from text_generation_server.json_file import FETCH_AGAIN, read_json
from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary import parts
from text_generation_server.vocabulary.families.published import DEFAULT_TEKKEN_SPECIALS, Published
from text_generation_server.vocabulary.parts import Part
from text_generation_server.vocabulary.settings import Settings
from text_generation_server.vocabulary.tokenizer_json import OWN_TOKENIZER, Vocabulary

_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\s*\Z")
# Possessive counts mean another thing in one of the two engines that read the pattern.
_POSSESSIVE_COUNT = re.compile(r"\{\d+(,\d*)?\}\+")
_BYTES = 256


def is_list_of_ranks(data: bytes) -> bool:
    """Whether the contents of a file are those of a tiktoken file."""
    return _LINE.match(data.lstrip().partition(b"\n")[0]) is not None


def tiktoken_vocabulary(path: Path, data: bytes, published: Published, settings: Settings) -> Vocabulary:
    """The vocabulary of a tiktoken file; `published` says what the file does not.

    Raises:
        Refusal: the file is damaged, or its ranks are not those of a byte-level vocabulary.
    """
    ranks = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise Refusal(
                f"{path} is damaged at line {number}: a token and its rank are expected", FETCH_AGAIN
            ) from None
    first = max(ranks.values(), default=-1) + 1
    specials = {first + place: content for place, content in enumerate(published.specials)}
    # The model's own names win, and leave no other name for their ids.
    specials |= {index: token.content for index, token in settings.added.items() if index >= first}
    vocabulary = _vocabulary(path, ranks, published.pattern, specials)
    if published.composes:
        vocabulary.normalizer = {"type": "NFC"}
    vocabulary.roles = dict(published.roles)
    return vocabulary


def tekken_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary of a `tekken.json`.

    Raises:
        Refusal: the file is damaged or says something that cannot be converted.
    """
    contents = read_json(path)
    try:
        config = contents["config"]
        listed = contents.get("special_tokens")
        names = list(DEFAULT_TEKKEN_SPECIALS) if listed is None else _tekken_specials(listed)
        count = int(config.get("default_num_special_tokens") or len(names))
        words = contents["vocab"]
        if config.get("default_vocab_size") is not None:
            # Words beyond that are there, but not in the model.
            words = words[: int(config["default_vocab_size"]) - count]
        tokens = [base64.b64decode(word["token_bytes"], validate=True) for word in words]
        pattern = str(config["pattern"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Refusal(f"{path} is not a tekken vocabulary: {error!r}", FETCH_AGAIN) from None
    if len(names) > count:
        raise _refuse(path, f"it has {len(names)} special tokens and room for {count}")
    names += [f"<SPECIAL_{index}>" for index in range(len(names), count)]
    ranks = {token: count + rank for rank, token in enumerate(tokens)}
    if len(ranks) != len(tokens):
        raise _refuse(path, "a word is in its vocabulary twice")
    vocabulary = _vocabulary(path, ranks, pattern, dict(enumerate(names)))
    wanted = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    vocabulary.roles = {role: name for role, name in wanted.items() if name in names}
    return vocabulary


# === impl details ===


def _tekken_specials(listed: list[dict[str, Any]]) -> list[str]:
    by_rank = sorted((int(token["rank"]), str(token["token_str"])) for token in listed)
    if [rank for rank, _ in by_rank] != list(range(len(by_rank))):
        raise ValueError("the ranks of its special tokens leave a gap")
    return [name for _, name in by_rank]


def _vocabulary(path: Path, ranks: Mapping[bytes, int], pattern: str, specials: dict[int, str]) -> Vocabulary:
    """A vocabulary of words by rank, which are their ids, and special tokens by id."""
    if len(set(ranks.values())) != len(ranks):
        raise _refuse(path, "a rank is given to two words")
    missing = [byte for byte in range(_BYTES) if bytes([byte]) not in ranks]
    if missing:
        raise _refuse(path, f"the byte {missing[0]} is not in its vocabulary")
    if _POSSESSIVE_COUNT.search(pattern):
        raise _refuse(path, f"the pattern `{pattern}` counts in a way that cannot be said")
    names = parts.byte_names()
    texts = {token: "".join(names[byte] for byte in token) for token in ranks}
    ids = {texts[token]: rank for token, rank in ranks.items()}
    twice = next((content for content in specials.values() if content in ids), None)
    if twice is not None:
        raise _refuse(path, f"the special token {twice!r} is an ordinary word too")
    ids |= {content: index for index, content in specials.items()}
    in_order = sorted(ranks, key=ranks.__getitem__)
    merges = [(texts[left], texts[right]) for left, right in parts.merges_in_order(in_order)]
    steps: list[Part] = [parts.split(pattern), parts.byte_level(use_regex=False)]
    return Vocabulary(
        source=path,
        model=parts.bpe(ids, merges, whole_words=True),
        ids=ids,
        pre_tokenizer=parts.sequence("pretokenizers", steps),
        decoder=parts.byte_level(use_regex=True, prefix_space=True),
        specials=set(specials.values()),
    )


def _refuse(path: Path, reason: str) -> Refusal:
    return Refusal(f"{path} cannot be converted: {reason}", OWN_TOKENIZER)
