"""Every route of TGI as a plain HTTP client sees it: statuses, fields, headers, error bodies, and that a bad request
harms nobody but its sender."""

import json

import pytest

from support.client import JSON_HEADERS, Client

PROMPT = "The capital of France is"
TIMING_HEADERS = ("x-total-time", "x-validation-time", "x-queue-time", "x-inference-time", "x-time-per-token")
INFO_FIELDS = {
    "model_id",
    "model_sha",
    "model_pipeline_tag",
    "max_concurrent_requests",
    "max_best_of",
    "max_stop_sequences",
    "max_input_tokens",
    "max_total_tokens",
    "validation_workers",
    "max_client_batch_size",
    "router",
    "version",
    "sha",
    "docker_label",
}


def works(client: Client) -> bool:
    return client.generate(PROMPT, max_new_tokens=2)["generated_text"] != ""


# === what is known without generating ===


@pytest.mark.parametrize("path", ["/", "/health", "/ping"])
def test_health_is_empty_and_200(client, path):
    reply = client.get(path)
    assert (reply.status, reply.body) == (200, b"")


def test_info_names_model_and_limits(client):
    info = client.get("/info").json()
    assert info.keys() >= INFO_FIELDS
    assert info["router"] == "text-generation-router"
    assert info["max_total_tokens"] == 2048
    assert 0 < info["max_input_tokens"] < 2048
    assert (info["max_concurrent_requests"], info["max_best_of"], info["max_stop_sequences"]) == (128, 2, 4)


def test_models_lists_the_served_one(client):
    reply = client.get("/v1/models").json()
    assert reply["object"] == "list"
    assert [model["id"] for model in reply["data"]] == [client.get("/info").json()["model_id"]]


def test_metrics_use_tgi_names(client):
    assert works(client)
    reply = client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    for name in ("tgi_request_count", "tgi_request_success", "tgi_queue_size", "tgi_batch_current_size"):
        assert f"\n{name}" in "\n" + reply.text
    assert "tgi_request_duration_bucket{" in reply.text


def test_documentation_is_generated_and_served_offline(client):
    assert "swagger" in client.get("/docs/").text.lower()
    paths = client.get("/api-doc/openapi.json").json()["paths"]
    assert {"/generate", "/generate_stream", "/v1/chat/completions", "/v1/completions", "/tokenize"} <= paths.keys()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("GET", "/generate", 405), ("DELETE", "/info", 405), ("POST", "/generate/", 404)],
)
def test_unknown_path_and_method(client, method, path, status):
    assert client.request(method, path).status == status


def test_every_origin_may_call(client):
    reply = client.request("GET", "/info", headers={"origin": "http://elsewhere.example"})
    assert reply.headers["access-control-allow-origin"] == "*"


# === generating ===


def test_generate_without_details(client):
    reply = client.post("/generate", {"inputs": PROMPT, "parameters": {"max_new_tokens": 4}})
    assert reply.status == 200
    assert reply.json().keys() == {"generated_text"}


def test_generate_reports_timings_in_headers(client):
    headers = client.post("/generate", {"inputs": PROMPT, "parameters": {"max_new_tokens": 4}}).headers
    assert headers["x-compute-type"]
    assert float(headers["x-compute-time"]) > 0
    assert headers["x-compute-characters"] == str(len(PROMPT))
    assert all(headers[name].isdigit() for name in TIMING_HEADERS)
    assert headers["x-generated-tokens"] == "4"
    assert headers["x-prompt-tokens"] == str(len(client.post("/tokenize", {"inputs": PROMPT}).json()))


def test_generate_details(client):
    reply = client.generate(PROMPT, max_new_tokens=4, details=True)
    details = reply["details"]
    assert (details["finish_reason"], details["generated_tokens"]) == ("length", 4)
    assert (details["seed"], details["prefill"]) == (None, [])
    assert all(token.keys() == {"id", "text", "logprob", "special"} for token in details["tokens"])
    assert all(token["logprob"] <= 0 for token in details["tokens"])
    assert "".join(token["text"] for token in details["tokens"]) == reply["generated_text"]


def test_generate_top_tokens(client):
    details = client.generate(PROMPT, max_new_tokens=3, details=True, top_n_tokens=2)["details"]
    assert [len(candidates) for candidates in details["top_tokens"]] == [2, 2, 2]
    assert [candidates[0]["id"] for candidates in details["top_tokens"]] == [token["id"] for token in details["tokens"]]


def test_stop_string_is_kept_and_named(client):
    whole = client.generate(PROMPT, max_new_tokens=12)["generated_text"]
    stop = whole[4:8]
    reply = client.generate(PROMPT, max_new_tokens=12, stop=[stop], details=True)
    assert reply["generated_text"] == whole[: whole.index(stop) + len(stop)]
    assert reply["details"]["finish_reason"] == "stop_sequence"


def test_best_of_lists_the_others(client):
    reply = client.generate(PROMPT, max_new_tokens=4, best_of=2, do_sample=True, details=True)
    assert len(reply["details"]["best_of_sequences"]) == 1


def test_return_full_text_and_truncate(client):
    full = client.generate(PROMPT, max_new_tokens=3, return_full_text=True)["generated_text"]
    assert full.startswith(PROMPT)
    headers = client.post("/generate", {"inputs": PROMPT, "parameters": {"max_new_tokens": 2, "truncate": 2}}).headers
    assert headers["x-prompt-tokens"] == "2"


