"""Checks a model folder before it is served, so that a missing or damaged file is named within a second.

Reads configurations and the headers of weight files, never the weights. Needs neither torch nor numpy.
"""

from pathlib import Path
from typing import Any

from text_generation_server.json_file import FETCH_AGAIN, read_json
from text_generation_server.models.registry import describe_model
from text_generation_server.parallel.divide import check_divisible
from text_generation_server.prepare.weight_files import check_weights
from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary.convert import TOKENIZER, convertible

CONFIG = "config.json"
_ADAPTER = "adapter_config.json"
# Vocabularies in older formats, which are not converted here: their presence tells that a `tokenizer.json` can be made.
OTHER_TOKENIZERS = ("vocab.json", "merges.txt", "vocab.txt")
# Names listed in an error, at most.
_LISTED = 8


def check_folder(folder: Path, wants_weights: bool) -> None:
    """Check that a folder holds a model that can be served; the weights too unless `wants_weights` is false.

    Raises:
        Refusal: names the file that is missing or wrong, and the way out.
    """
    check_description(folder)
    if wants_weights:
        check_weights(folder)


def check_description(folder: Path) -> None:
    """The part of `check_folder` that comes before the weights: configuration and tokenizer."""
    config = read_model_config(folder)
    _check_architecture(folder, config)
    names = [file.name for file in folder.iterdir()]
    if TOKENIZER in names:
        _check_looks_whole(folder / TOKENIZER)
    else:
        check_tokenizer(str(folder), names)


def check_split(folder: Path, num_shard: int) -> None:
    """Check that a model whose description passed can be divided among so many shards.

    Raises:
        Refusal: it cannot; the way out lists the numbers that work.
    """
    check_divisible(describe_model(folder).spec, num_shard)


def read_model_config(folder: Path) -> dict[str, Any]:
    """The contents of `config.json`.

    Raises:
        Refusal: missing (also when the folder is an adapter), or not a JSON object.
    """
    path = folder / CONFIG
    if path.is_file():
        return read_json(path)
    if (folder / _ADAPTER).is_file():
        raise adapter(str(folder))
    raise Refusal(
        f"{folder} holds no {CONFIG} (found: {_listing(folder)})",
        "Give the folder of a model in Hugging Face format, a .gguf file or a Hub id.",
    )


def check_tokenizer(where: str, names: list[str]) -> None:
    """Check that a model with the file `names` has a `tokenizer.json`, or a vocabulary to convert.

    Raises:
        Refusal: it has neither; names what it has instead.
    """
    if TOKENIZER in names or convertible(names):
        return
    found = [name for name in OTHER_TOKENIZERS if name in names]
    has = f"only {', '.join(found)}" if found else "no tokenizer at all"
    target = where if Path(where).is_dir() else "FOLDER"
    script = (
        f"from transformers import AutoTokenizer; AutoTokenizer.from_pretrained('{where}').save_pretrained('{target}')"
    )
    raise Refusal(
        f"{where} holds no {TOKENIZER} ({has})",
        f'Make one with transformers and serve that folder: python -c "{script}"'
        if found
        else f"Put the {TOKENIZER} that belongs to the model into the folder.",
    )


def adapter(where: str) -> Refusal:
    """The error for a PEFT adapter in place of a model."""
    return Refusal(
        f"{where} is a PEFT adapter ({_ADAPTER}), not a whole model",
        "Merge it into its base model with peft's `merge_and_unload`, save the result, and serve that folder.",
    )


# === impl details ===


def _check_architecture(folder: Path, config: dict[str, Any]) -> None:
    names = config.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise Refusal(
            f"{folder / CONFIG} names no `architectures`",
            "Use a complete model folder; this may be a part of one (a vision tower, an adapter).",
        )
    try:
        describe_model(folder)
    except Refusal:
        if config.get("auto_map"):
            file = str(next(iter(config["auto_map"].values()))).partition(".")[0]
            raise Refusal(
                f"{folder / CONFIG} needs the model's own code ({file}.py, `auto_map`), which this server does not run",
                "Serve a model whose architecture is built in.",
            ) from None
        raise


def _check_looks_whole(path: Path) -> None:
    """Large vocabularies take most of a second to parse; the router does that. Here the two ends must do."""
    try:
        text = path.read_bytes().strip()
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}", "Check its permissions.") from None
    if not (text.startswith(b"{") and text.endswith(b"}")):
        raise Refusal(f"{path} is not a whole JSON object", FETCH_AGAIN)


def _listing(folder: Path) -> str:
    names = sorted(file.name for file in folder.iterdir())
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (", ".join(names[:_LISTED]) or "nothing") + more
