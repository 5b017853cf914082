"""How each pre-tokenizer that GGUF names splits text before merging, in the terms of `tokenizer.json`.

Data only. A name that is missing here is refused: another split gives other token ids, silently.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PreTokenizer:
    """`steps` run in order; `normalizer` runs before; `whole_words` keeps words that are tokens already unmerged;
    `adds_bos` is the default when the file does not say."""

    steps: list[dict[str, Any]]
    normalizer: dict[str, Any] | None = None
    whole_words: bool = False
    adds_bos: bool = False


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _pattern(regex: str) -> list[dict[str, Any]]:
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return [split, _byte_level(use_regex=False)]


_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"

_CLASSIC = PreTokenizer([_byte_level(use_regex=True)])
_SINGLE_DIGITS = PreTokenizer([{"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)])
_LLAMA3 = PreTokenizer(
    _pattern(rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}"), whole_words=True, adds_bos=True
)
_QWEN2 = PreTokenizer(_pattern(rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}|{_SYMBOLS}|{_SPACES}"), normalizer={"type": "NFC"})
_TEKKEN = PreTokenizer(
    _pattern(
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
        rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    ),
    whole_words=True,
    adds_bos=True,
)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "gpt-2": _CLASSIC,
    "smollm": _SINGLE_DIGITS,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama-bpe": _LLAMA3,
    "qwen2": _QWEN2,
    "tekken": _TEKKEN,
}

# Values of `tokenizer.ggml.model`.
BYTE_LEVEL_MODEL = "gpt2"
SENTENCE_PIECE_MODEL = "llama"
