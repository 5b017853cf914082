"""The Llama family: Llama 2 and 3, SmolLM2, Mistral and whatever else uses their configuration.

Pre-norm blocks of grouped-query attention with rotary positions and a gated MLP; the variants differ by configuration
only (biases, tied embeddings, rope scaling, sliding window).
"""

from text_generation_server.models.rope_config import read_rope, stretched_positions
from text_generation_server.models.spec import (
    Attention,
    DecoderSpec,
    Family,
    Gated,
    HfConfig,
    LayerSpec,
    WeightNames,
)

_NAMES = WeightNames(
    modules={
        "embedding": "model.embed_tokens",
        "layers.*.mixer_norm": "model.layers.*.input_layernorm",
        "layers.*.attention.qkv/q": "model.layers.*.self_attn.q_proj",
        "layers.*.attention.qkv/k": "model.layers.*.self_attn.k_proj",
        "layers.*.attention.qkv/v": "model.layers.*.self_attn.v_proj",
        "layers.*.attention.out": "model.layers.*.self_attn.o_proj",
        "layers.*.mlp_norm": "model.layers.*.post_attention_layernorm",
        "layers.*.mlp.gate_up/gate": "model.layers.*.mlp.gate_proj",
        "layers.*.mlp.gate_up/up": "model.layers.*.mlp.up_proj",
        "layers.*.mlp.down": "model.layers.*.mlp.down_proj",
        "final_norm": "model.norm",
        "head": "lm_head",
    },
    ignored=("model.layers.*.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"),
)


def build(config: HfConfig) -> Family:
    """The spec and weight names of a configuration of this family.

    Raises:
        Refusal: a value is missing, wrong, or asks for something that is not supported.
    """
    dim, heads = config.int("hidden_size"), config.int("num_attention_heads")
    head_dim = config.int("head_dim", None) or dim // heads
    bias = config.bool("attention_bias", False)
    rope = read_rope(config, head_dim)
    attention = Attention(
        heads=heads,
        kv_heads=config.int("num_key_value_heads", heads),
        head_dim=head_dim,
        rope=rope,
        qkv_bias=bias,
        out_bias=bias,
        window=config.int("sliding_window", None),
    )
    if attention.heads % attention.kv_heads:
        raise config.refuse(f"{heads} attention heads cannot share {attention.kv_heads} key/value heads evenly")
    mlp = Gated(config.int("intermediate_size"), config.str("hidden_act", "silu"), config.bool("mlp_bias", False))
    spec = DecoderSpec(
        vocab_size=config.int("vocab_size"),
        dim=dim,
        layers=(LayerSpec(attention, mlp),) * config.int("num_hidden_layers"),
        norm_eps=config.float("rms_norm_eps", 1e-6),
        tie=config.bool("tie_word_embeddings", False),
        max_positions=stretched_positions(config, rope),
    )
    return Family(spec, _NAMES)
