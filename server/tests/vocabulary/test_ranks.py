"""Converted tekken and tiktoken files give the ids that the `tiktoken` library gives."""

import base64
import unicodedata
from pathlib import Path

import pytest
import tiktoken

from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary.convert import convert
from text_generation_server.vocabulary.families.published import BY_FILE, BY_MODEL_TYPE, DEFAULT_TEKKEN_SPECIALS

from .conftest import TEXTS, byte_ranks, converted, mixed_texts, tekken_file, tiktoken_file, write

RANKS = byte_ranks()
PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
COUNT = 10


def same_ids(ours, pattern: str, ranks: dict[bytes, int], specials: dict[str, int], compose: bool = False) -> None:
    theirs = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    for text in [*TEXTS, *mixed_texts(2000, tuple(list(specials)[:20]))]:
        given = unicodedata.normalize("NFC", text) if compose else text
        ids = ours.encode(text, add_special_tokens=False).ids
        assert ids == theirs.encode(given, allowed_special="all"), text
        assert ours.decode(ids, skip_special_tokens=False) == given


def test_tekken(tmp_path: Path) -> None:
    ours = converted(write(tmp_path, "tekken.json", tekken_file(RANKS, PATTERN)))
    specials = {name: rank for rank, name in enumerate(["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<pad>"])}
    specials |= {f"<SPECIAL_{rank}>": rank for rank in range(6, COUNT)}
    same_ids(ours, PATTERN, {token: COUNT + rank for token, rank in RANKS.items()}, specials)
    assert ours.encode("[INST]fox").ids[:2] == [1, 3]
    assert ours.get_vocab_size() == len(RANKS) + COUNT


def test_tekken_without_a_list_of_special_tokens_and_with_words_to_spare(tmp_path: Path) -> None:
    config = {"default_num_special_tokens": 100, "default_vocab_size": 500}
    contents = tekken_file(RANKS, PATTERN, config=config)
    del contents["special_tokens"]
    ours = converted(write(tmp_path, "tekken.json", contents))
    specials = {name: rank for rank, name in enumerate(DEFAULT_TEKKEN_SPECIALS)}
    same_ids(ours, PATTERN, {token: 100 + rank for token, rank in RANKS.items() if rank < 400}, specials)
    assert ours.get_vocab_size() == 500


def test_tiktoken_files_by_model_type(tmp_path: Path) -> None:
    published = BY_MODEL_TYPE["llama"]
    path = write(tmp_path, "tokenizer.model", tiktoken_file(RANKS), config={"model_type": "llama"})
    specials = {name: len(RANKS) + place for place, name in enumerate(published.specials)}
    assert len(specials) == 256 and specials["<|eot_id|>"] == len(RANKS) + 9
    ours = converted(path)
    same_ids(ours, published.pattern, RANKS, specials)
    assert ours.encode("fox").ids[0] == len(RANKS)
    assert convert(path)[1] == {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}


def test_names_of_special_tokens_in_the_settings_win(tmp_path: Path) -> None:
    first = len(RANKS)
    described = {str(first + 3): {"content": "<|mine|>", "special": True}}
    files = {"config": {"model_type": "llama"}, "tokenizer_config": {"added_tokens_decoder": described}}
    ours = converted(write(tmp_path, "tokenizer.model", tiktoken_file(RANKS), **files))
    assert ours.token_to_id("<|mine|>") == first + 3
    assert ours.token_to_id("<|reserved_special_token_1|>") is None


def test_tiktoken_files_by_name(tmp_path: Path) -> None:
    published = BY_FILE["qwen.tiktoken"]
    ours = converted(write(tmp_path, "qwen.tiktoken", tiktoken_file(RANKS)))
    specials = {name: len(RANKS) + place for place, name in enumerate(published.specials)}
    same_ids(ours, published.pattern, RANKS, specials, compose=True)
    assert ours.encode("fox").ids == ours.encode("fox", add_special_tokens=False).ids


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"config": {"pattern": r"\p{N}{1,3}+"}}, "counts in a way"),
        ({"config": {"pattern": "("}}, "cannot be converted"),
        ({"config": {"default_num_special_tokens": 3}}, "6 special tokens and room for 3"),
        ({"vocab": []}, "the byte 0 is not in its vocabulary"),
        ({"vocab": [{"rank": 0}]}, "is not a tekken vocabulary: KeyError('token_bytes')"),
        ({"vocab": [{"token_bytes": "YQ=="}] * 2}, "twice"),
        ({"special_tokens": [{"rank": 1, "token_str": "a"}]}, "leave a gap"),
    ],
)
def test_tekken_files_that_are_refused(tmp_path: Path, change: dict, reason: str) -> None:
    path = write(tmp_path, "tekken.json", tekken_file(RANKS, PATTERN, **change))
    with pytest.raises(Refusal) as caught:
        convert(path)
    assert reason in caught.value.cause and caught.value.way_out


@pytest.mark.parametrize(
    ("contents", "model_type", "reason"),
    [
        (
            tiktoken_file(RANKS),
            "odd",
            "how the model type odd splits text is not known (known:",
        ),
        (tiktoken_file(RANKS)[:-5] + b"\n", "llama", "is damaged at line 420"),
        (tiktoken_file(RANKS) + b"?? 9999\n", "llama", "is damaged at line 421"),
        (base64.b64encode(b"a") + b" 0\n", "llama", "the byte 0 is not"),
        (tiktoken_file(RANKS | {b"zzz": 5}), "llama", "a rank is given to two words"),
    ],
)
def test_tiktoken_files_that_are_refused(tmp_path: Path, contents: bytes, model_type: str, reason: str) -> None:
    path = write(tmp_path, "tokenizer.model", contents, config={"model_type": model_type})
    with pytest.raises(Refusal) as caught:
        convert(path)
    assert reason in caught.value.cause and caught.value.way_out
