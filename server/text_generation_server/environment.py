"""What this machine and installation look like: versions, devices, cores, memory. For bug reports and the launcher.

Works without torch, and without a GPU: what cannot be found out is null, with the reason beside it.
"""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("text-generation-server", "torch", "triton", "transformers", "numpy", "tokenizers", "huggingface_hub")
_MEMORY_FILE = Path("/proc/meminfo")


def describe() -> dict[str, Any]:
    """Facts by name; memory in bytes. Never raises for something that is merely absent."""
    facts: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    facts |= {name.replace("-", "_"): _version(name) for name in _PACKAGES}
    facts["cpu_count"] = len(os.sched_getaffinity(0))
    facts |= {f"memory_{name}": value for name, value in _memory().items()}
    return facts | _devices()


# === impl details ===


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _memory() -> dict[str, int | None]:
    wanted = {"MemTotal": "total", "MemAvailable": "available"}
    found: dict[str, int | None] = dict.fromkeys(wanted.values())
    if _MEMORY_FILE.is_file():
        for line in _MEMORY_FILE.read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name in wanted:
                found[wanted[name]] = int(rest.split()[0]) * 1024
    return found


def _devices() -> dict[str, Any]:
    try:
        import torch
    except (ImportError, OSError) as error:
        return {"devices": None, "devices_unknown_because": f"torch cannot be imported: {error}"}
    if not torch.cuda.is_available():
        return {"cuda": torch.version.cuda, "devices": []}
    devices = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        free, total = torch.cuda.mem_get_info(index)
        capability = f"{properties.major}.{properties.minor}"
        devices.append(
            {
                "index": index,
                "name": properties.name,
                "compute_capability": capability,
                "memory_total": total,
                "memory_free": free,
            }
        )
    return {"cuda": torch.version.cuda, "devices": devices}
