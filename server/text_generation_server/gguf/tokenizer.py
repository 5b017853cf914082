"""Builds `tokenizer.json` and `tokenizer_config.json` from the vocabulary in the metadata of a GGUF file.

Two kinds of vocabulary exist: byte-level BPE with merges, and SentencePiece pieces with scores, from which the merges
follow. Knows nothing of weights or of model families.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from text_generation_server.gguf.families.pre_tokenizers import (
    BYTE_LEVEL_MODEL,
    PRE_TOKENIZERS,
    SENTENCE_PIECE_MODEL,
)
from text_generation_server.gguf.metadata import Metadata
from text_generation_server.vocabulary import parts

# Values of `tokenizer.ggml.token_type`.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Vocabulary:
    """The tokens by id and their types; the ids of the special roles, `None` where the file names none."""

    tokens: list[str]
    types: list[int]
    bos: int | None
    eos: int | None
    unknown: int | None
    padding: int | None
    stops: list[int]


def read_vocabulary(metadata: Metadata) -> Vocabulary:
    """The vocabulary of a file.

    Raises:
        Refusal: lists of different lengths, a token twice, or an id outside the vocabulary.
    """
    tokens = metadata.required("tokenizer.ggml.tokens", list)
    types = metadata.optional("tokenizer.ggml.token_type", list, [_NORMAL] * len(tokens))
    if not tokens or not all(isinstance(token, str) for token in tokens) or len(types) != len(tokens):
        raise metadata.refuse(f"the vocabulary is not consistent ({len(tokens)} tokens, {len(types)} types)")
    if len(set(tokens)) != len(tokens):
        twice = next(token for index, token in enumerate(tokens) if tokens.index(token) != index)
        raise metadata.refuse(f"the token {twice!r} is in the vocabulary twice")

    def role(name: str) -> int | None:
        token = metadata.optional(f"tokenizer.ggml.{name}_token_id", int, None)
        if token is not None and not 0 <= token < len(tokens):
            raise metadata.refuse(f"the {name} token {token} is not in the vocabulary of {len(tokens)} tokens")
        return token

    stops = [role(name) for name in ("eos", "eot", "eom")]
    return Vocabulary(
        tokens=tokens,
        types=types,
        bos=role("bos"),
        eos=stops[0],
        unknown=role("unknown"),
        padding=role("padding"),
        stops=sorted({token for token in stops if token is not None}),
    )


def write_tokenizer(metadata: Metadata, vocabulary: Vocabulary, folder: Path) -> None:
    """Write `tokenizer.json`, `tokenizer_config.json` and, when the file has one, the chat template.

    Raises:
        Refusal: an unknown tokenizer or pre-tokenizer (by name), or merges that do not fit the vocabulary.
    """
    kind = metadata.required("tokenizer.ggml.model", str)
    builders = {BYTE_LEVEL_MODEL: _byte_level, SENTENCE_PIECE_MODEL: _sentence_piece}
    if kind not in builders:
        raise metadata.refuse(f"the tokenizer {kind!r} is not supported (only {', '.join(builders)})")
    made, adds_bos = builders[kind](metadata, vocabulary)
    adds_bos = metadata.optional("tokenizer.ggml.add_bos_token", bool, adds_bos)
    adds_eos = metadata.optional("tokenizer.ggml.add_eos_token", bool, False)
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        "post_processor": _post_processor(metadata, vocabulary, adds_bos, adds_eos),
        **made,
    }
    text = json.dumps(tokenizer, ensure_ascii=False)
    _check(metadata, vocabulary, text)
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    _write_config(metadata, vocabulary, folder)


# === impl parts of tokenizer.json ===


def _byte_level(metadata: Metadata, vocabulary: Vocabulary) -> tuple[dict[str, Any], bool]:
    name = metadata.required("tokenizer.ggml.pre", str)
    pre = PRE_TOKENIZERS.get(name)
    if pre is None:
        known = ", ".join(PRE_TOKENIZERS)
        raise metadata.refuse(f"the pre-tokenizer {name!r} is not supported (known: {known})")
    merges = [merge.split(" ", 1) for merge in metadata.required("tokenizer.ggml.merges", list)]
    made = {
        "normalizer": pre.normalizer,
        "pre_tokenizer": parts.sequence("pretokenizers", pre.steps),
        "decoder": parts.byte_level(use_regex=True, prefix_space=True),
        "model": parts.bpe(_ids(vocabulary), merges, whole_words=pre.whole_words),
    }
    return made, pre.adds_bos


def _sentence_piece(metadata: Metadata, vocabulary: Vocabulary) -> tuple[dict[str, Any], bool]:
    scores = metadata.required("tokenizer.ggml.scores", list)
    if len(scores) != len(vocabulary.tokens):
        raise metadata.refuse(f"{len(scores)} scores do not fit {len(vocabulary.tokens)} tokens")
    adds_prefix = metadata.optional("tokenizer.ggml.add_space_prefix", bool, True)
    prefix = [{"type": "Prepend", "prepend": parts.SPACE}] if adds_prefix else []
    made = {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [*prefix, parts.replace({"String": " "}, parts.SPACE)],
        },
        "pre_tokenizer": None,
        "decoder": parts.space_marks_decoder(bool(adds_prefix)),
        "model": parts.bpe(
            _ids(vocabulary),
            _merges_of_scores(vocabulary, scores),
            unknown=None if vocabulary.unknown is None else vocabulary.tokens[vocabulary.unknown],
            byte_fallback=True,
            fuse_unknown=True,
        ),
    }
    return made, True


def _merges_of_scores(vocabulary: Vocabulary, scores: list[float]) -> list[tuple[str, str]]:
    """SentencePiece merges the pair whose result scores best."""
    mergeable = (_NORMAL, _USER_DEFINED, _UNUSED)
    indices = [index for index, kind in enumerate(vocabulary.types) if kind in mergeable]
    best_first = sorted(indices, key=lambda index: -scores[index])
    return parts.merges_in_order([vocabulary.tokens[index] for index in best_first])


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    return {token: index for index, token in enumerate(vocabulary.tokens)}


def _added_tokens(vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Tokens that are found in the text before it is split: control tokens, and words that the authors added."""
    kinds = (_UNKNOWN, _CONTROL, _USER_DEFINED)
    return [
        parts.added_token(index, vocabulary.tokens[index], special=kind != _USER_DEFINED)
        for index, kind in enumerate(vocabulary.types)
        if kind in kinds
    ]


