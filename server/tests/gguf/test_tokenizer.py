import io
import json
from pathlib import Path

import gguf
import pytest
from tokenizers import Tokenizer

from text_generation_server.gguf.convert import convert
from text_generation_server.refusal import Refusal

from .conftest import HIDDEN, write_gguf

TEXTS = [
    "Hello world, this is plain text.",
    "  leading spaces \n\n and\ttabs\r\n",
    "naïve 日本語 🎉 emoji, Ünïcödé",
    "don't stop; won't you? I'LL",
    "def f(x):\n    return x  # code",
]
DIGITS = ["a  1", "\n\n1. foo", "12345.67", "2026-11-30"]
SPECIAL = "<|im_start|>user\nHi<|im_end|>\n"


def tokenizer_of(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def convert_tiny(tmp_path: Path, change) -> Path:
    write_gguf(tmp_path / "m.gguf", change)
    return convert(tmp_path / "m.gguf", tmp_path / "cache")


@pytest.mark.slow
def test_demo_tokenizer_equals_transformers_on_the_folder(demo_folder: Path) -> None:
    from transformers import AutoTokenizer

    ours, theirs = tokenizer_of(demo_folder), AutoTokenizer.from_pretrained(demo_folder)
    for text in [*TEXTS, *DIGITS, SPECIAL]:
        ids = ours.encode(text).ids
        assert ids == theirs(text).input_ids
        assert ours.decode(ids, skip_special_tokens=False) == text
    assert theirs.eos_token == "<|im_end|>"
    chat = theirs.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True)
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.slow
def test_demo_tokenizer_equals_the_gguf_path_of_transformers_but_for_digits(demo_folder: Path, demo_file: Path) -> None:
    from transformers import AutoTokenizer

    ours = tokenizer_of(demo_folder)
    theirs = AutoTokenizer.from_pretrained(demo_file.parent, gguf_file=demo_file.name)
    for text in [*TEXTS, SPECIAL]:
        assert ours.encode(text).ids == theirs(text).input_ids
    # There the pre-tokenizer's name is ignored: digits stick to the spaces before them.
    assert [ours.encode(text).ids for text in DIGITS[:2]] != [theirs(text).input_ids for text in DIGITS[:2]]


def test_digits_are_split_one_by_one(demo_folder: Path) -> None:
    tokenizer = tokenizer_of(demo_folder)
    assert tokenizer.encode("a  1").tokens == ["a", "ĠĠ", "1"]
    assert tokenizer.encode("\n\n1. foo").tokens == ["ĊĊ", "1", ".", "Ġfoo"]
    assert tokenizer.encode("123").tokens == ["1", "2", "3"]


def test_groups_of_digits_where_the_pre_tokenizer_says_so(tmp_path: Path) -> None:
    folder = convert_tiny(tmp_path, lambda writer, _: writer.add_tokenizer_pre("llama-bpe"))
    encoding = tokenizer_of(folder).encode("hello 1234<|eos|>")
    # Three digits at most, and a beginning-of-text token unless the file denies it.
    assert encoding.tokens == ["<|bos|>", "hello", "Ġ", "123", "4", "<|eos|>"]


def test_beginning_and_end_follow_the_file(tmp_path: Path) -> None:
    def both(writer: gguf.GGUFWriter, _: dict) -> None:
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(True)

    tokenizer = tokenizer_of(convert_tiny(tmp_path, both))
    assert tokenizer.encode("hello").tokens == ["<|bos|>", "hello", "<|eos|>"]
    assert tokenizer.encode("hello", add_special_tokens=False).tokens == ["hello"]
    assert tokenizer.decode(tokenizer.encode("hello w12").ids) == "hello w12"


def test_end_of_turn_tokens_end_a_generation(tmp_path: Path) -> None:
    folder = convert_tiny(tmp_path, lambda writer, _: writer.add_eot_token_id(2))
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [1, 2]
    assert json.loads((folder / "tokenizer_config.json").read_text())["eos_token"] == "<|eos|>"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w, _: w.add_tokenizer_pre("smollm9"), "pre-tokenizer 'smollm9' is not supported"),
        (lambda w, _: w.kv_data[0].pop("tokenizer.ggml.pre"), "'tokenizer.ggml.pre' is missing"),
        (lambda w, _: w.add_tokenizer_model("rwkv"), "tokenizer 'rwkv' is not supported"),
        (lambda w, _: w.add_token_merges(["q zz"]), "tokenizer cannot be built"),
        (lambda w, _: w.add_token_list(["a", "a"]), "2 tokens, 266 types"),
        (lambda w, _: w.add_bos_token_id(99999), "the bos token 99999 is not in the vocabulary"),
    ],
)
def test_refused_by_name(tmp_path: Path, change, words: str) -> None:
    def quietly(writer: gguf.GGUFWriter, tensors: dict) -> None:
        writer.add_key_value = lambda key, val, vtype, sub_type=None: writer.kv_data[0].__setitem__(
            key, gguf.GGUFValue(value=val, type=vtype, sub_type=sub_type)
        )
        change(writer, tensors)

    with pytest.raises(Refusal, match=words):
        convert_tiny(tmp_path, quietly)


def test_sentence_piece_vocabularies_encode_as_sentence_piece_does(tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 20 + ["the quick brown fox jumps over the lazy dog"] * 5),
        model_writer=model,
        model_type="bpe",
        vocab_size=420,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        minloglevel=2,
    )
    reference = spm.SentencePieceProcessor(model_proto=model.getvalue())
    size = reference.get_piece_size()

    def kind(token: int) -> int:
        if reference.is_unknown(token):
            return 2
        return 3 if reference.is_control(token) else 6 if reference.is_byte(token) else 1

    def change(writer: gguf.GGUFWriter, tensors: dict) -> None:
        writer.kv_data[0].pop("tokenizer.ggml.pre")
        writer.kv_data[0].pop("tokenizer.ggml.merges")
        values = {
            "model": ("llama", gguf.GGUFValueType.STRING, None),
            "tokens": ([reference.id_to_piece(i) for i in range(size)], gguf.GGUFValueType.ARRAY, None),
            "token_type": ([kind(i) for i in range(size)], gguf.GGUFValueType.ARRAY, None),
            "scores": ([reference.get_score(i) for i in range(size)], gguf.GGUFValueType.ARRAY, None),
            "bos_token_id": (1, gguf.GGUFValueType.UINT32, None),
            "eos_token_id": (2, gguf.GGUFValueType.UINT32, None),
            "unknown_token_id": (0, gguf.GGUFValueType.UINT32, None),
        }
        for name, (value, kind_, sub) in values.items():
            writer.kv_data[0][f"tokenizer.ggml.{name}"] = gguf.GGUFValue(value=value, type=kind_, sub_type=sub)
        tensors["token_embd.weight"] = tensors["token_embd.weight"][:1].repeat(size, 0).reshape(size, HIDDEN)

    tokenizer = tokenizer_of(convert_tiny(tmp_path, change))
    for text in [*TEXTS, "the fox, new 🦊 words\nand  spaces"]:
        assert tokenizer.encode(text).ids == [1, *reference.encode(text)]
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