def test_generate_stream_frames(client):
    payload = {"inputs": PROMPT, "parameters": {"max_new_tokens": 4, "details": True}}
    with client.stream("/generate_stream", payload) as stream:
        frames = list(stream.frames())
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"
    assert [frame["index"] for frame in frames] == [1, 2, 3, 4]
    assert all(frame["generated_text"] is None and frame["details"] is None for frame in frames[:-1])
    details = frames[-1]["details"]
    assert details.keys() == {"finish_reason", "generated_tokens", "seed", "input_length"}
    assert frames[-1]["generated_text"] == "".join(frame["token"]["text"] for frame in frames)


def test_root_answers_a_list_or_a_stream(client):
    payload = {"inputs": PROMPT, "parameters": {"max_new_tokens": 2}}
    (reply,) = client.post("/", payload).json()
    assert reply["generated_text"].startswith(PROMPT)
    with client.stream("/", payload | {"stream": True}) as stream:
        assert len(list(stream.frames())) == 2


def test_tokenize_gives_offsets(client):
    tokens = client.post("/tokenize", {"inputs": "Hello world"}).json()
    assert all(token.keys() == {"id", "text", "start", "stop"} for token in tokens)
    assert "".join(token["text"] for token in tokens) == "Hello world"
    assert client.post("/tokenize", {"inputs": ""}).json() == []


def test_chat_tokenize_renders_the_template(client):
    reply = client.post("/chat_tokenize", {"messages": [{"role": "user", "content": "Hi"}]}).json()
    assert reply.keys() == {"tokenize_response", "templated_text"}
    assert reply["templated_text"].endswith("<|im_start|>assistant\n")


# === bad input ===

VALIDATION = [
    ("inputs", {"inputs": ""}),
    ("temperature", {"inputs": "a", "parameters": {"temperature": 0}}),
    ("temperature", {"inputs": "a", "parameters": {"temperature": -1}}),
    ("temperature", {"inputs": "a", "parameters": {"temperature": 1e39}}),
    ("top_p", {"inputs": "a", "parameters": {"top_p": 2.0}}),
    ("top_k", {"inputs": "a", "parameters": {"top_k": 0}}),
    ("typical_p", {"inputs": "a", "parameters": {"typical_p": 0}}),
    ("repetition_penalty", {"inputs": "a", "parameters": {"repetition_penalty": 0}}),
    ("frequency_penalty", {"inputs": "a", "parameters": {"frequency_penalty": 3}}),
    ("max_new_tokens", {"inputs": "a", "parameters": {"max_new_tokens": 0}}),
    ("stop", {"inputs": "a", "parameters": {"stop": ["a", "b", "c", "d", "e"]}}),
    ("top_n_tokens", {"inputs": "a", "parameters": {"top_n_tokens": 6}}),
    ("best_of", {"inputs": "a", "parameters": {"best_of": 3, "do_sample": True}}),
    ("truncate", {"inputs": "a", "parameters": {"truncate": 0}}),
    ("max_new_tokens", {"inputs": "a", "parameters": {"max_new_tokens": 100_000}}),
    ("inputs", {"inputs": "a " * 3000, "parameters": {"max_new_tokens": 1}}),
    ("unheard_of", {"inputs": "a", "unheard_of": 1}),
    ("unheard_of", {"inputs": "a", "parameters": {"unheard_of": 1}}),
]


@pytest.mark.parametrize(("field", "payload"), VALIDATION, ids=[field for field, _ in VALIDATION])
def test_out_of_range_names_the_field(client, field, payload):
    reply = client.post("/generate", payload)
    assert reply.status == 422, reply.text
    problem = reply.json()
    assert problem.keys() >= {"error", "error_type"}
    words = problem["error"].replace("`", "")
    assert field in words, words
    assert works(client)


MALFORMED = [
    ("not JSON", b'{"inputs":', 400),
    ("text after the value", b'{"inputs":"a"} x', 400),
    ("not UTF-8", b'{"inputs":"\xff"}', 400),
    ("a number too large", b'{"inputs":"a","parameters":{"temperature":1e400}}', 400),
    ("empty", b"", 400),
    ("an array", b'["hi",{"max_new_tokens":1}]', 422),
    ("a wrong type", b'{"inputs":5}', 422),
    ("a missing field", b'{"parameters":{}}', 422),
    ("a float for a count", b'{"inputs":"a","parameters":{"max_new_tokens":1.5}}', 422),
    ("3 MB", json.dumps({"inputs": "a" * 3_000_000}).encode(), 413),
]


@pytest.mark.parametrize("path", ["/generate", "/generate_stream", "/v1/chat/completions"])
@pytest.mark.parametrize(("what", "body", "status"), MALFORMED, ids=[what for what, _, _ in MALFORMED])
def test_malformed_body_is_refused(client, path, what, body, status):
    reply = client.request("POST", path, body, JSON_HEADERS)
    # OpenAI says 400 where TGI says 422.
    expected = {status, 400} if path.startswith("/v1/") and status == 422 else {status}
    assert reply.status in expected, f"{what}: {reply.text}"
    assert reply.body
    assert works(client)


def test_content_type_is_required(client):
    assert client.request("POST", "/generate", b'{"inputs":"a"}').status == 415


@pytest.mark.parametrize(
    "payload",
    [
        {"messages": [{"role": "user", "content": "a"}], "temperature": -1},
        {"messages": [{"role": "user", "content": "a"}], "max_tokens": 0},
        {"messages": [], "model": 5},
        {"messages": [{"role": "user", "content": "a"}], "logit_bias": {"5": 101}},
        {"messages": [{"role": "user", "content": "a"}], "unheard_of": True},
    ],
)
def test_bad_chat_is_refused_also_as_a_stream(client, payload):
    for stream in (False, True):
        reply = client.post("/v1/chat/completions", payload | {"stream": stream})
        assert 400 <= reply.status < 500, reply.text
        assert "error" in reply.json()
    assert works(client)
