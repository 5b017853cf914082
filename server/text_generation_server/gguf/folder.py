"""Writes the Hugging Face folder that says the same as a GGUF file. Knows nothing of caches or locks."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from text_generation_server.gguf import dequantise, safetensors_file
from text_generation_server.gguf.families import FAMILIES
from text_generation_server.gguf.families.weight import Weight
from text_generation_server.gguf.metadata import Metadata
from text_generation_server.gguf.reader import GgufFile, open_gguf
from text_generation_server.gguf.tokenizer import Vocabulary, read_vocabulary, write_tokenizer


def write_folder(path: Path, folder: Path) -> None:
    """Write the model of the GGUF file `path` into the existing, empty `folder`.

    Raises:
        Refusal: the file is damaged, or holds something that cannot be converted.
        OSError: the folder cannot be written.
    """
    file = open_gguf(path)
    metadata = Metadata(file)
    family = FAMILIES.get(metadata.architecture)
    if family is None:
        known = ", ".join(FAMILIES)
        raise metadata.refuse(f"the architecture {metadata.architecture!r} is not supported as GGUF (only {known})")
    dequantise.check_types(file)
    vocabulary = read_vocabulary(metadata)
    config = family.config(metadata)
    weights = family.weights(metadata, config)
    largest = max(weights, key=lambda weight: weight.tensor.size)
    ids = _special_ids(vocabulary)
    config |= ids
    config["vocab_size"] = len(vocabulary.tokens)
    config["torch_dtype"] = dequantise.TORCH_NAMES[dequantise.stored_type(largest.tensor)]
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {key: value for key, value in ids.items() if value is not None})
    write_tokenizer(metadata, vocabulary, folder)
    safetensors_file.write(folder / "model.safetensors", [_entry(file, weight) for weight in weights])


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON file for programs and people."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


# === impl details ===


def _special_ids(vocabulary: Vocabulary) -> dict[str, Any]:
    stops = vocabulary.stops
    return {
        "bos_token_id": vocabulary.bos,
        "eos_token_id": stops[0] if len(stops) == 1 else stops or None,
        "pad_token_id": vocabulary.padding,
    }


def _entry(file: GgufFile, weight: Weight) -> safetensors_file.Entry:
    def load() -> np.ndarray:
        values = dequantise.decode(file, weight.tensor)
        return values if weight.rows is None else weight.rows(values)

    return safetensors_file.Entry(
        name=weight.name,
        dtype=dequantise.stored_type(weight.tensor),
        shape=weight.tensor.shape,
        size=dequantise.stored_size(weight.tensor),
        load=load,
    )
