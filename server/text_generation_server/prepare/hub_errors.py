"""What went wrong with the Hub, in two lines: the cause, and the way out. Also tells what is worth another try."""

import errno
from dataclasses import dataclass

import httpx
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from text_generation_server.refusal import Refusal

# What a look-up or download may raise. Anything else is a fault of this program.
EXPECTED = (httpx.HTTPError, HFValidationError, EntryNotFoundError, OSError)
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
_BUSY = (408, 429)


@dataclass(frozen=True)
class Place:
    """What was asked for: a model and revision on the Hub, and the cache that files go to."""

    model_id: str
    revision: str
    cache: str


def is_offline(error: BaseException) -> bool:
    """The Hub was not asked (offline mode) or did not answer at all."""
    if isinstance(error, LocalEntryNotFoundError):
        return error.__cause__ is None or is_offline(error.__cause__)
    return isinstance(error, OfflineModeIsEnabled | httpx.TransportError)


def is_passing(error: BaseException) -> bool:
    """Another try may help: the network failed, or the Hub is busy or broken."""
    if isinstance(error, OfflineModeIsEnabled):
        return False
    if isinstance(error, LocalEntryNotFoundError):
        return error.__cause__ is not None and is_passing(error.__cause__)
    status = _status(error)
    if status is not None:
        return status in _BUSY or status >= 500
    # The library reports a file of the wrong length as a plain OSError, without a number.
    return isinstance(error, httpx.TransportError) or (type(error) is OSError and error.errno is None)


def explain(error: Exception, place: Place) -> Refusal:
    """The error as a person should see it."""
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        return explain(error.__cause__, place)
    name, status = f"`{place.model_id}`", _status(error)
    if isinstance(error, HFValidationError):
        return Refusal(
            f"{name} is neither a folder or file here, nor a valid Hub id",
            "Give `owner/name`, the path of a model folder, or a .gguf file.",
        )
    if isinstance(error, GatedRepoError) or status == 403:
        return Refusal(
            f"access to {name} on the Hub is restricted",
            f"Accept its terms on https://huggingface.co/{place.model_id}, and set HF_TOKEN to a token of that user.",
        )
    if isinstance(error, RevisionNotFoundError):
        return Refusal(
            f"{name} has no revision `{place.revision}` on the Hub",
            "Give a branch, tag or commit that exists with --revision, or leave it out.",
        )
    if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
        return Refusal(
            f"{name} was not found: no folder or file here, and no model on the Hub",
            "Check the spelling. If the model is private, set HF_TOKEN to a token that may read it.",
        )
    if isinstance(error, DisabledRepoError):
        return Refusal(f"{name} is disabled on the Hub", "Choose another model.")
    if isinstance(error, OfflineModeIsEnabled | LocalEntryNotFoundError):
        return Refusal(
            f"{name} (revision `{place.revision}`) is not in the cache {place.cache}, and offline mode is on",
            "Unset HF_HUB_OFFLINE to download it, or correct HUGGINGFACE_HUB_CACHE.",
        )
    if isinstance(error, HfHubHTTPError) and status is not None:
        return Refusal(f"the Hub answered with status {status} for {name}", "Try again later.")
    if isinstance(error, httpx.HTTPError):
        return Refusal(
            f"the Hub cannot be reached, and {name} is not complete in the cache {place.cache} ({error})",
            "Check the network, proxy and HF_ENDPOINT, or give a local folder with --model-id.",
        )
    return _explain_disk(error, place)


# === impl details ===


def _explain_disk(error: Exception, place: Place) -> Refusal:
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return Refusal(
            f"the disk of the cache {place.cache} is full",
            "Free some space, or choose another disk with --huggingface-hub-cache. The download resumes where it was.",
        )
    if number in _UNWRITABLE:
        return Refusal(
            f"the cache {place.cache} cannot be written: {error}",
            "Make it writable, or choose another folder with --huggingface-hub-cache.",
        )
    return Refusal(f"the download of `{place.model_id}` failed: {error}", "Try again; it resumes where it was.")


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None)
