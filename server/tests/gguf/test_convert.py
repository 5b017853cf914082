import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

import text_generation_server
from text_generation_server.gguf.convert import convert
from text_generation_server.gguf.reader import open_gguf
from text_generation_server.refusal import Refusal

from .conftest import HEAD, HEADS, LAYERS, write_gguf

SERVER = Path(text_generation_server.__file__).parents[1]
PROMPT = "The capital of France is"


def rope_factors(factor: float, base: float = 10000.0, head: int = HEAD) -> np.ndarray:
    """Llama 3's published rule, written out one frequency at a time."""
    factors = []
    for index in range(0, head, 2):
        wave = 2 * np.pi * base ** (index / head)
        if wave < 8192 / 4:
            factors.append(1.0)
        elif wave > 8192 / 1:
            factors.append(factor)
        else:
            smooth = (8192 / wave - 1) / (4 - 1)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, np.float32)


def test_a_converted_model_has_every_tensor_with_its_values(tiny: Path, tmp_path: Path) -> None:
    tensors = write_gguf(tiny)
    folder = convert(tiny, tmp_path / "cache")
    written = load_file(folder / "model.safetensors")
    assert len(written) == len(tensors) == 2 + 9 * LAYERS
    np.testing.assert_array_equal(written["model.embed_tokens.weight"], tensors["token_embd.weight"])
    np.testing.assert_array_equal(written["model.layers.1.mlp.down_proj.weight"], tensors["blk.1.ffn_down.weight"])
    # Row 2i of a head in the file is row i of the folder, row 2i + 1 is row i + half a head.
    stored, wanted = tensors["blk.0.attn_q.weight"], written["model.layers.0.self_attn.q_proj.weight"]
    for head in range(HEADS):
        for index in range(HEAD // 2):
            row = head * HEAD
            np.testing.assert_array_equal(wanted[row + index], stored[row + 2 * index])
            np.testing.assert_array_equal(wanted[row + index + HEAD // 2], stored[row + 2 * index + 1])
    with safe_open(folder / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}


def test_the_config_says_what_the_metadata_says(tiny: Path, tmp_path: Path) -> None:
    config = json.loads((convert(tiny, tmp_path / "cache") / "config.json").read_text())
    expected = {
        "hidden_size": 64,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
    }
    assert {key: config[key] for key in expected} == expected
    assert config["tie_word_embeddings"] is True
    assert config["rope_scaling"] is None
    assert config["torch_dtype"] == "float32"


def test_an_output_matrix_and_rope_factors(tmp_path: Path) -> None:
    def change(writer: gguf.GGUFWriter, tensors: dict) -> None:
        tensors["output.weight"] = tensors["token_embd.weight"] + 1
        tensors["rope_freqs.weight"] = rope_factors(8.0)

    write_gguf(tmp_path / "m.gguf", change)
    folder = convert(tmp_path / "m.gguf", tmp_path / "cache")
    config = json.loads((folder / "config.json").read_text())
    assert config["tie_word_embeddings"] is False
    assert "lm_head.weight" in load_file(folder / "model.safetensors")
    assert config["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


def drop(name: str):
    return lambda writer, tensors: tensors.pop(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drop("blk.1.ffn_up.weight"), "too few|'blk.1.ffn_up.weight' is missing"),
        (lambda _, t: t.update({"blk.0.attn_q.bias": t["output_norm.weight"]}), "'blk.0.attn_q.bias' is not known"),
        (lambda _, t: t.update({"rope_freqs.weight": np.full(8, 3.0, np.float32)}), "not those of a known rope"),
        (lambda w, _: w.add_rope_scaling_type(gguf.RopeScalingType.YARN), "rope scaling 'yarn' is not supported"),
        (lambda w, _: w.add_expert_count(8), "experts"),
        (lambda w, _: w.add_value_length(8), "'llama.attention.value_length' differs from the head size 16"),
        (lambda w, _: w.kv_data[0].pop("llama.block_count"), "'llama.block_count' is missing"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(tmp_path: Path, change, words: str) -> None:
    write_gguf(tmp_path / "m.gguf", change)
    with pytest.raises(Refusal, match=words):
        convert(tmp_path / "m.gguf", tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache" / "gguf").iterdir()] == [".lock"]


def test_an_unknown_architecture_is_refused_by_name(tiny: Path, tmp_path: Path) -> None:
    tiny.write_bytes(tiny.read_bytes().replace(b"llama", b"lhama"))
    with pytest.raises(Refusal, match="architecture 'lhama' is not supported as GGUF"):
        convert(tiny, tmp_path / "cache")


def test_a_second_conversion_is_the_first(tiny: Path, tmp_path: Path) -> None:
    folder = convert(tiny, tmp_path / "cache")
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert convert(tiny, tmp_path / "cache") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_a_changed_file_is_converted_anew(tiny: Path, tmp_path: Path) -> None:
    folder = convert(tiny, tmp_path / "cache")
    write_gguf(tiny, lambda _, tensors: tensors.update({"output.weight": tensors["token_embd.weight"]}))
    assert convert(tiny, tmp_path / "cache") != folder


@pytest.mark.parametrize("damage", ["cut", "gone", "no manifest"])
def test_a_damaged_cache_is_made_anew(tiny: Path, tmp_path: Path, damage: str) -> None:
    folder = convert(tiny, tmp_path / "cache")
    whole = (folder / "model.safetensors").read_bytes()
    if damage == "cut":
        (folder / "model.safetensors").write_bytes(whole[:-1])
    elif damage == "gone":
        (folder / "tokenizer.json").unlink()
    else:
        (folder / "conversion.json").write_text("[]")
    (tmp_path / "cache" / "gguf" / f"{folder.name}.partial").mkdir()
    assert convert(tiny, tmp_path / "cache") == folder
    assert (folder / "model.safetensors").read_bytes() == whole
    assert (folder / "tokenizer.json").is_file()


def test_a_cache_that_cannot_be_written_is_named(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match=r"cannot be written to .*file/gguf: Not a directory"):
        convert(tiny, tmp_path / "file")


def test_two_converters_do_not_work_at_once(tiny: Path, tmp_path: Path) -> None:
    folder = convert(tiny, tmp_path / "cache")
    (folder / "tokenizer.json").unlink()
    script = "import sys; from pathlib import Path; from text_generation_server.gguf.convert import convert; "
    script += "convert(Path(sys.argv[1]), Path(sys.argv[2]))"
    with folder.with_name(folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = subprocess.Popen([sys.executable, "-c", script, str(tiny), str(tmp_path / "cache")], cwd=SERVER)
        time.sleep(1.5)
        assert other.poll() is None
    assert other.wait(30) == 0
    assert (folder / "tokenizer.json").is_file()


@pytest.mark.slow
def test_demo_weights_equal_the_library(demo_folder: Path, demo_file: Path) -> None:
    file, written = open_gguf(demo_file), load_file(demo_folder / "model.safetensors")
    names = {
        "token_embd.weight": "model.embed_tokens.weight",
        "blk.29.ffn_down.weight": "model.layers.29.mlp.down_proj.weight",
        "blk.7.attn_v.weight": "model.layers.7.self_attn.v_proj.weight",
        "output_norm.weight": "model.norm.weight",
    }
    for theirs, ours in names.items():
        info = file.tensors[theirs]
        kind = gguf.GGMLQuantizationType[info.type_name]
        expected = gguf.quants.dequantize(file.raw(info), kind).reshape(info.shape)
        np.testing.assert_array_equal(written[ours], expected.astype(written[ours].dtype))


@pytest.mark.slow
def test_demo_text_is_sensible_and_close_to_the_gguf_path_of_transformers(demo_folder: Path, demo_file: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(demo_folder)
    model = AutoModelForCausalLM.from_pretrained(demo_folder, dtype=torch.float32)
    inputs = tokenizer(PROMPT, return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=4, do_sample=False)
    assert tokenizer.decode(output[0]).startswith(f"{PROMPT} Paris.")
    reference = AutoModelForCausalLM.from_pretrained(demo_file.parent, gguf_file=demo_file.name, dtype=torch.float32)
    ours, theirs = model.state_dict(), reference.state_dict()
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        # Half a unit in the last of float16's 11 bits.
        torch.testing.assert_close(ours[name], values, rtol=2**-11, atol=1e-7)
