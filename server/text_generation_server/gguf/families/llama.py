"""The Llama family in GGUF (Llama 2 and 3, SmolLM2, Mistral): metadata to `config.json`, tensors to weight names.

Knows nothing of files, vocabularies or quantisation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from text_generation_server.gguf.dequantise import decode
from text_generation_server.gguf.families.weight import Weight
from text_generation_server.gguf.metadata import Metadata
from text_generation_server.gguf.reader import TensorInfo

_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
_ROPE_FACTORS = "rope_freqs.weight"
_DEFAULT_ROPE_BASE = 10000.0
# Parameters of Llama 3's rope scaling. The file stores only the factors that follow from them.
_LLAMA3_LOW, _LLAMA3_HIGH, _LLAMA3_CONTEXT = 1.0, 4.0, 8192
_FACTOR_TOLERANCE = 1e-3


def config(metadata: Metadata) -> dict[str, Any]:
    """The model's part of `config.json`.

    Raises:
        Refusal: a key is missing, or the model needs something that this family cannot express.
    """
    hidden = metadata.required(".embedding_length", int)
    heads = metadata.required(".attention.head_count", int)
    if heads < 1 or metadata.optional(".expert_count", int, 0):
        raise metadata.refuse("models with experts (or without attention heads) are not supported")
    head_dim = metadata.optional(".attention.key_length", int, hidden // heads)
    for key in (".attention.value_length", ".rope.dimension_count"):
        if metadata.optional(key, int, head_dim) != head_dim:
            raise metadata.refuse(f"{metadata.full(key)!r} differs from the head size {head_dim}")
    base = metadata.optional(".rope.freq_base", float, _DEFAULT_ROPE_BASE)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": metadata.required(".feed_forward_length", int),
        "num_hidden_layers": metadata.required(".block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.optional(".attention.head_count_kv", int, heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": _shortest(metadata.required(".attention.layer_norm_rms_epsilon", float)),
        "max_position_embeddings": metadata.required(".context_length", int),
        "rope_theta": _shortest(base),
        "rope_scaling": _rope_scaling(metadata, base, head_dim),
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in metadata.file.tensors,
    }


def weights(metadata: Metadata, fields: dict[str, Any]) -> list[Weight]:
    """Every tensor of the file under its Hugging Face name, in the order of the file.

    Raises:
        Refusal: a tensor is missing, has an unexpected name, or does not fit the metadata.
    """
    layers, tensors = fields["num_hidden_layers"], metadata.file.tensors
    if layers * len(_LAYER) > len(tensors):
        raise metadata.refuse(f"{len(tensors)} tensors are too few for {layers} layers")
    names = dict(_TOP)
    for layer in range(layers):
        names.update({f"blk.{layer}.{own}": f"model.layers.{layer}.{theirs}" for own, theirs in _LAYER.items()})
    missing = [name for name in names if name not in tensors and name != "output.weight"]
    surplus = [name for name in tensors if name not in names and name != _ROPE_FACTORS]
    if missing or surplus:
        problem = f"tensor {missing[0]!r} is missing" if missing else f"tensor {surplus[0]!r} is not known"
        raise metadata.refuse(problem)
    return [
        Weight(names[tensor.name], tensor, _row_order(metadata, tensor, fields))
        for tensor in tensors.values()
        if tensor.name != _ROPE_FACTORS
    ]


# === impl details ===


def _row_order(
    metadata: Metadata, tensor: TensorInfo, fields: dict[str, Any]
) -> Callable[[np.ndarray], np.ndarray] | None:
    """Query and key rows are stored in pairs (2i, 2i+1) for rotation; Hugging Face keeps the halves apart."""
    kind = tensor.name.rpartition(".attn_")[2]
    heads = {"q.weight": fields["num_attention_heads"], "k.weight": fields["num_key_value_heads"]}.get(kind)
    if heads is None:
        return None
    rows = heads * fields["head_dim"]
    if rows == 0 or len(tensor.shape) != 2 or tensor.shape[0] != rows or fields["head_dim"] % 2:
        raise metadata.refuse(f"tensor {tensor.name!r} has {tensor.shape[0]} rows instead of {rows}")

    def apart(values: np.ndarray) -> np.ndarray:
        pairs = values.reshape(heads, rows // heads // 2, 2, values.shape[1])
        return pairs.swapaxes(1, 2).reshape(values.shape)

    return apart


def _rope_scaling(metadata: Metadata, base: float, head_dim: int) -> dict[str, Any] | None:
    kind = metadata.optional(".rope.scaling.type", str, "none")
    factor = metadata.optional(".rope.scaling.factor", float, metadata.optional(".rope.scale_linear", float, 1.0))
    if _ROPE_FACTORS in metadata.file.tensors:
        if kind != "none":
            raise metadata.refuse(f"rope scaling {kind!r} together with the tensor {_ROPE_FACTORS!r} is not supported")
        return _llama3_scaling(metadata, base, head_dim)
    if factor == 1.0 and kind in ("none", "linear"):
        return None
    if kind in ("none", "linear"):
        return {"rope_type": "linear", "factor": _shortest(factor)}
    raise metadata.refuse(f"rope scaling {kind!r} is not supported")


def _llama3_scaling(metadata: Metadata, base: float, head_dim: int) -> dict[str, Any]:
    """Find the parameters behind the stored factors (one a frequency, wave lengths are divided by them)."""
    factors = decode(metadata.file, metadata.file.tensors[_ROPE_FACTORS]).astype(np.float64).ravel()
    factor = float(factors.max())
    wave = 2 * np.pi * base ** (np.arange(0, head_dim, 2) / head_dim)
    blend = (_LLAMA3_CONTEXT / wave - _LLAMA3_LOW) / (_LLAMA3_HIGH - _LLAMA3_LOW)
    blend = np.clip(blend, 0.0, 1.0)
    expected = 1.0 / ((1.0 - blend) / factor + blend)
    if factors.shape != expected.shape or not np.allclose(factors, expected, rtol=_FACTOR_TOLERANCE):
        raise metadata.refuse(f"the factors in the tensor {_ROPE_FACTORS!r} are not those of a known rope scaling")
    return {
        "rope_type": "llama3",
        "factor": _shortest(factor),
        "low_freq_factor": _LLAMA3_LOW,
        "high_freq_factor": _LLAMA3_HIGH,
        "original_max_position_embeddings": _LLAMA3_CONTEXT,
    }


def _shortest(value: float) -> float:
    """The shortest decimal that is the same float32: 9.999999747378752e-06 was written as 1e-05."""
    return float(str(np.float32(value)))
