"""Renders every template of `templates/` over the conversations below with `transformers` and writes `expected.json`.

It owns the conversations and the shape of the fixture; the Rust test beside `chat/template.rs` reads the same templates
and compares byte for byte. Run it again after a change of either: `python generate.py` (needs transformers and jinja2).
"""

import datetime as real_datetime
import json
from pathlib import Path

import jinja2
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

HERE = Path(__file__).parent
NOW = real_datetime.datetime(2026, 7, 4, 9, 5, 3, 12)

WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Weather of a place, in °C & "feels like" <now>',
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City, e.g. 'São Paulo'"},
                "days": {"type": "integer", "default": 3, "minimum": 1.0},
                "units": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius"},
                "hours": {"type": "array", "items": {"type": "number"}},
                "detail": {"type": ["boolean", "null"], "default": None},
            },
            "required": ["place"],
        },
    },
}
PLAIN_TOOL = {
    "type": "function",
    "function": {"name": "ping", "description": "Checks", "parameters": {"type": "object", "properties": {}}},
}


def user(content):
    """A user message."""
    return {"role": "user", "content": content}


def assistant(content, **fields):
    """An assistant message."""
    return {"role": "assistant", "content": content, **fields}


def system(content):
    """A system message."""
    return {"role": "system", "content": content}


def call(name, arguments, call_id):
    """A tool call."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(content, call_id):
    """A tool's answer."""
    return {"role": "tool", "content": content, "tool_call_id": call_id}


CALLED = [
    user("Weather in Łódź?"),
    assistant("", tool_calls=[call("get_weather", {"place": "Łódź", "hours": [6, 12.5], "units": None}, "abcdefghi")]),
    tool('{"temp": 21.5, "sky": "clear ☀"}', "abcdefghi"),
]

CONVERSATIONS = {
    "one": [user("Hello!")],
    "system": [system("Be brief."), user("Hi there")],
    "turns": [user("a"), assistant("b"), user("c"), assistant("d"), user("e")],
    "unicode": [system("Réponds en français 🇫🇷"), user("日本語 e\u0301 😀\u200d👩 \u00a0 <b>&amp;</b> 'q' \"d\"")],
    "spaces": [user("  \n lead and trail \t\n"), assistant("\n ok \n"), user(" ")],
    "empty": [system(""), user("")],
    "braces": [user("{{ bos_token }} {% raw %} \\n \\ </s> <|im_end|>")],
    "system_only": [system("Alone")],
    "wrong_order": [assistant("I start"), user("no")],
    "two_users": [user("one"), user("two")],
    "odd_role": [{"role": "critic", "content": "Hm."}, user("x")],
    "null_content": [user("Go"), assistant(None), user("?")],
    "tools": [user("What can you do?")],
    "tools_system": [system("You have tools."), user("Ping?")],
    "called": CALLED,
    "answered": [*CALLED, assistant("21.5 °C and clear.")],
    "two_calls": [
        user("Both"),
        assistant("Calling", tool_calls=[call("ping", {}, "a"), call("get_weather", {"place": "x\ny"}, "b")]),
        tool("1", "a"),
        tool("2", "b"),
        user("And?"),
    ],
    "thinking": [
        user("2+2"),
        assistant("<think>\neasy\n</think>\n\n4"),
        user("3+3"),
        assistant("6", reasoning_content="hm"),
    ],
    "parts": [
        system("S"),
        user([{"type": "text", "text": " see "}, {"type": "image"}, {"type": "text", "text": "this"}]),
    ],
    "stop": [system("s"), user("one"), assistant("two"), user("STOP here"), assistant("three")],
    "names": [
        {**user("Hi"), "name": "Zoë"},
        {"role": "developer", "content": "Short."},
        {**user("Bye"), "name": "<n>"},
    ],
    "parts_everywhere": [
        system([{"type": "text", "text": "Rules."}]),
        user([{"type": "text", "text": "a"}, {"type": "text", "text": " b\n"}]),
        assistant([{"type": "text", "text": "c"}]),
        user([]),
    ],
    "tool_parts": [*CALLED[:2], tool([{"type": "text", "text": "21 °C"}], "abcdefghi"), user("So?")],
}
WITH_TOOLS = {"tools", "tools_system", "called", "answered", "two_calls", "tool_parts"}

# What is asked for beside the conversation, by conversation; everything else is rendered as `BASE`.
BASE = {"add_generation_prompt": True}
OTHERS = {
    "turns": [{"add_generation_prompt": False}],
    "thinking": [{"continue_final_message": True}, {"add_generation_prompt": True, "enable_thinking": False}],
    "answered": [{"continue_final_message": True}],
    "stop": [{"continue_final_message": True}],
    "spaces": [{"continue_final_message": True}],
    "parts": [{"continue_final_message": True}],
    "one": [
        {
            "add_generation_prompt": True,
            "bos_token": "<B>",
            "date_string": "1 Jan 2000",
            "reasoning_effort": "high",
            "documents": [{"title": "T", "text": "body"}],
        }
    ],
}
PROBES = {"probe_arguments", "probe_numbers", "probe_strings", "probe_tests"}


class FixedClock(real_datetime.datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        """The one moment that templates see."""
        return NOW


def make_tokenizer():
    """A tokenizer that only knows its special tokens: templates see no more of it."""
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, "a")), **tokens)


def render(tokenizer, template, messages, tools, options):
    """The outcome of one rendering: `text`, `raised` (the template's own words) or `fails`."""
    try:
        text = tokenizer.apply_chat_template(messages, tools=tools, chat_template=template, tokenize=False, **options)
    except jinja2.exceptions.TemplateError as error:
        return {"raised": str(error)} if type(error) is jinja2.exceptions.TemplateError else {"fails": str(error)}
    except (TypeError, ValueError, KeyError) as error:
        return {"fails": str(error)[:80]}
    return {"text": text}


def main():
    """Writes the fixture."""
    chat_template_utils.datetime = FixedClock
    tokenizer = make_tokenizer()
    cases = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        for name, messages in CONVERSATIONS.items():
            if path.stem in PROBES and name != "one":
                continue
            tools = [WEATHER_TOOL, PLAIN_TOOL] if name in WITH_TOOLS else None
            for options in [BASE, *OTHERS.get(name, [])]:
                outcome = render(tokenizer, template, messages, tools, options)
                cases.append({"template": path.stem, "conversation": name, "options": options, **outcome})
    fixture = {
        "tools": [WEATHER_TOOL, PLAIN_TOOL],
        "with_tools": sorted(WITH_TOOLS),
        "conversations": CONVERSATIONS,
        "cases": cases,
    }
    lines = json.dumps(fixture, ensure_ascii=False, indent=0).replace("\n", "").replace('{"template"', '\n{"template"')
    (HERE / "expected.json").write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
