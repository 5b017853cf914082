"""Converted SentencePiece models give the ids that the `sentencepiece` library gives."""

import json
from pathlib import Path

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary.convert import convert
from text_generation_server.vocabulary.sentence_piece_file import read_model

from .conftest import SYMBOLS, TEXTS, converted, mixed_texts, train, write

AS_IT_IS = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
MODELS = {
    "plain": AS_IT_IS | {"byte_fallback": True},
    "digits": AS_IT_IS | {"byte_fallback": True, "split_digits": True, "allow_whitespace_only_pieces": True},
    "no_bytes": AS_IT_IS | {"character_coverage": 0.98},
    "no_prefix": AS_IT_IS | {"byte_fallback": True, "add_dummy_prefix": False},
    "one_space": {"normalization_rule_name": "identity", "byte_fallback": True},
    "symbols": AS_IT_IS | {"byte_fallback": True, "user_defined_symbols": SYMBOLS},
    "symbols_no_prefix": AS_IT_IS | {"byte_fallback": True, "user_defined_symbols": SYMBOLS, "add_dummy_prefix": False},
    "symbols_one_space": {
        "normalization_rule_name": "identity",
        "byte_fallback": True,
        "user_defined_symbols": SYMBOLS,
    },
    "controls": AS_IT_IS | {"byte_fallback": True, "control_symbols": ("<|a|>", "<|b|>"), "pad_id": 3},
    "other_roles": AS_IT_IS | {"unk_id": 3, "bos_id": 0, "eos_id": 1, "pad_id": 2, "unk_piece": "<?>"},
}
NORMALISED = {"nfkc": {"normalization_rule_name": "nmt_nfkc", "byte_fallback": True}, "defaults": {}}


