"""Fills a decoder's parameters from a checkpoint: each exactly once, only this rank's slice, nothing left over.

Owns the checks and the cast to the model's type, which some parameters do without; where names come from and how a
model is shared is decided elsewhere.
"""

import functools
from collections.abc import Iterable

import torch

from text_generation_server.layers.parameter import Parameter, Share
from text_generation_server.models.spec import Family
from text_generation_server.refusal import Refusal
from text_generation_server.weights.index import CheckpointIndex
from text_generation_server.weights.names import checkpoint_name, is_ignored

# Names listed in a refusal; a wrong checkpoint differs in hundreds.
_LISTED = 8


def load_weights(
    parameters: Iterable[Parameter],
    index: CheckpointIndex,
    family: Family,
    rank: int,
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Fill every parameter.

    Raises:
        Refusal: tensors are missing, left over, or of another shape.
    """
    parameters = list(parameters)
    wanted = {checkpoint_name(family.names, p, part) for p in parameters for part in p.parts}
    _check_names(wanted, index.names(), family)
    for parameter in parameters:
        kept = _stored_type(parameter, index, family) if parameter.as_stored else None
        parameter.tensor = torch.empty(parameter.shape, dtype=kept or dtype, device=device)
        row = 0
        for part in parameter.parts:
            name = checkpoint_name(family.names, parameter, part)
            _fill(parameter.tensor[row : row + part.rows], index, name, parameter.share, rank)
            row += part.rows


def _stored_type(parameter: Parameter, index: CheckpointIndex, family: Family) -> torch.dtype | None:
    """The type that holds all parts exactly; None when a part has a type that nothing computes with."""
    types = {index.dtype(checkpoint_name(family.names, parameter, part)) for part in parameter.parts}
    return None if None in types else functools.reduce(torch.promote_types, types)


def _check_names(wanted: set[str], found: set[str], family: Family) -> None:
    if missing := wanted - found:
        raise Refusal(
            f"the checkpoint lacks {len(missing)} tensors: {_listed(missing)}",
            "fetch the model again; if it is complete, its config.json describes another model",
        )
    surplus = {name for name in found - wanted if not is_ignored(family.names, name)}
    if family.spec.tie:
        # Some checkpoints hold the shared matrix under both names.
        surplus.discard(f"{family.names.modules['head']}.weight")
    if surplus:
        raise Refusal(
            f"the checkpoint holds {len(surplus)} tensors that the model does not have: {_listed(surplus)}",
            "check that config.json belongs to these weights",
        )


def _listed(names: set[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in sorted(names)[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def _fill(target: torch.Tensor, index: CheckpointIndex, name: str, share: Share, rank: int) -> None:
    shape = index.shape(name)
    dim = 1 if share is Share.ROW else 0
    begin = 0 if share is Share.REPLICATED else rank * target.shape[dim]
    end = begin + target.shape[dim]
    if share is Share.VOCABULARY:
        begin, end = min(begin, shape[0]), min(end, shape[0])
        target[end - begin :] = 0
        target = target[: end - begin]
    fits = (
        len(shape) == target.dim() and end <= shape[dim] and shape[1 - dim : 2 - dim] == target.shape[1 - dim : 2 - dim]
    )
    if not fits or (share is Share.REPLICATED and shape != tuple(target.shape)):
        raise Refusal(
            f"tensor `{name}` has shape {list(shape)}, which does not fit the model ({list(target.shape)} wanted here)",
            "check that config.json belongs to these weights",
        )
    if end > begin:
        target.copy_(index.read(name, dim, begin, end))
