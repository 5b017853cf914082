"""The `openai` client, unmodified: chat and completions, streamed and not, sync and async, and its errors."""

import openai
import pytest

PROMPT = "The capital of France is"
MESSAGES = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Say hi."}]
TOKENS = 8
TIMEOUT_SECONDS = 120


@pytest.fixture
def options(server) -> dict[str, object]:
    url = f"http://127.0.0.1:{server.port}/v1"
    return {"base_url": url, "api_key": "-", "timeout": TIMEOUT_SECONDS, "max_retries": 0}


@pytest.fixture
def api(options) -> openai.OpenAI:
    return openai.OpenAI(**options)


@pytest.fixture
def model(api) -> str:
    return api.models.list().data[0].id


def test_chat(api, model):
    reply = api.chat.completions.create(model=model, messages=MESSAGES, max_tokens=TOKENS, temperature=0)
    assert reply.id and reply.object == "chat.completion"
    assert reply.choices[0].message.role == "assistant" and reply.choices[0].message.content
    assert reply.choices[0].finish_reason in ("stop", "length")
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_chat_stream_equals_chat(api, model):
    asked = {"model": model, "messages": MESSAGES, "max_tokens": TOKENS, "temperature": 0}
    whole = api.chat.completions.create(**asked)
    *chunks, last = api.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert last.choices == [] and last.usage == whole.usage


def test_chat_n_and_stop_as_a_string(api, model):
    reply = api.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=TOKENS, n=2, temperature=1, seed=1, stop="\n"
    )
    assert [choice.index for choice in reply.choices] == [0, 1]
    assert not any("\n" in choice.message.content for choice in reply.choices)


def test_chat_logprobs(api, model):
    reply = api.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=3, temperature=0, logprobs=True, top_logprobs=2
    )
    content = reply.choices[0].logprobs.content
    assert len(content) == reply.usage.completion_tokens
    assert all(item.top_logprobs[0].token == item.token for item in content)


def test_completions(api, model):
    asked = {"model": model, "prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}
    whole = api.completions.create(**asked)
    assert whole.object == "text_completion"
    streamed = [chunk.choices[0].text for chunk in api.completions.create(**asked, stream=True) if chunk.choices]
    assert "".join(streamed) == whole.choices[0].text


def test_completions_of_several_prompts(api, model):
    prompts = [PROMPT, "1, 2, 3,"]
    reply = api.completions.create(model=model, prompt=prompts, max_tokens=4, temperature=0)
    assert sorted(choice.index for choice in reply.choices) == [0, 1]


@pytest.mark.parametrize("stream", [False, True])
def test_bad_parameter_is_a_bad_request(api, model, stream):
    with pytest.raises(openai.APIStatusError) as failure:
        api.chat.completions.create(model=model, messages=MESSAGES, top_p=7, stream=stream)
    assert 400 <= failure.value.status_code < 500
    assert "top_p" in str(failure.value)


async def test_async_chat_and_completions(options):
    async with openai.AsyncOpenAI(**options) as api:
        reply = await api.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=TOKENS)
        assert reply.choices[0].message.content
        stream = await api.completions.create(model="tgi", prompt=PROMPT, max_tokens=TOKENS, stream=True)
        assert "".join([chunk.choices[0].text async for chunk in stream if chunk.choices])
