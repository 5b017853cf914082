"""Decides what a model id means (demo, GGUF file, folder, Hub id) and has it prepared. Knows no details of either."""

import logging
from dataclasses import replace
from pathlib import Path

from text_generation_server.gguf.convert import convert
from text_generation_server.logs import fields
from text_generation_server.prepare.config import PrepareConfig, PreparedModel
from text_generation_server.prepare.local import check_folder, check_split
from text_generation_server.prepare.overlay import overlay_files, overlay_weights
from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary.convert import converted_tokenizer

logger = logging.getLogger(__name__)

_GGUF_SUFFIX = ".gguf"
# Marks of a path rather than of a Hub id (`owner/name`).
_PATH_STARTS = ("/", "./", "../", "~")


def prepare(config: PrepareConfig) -> PreparedModel:
    """Make the model ready to be served, and say where it is.

    Raises:
        Refusal: the model cannot be found, fetched, converted or served.
    """
    model = _resolve(config)
    check_split(model.folder, config.num_shard)
    tokenizer = converted_tokenizer(model.folder, config.cache_folder)
    if tokenizer is not None:
        model = replace(model, folder=overlay_files(model.folder, tokenizer, config.cache_folder))
    if config.weights_cache_override is not None and config.wants_weights:
        folder = overlay_weights(model.folder, config.weights_cache_override, config.cache_folder)
        check_folder(folder, wants_weights=True)
        model = replace(model, folder=folder)
    logger.info("the model is prepared", extra=fields(model_id=model.model_id, folder=str(model.folder)))
    return model


# === impl details ===


def _resolve(config: PrepareConfig) -> PreparedModel:
    # Weights that come from another folder are neither fetched nor looked for here.
    wants_weights = config.wants_weights and config.weights_cache_override is None
    if config.model_id is None:
        # Imported where they are used: a local folder must be ready without the machinery of downloads.
        from text_generation_server.prepare import demo

        _refuse_revision(config, "the demo model")
        return PreparedModel(convert(demo.find_or_fetch(config.cache_folder), config.cache_folder), demo.MODEL_ID)
    path = Path(config.model_id).expanduser()
    if path.suffix == _GGUF_SUFFIX and path.is_file():
        _refuse_revision(config, "a GGUF file")
        return PreparedModel(convert(path, config.cache_folder), config.model_id)
    if path.is_dir():
        _refuse_revision(config, "a local folder")
        check_folder(path, wants_weights)
        return PreparedModel(path.resolve(), config.model_id)
    if path.exists():
        raise Refusal(
            f"{config.model_id} is a file, but not a {_GGUF_SUFFIX} file",
            "Give a model folder, a .gguf file or a Hub id.",
        )
    if config.model_id.startswith(_PATH_STARTS) or path.suffix == _GGUF_SUFFIX:
        raise Refusal(
            f"{config.model_id} does not exist",
            "Check the spelling, and inside a container that the folder is mounted.",
        )
    from text_generation_server.prepare.hub import fetch

    return fetch(config, wants_weights)


def _refuse_revision(config: PrepareConfig, what: str) -> None:
    if config.revision is not None:
        raise Refusal(
            f"--revision {config.revision} does not apply to {what}",
            "Leave it out, or give a Hub id with --model-id.",
        )
