"""Small vocabularies of each format, made by the libraries that own the formats; and the texts to compare them on."""

# ruff: noqa: RUF001
import base64
import io
import itertools
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import Tokenizer

from text_generation_server.vocabulary.convert import convert

PIECES = [
    "the quick brown fox jumps over the lazy dog",
    "don't stop; won't you? I'LL",
    "naïve Ünïcödé e\u0301 Ångström",
    "日本語の文章です。漢字とかな",
    "한국어 문장입니다",
    "مرحبا بالعالم",
    "हिन्दी में पाठ",
    "Привет, мир!",
    "ελληνικά ΚΕΙΜΕΝΟ",
    "def f(x):\n    return x  # code",
    "12345.67 2026-11-30",
    "1, 22, 333, 4444",
    "🎉 🇫🇷 👩‍👩‍👧‍👦",
    "ﬁ ① Ｗｉｄｅ ﾊﾟ",
    "\t\ttabs\r\nand\n\n\nlines",
    "  two  spaces   three ",
]
TEXTS = [
    *PIECES,
    "",
    " ",
    "   ",
    "\n",
    " leading",
    "trailing ",
    "▁ literal ▁▁ marks",
    "<0x41>",
    "a<0x0A>b",
    "\x00\x01\x07 control \x7f\x85",
    "\u00a0\u3000\u2028wide\u200b\ufeff",
    "𝔘𝔫𝔦 𐍈 \U0010ffff",
    "\U000e0067 lone tag",
    "a" * 300,
    "!?" * 40,
]
SYMBOLS = ("<sep>", "[x*y]", "€€", "<sep>2")


def mixed_texts(count: int, extra: tuple[str, ...] = ()) -> list[str]:
    """Texts of random snippets of the others, always the same ones."""
    chance = random.Random(7)
    words = [*TEXTS, *(word for text in PIECES for word in text.split()), " ", "  ", "\n", *extra]
    made = []
    for _ in range(count):
        text = chance.choice(["", " "]).join(chance.choice(words) for _ in range(chance.randint(1, 6)))
        start = chance.randrange(len(text) + 1)
        made.append(text[start : start + chance.randint(1, 60)])
    return made


@cache
def train(**options: Any) -> bytes:
    """A small SentencePiece model."""
    model = io.BytesIO()
    # The trainer wants lists, the cache tuples.
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    options = {
        "model_type": "bpe",
        "vocab_size": 500,
        "character_coverage": 1.0,
        "hard_vocab_limit": False,
        "minloglevel": 2,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(PIECES * 10), model_writer=model, **options)
    return model.getvalue()


def byte_ranks(count: int = 420) -> dict[bytes, int]:
    """Ranks as tiktoken has them: the bytes, then the pairs that a small corpus has most often."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    words = [word.encode() for text in PIECES * 3 for word in [*text.split(), *(" " + part for part in text.split())]]
    splits = [[bytes([byte]) for byte in word] for word in words]
    while len(ranks) < count:
        counts: dict[tuple[bytes, bytes], int] = {}
        for word in splits:
            for pair in itertools.pairwise(word):
                counts[pair] = counts.get(pair, 0) + 1
        pair = max(counts, key=lambda pair: (counts[pair], pair))
        ranks[pair[0] + pair[1]] = len(ranks)
        for word in splits:
            at = 0
            while at + 1 < len(word):
                if (word[at], word[at + 1]) == pair:
                    word[at : at + 2] = [pair[0] + pair[1]]
                at += 1
    return ranks


def tiktoken_file(ranks: dict[bytes, int]) -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())


def tekken_file(ranks: dict[bytes, int], pattern: str, **changes: Any) -> dict[str, Any]:
    vocabulary = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for token, rank in ranks.items()
    ]
    specials = [
        {"rank": rank, "token_str": name, "is_control": True}
        for rank, name in enumerate(["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<pad>"])
    ]
    config = {
        "pattern": pattern,
        "num_vocab_tokens": len(ranks),
        "default_vocab_size": len(ranks) + 10,
        "default_num_special_tokens": 10,
        "version": "v7",
    }
    return {
        "config": {**config, **changes.pop("config", {})},
        "vocab": vocabulary,
        "special_tokens": specials,
        **changes,
    }


def write(folder: Path, name: str, contents: bytes | dict[str, Any], **files: Any) -> Path:
    """Writes a vocabulary and the files beside it, whose names are given without `.json`."""
    folder.mkdir(exist_ok=True)
    for other, value in files.items():
        (folder / f"{other}.json").write_text(json.dumps(value))
    path = folder / name
    path.write_bytes(contents if isinstance(contents, bytes) else json.dumps(contents).encode())
    return path


def converted(path: Path) -> Tokenizer:
    return Tokenizer.from_str(convert(path)[0])
