"""Fetches a model from the Hugging Face Hub into its cache, and finds it there when the network is gone.

Small files come first and are checked before gigabytes of weights follow. Token, endpoint and offline mode are
huggingface_hub's own business. Explains no errors: that is `hub_errors`.
"""

import logging
import shutil
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache

from text_generation_server.logs import fields
from text_generation_server.prepare import local, weight_files
from text_generation_server.prepare.config import PrepareConfig, PreparedModel
from text_generation_server.prepare.hub_errors import EXPECTED, Place, explain, is_offline, is_passing
from text_generation_server.prepare.progress import Progress, amount
from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary.convert import converted_tokenizer, convertible

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Pauses between the tries of one call or file, in seconds. The library itself resumes a broken connection some times
# within each try.
_PAUSES = (0.5, 1.0, 2.0)
_PARALLEL_FILES = 4
_DESCRIPTION = (
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
    "chat_template.jinja",
    weight_files.INDEX,
)
_MORE_TEMPLATES = "additional_chat_templates/"
# Left free on the disk of the cache, in bytes.
_DISK_RESERVE = 100_000_000


@dataclass(frozen=True)
class _Listing:
    """What the Hub says about one commit: its sha, tag, and files with sizes in bytes (0 = unknown)."""

    sha: str
    pipeline_tag: str | None
    sizes: dict[str, int]


def fetch(config: PrepareConfig, wants_weights: bool) -> PreparedModel:
    """The model `config.model_id` from the Hub or its cache.

    Raises:
        Refusal: not found, no access, no network and not in the cache, disk trouble, or not a servable model.
    """
    model_id = str(config.model_id)
    cache = config.huggingface_hub_cache or Path(constants.HF_HUB_CACHE)
    place = Place(model_id, config.revision or constants.DEFAULT_REVISION, str(cache))
    download = _Download(place, HfApi(), config.cache_folder)
    try:
        listing = download.listing(place.revision)
        return download.run(listing, wants_weights, config.num_shard)
    except EXPECTED as error:
        cached = download.cached_folder() if is_offline(error) or is_passing(error) else None
        if cached is None:
            raise explain(error, place) from error
        cause = explain(error, place).cause
    _use_cached(cached, wants_weights, cause)
    return PreparedModel(cached, model_id, revision_sha=cached.name)


# === impl _Download ===


class _Download:
    """Fetches the files of one model; `converted` is the cache for what is made of them."""

    def __init__(self, place: Place, api: HfApi, converted: Path):
        self.place = place
        self.api = api
        self.converted = converted

    def listing(self, revision: str) -> _Listing:
        info = _persistently(
            lambda: self.api.model_info(self.place.model_id, revision=revision, files_metadata=True),
            lambda error: is_passing(error) and not is_offline(error),
        )
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        return _Listing(info.sha or revision, info.pipeline_tag, sizes)

    def run(self, listing: _Listing, wants_weights: bool, num_shard: int) -> PreparedModel:
        self._check_names(listing, wants_weights)
        # By the name of the revision, so that the cache learns which commit that is; everything else by the commit.
        folder = self._file(local.CONFIG, self.place.revision).parent
        if folder.name != listing.sha:
            listing = self.listing(folder.name)
            self._check_names(listing, wants_weights)
        for name in listing.sizes:
            if name in _DESCRIPTION or name.startswith(_MORE_TEMPLATES):
                self._file(name, listing.sha)
        if local.TOKENIZER not in listing.sizes:
            self._file(convertible(listing.sizes)[0], listing.sha)
        local.check_description(folder)
        converted_tokenizer(folder, self.converted)
        local.check_split(folder, num_shard)
        if wants_weights:
            self._weights(folder, listing)
            weight_files.check_weights(folder)
        return PreparedModel(folder, self.place.model_id, listing.sha, listing.pipeline_tag)

    def cached_folder(self) -> Path | None:
        """The folder of the revision in the cache, perhaps incomplete."""
        found = try_to_load_from_cache(
            self.place.model_id, local.CONFIG, cache_dir=self.place.cache, revision=self.place.revision
        )
        return Path(found).parent if isinstance(found, str) else None

    def _check_names(self, listing: _Listing, wants_weights: bool) -> None:
        """Refuse what cannot be served before anything is fetched."""
        names, where = list(listing.sizes), self.place.model_id
        if local.CONFIG not in names:
            if "adapter_config.json" in names:
                raise local.adapter(where)
            ggufs = [name for name in names if name.endswith(".gguf")]
            if ggufs:
                raise Refusal(
                    f"`{where}` holds GGUF files only ({ggufs[0]})",
                    f"Download the one you want (`hf download {where} {ggufs[0]}`) and give its path with --model-id.",
                )
            raise Refusal(f"`{where}` holds no {local.CONFIG}", "Give the Hub id of a language model.")
        local.check_tokenizer(where, names)
        if wants_weights and not weight_files.choose_weights(names):
            raise weight_files.no_weights(where, names)

    def _weights(self, folder: Path, listing: _Listing) -> None:
        names = weight_files.read_index(folder) or weight_files.choose_weights(list(listing.sizes))
        missing = [name for name in names if not (folder / name).exists()]
        total = sum(listing.sizes.get(name, 0) for name in missing)
        self._check_space(folder, total)
        progress = Progress(total)
        started = time.monotonic()
        pool = ThreadPoolExecutor(_PARALLEL_FILES, "download")
        downloads = [pool.submit(self._file, name, listing.sha, progress) for name in missing]
        try:
            finished, _ = wait(downloads, return_when=FIRST_EXCEPTION)
        finally:
            # After a failure, or Ctrl-C, the others stop at their next piece; nobody waits for that.
            progress.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
        for download in finished:
            download.result()
        if missing:
            seconds = round(time.monotonic() - started, 1)
            logger.info(f"downloaded {amount(total)} of weights", extra=fields(files=len(missing), seconds=seconds))

    def _check_space(self, folder: Path, total: int) -> None:
        free = shutil.disk_usage(folder).free
        if total + _DISK_RESERVE > free:
            raise Refusal(
                f"the weights of `{self.place.model_id}` need {amount(total)}, "
                f"the disk of the cache {self.place.cache} has {amount(free)} left",
                "Free some space, or choose another disk with --huggingface-hub-cache.",
            )

    def _file(self, name: str, revision: str, progress: Progress | None = None) -> Path:
        bar = (progress or Progress(0)).bar_for(name)
        if progress is None:
            logger.debug("fetching a file", extra=fields(file=name))
        path = _persistently(
            lambda: hf_hub_download(
                self.place.model_id, name, revision=revision, cache_dir=self.place.cache, tqdm_class=bar
            ),
            is_passing,
        )
        return Path(path)


def _persistently(call: Callable[[], T], worth_a_try: Callable[[BaseException], bool]) -> T:
    """The result of `call`, tried again while `worth_a_try` of its error holds."""
    for pause in _PAUSES:
        try:
            return call()
        except EXPECTED as error:
            if not worth_a_try(error):
                raise
            logger.warning("the Hub failed, trying again", extra=fields(error=str(error), pause_seconds=pause))
        time.sleep(pause)
    return call()


def _use_cached(folder: Path, wants_weights: bool, cause: str) -> None:
    """Check a model from the cache; `cause` is why the Hub could not be asked."""
    try:
        local.check_folder(folder, wants_weights)
    except Refusal as refusal:
        raise Refusal(f"the cached model is not complete: {refusal.cause}", f"Connect to the Hub ({cause}).") from None
    logger.warning("using the model in the cache without asking the Hub", extra=fields(folder=str(folder), why=cause))
