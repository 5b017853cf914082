"""Models that ship another vocabulary than `tokenizer.json` are prepared with a converted one, from folder and Hub."""

import json
import os
from pathlib import Path

import pytest
import sentencepiece
from tokenizers import Tokenizer

from text_generation_server.prepare.local import check_folder
from text_generation_server.vocabulary.convert import converted_tokenizer, convertible

from ..vocabulary.conftest import byte_ranks, tiktoken_file, train
from .conftest import Command, Hub, model_files, write_model

MODEL = train(normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True)
CONFIG = b'{"chat_template": "x", "eos_token": {"content": "</s>"}}'


def files_with(name: str, vocabulary: bytes) -> dict[str, bytes]:
    files = model_files() | {"tokenizer_config.json": CONFIG, name: vocabulary}
    del files["tokenizer.json"]
    return files


def test_the_one_to_take_comes_first() -> None:
    names = ["tokenizer.model", "tekken.json", "b.tiktoken", "original/tokenizer.model", "a.tiktoken", "vocab.json"]
    assert convertible(names) == ["tekken.json", "a.tiktoken", "b.tiktoken", "tokenizer.model"]


def test_a_folder_is_converted_once_and_never_written_to(tmp_path: Path, command: Command) -> None:
    source = write_model(tmp_path / "m", files_with("tokenizer.model", MODEL))
    before = {file.name: file.stat().st_mtime_ns for file in source.iterdir()}
    os.chmod(source, 0o555)
    outcome = command.run(str(source))
    assert outcome.code == 0, outcome.error
    folder = Path(outcome.result["folder"])
    assert {file.name for file in folder.iterdir()} == {*before, "tokenizer.json", "conversion.json"}
    ours = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert ours.encode("the fox").ids == [1, *sentencepiece.SentencePieceProcessor(model_proto=MODEL).encode("the fox")]
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config == {"chat_template": "x", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    check_folder(folder, wants_weights=True)
    again = command.run(str(source))
    assert again.result == outcome.result and any("in the cache" in line["message"] for line in again.lines)
    assert {file.name: file.stat().st_mtime_ns for file in source.iterdir()} == before


def test_a_changed_file_is_converted_anew(tmp_path: Path) -> None:
    source = write_model(tmp_path / "m", files_with("tokenizer.model", MODEL))
    first = converted_tokenizer(source, tmp_path / "cache")
    assert first == converted_tokenizer(source, tmp_path / "cache")
    (source / "tokenizer_config.json").write_text('{"add_bos_token": false}')
    second = converted_tokenizer(source, tmp_path / "cache")
    assert second != first
    (second / "tokenizer.json").unlink()
    assert (converted_tokenizer(source, tmp_path / "cache") / "tokenizer.json").is_file()


def test_what_cannot_be_converted_is_said_in_two_lines(tmp_path: Path, command: Command) -> None:
    source = write_model(tmp_path / "m", files_with("tokenizer.model", MODEL[:-9]))
    outcome = command.run(str(source))
    assert outcome.code == 1 and len(outcome.error) == 2
    assert "tokenizer.model is neither a SentencePiece model nor" in outcome.error[0]
    assert "tokenizer.json" in outcome.error[1]
    assert not list((tmp_path / "cache" / "tokenizers").glob("*.partial"))


@pytest.mark.parametrize("name", ["tokenizer.model", "qwen.tiktoken"])
def test_from_the_hub(online: Command, hub: Hub, name: str) -> None:
    hub.files = files_with(name, tiktoken_file(byte_ranks())) | {"tokenizer_config.json": b"{}"}
    outcome = online.run("owner/model")
    assert outcome.code == 0, outcome.error
    assert Tokenizer.from_file(str(Path(outcome.result["folder"]) / "tokenizer.json")).decode([65]) == "A"


def test_a_vocabulary_of_the_hub_is_refused_before_the_weights_are_fetched(online: Command, hub: Hub) -> None:
    hub.files = files_with("tokenizer.model", b"junk")
    outcome = online.run("owner/model")
    assert outcome.code == 1 and "tokenizer.model" in outcome.error[0]
    assert hub.gets("model.safetensors") == 0
