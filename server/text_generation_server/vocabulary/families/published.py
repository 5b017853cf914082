"""What publishers say about their vocabularies outside of the files: how text is split, how special tokens are called.

Data only. A file that nothing here fits is refused: another split gives other token ids, silently.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """`pattern` cuts text into words; `specials` follow the last rank, in order; `roles` maps `bos_token` and so on to
    texts; `composes`: text is brought into Unicode's composed form first."""

    pattern: str
    specials: tuple[str, ...]
    roles: Mapping[str, str]
    composes: bool = False


_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _reserved(numbers: range) -> tuple[str, ...]:
    return tuple(f"<|reserved_special_token_{number}|>" for number in numbers)


_LLAMA3 = Published(
    pattern=rf"{_CONTRACTIONS}|{_LETTERS}|\p{{N}}{{1,3}}|{_REST}",
    specials=(
        "<|begin_of_text|>",
        "<|end_of_text|>",
        *_reserved(range(2)),
        "<|finetune_right_pad_id|>",
        *_reserved(range(2, 3)),
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|python_tag|>",
        *_reserved(range(3, 248)),
    ),
    roles={"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"},
)
_QWEN1 = Published(
    pattern=rf"{_CONTRACTIONS}|{_LETTERS}|\p{{N}}|{_REST}",
    specials=("<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205))),
    roles={"eos_token": "<|endoftext|>"},
    composes=True,
)

# By the name of the file.
BY_FILE = {"qwen.tiktoken": _QWEN1}
# By `model_type` of config.json, for files whose name says nothing.
BY_MODEL_TYPE = {"llama": _LLAMA3}

# Of a `tekken.json` that does not list them.
DEFAULT_TEKKEN_SPECIALS = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)
