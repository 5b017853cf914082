import json
import re
import resource
from pathlib import Path

import pytest

from text_generation_server.prepare.local import check_folder
from text_generation_server.prepare.overlay import overlay_weights
from text_generation_server.prepare.weight_files import choose_weights
from text_generation_server.refusal import Refusal

from .conftest import CONFIG, Command, model_files, write_model


@pytest.mark.parametrize("shards", [1, 3])
def test_a_whole_folder_passes(tmp_path: Path, shards: int) -> None:
    check_folder(write_model(tmp_path / "m", model_files(shards)), wants_weights=True)


@pytest.mark.parametrize(
    ("change", "cause", "way_out"),
    [
        ({"config.json": None}, r"holds no config.json \(found: generation_config.json", "GGUF|gguf"),
        ({"config.json": b"{oops"}, "config.json is not a JSON object", "git lfs pull"),
        ({"config.json": b"[]"}, "config.json is not a JSON object", "again"),
        ({"config.json": b"{}"}, "names no `architectures`", "complete model folder"),
        ({"config.json": None, "adapter_config.json": b"{}"}, "is a PEFT adapter", "merge_and_unload"),
        ({"tokenizer.json": None}, "no tokenizer at all", "Put the tokenizer.json"),
        ({"tokenizer.json": None, "vocab.json": b"x"}, "only vocab.json", "AutoTokenizer.from_pretrained"),
        ({"tokenizer.json": b'{"model": '}, "tokenizer.json is not a whole JSON object", "again"),
        ({"model.safetensors": None}, "no \\*.safetensors files", "--load-format dummy"),
        ({"model.safetensors": None, "pytorch_model.bin": b"x"}, r"pickles only \(pytorch_model.bin\)", "python -c"),
        ({"model.safetensors": None, "training_args.bin": b"x"}, "no \\*.safetensors files", "Fetch the weights"),
        ({"model.safetensors": b"version https://git-lfs.github.com/spec/v1"}, "Git LFS pointer", "git lfs pull"),
        ({"model.safetensors": b""}, "no header in its 0 bytes", "again"),
        ({"model.safetensors": b"\x02" + bytes(7) + b"[]"}, "damaged safetensors header", "again"),
        ({"model.safetensors.index.json": b"{}"}, "is not an index of weights", "again"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: dict[str, bytes | None], cause: str, way_out: str) -> None:
    files = {name: value for name, value in {**model_files(), **change}.items() if value is not None}
    with pytest.raises(Refusal) as caught:
        check_folder(write_model(tmp_path / "m", files), wants_weights=True)
    assert re.search(cause, caught.value.cause), caught.value.cause
    assert re.search(way_out, caught.value.way_out), caught.value.way_out


def test_a_truncated_file_is_named_with_its_sizes(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", model_files(shards=2))
    path = folder / "model-00002-of-00002.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(Refusal, match=f"{path.name} has {len(whole) - 1} bytes instead of the {len(whole)}"):
        check_folder(folder, wants_weights=True)
    check_folder(folder, wants_weights=False)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", model_files(shards=3))
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(Refusal, match=r"lacks model-00002-of-00003.safetensors \(1 of 3 weight files"):
        check_folder(folder, wants_weights=True)


def test_own_code_of_a_model_is_refused(tmp_path: Path) -> None:
    config = CONFIG | {"architectures": ["OddForCausalLM"], "auto_map": {"AutoModel": "modeling_odd.Odd"}}
    folder = write_model(tmp_path / "m", model_files() | {"config.json": json.dumps(config).encode()})
    with pytest.raises(Refusal, match=r"needs the model's own code \(modeling_odd.py"):
        check_folder(folder, wants_weights=True)


def test_only_weights_are_chosen() -> None:
    names = ["model.safetensors", "consolidated.00.safetensors", "adapter_model.safetensors", "a/model.safetensors"]
    assert choose_weights([*names, "training_args.safetensors", "model.bin"]) == ["model.safetensors"]


def test_weights_from_another_folder(tmp_path: Path) -> None:
    files = model_files()
    weights = write_model(tmp_path / "w", {"model.safetensors": files.pop("model.safetensors"), "notes.txt": b""})
    joined = overlay_weights(write_model(tmp_path / "m", files), weights, tmp_path / "cache")
    check_folder(joined, wants_weights=True)
    assert (joined / "model.safetensors").samefile(weights / "model.safetensors")
    assert not (joined / "notes.txt").exists()
    assert overlay_weights(tmp_path / "m", weights, tmp_path / "cache") == joined
    with pytest.raises(Refusal, match=r"weights .*absent does not exist"):
        overlay_weights(tmp_path / "m", tmp_path / "absent", tmp_path / "cache")


def test_a_ready_folder_takes_well_under_a_second(command: Command) -> None:
    folder = write_model(command.folder / "m", model_files())
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    outcome = command.run(str(folder))
    # Processor time: the wall clock belongs to whoever else uses this machine.
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert outcome.code == 0, outcome.error
    assert outcome.result == {
        "folder": str(folder),
        "model_id": str(folder),
        "revision_sha": None,
        "pipeline_tag": None,
    }
    assert seconds < 1.0


@pytest.mark.parametrize(
    ("model_id", "changes", "cause"),
    [
        ("./absent", {}, "./absent does not exist"),
        ("absent.gguf", {}, "absent.gguf does not exist"),
        ("pyproject.txt", {}, "is a file, but not a .gguf file"),
        ("m", {"revision": "v1"}, "--revision v1 does not apply to a local folder"),
        ("m", {"load_format": "magic"}, "load_format is 'magic', not one of auto, dummy"),
        ("m", {"num_shard": 3}, "the model's 2 attention heads cannot be divided among 3 shards"),
        ("m", {"shoe_size": 43}, "the field 'shoe_size' is unknown"),
        ("m", {"cache_folder": 1}, "the field 'cache_folder' must be a str, not 1"),
    ],
)
def test_wrong_requests_end_in_two_lines(command: Command, model_id: str, changes: dict, cause: str) -> None:
    write_model(command.folder / "m", model_files())
    (command.folder / "pyproject.txt").write_text("x")
    if model_id in ("m", "pyproject.txt"):
        model_id = str(command.folder / model_id)
    outcome = command.run(model_id, **changes)
    assert (outcome.code, len(outcome.error)) == (1, 2)
    assert cause in outcome.error[0]
