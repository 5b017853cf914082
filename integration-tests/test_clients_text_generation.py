"""The `text-generation` client, unmodified: sync, async, streams, and its errors.

The client cannot read any server's chat stream: its chunks need `tool_calls` in each delta, which neither TGI nor
OpenAI sends, and it takes `[DONE]` for JSON. So chat is tested whole only.
"""

import pytest
from text_generation import AsyncClient, Client
from text_generation.errors import ValidationError

PROMPT = "The capital of France is"
TOKENS = 8
TIMEOUT_SECONDS = 120


@pytest.fixture
def url(server) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def sync(url) -> Client:
    return Client(url, timeout=TIMEOUT_SECONDS)


@pytest.fixture
def asynchronous(url) -> AsyncClient:
    return AsyncClient(url, timeout=TIMEOUT_SECONDS)


def test_generate(sync):
    reply = sync.generate(PROMPT, max_new_tokens=TOKENS)
    assert reply.details.generated_tokens == TOKENS
    assert reply.details.finish_reason.value == "length"
    assert "".join(token.text for token in reply.details.tokens) == reply.generated_text


def test_generate_with_every_parameter(sync):
    reply = sync.generate(
        PROMPT,
        do_sample=True,
        max_new_tokens=TOKENS,
        repetition_penalty=1.1,
        frequency_penalty=0.1,
        return_full_text=True,
        seed=5,
        stop_sequences=["\n\n"],
        temperature=0.8,
        top_k=40,
        top_p=0.9,
        truncate=100,
        typical_p=0.95,
        top_n_tokens=2,
    )
    assert reply.generated_text.startswith(PROMPT)
    assert reply.details.seed == 5
    assert len(reply.details.top_tokens) == reply.details.generated_tokens


def test_stream_equals_generate(sync):
    frames = list(sync.generate_stream(PROMPT, max_new_tokens=TOKENS))
    whole = sync.generate(PROMPT, max_new_tokens=TOKENS)
    assert "".join(frame.token.text for frame in frames if not frame.token.special) == whole.generated_text
    assert frames[-1].generated_text == whole.generated_text
    assert frames[-1].details.generated_tokens == TOKENS


def test_chat(sync):
    reply = sync.chat(messages=[{"role": "user", "content": "Say hi."}], max_tokens=TOKENS)
    assert reply.choices[0].message.content


def test_bad_parameter_is_a_validation_error(sync):
    with pytest.raises(ValidationError, match="max_new_tokens"):
        sync.generate(PROMPT, max_new_tokens=100_000)


async def test_async_generate_and_stream(asynchronous):
    whole = await asynchronous.generate(PROMPT, max_new_tokens=TOKENS)
    frames = [frame async for frame in asynchronous.generate_stream(PROMPT, max_new_tokens=TOKENS)]
    assert frames[-1].generated_text == whole.generated_text


async def test_async_chat(asynchronous):
    reply = await asynchronous.chat(messages=[{"role": "user", "content": "Say hi."}], max_tokens=TOKENS)
    assert reply.choices[0].message.content
