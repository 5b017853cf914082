"""Converts the vocabulary of a model folder into `tokenizer.json`, once: later calls find it in the cache. The model's
folder is only read, and no code from it is run.

Owns which file is taken and where the result lies; what the file means is up to the modules beside this one.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from text_generation_server.cached_folder import identity, make_once
from text_generation_server.json_file import FETCH_AGAIN, read_json
from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary import ranks, sentence_piece
from text_generation_server.vocabulary.families.published import BY_FILE, BY_MODEL_TYPE, Published
from text_generation_server.vocabulary.sentence_piece_file import read_model
from text_generation_server.vocabulary.settings import FILES, read_settings
from text_generation_server.vocabulary.tokenizer_json import OWN_TOKENIZER, assemble

TOKENIZER = "tokenizer.json"
# Raise this whenever the same files would give another result.
_CONVERTER_VERSION = 1
_FOLDER = "tokenizers"
_MODEL_CONFIG = "config.json"
_TEKKEN = "tekken.json"
_NAMES = ("tokenizer.model", "tiktoken.model", "spiece.model")
_RANKS_SUFFIX = ".tiktoken"
_LFS_POINTER = b"version https://git-lfs"


def convertible(names: Iterable[str]) -> list[str]:
    """The vocabularies among the file names of a model that can be converted, the one to take first."""
    names = {name for name in names if "/" not in name}
    ranks = sorted(name for name in names if name.endswith(_RANKS_SUFFIX))
    return [name for name in (_TEKKEN, *ranks, *_NAMES) if name in names]


def converted_tokenizer(folder: Path, cache: Path) -> Path | None:
    """The folder in `cache` with the converted `tokenizer.json` and `tokenizer_config.json` of a model folder; `None`
    when it has a `tokenizer.json` itself.

    Raises:
        Refusal: there is no vocabulary that can be converted, or the cache cannot be written.
    """
    names = [file.name for file in folder.iterdir()]
    found = convertible(names)
    if TOKENIZER in names or not found:
        return None
    path = folder / found[0]
    sources = [path, *(folder / name for name in (_MODEL_CONFIG, *FILES) if name in names)]
    target = cache / _FOLDER / f"{folder.name}-{identity(_CONVERTER_VERSION, sources)}"

    def write(into: Path) -> None:
        text, config = convert(path)
        (into / TOKENIZER).write_text(text, encoding="utf-8")
        (into / FILES[0]).write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    return make_once(target, path, "the converted tokenizer", write)


def convert(path: Path) -> tuple[str, dict[str, object]]:
    """The text of `tokenizer.json` and the contents of `tokenizer_config.json` for the vocabulary `path`, with the
    settings that lie beside it.

    Raises:
        Refusal: it is damaged, or cannot be converted.
    """
    settings = read_settings(path.parent)
    if path.name == _TEKKEN:
        return assemble(ranks.tekken_vocabulary(path), settings)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}", "Check its permissions.") from None
    if data.startswith(_LFS_POINTER):
        raise Refusal(f"{path} is a Git LFS pointer, not the vocabulary itself", FETCH_AGAIN)
    if ranks.is_list_of_ranks(data):
        return assemble(ranks.tiktoken_vocabulary(path, data, _published(path), settings), settings)
    return assemble(sentence_piece.vocabulary_of(path, read_model(path, data), settings), settings)


# === impl details ===


def _published(path: Path) -> Published:
    config = path.parent / _MODEL_CONFIG
    model_type = read_json(config).get("model_type") if config.is_file() else None
    published = BY_FILE.get(path.name) or BY_MODEL_TYPE.get(str(model_type))
    if published is None:
        known = ", ".join([*BY_FILE, *(f"model type {name}" for name in BY_MODEL_TYPE)])
        raise Refusal(
            f"{path} holds ranks only, and how the model type {model_type} splits text is not known (known: {known})",
            OWN_TOKENIZER,
        )
    return published
