"""Brings the ranks of one model together.

Owns the process group. NCCL between GPUs, gloo between CPU processes. A rank that waits longer than the timeout for the
others ends with an error, so the death of one is the end of all.
"""

from datetime import timedelta

import torch
import torch.distributed as dist

from text_generation_server.parallel.collectives import Collectives
from text_generation_server.refusal import Refusal

# Ranks load their weights between joining and the first collective; a step takes far less.
TIMEOUT = timedelta(seconds=120)


def join(rank: int, world_size: int, rendezvous: str, device: torch.device) -> Collectives | None:
    """Join the other ranks; None when there are none.

    Raises:
        Refusal: the rendezvous is no `file://` or `tcp://` address, or the ranks do not meet.
    """
    if world_size == 1:
        return None
    if not rendezvous.startswith(("file://", "tcp://")):
        raise Refusal(
            f"rendezvous `{rendezvous}` is neither file:// nor tcp://",
            "use a launcher and a server of the same version",
        )
    try:
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            init_method=rendezvous,
            rank=rank,
            world_size=world_size,
            timeout=TIMEOUT,
            device_id=device if device.type == "cuda" else None,
        )
    except (RuntimeError, ValueError) as error:
        raise Refusal(
            f"rank {rank} did not meet the other {world_size - 1} ranks at {rendezvous}: {error}",
            "look for the first error of the other shards",
        ) from error
    return Collectives(rank, world_size)


def leave() -> None:
    """End the process group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()
