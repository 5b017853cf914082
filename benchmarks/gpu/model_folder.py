"""Writes a model folder without weights, shaped like Llama 3 8B, for `--load-format dummy`. The tokenizer is any
`tokenizer.json` with at most 128,256 tokens; its own ids are what the prompts become.

    python -m benchmarks.gpu.model_folder --tokenizer PATH/tokenizer.json --output /tmp/llama8b
"""

import argparse
import json
import shutil
from pathlib import Path

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
    "bos_token_id": 128000,
    "eos_token_id": 128001,
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    shutil.copy(options.tokenizer, options.output / "tokenizer.json")
    (options.output / "config.json").write_text(json.dumps(CONFIG, indent=1))


if __name__ == "__main__":
    main()
