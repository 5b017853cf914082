"""Random weights of a sensible scale, from the configuration alone: for measuring without a checkpoint.

Norms are ones and biases zeros; matrices are normal with the standard deviation that keeps activations near one.
Seeded by name, so that every run (but not every number of ranks) has the same weights.
"""

import zlib
from collections.abc import Iterable

import torch

from text_generation_server.layers.parameter import Parameter


def fill_dummy(parameters: Iterable[Parameter], dtype: torch.dtype, device: torch.device) -> None:
    """Fill every parameter on the device."""
    generator = torch.Generator(device)
    for parameter in parameters:
        tensor = torch.empty(parameter.shape, dtype=dtype, device=device)
        if parameter.columns is None:
            tensor.fill_(0.0 if parameter.leaf == "bias" else 1.0)
        else:
            generator.manual_seed(zlib.crc32(parameter.path.encode()))
            tensor.normal_(0.0, parameter.columns**-0.5, generator=generator)
        parameter.tensor = tensor
