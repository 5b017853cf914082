"""`huggingface_hub.InferenceClient`, unmodified: text generation and chat, streamed and not, sync and async."""

import pytest
from huggingface_hub import AsyncInferenceClient, InferenceClient

PROMPT = "The capital of France is"
MESSAGES = [{"role": "user", "content": "Say hi."}]
TOKENS = 8
TIMEOUT_SECONDS = 120


@pytest.fixture
def hub(server) -> InferenceClient:
    return InferenceClient(f"http://127.0.0.1:{server.port}", timeout=TIMEOUT_SECONDS)


def test_text_generation(hub, client):
    text = hub.text_generation(PROMPT, max_new_tokens=TOKENS, return_full_text=False)
    assert text == client.generate(PROMPT, max_new_tokens=TOKENS)["generated_text"]


def test_text_generation_details(hub):
    reply = hub.text_generation(PROMPT, max_new_tokens=TOKENS, details=True, return_full_text=False)
    assert reply.details.generated_tokens == TOKENS
    assert "".join(token.text for token in reply.details.tokens) == reply.generated_text


def test_text_generation_stream(hub):
    whole = hub.text_generation(PROMPT, max_new_tokens=TOKENS, return_full_text=False)
    assert "".join(hub.text_generation(PROMPT, max_new_tokens=TOKENS, stream=True)) == whole
    frames = list(hub.text_generation(PROMPT, max_new_tokens=TOKENS, stream=True, details=True))
    assert frames[-1].generated_text.removeprefix(PROMPT) == whole
    assert frames[-1].details.generated_tokens == TOKENS


def test_chat_stream_equals_chat(hub):
    whole = hub.chat_completion(MESSAGES, max_tokens=TOKENS, temperature=0)
    chunks = list(hub.chat_completion(MESSAGES, max_tokens=TOKENS, temperature=0, stream=True))
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert streamed == whole.choices[0].message.content
    assert whole.usage.completion_tokens <= TOKENS


def test_chat_with_logprobs_and_stop(hub):
    reply = hub.chat_completion(
        MESSAGES, max_tokens=TOKENS, temperature=0, logprobs=True, top_logprobs=2, stop=["!"], seed=1
    )
    assert all(len(item.top_logprobs) == 2 for item in reply.choices[0].logprobs.content)
    assert "!" not in reply.choices[0].message.content


async def test_async_chat_and_text(server):
    async with AsyncInferenceClient(f"http://127.0.0.1:{server.port}", timeout=TIMEOUT_SECONDS) as hub:
        reply = await hub.chat_completion(MESSAGES, max_tokens=TOKENS)
        assert reply.choices[0].message.content
        stream = await hub.text_generation(PROMPT, max_new_tokens=TOKENS, stream=True)
        assert "".join([text async for text in stream])
