"""Loading: everything exactly once, and refusals that name what is wrong."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.plans import load_decoder
from text_generation_server.models.hf_config import HfConfig
from text_generation_server.models.registry import family_of
from text_generation_server.refusal import Refusal


@pytest.fixture
def copy(tiny_checkpoint, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_checkpoint()[0], folder)
    return folder


def change(folder, edit):
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda t: t.pop("model.layers.1.mlp.up_proj.weight"), "model.layers.1.mlp.up_proj.weight"),
        (lambda t: t.update(strange=torch.zeros(1)), "strange"),
        (lambda t: t.update({"model.norm.weight": torch.zeros(3)}), "model.norm.weight"),
    ],
)
def test_wrong_tensors_are_refused_by_name(copy, edit, named):
    change(copy, edit)
    with pytest.raises(Refusal, match=named):
        load_decoder(copy)


def test_old_rotary_buffers_are_ignored(copy):
    change(copy, lambda t: t.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(4)}))
    load_decoder(copy)


def test_a_truncated_file_is_named(copy):
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(Refusal, match=r"model\.safetensors"):
        load_decoder(copy)


def test_a_missing_file_of_an_index_is_named(copy):
    index = {"weight_map": {"x": "model-00002-of-00002.safetensors"}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(Refusal, match="model-00002-of-00002"):
        load_decoder(copy)


def test_unknown_architectures_are_refused_with_the_known_ones():
    with pytest.raises(Refusal, match=r"(?s)`StrangeModel`.*`LlamaForCausalLM`"):
        family_of(HfConfig({"architectures": ["StrangeModel"]}))


def test_unknown_rope_kinds_are_refused(copy):
    values = {**json.loads((copy / "config.json").read_text()), "rope_parameters": {"rope_type": "spiral", "factor": 2}}
    with pytest.raises(Refusal, match="spiral"):
        family_of(HfConfig(values))
