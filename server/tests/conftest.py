"""Tiny random checkpoints, made once a session by transformers."""

import pytest
import torch


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory):
    """A function that makes a tiny checkpoint and returns (folder, transformers model)."""
    from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

    made = {}

    def make(kind="llama", **options):
        key = (kind, repr(sorted(options.items(), key=str)))
        if key not in made:
            config_class, model_class = {
                "llama": (LlamaConfig, LlamaForCausalLM),
                "mistral": (MistralConfig, MistralForCausalLM),
            }[kind]
            base = dict(
                vocab_size=151,
                hidden_size=48,
                intermediate_size=96,
                num_hidden_layers=3,
                num_attention_heads=6,
                num_key_value_heads=3,
                max_position_embeddings=128,
                initializer_range=0.2,
                attn_implementation="eager",
            )
            torch.manual_seed(len(made))
            model = model_class(config_class(**{**base, **options})).eval()
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    torch.nn.init.normal_(parameter, 1.0, 0.3)
            folder = tmp_path_factory.mktemp("tiny")
            model.save_pretrained(folder)
            made[key] = (folder, model)
        return made[key]

    return make