def _post_processor(
    metadata: Metadata, vocabulary: Vocabulary, adds_bos: bool, adds_eos: bool
) -> dict[str, Any] | None:
    before = [vocabulary.bos] if adds_bos else []
    after = [vocabulary.eos] if adds_eos else []
    if None in before + after:
        raise metadata.refuse("prompts must begin or end with a special token that the file does not name")

    def named(tokens: list[int | None]) -> list[tuple[str, int]]:
        return [(vocabulary.tokens[token], token) for token in tokens if token is not None]

    return parts.around(named(before), named(after))


def _check(metadata: Metadata, vocabulary: Vocabulary, text: str) -> None:
    from tokenizers import Tokenizer

    try:
        size = Tokenizer.from_str(text).get_vocab_size()
    except Exception as error:  # the library raises bare exceptions
        raise metadata.refuse(f"the tokenizer cannot be built: {error}") from None
    if size != len(vocabulary.tokens):
        raise metadata.refuse(f"the tokenizer has {size} tokens instead of {len(vocabulary.tokens)}")


def _write_config(metadata: Metadata, vocabulary: Vocabulary, folder: Path) -> None:
    roles = {
        "bos_token": vocabulary.bos,
        "eos_token": vocabulary.eos,
        "unk_token": vocabulary.unknown,
        "pad_token": vocabulary.padding,
    }
    fields: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": metadata.required(".context_length", int),
        **{role: vocabulary.tokens[token] for role, token in roles.items() if token is not None},
    }
    template = metadata.optional("tokenizer.chat_template", str, None)
    if template is not None:
        fields["chat_template"] = template
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(fields, ensure_ascii=False, indent=2), encoding="utf-8")