def reference(model: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def same(ours: list[int], theirs: list[int], model: sentencepiece.SentencePieceProcessor) -> bool:
    """Whether ids are equal, or two ways to cut a text are equally good but for the rounding of their sums."""
    if ours == theirs:
        return True
    scores = [sum(model.get_score(token) for token in ids) for ids in (ours, theirs)]
    return sorted(ours) == sorted(theirs) and scores[0] == pytest.approx(scores[1])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("name", [*MODELS, *NORMALISED])
def test_the_ids_are_those_of_the_library(tmp_path: Path, name: str, kind: str) -> None:
    options = {**MODELS, **NORMALISED}[name]
    model = train(model_type=kind, **options)
    theirs = reference(model)
    ours = converted(write(tmp_path, "tokenizer.model", model, tokenizer_config={"add_bos_token": False}))
    texts = [*TEXTS, *SYMBOLS, *mixed_texts(1500, SYMBOLS)]
    # The tokenizers library looks up groups of characters of less than six bytes only.
    texts = [text for text in texts if name not in NORMALISED or "ﾊﾟ" not in text]
    wrong = [text for text in texts if not same(ours.encode(text).ids, theirs.encode(text), theirs)]
    assert not wrong, [(text, ours.encode(text).tokens, theirs.encode(text, out_type=str)) for text in wrong[:3]]
    if name == "plain":
        for text in TEXTS:
            assert ours.decode(ours.encode(text).ids) == text.replace("▁", " ")


def test_control_tokens_are_found_in_text(tmp_path: Path) -> None:
    model = train(**MODELS["controls"])
    ours, theirs = converted(write(tmp_path, "tokenizer.model", model)), reference(model)
    ids = ours.encode("<|a|>the fox<|b|></s>").ids
    assert ids == [1, theirs.piece_to_id("<|a|>"), *theirs.encode("the fox"), theirs.piece_to_id("<|b|>"), 2]
    assert ours.decode(ids) == "the fox"


def test_what_prompts_begin_and_end_with(tmp_path: Path) -> None:
    model = train(**MODELS["plain"])
    inner = reference(model).encode("the fox")
    for config, expected in [
        ({}, [1, *inner]),
        ({"add_bos_token": False, "add_eos_token": True}, [*inner, 2]),
        ({"add_eos_token": True, "eos_token": {"content": "<s>"}}, [1, *inner, 1]),
    ]:
        path = write(tmp_path, "tokenizer.model", model, tokenizer_config=config)
        assert converted(path).encode("the fox").ids == expected
    assert converted(path).encode("the fox", add_special_tokens=False).ids == inner


def test_a_space_in_front_of_the_whole_text_only(tmp_path: Path) -> None:
    model = train(**MODELS["controls"])
    theirs = reference(model)
    path = write(tmp_path, "tokenizer.model", model, tokenizer_config={"legacy": False, "add_bos_token": False})
    ours = converted(path)
    assert ours.encode("the fox").ids == theirs.encode("the fox")
    assert ours.encode("<|a|>the").tokens[1] != "▁the"
    path = write(tmp_path, "tokenizer.model", model, tokenizer_config={"add_prefix_space": False})
    assert converted(path).encode("the").tokens[1] != "▁the"


def test_added_tokens_have_their_ids(tmp_path: Path) -> None:
    model = train(**MODELS["controls"])
    size = reference(model).get_piece_size()
    described = {
        str(size + 7): {"content": "<tool>", "special": True, "lstrip": True},
        "4": {"content": "<|renamed|>", "special": True},
    }
    config = {"added_tokens_decoder": described, "additional_special_tokens": ["the"], "pad_token": "<pad>"}
    path = write(tmp_path, "tokenizer.model", model, tokenizer_config=config, added_tokens={"<extra>": size + 2})
    ours = converted(path)
    assert ours.encode("<extra>x  <tool><|renamed|>").ids[1::2] == [size + 2, size + 7]
    assert ours.token_to_id("<|renamed|>") == 4 and ours.token_to_id("<|a|>") is None
    assert json.loads(json.dumps(convert(path)[1])) == config | {
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"
    }  # fmt: skip


def test_a_character_that_is_only_a_byte(tmp_path: Path) -> None:
    proto = sentencepiece_model_pb2.ModelProto.FromString(train(**MODELS["digits"]))
    pieces = {piece.piece: piece for piece in proto.pieces}
    # The tab itself is gone, but not two tabs.
    pieces["\t"].piece = "\t\t\t\t"
    model = proto.SerializeToString()
    ours = converted(write(tmp_path, "tokenizer.model", model, tokenizer_config={"add_bos_token": False}))
    theirs = reference(model)
    for text in ["\t", "a\tb", "\t\t", "x\t\t\ty", *TEXTS]:
        assert ours.encode(text).ids == theirs.encode(text), text
    assert ours.decode(ours.encode("a\tb").ids) == "a\tb"


def changed(change) -> bytes:
    proto = sentencepiece_model_pb2.ModelProto.FromString(train(**MODELS["plain"]))
    change(proto)
    return proto.SerializeToString()


@pytest.mark.parametrize(
    ("model", "config", "reason"),
    [
        (lambda: train(model_type="char"), {}, "it cuts text into chars"),
        (lambda: train(**MODELS["plain"], treat_whitespace_as_suffix=True), {}, "marks spaces in another way"),
        (lambda: changed(lambda p: setattr(p.pieces[400], "type", 5)), {}, "must not be used"),
        (lambda: changed(lambda p: setattr(p.pieces[400], "piece", p.pieces[401].piece)), {}, "is there twice"),
        (lambda: changed(lambda p: setattr(p.pieces[400], "piece", "aЖ漠")), {}, "which is no piece"),
        (lambda: train(**MODELS["plain"])[:-9], {}, "neither a SentencePiece model nor a list of ranks"),
        (lambda: b"", {}, "no pieces"),
        (lambda: b"\xff" * 40, {}, "neither a SentencePiece model"),
        (lambda: b"version https://git-lfs.github.com/spec/v1\n", {}, "Git LFS pointer"),
        (lambda: train(**MODELS["plain"]), {"added_tokens_decoder": {"5": {"content": "</s>"}}}, "another id than 5"),
        (lambda: train(**MODELS["plain"]), {"added_tokens_decoder": {"x": {"content": "a"}}}, "cannot be 'x'"),
        (lambda: train(**MODELS["plain"]), {"bos_token": 5}, "bos_token must be a text"),
        (lambda: train(**MODELS["plain"]), {"add_bos_token": "yes"}, "must be true or false"),
        (lambda: train(**MODELS["plain"]), {"bos_token": "<nowhere>"}, "'<nowhere>' is not in the vocabulary"),
    ],
)
def test_what_cannot_be_converted_is_refused(tmp_path: Path, model, config: dict, reason: str) -> None:
    path = write(tmp_path, "tokenizer.model", model(), tokenizer_config=config)
    with pytest.raises(Refusal) as caught:
        convert(path)
    assert reason in caught.value.cause and caught.value.way_out


def test_every_field_is_read_as_the_library_reads_it() -> None:
    model = train(**MODELS["other_roles"])
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    read = read_model(Path("tokenizer.model"), model)
    pieces = [(piece.piece, piece.score, piece.type) for piece in proto.pieces]
    assert [(piece.text, piece.score, piece.kind) for piece in read.pieces] == pieces
    assert (read.unknown, read.begin, read.end, read.padding) == (3, 0, 1, 2)
    assert read.character_map == proto.normalizer_spec.precompiled_charsmap
