"""Faults of parameters that users of such servers have reported: extreme values that break the sampler, counts that eat
the memory, logprobs of the wrong distribution."""

import pytest

CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}
JSON = {"content-type": "application/json"}


def answer(client, **fields: object):
    return client.post("/v1/chat/completions", CHAT | fields)


def text(reply) -> str:
    assert reply.status == 200, reply.text
    return reply.json()["choices"][0]["message"]["content"]


def raw(client, fields: str):
    """A chat whose last fields are written as they are: JSON libraries do not write NaN or numbers beyond a double."""
    body = f'{{"messages":[{{"role":"user","content":"Say hello."}}],"max_tokens":4,{fields}}}'
    return client.request("POST", "/v1/chat/completions", body.encode(), JSON)


@pytest.mark.parametrize("temperature", [0, 1e-8])
def test_tiny_temperatures_are_greedy(guarded, temperature):
    assert text(answer(guarded, temperature=temperature)) == text(answer(guarded, temperature=0))


@pytest.mark.parametrize("fields", [{"top_p": 1.0}, {"top_k": -1}, {"top_k": 0}, {"temperature": 1e-4}, {"top_k": 1}])
def test_values_at_the_edge_are_taken(guarded, fields):
    assert text(answer(guarded, temperature=0.7, seed=1, **{k: v for k, v in fields.items() if k != "temperature"}))
    assert "<unk>" not in text(answer(guarded, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        '"temperature":NaN',
        '"temperature":1e400',
        '"temperature":1e39',
        '"temperature":"0.5"',
        '"temperature":-1',
        '"top_p":0',
        '"top_p":1.5',
        '"top_k":-2',
        '"seed":-1',
        '"seed":1180591620717411303424',
        '"seed":1.5',
        '"max_tokens":1e3,"x":1',
        '"presence_penalty":-2.5',
        '"repetition_penalty":0',
        '"n":0',
    ],
)
@pytest.mark.parametrize("stream", ["", ',"stream":true'])
def test_values_out_of_bounds_are_refused(guarded, fields, stream):
    reply = raw(guarded, fields + stream)
    assert reply.status == 400, reply.text
    assert reply.json()["error"]["message"]


def test_several_choices_have_their_own_index_and_reason(guarded):
    choices = answer(guarded, n=2, temperature=1.0, seed=3).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1]
    assert all(choice["finish_reason"] for choice in choices)
    with guarded.stream(
        "/v1/chat/completions", CHAT | {"n": 2, "temperature": 1.0, "seed": 3, "stream": True}
    ) as stream:
        frames = [frame["choices"][0] for frame in stream.frames() if frame != "[DONE]"]
    for choice in choices:
        mine = [frame for frame in frames if frame["index"] == choice["index"]]
        joined = "".join(frame["delta"].get("content", "") for frame in mine)
        assert (joined, mine[-1]["finish_reason"]) == (choice["message"]["content"], choice["finish_reason"])


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("/v1/chat/completions", CHAT | {"n": 1_000_000}),
        ("/v1/completions", {"prompt": "a", "n": 1_000_000}),
        ("/v1/completions", {"prompt": "a", "best_of": 1_000_000}),
        ("/generate", {"inputs": "a", "parameters": {"best_of": 1_000_000, "do_sample": True}}),
        ("/generate", {"inputs": "a", "parameters": {"top_n_tokens": 4_000_000_000}}),
        ("/generate", {"inputs": "a", "parameters": {"stop": ["x"] * 100_000}}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_absurd_counts_are_refused(guarded, path, payload):
    assert 400 <= guarded.post(path, payload).status < 500


def test_scoring_a_prompt_without_generating_hurts_nobody(guarded):
    reply = guarded.post("/v1/completions", {"prompt": "The sky is", "echo": True, "logprobs": 1, "max_tokens": 0})
    assert reply.status in (200, 400), reply.text
    if reply.status == 200:
        logprobs = reply.json()["choices"][0]["logprobs"]
        assert len(logprobs["tokens"]) == len(logprobs["token_logprobs"])
        assert "".join(logprobs["tokens"]) == "The sky is"


@pytest.mark.parametrize("candidates", [None, 0, 5])
def test_chat_logprobs_are_those_of_the_model(guarded, candidates):
    fields = {"logprobs": True, "temperature": 0}
    if candidates is not None:
        fields["top_logprobs"] = candidates
    plain, narrowed = (answer(guarded, **fields, **more).json()["choices"][0] for more in ({}, {"top_p": 0.5}))
    for choice in (plain, narrowed):
        items = choice["logprobs"]["content"]
        assert all(len(item["top_logprobs"]) == (candidates or 0) for item in items)
        shown = b"".join(bytes(item["bytes"]) for item in items)
        assert shown.decode() == choice["message"]["content"]
    values = [[item["logprob"] for item in choice["logprobs"]["content"]] for choice in (plain, narrowed)]
    assert values[0] == pytest.approx(values[1], abs=1e-4)


def test_too_many_candidates_are_refused(guarded):
    assert answer(guarded, logprobs=True, top_logprobs=21).status == 400
