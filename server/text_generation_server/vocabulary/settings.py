"""What the files beside a vocabulary say about it: added tokens, special roles, what prompts begin and end with.

Reads `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`; knows no format of vocabularies.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from text_generation_server.json_file import read_json
from text_generation_server.refusal import Refusal

CONFIG = "tokenizer_config.json"
_MAP = "special_tokens_map.json"
_ADDED = "added_tokens.json"
FILES = (CONFIG, _MAP, _ADDED)
ROLES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")
_LISTS = ("additional_special_tokens", "extra_special_tokens")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


@dataclass(frozen=True)
class Added:
    """A token that a file adds, or describes anew."""

    content: str
    special: bool
    flags: dict[str, bool]


@dataclass(frozen=True)
class Settings:
    """The settings of a folder.

    `added` is by id; `roles` maps `bos_token` and so on to texts; `specials` are further special tokens; `config` is
    `tokenizer_config.json` as it stands.
    """

    config: dict[str, Any]
    added: dict[int, Added]
    roles: dict[str, str]
    specials: list[str]

    def flag(self, name: str) -> bool | None:
        """A switch of `tokenizer_config.json`; `None` when it is not there.

        Raises:
            Refusal: the value is something else.
        """
        value = self.config.get(name)
        if value is not None and not isinstance(value, bool):
            raise _wrong(CONFIG, name, "must be true or false")
        return value


def read_settings(folder: Path) -> Settings:
    """The settings of a model folder; files that are missing say nothing.

    Raises:
        Refusal: a file is not what it should be.
    """
    config, roles_map, ids = (read_json(folder / name) if (folder / name).is_file() else {} for name in FILES)
    added = {_id(index, _ADDED): Added(text, False, {}) for text, index in ids.items()}
    described = config.get("added_tokens_decoder", {})
    if not isinstance(described, dict):
        raise _wrong(CONFIG, "added_tokens_decoder", "must be an object")
    added |= {_id(index, CONFIG): _added(token) for index, token in described.items()}
    roles, specials = {}, []
    for name, source in ((_MAP, roles_map), (CONFIG, config)):
        roles |= {role: _text(source[role], name, role) for role in ROLES if source.get(role) is not None}
        for key in _LISTS:
            tokens = source.get(key) or []
            tokens = list(tokens.values()) if isinstance(tokens, dict) else tokens
            specials += [_text(token, name, key) for token in tokens]
    return Settings(config, added, roles, specials)


# === impl details ===


def _added(token: Any) -> Added:
    content = _text(token, CONFIG, "added_tokens_decoder")
    flags = {name: bool(token[name]) for name in _FLAGS if name in token} if isinstance(token, dict) else {}
    return Added(content, isinstance(token, dict) and bool(token.get("special", False)), flags)


def _id(value: Any, file: str) -> int:
    try:
        index = int(value)
    except (TypeError, ValueError):
        index = -1
    if index < 0 or isinstance(value, bool | float):
        raise _wrong(file, "the id of an added token", f"cannot be {value!r}")
    return index


def _text(token: Any, file: str, name: str) -> str:
    content = token.get("content") if isinstance(token, dict) else token
    if not isinstance(content, str) or not content:
        raise _wrong(file, name, "must be a text or an object with the text `content`")
    return content


def _wrong(file: str, name: str, reason: str) -> Refusal:
    return Refusal(f"{file} is wrong: {name} {reason}", "Correct the file, or fetch the model again.")
