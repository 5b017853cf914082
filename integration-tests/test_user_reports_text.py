"""Faults of text and streams that users of such servers have reported: lost spaces, missed stop strings, text that is
held back for nothing, end tokens that are shown or overlooked."""

import pytest

from support.folders import edited, rewrite
from support.invariants import unharmed
from support.server import launched


def chat(content: str, **fields: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": content}], "temperature": 0, **fields}


def completion(client, prompt: str, **fields: object) -> dict[str, object]:
    reply = client.post("/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": 24, **fields})
    assert reply.status == 200, reply.text
    return reply.json()["choices"][0]


def deltas(client, path: str, payload: dict[str, object]) -> list[str]:
    """The text of each chunk that has a choice."""
    with client.stream(path, payload | {"stream": True}) as stream:
        assert stream.status == 200
        choices = [frame["choices"][0] for frame in stream.frames() if frame != "[DONE]" and frame["choices"]]
    return [choice["text"] if "text" in choice else choice["delta"].get("content", "") for choice in choices]


def test_leading_white_space_survives_streaming(guarded):
    prompt, parameters = "def f(x):", {"max_new_tokens": 20}
    whole = guarded.generate(prompt, **parameters)["generated_text"]
    assert whole[:1].isspace()
    with guarded.stream("/generate_stream", {"inputs": prompt, "parameters": parameters}) as stream:
        frames = list(stream.frames())
    assert frames[-1]["generated_text"] == whole
    assert "".join(frame["token"]["text"] for frame in frames if not frame["token"]["special"]) == whole


def test_a_stop_string_that_crosses_tokens_is_found_and_cut(guarded):
    prompt = "A B C D E F G"
    details = guarded.generate(prompt, max_new_tokens=24, details=True)["details"]
    tokens = [token["text"] for token in details["tokens"] if not token["special"]]
    whole = "".join(tokens)
    boundary = len("".join(tokens[:3]))
    stop = whole[boundary - 1 : boundary + 2]
    choice = completion(guarded, prompt, stop=stop)
    assert (choice["text"], choice["finish_reason"]) == (whole[: whole.index(stop)], "stop")
    assert (
        "".join(deltas(guarded, "/v1/completions", {"prompt": prompt, "temperature": 0, "stop": stop}))
        == choice["text"]
    )


def test_a_stop_string_that_never_comes_holds_nothing_back(guarded):
    plain = deltas(guarded, "/v1/chat/completions", chat("Say hello.", max_tokens=8))
    stopped = deltas(guarded, "/v1/chat/completions", chat("Say hello.", max_tokens=8, stop=["z" * 28]))
    assert stopped == plain


@pytest.mark.parametrize("prompt", ["Emoji: 🙂🙃🙂", "漢字かな交じり", "e\u0301 a\u0308", "  indented"])
def test_streamed_text_is_the_whole_text(guarded, prompt):
    payload = {"prompt": prompt, "temperature": 0, "max_tokens": 24}
    parts = deltas(guarded, "/v1/completions", payload)
    assert "".join(parts) == completion(guarded, prompt)["text"]


@pytest.mark.parametrize(
    ("options", "expected"), [(None, 0), ({}, 0), ({"include_usage": True}, 1), ({"include_usage": False}, 0)]
)
def test_usage_comes_only_if_asked_for_and_at_the_end(guarded, options, expected):
    payload = chat("Say hello.", max_tokens=4)
    if options is not None:
        payload["stream_options"] = options
    with guarded.stream("/v1/chat/completions", payload | {"stream": True}) as stream:
        frames = list(stream.frames())
    assert frames[-1] == "[DONE]"
    usages = [frame for frame in frames[:-1] if frame.get("usage")]
    assert len(usages) == expected
    if expected:
        assert (frames[-2], usages[0]["choices"]) == (usages[0], [])
        assert frames[-3]["choices"][0]["finish_reason"]
        payload.pop("stream_options")
        assert usages[0]["usage"] == guarded.post("/v1/chat/completions", payload).json()["usage"]


def test_every_end_token_of_the_generation_config_ends_and_is_not_shown(tmp_path, demo_folder):
    folder = edited(demo_folder, tmp_path / "model")
    rewrite(folder / "generation_config.json", lambda config: config.update(eos_token_id=[0, 2]))
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(eos_token="<|endoftext|>"))
    with launched(tmp_path, "--model-id", str(folder)) as server, unharmed(server.client):
        reply = server.client.post("/v1/chat/completions", chat("Say only the word yes.", max_tokens=200))
        choice = reply.json()["choices"][0]
        assert choice["finish_reason"] == "stop"
        assert "<|" not in choice["message"]["content"]
