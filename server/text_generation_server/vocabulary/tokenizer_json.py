"""Puts a `tokenizer.json` together from a vocabulary and the settings beside it, and checks it with the library that
will read it. Knows no format of vocabularies.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from text_generation_server.refusal import Refusal
from text_generation_server.vocabulary.parts import Part, added_token, around
from text_generation_server.vocabulary.settings import ROLES, Settings

OWN_TOKENIZER = "Put a tokenizer.json that was made with the model's own library beside it."


@dataclass
class Vocabulary:
    """What a converter makes of its file `source`: the parts of `tokenizer.json`, and what the file says of its tokens.

    `ids` holds every token of the model; `specials` are those that a text must not be cut through, and that are left
    out of decoded text; `roles` maps `bos_token` and so on to texts.
    """

    source: Path
    model: Part
    ids: dict[str, int]
    normalizer: Part | None = None
    pre_tokenizer: Part | None = None
    decoder: Part | None = None
    specials: set[str] = field(default_factory=set)
    roles: dict[str, str] = field(default_factory=dict)
    adds_bos: bool = True


def assemble(vocabulary: Vocabulary, settings: Settings) -> tuple[str, dict[str, Any]]:
    """The text of `tokenizer.json`, and the contents of the `tokenizer_config.json` that goes with it.

    Raises:
        Refusal: the settings do not fit the vocabulary.
    """
    roles = {**vocabulary.roles, **settings.roles}
    added = _added_tokens(vocabulary, settings, roles)
    ids = {**vocabulary.ids, **{token["content"]: token["id"] for token in added}}
    if isinstance(vocabulary.model["vocab"], dict):
        # The library numbers added tokens from the end of the model's own, unless these have them already.
        vocabulary.model["vocab"] = ids
    adds_bos, adds_eos = settings.flag("add_bos_token"), settings.flag("add_eos_token")
    if adds_bos is None:
        adds_bos = vocabulary.adds_bos and "bos_token" in roles

    def special(wanted: bool | None, role: str) -> list[tuple[str, int]]:
        if not wanted:
            return []
        if roles.get(role) not in ids:
            raise _refuse(vocabulary, f"prompts need a {role}, and {roles.get(role)!r} is not in the vocabulary")
        return [(roles[role], ids[roles[role]])]

    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": vocabulary.normalizer,
        "pre_tokenizer": vocabulary.pre_tokenizer,
        "post_processor": around(special(adds_bos, "bos_token"), special(adds_eos, "eos_token")),
        "decoder": vocabulary.decoder,
        "model": vocabulary.model,
    }
    text = json.dumps(tokenizer, ensure_ascii=False)
    _check(vocabulary, text, ids)
    # Roles in the order of their names, as far as the vocabulary has them.
    return text, settings.config | {role: roles[role] for role in ROLES if roles.get(role) in ids}


# === impl details ===


def _added_tokens(vocabulary: Vocabulary, settings: Settings, roles: dict[str, str]) -> list[Part]:
    tokens = {}
    for index, token in settings.added.items():
        if vocabulary.ids.get(token.content, index) != index:
            raise _refuse(vocabulary, f"it gives {token.content!r} the id {vocabulary.ids[token.content]}, not {index}")
        tokens[token.content] = added_token(index, token.content, token.special, **token.flags)
    for content in [*sorted(vocabulary.specials), *roles.values(), *settings.specials]:
        if content in tokens:
            tokens[content]["special"] = True
        elif content in vocabulary.ids:
            tokens[content] = added_token(vocabulary.ids[content], content, special=True)
    return sorted(tokens.values(), key=lambda token: token["id"])


def _check(vocabulary: Vocabulary, text: str, ids: dict[str, int]) -> None:
    from tokenizers import Tokenizer

    try:
        built = Tokenizer.from_str(text).get_vocab(with_added_tokens=True)
    except Exception as error:  # the library raises bare exceptions
        raise _refuse(vocabulary, str(error)) from None
    wrong = next((content for content, index in ids.items() if built.get(content) != index), None)
    if wrong is not None:
        raise _refuse(vocabulary, f"the token {wrong!r} must have the id {ids[wrong]}, and gets {built.get(wrong)}")


def _refuse(vocabulary: Vocabulary, reason: str) -> Refusal:
    return Refusal(f"{vocabulary.source} cannot be converted: {reason}", OWN_TOKENIZER)
