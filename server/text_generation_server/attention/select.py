"""Which attention back end runs on which device. A back end is imported when it is chosen, so that a missing package
matters only then."""

import torch

from text_generation_server.attention.base import AttentionBackend
from text_generation_server.refusal import Refusal

NAMES = ("sdpa", "triton")


def select_attention(name: str | None, device: torch.device) -> type[AttentionBackend]:
    """The back end of this name, or the device's own when the name is None.

    Raises:
        Refusal: unknown, not for this device, or its package is missing.
    """
    if name is None:
        name = "triton" if device.type == "cuda" else "sdpa"
    if name not in NAMES:
        raise Refusal(f"attention back end `{name}` does not exist", f"choose one of: {', '.join(NAMES)}")
    if name == "sdpa":
        from text_generation_server.attention.sdpa import SdpaBackend

        return SdpaBackend
    if device.type != "cuda":
        raise Refusal(f"attention back end `triton` needs a CUDA device, not `{device}`", "use --attention sdpa")
    try:
        from text_generation_server.attention.triton import TritonBackend
    except ImportError as error:
        raise Refusal(
            f"attention back end `triton` cannot be imported: {error}", "install triton, or use sdpa"
        ) from error
    return TritonBackend
