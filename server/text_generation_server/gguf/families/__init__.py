"""What GGUF says about model families: one module each, and the table that names them.

A family module has `config(metadata) -> dict`, the fields of `config.json`, and `weights(metadata, config)`, the
tensors under their Hugging Face names. Nothing outside this folder knows an architecture or pre-tokenizer by name.
"""

from types import ModuleType

from text_generation_server.gguf.families import llama

FAMILIES: dict[str, ModuleType] = {"llama": llama}
