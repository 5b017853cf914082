"""How much memory the KV cache may take, on a CPU and on a GPU.

Owns the arithmetic and the reading of what is free; allocates nothing.
"""

from pathlib import Path

import torch

# Other programs share a CPU's memory: the cache takes at most this share of what is available, and at most the cap.
CPU_SHARE = 0.5
CPU_CAP_BYTES = 2 << 30
# Kept free on a GPU beside the cache: fragmentation, kernels loaded later.
CUDA_RESERVE_BYTES = 512 << 20

_CGROUP_2 = Path("/sys/fs/cgroup")
_CGROUP_1 = Path("/sys/fs/cgroup/memory")


def cache_bytes(device: torch.device, memory_fraction: float, step_bytes: int) -> int:
    """Bytes for the KV cache.

    `memory_fraction` is the share of the device's memory that this process may use in all; `step_bytes` is what the
    largest step allocates beside weights and cache.
    """
    if device.type != "cuda":
        return min(int(available_memory() * CPU_SHARE * memory_fraction), CPU_CAP_BYTES)
    free, total = torch.cuda.mem_get_info(device)
    spare = total * (1 - memory_fraction)
    return max(int(free - spare - step_bytes - CUDA_RESERVE_BYTES), 0)


def available_memory() -> int:
    """Bytes that this process can still take: what the machine has, or less where a control group limits it."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            machine = int(line.split()[1]) * 1024
            break
    else:
        raise RuntimeError("/proc/meminfo has no line `MemAvailable`")
    limits = (
        _room(_CGROUP_2 / "memory.max", _CGROUP_2 / "memory.current"),
        _room(_CGROUP_1 / "memory.limit_in_bytes", _CGROUP_1 / "memory.usage_in_bytes"),
    )
    return min([machine, *(limit for limit in limits if limit is not None)])


def _room(limit: Path, usage: Path) -> int | None:
    """Bytes between a control group's limit and its usage; None without a limit."""
    if not (limit.is_file() and usage.is_file()):
        return None
    text = limit.read_text(encoding="ascii").strip()
    return None if text == "max" else max(int(text) - int(usage.read_text(encoding="ascii")), 0)
