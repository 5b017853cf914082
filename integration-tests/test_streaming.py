"""A stream and a whole response are the same text, the same usage and the same end, on every API; and OpenAI's order
of events is kept exactly."""

import pytest

from support.prompts import SHORT

TOKENS = 12
MESSAGES = [{"role": "user", "content": "Name three colours, with an emoji each."}]


@pytest.mark.parametrize("prompt", SHORT[:4] + SHORT[7:9] + SHORT[-1:])
def test_generate_stream_equals_generate(client, prompt):
    whole = client.generate(prompt, max_new_tokens=TOKENS, details=True)
    payload = {"inputs": prompt, "parameters": {"max_new_tokens": TOKENS, "details": True}}
    with client.stream("/generate_stream", payload) as stream:
        frames = list(stream.frames())
    assert [frame["token"] for frame in frames] == whole["details"]["tokens"]
    assert frames[-1]["generated_text"] == whole["generated_text"]
    for field in ("finish_reason", "generated_tokens", "seed"):
        assert frames[-1]["details"][field] == whole["details"][field]


def chat(**changes: object) -> dict[str, object]:
    return {"messages": MESSAGES, "max_tokens": TOKENS, "temperature": 0} | changes


@pytest.mark.parametrize("stop", [None, ["\n"], [" the", "colo"]])
def test_chat_stream_equals_chat(client, stop):
    payload = chat(stop=stop) if stop else chat()
    whole = client.post("/v1/chat/completions", payload).json()
    payload |= {"stream": True, "stream_options": {"include_usage": True}}
    with client.stream("/v1/chat/completions", payload) as stream:
        *frames, usage, done = stream.frames()
    deltas = [frame["choices"][0]["delta"] for frame in frames]
    choice = whole["choices"][0]
    assert "".join(delta.get("content") or "" for delta in deltas) == choice["message"]["content"]
    assert frames[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]
    assert (usage["choices"], usage["usage"]) == ([], whole["usage"])
    assert done == "[DONE]"


def test_chat_stream_keeps_the_order_of_openai(client):
    with client.stream("/v1/chat/completions", chat(stream=True)) as stream:
        *frames, done = stream.frames()
    assert done == "[DONE]"
    assert len({frame["id"] for frame in frames}) == 1 and frames[0]["id"]
    assert {frame["object"] for frame in frames} == {"chat.completion.chunk"}
    reasons = [frame["choices"][0]["finish_reason"] for frame in frames]
    assert reasons[:-1] == [None] * (len(reasons) - 1) and reasons[-1] in ("stop", "length")
    assert frames[0]["choices"][0]["delta"]["role"] == "assistant"
    assert not frames[-1]["choices"][0]["delta"].get("content")
    assert not any(frame.get("usage") for frame in frames)


def test_completions_stream_equals_completions(client):
    payload = {"prompt": SHORT[0], "max_tokens": TOKENS, "temperature": 0}
    whole = client.post("/v1/completions", payload).json()
    payload |= {"stream": True, "stream_options": {"include_usage": True}}
    with client.stream("/v1/completions", payload) as stream:
        *frames, usage, done = stream.frames()
    assert "".join(frame["choices"][0]["text"] for frame in frames) == whole["choices"][0]["text"]
    assert frames[-1]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert usage["usage"] == whole["usage"]
    assert done == "[DONE]"


def test_two_prompts_stream_under_their_indices(client):
    prompts = list(SHORT[:2])
    whole = client.post("/v1/completions", {"prompt": prompts, "max_tokens": 5, "temperature": 0}).json()
    texts = {0: "", 1: ""}
    payload = {"prompt": prompts, "max_tokens": 5, "temperature": 0, "stream": True}
    with client.stream("/v1/completions", payload) as stream:
        for frame in stream.frames():
            for choice in [] if frame == "[DONE]" else frame["choices"]:
                texts[choice["index"]] += choice["text"]
    assert texts == {choice["index"]: choice["text"] for choice in whole["choices"]}
