"""Which family builds which architecture. The only place, beside the family files, that knows model names."""

from importlib import import_module
from pathlib import Path

from text_generation_server.models.hf_config import HfConfig
from text_generation_server.models.spec import Family
from text_generation_server.refusal import Refusal

# `architectures[0]` of config.json -> module in models/families.
_FAMILIES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama"}


def describe_model(folder: Path, rope_scaling: str | None = None, rope_factor: float | None = None) -> Family:
    """The spec and weight names of the model in a folder.

    `rope_scaling` (`linear`, `dynamic`) and `rope_factor` replace what the model says about rope scaling.

    Raises:
        Refusal: no readable config.json, an architecture that is not supported, or a value that is not.
    """
    config = HfConfig.read(folder)
    if rope_scaling is not None:
        config = _override_rope(config, rope_scaling, rope_factor)
    return family_of(config)


def family_of(config: HfConfig) -> Family:
    """The spec and weight names of a configuration. Raises Refusal as `describe_model` does."""
    names = config.strings("architectures")
    supported = ", ".join(f"`{name}`" for name in sorted(_FAMILIES))
    if not names:
        raise Refusal(
            f"{config.source}: `architectures` is missing", f"complete the file; supported architectures: {supported}"
        )
    if names[0] not in _FAMILIES:
        raise Refusal(
            f"architecture `{names[0]}` is not supported", f"serve a model of a supported architecture: {supported}"
        )
    module = import_module(f"text_generation_server.models.families.{_FAMILIES[names[0]]}")
    return module.build(config)


def _override_rope(config: HfConfig, kind: str, factor: float | None) -> HfConfig:
    if kind not in ("linear", "dynamic") or factor is None:
        raise Refusal(
            f"rope scaling `{kind}` with factor {factor} cannot be applied",
            "give --rope-scaling linear or dynamic, together with --rope-factor",
        )
    given = config.section("rope_parameters")
    base = config.float("rope_theta", None) or (given.float("rope_theta", None) if given else None)
    scaling = {"rope_type": kind, "factor": factor}
    return config.with_values(
        rope_parameters=None, rope_scaling=scaling, **({} if base is None else {"rope_theta": base})
    )
