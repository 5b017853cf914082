"""Reads the rotary parameters of a `config.json`, in both spellings that checkpoints use. Knows no model."""

from text_generation_server.models.hf_config import HfConfig
from text_generation_server.models.spec import Rope, RopeScaling

_DEFAULT_BASE = 10_000.0
KINDS = ("default", "linear", "dynamic", "llama3", "yarn")
# These stretch `max_position_embeddings`; the others state the stretched length in the configuration itself.
_STRETCHING = ("linear", "dynamic")


def read_rope(config: HfConfig, head_dim: int) -> Rope:
    """The rotary embedding of a model whose heads are `head_dim` wide.

    Raises:
        Refusal: an unknown kind, or values that do not fit it.
    """
    section = config.section("rope_parameters") or config.section("rope_scaling")
    base = config.float("rope_theta", None)
    if base is None:
        base = section.float("rope_theta", _DEFAULT_BASE) if section else _DEFAULT_BASE
    partial = (section.float("partial_rotary_factor", None) if section else None) or 1.0
    if partial != 1.0 or config.float("partial_rotary_factor", 1.0) != 1.0:
        raise config.refuse("`partial_rotary_factor` other than 1 is not supported")
    kind = _kind(section)
    return Rope(head_dim, base, None if section is None or kind == "default" else _scaling(config, section, kind))


def stretched_positions(config: HfConfig, rope: Rope) -> int:
    """The longest sequence: `max_position_embeddings`, times the factor where the scaling stretches it."""
    positions = config.int("max_position_embeddings")
    if rope.scaling is not None and rope.scaling.kind in _STRETCHING:
        return int(positions * rope.scaling.factor)
    return positions


def _kind(section: HfConfig | None) -> str:
    if section is None:
        return "default"
    kind = section.str("rope_type", None) or section.str("type", "default")
    if kind not in KINDS:
        raise section.refuse(f"rope type `{kind}` is not supported (supported: {', '.join(KINDS)})")
    return kind


def _scaling(config: HfConfig, section: HfConfig, kind: str) -> RopeScaling:
    original = section.int("original_max_position_embeddings", None) or config.int("max_position_embeddings")
    factor = section.float("factor")
    if factor < 1.0:
        raise section.refuse(f"`factor` is {factor}, expected at least 1")
    if kind == "yarn":
        for key in ("mscale", "mscale_all_dim"):
            if section.has(key):
                raise section.refuse(f"yarn with `{key}` is not supported")
        if not section.bool("truncate", True):
            raise section.refuse("yarn with `truncate: false` is not supported")
    return RopeScaling(
        kind=kind,
        factor=factor,
        original_positions=original,
        low_frequency_factor=section.float("low_freq_factor", 1.0),
        high_frequency_factor=section.float("high_freq_factor", 4.0),
        beta_fast=section.float("beta_fast", 32.0),
        beta_slow=section.float("beta_slow", 1.0),
        attention_factor=section.float("attention_factor", None),
    )
