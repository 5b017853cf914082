//! Every way to be refused: status, field, words.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::harness::{Script, Settings, harness, scripted};

/// `(parameters, message)`: refused by TGI's routes with 422 and this message.
fn parameters() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"temperature": 0.0}), "`temperature` must be strictly positive"),
        (json!({"temperature": -1}), "`temperature` must be strictly positive"),
        (json!({"temperature": 1e-46}), "`temperature` must be strictly positive"),
        (json!({"temperature": 1e39}), "`temperature` must be a finite number"),
        (json!({"top_p": 2}), "`top_p` must be > 0.0 and <= 1.0"),
        (json!({"top_p": 0}), "`top_p` must be > 0.0 and <= 1.0"),
        (json!({"typical_p": 1.5}), "`typical_p` must be > 0.0 and <= 1.0"),
        (json!({"top_k": 0}), "`top_k` must be strictly positive"),
        (json!({"top_k": -1}), "`top_k` must be strictly positive"),
        (json!({"repetition_penalty": 0.0}), "`repetition_penalty` must be strictly positive"),
        (json!({"frequency_penalty": 2.5}), "`frequency_penalty` must be >= -2.0 and <= 2.0"),
        (json!({"max_new_tokens": 0}), "`max_new_tokens` must be strictly positive"),
        (json!({"stop": ["a", "b", "c", "d", "e"]}), "`stop` supports up to 4 stop sequences. Given: 5"),
        (json!({"stop": [""]}), "`stop` cannot hold an empty string"),
        (json!({"top_n_tokens": 6}), "`top_n_tokens` must be >= 0 and <= 5. Given: 6"),
        (json!({"best_of": 3, "do_sample": true}), "`best_of` must be > 0 and <= 2. Given: 3"),
        (json!({"best_of": 1000000}), "`best_of` must be > 0 and <= 2. Given: 1000000"),
        (json!({"best_of": 2}), "you must use sampling when `best_of` is > 1"),
        (json!({"best_of": 2, "do_sample": true, "seed": 1}), "`seed` must not be set when `best_of` > 1"),
        (json!({"truncate": 0}), "`truncate` must be strictly positive and less than 100. Given: 0"),
        (json!({"truncate": 101}), "`truncate` must be strictly positive and less than 100. Given: 101"),
        (
            json!({"max_new_tokens": 119}),
            "`inputs` tokens + `max_new_tokens` must be <= 120. Given: 2 `inputs` tokens and 119 `max_new_tokens`",
        ),
        (json!({"grammar": {"type": "regex", "value": "a"}}), "`grammar` is not supported; leave it out"),
        (json!({"adapter_id": "x"}), "`adapter_id` is not supported; leave it out"),
    ]
}

#[tokio::test]
async fn parameters_out_of_bounds() {
    let harness = scripted(Script::Words);
    for (parameters, message) in parameters() {
        for path in ["/generate", "/"] {
            let reply = harness.post(path, json!({"inputs": "hi", "parameters": parameters})).await;
            let expected = json!({"error": format!("Input validation error: {message}"), "error_type": "validation"});
            assert_eq!((reply.status.as_u16(), reply.json()), (422, expected), "{parameters}");
        }
    }
    assert_eq!(harness.post("/generate", json!({"inputs": "hi"})).await.status, 200);
}

#[tokio::test]
async fn streams_are_refused_with_a_status_too() {
    let harness = scripted(Script::Words);
    for (parameters, message) in [
        (json!({"top_p": 2}), "`top_p` must be > 0.0 and <= 1.0"),
        (json!({"best_of": 2, "do_sample": true}), "`best_of` != 1 is not supported when streaming tokens"),
        (json!({"best_of": 0}), "`best_of` != 1 is not supported when streaming tokens"),
        (
            json!({"decoder_input_details": true}),
            "`decoder_input_details` == true is not supported when streaming tokens",
        ),
    ] {
        let reply = harness.post("/generate_stream", json!({"inputs": "hi", "parameters": parameters})).await;
        assert_eq!(reply.status, 422, "{parameters}");
        assert_eq!(reply.json()["error"], format!("Input validation error: {message}"));
    }
}

#[tokio::test]
async fn prompt_logprobs_need_the_flag() {
    let mut settings = Settings::default();
    settings.limits.enable_prefill_logprobs = false;
    let harness = harness(settings);
    let body = json!({"inputs": "hi", "parameters": {"decoder_input_details": true}});
    let reply = harness.post("/generate", body).await;
    assert_eq!(reply.status, 422);
    assert!(reply.body.contains("--enable-prefill-logprobs"), "{}", reply.body);
    for (fields, field) in
        [(json!({"echo": true, "logprobs": 0}), "echo"), (json!({"prompt_logprobs": 0}), "prompt_logprobs")]
    {
        let mut body = fields.clone();
        body["prompt"] = json!("hi");
        let reply = harness.post("/v1/completions", body).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["param"]), (400, &json!(field)), "{}", reply.body);
        assert!(reply.body.contains("--enable-prefill-logprobs"), "{}", reply.body);
    }
}

#[tokio::test]
async fn prompts_that_do_not_fit() {
    let harness = scripted(Script::Words);
    for (inputs, message) in [
        (String::new(), "`inputs` cannot be empty"),
        ("a".repeat(101), "`inputs` must have less than 100 tokens. Given: 101"),
        // The longest token of the test's vocabulary has 7 bytes.
        ("a".repeat(800), "`inputs` must have less than 100 tokens. Given: 800 bytes, at least 115"),
    ] {
        let reply = harness.post("/generate", json!({"inputs": inputs})).await;
        assert_eq!(reply.status, 422);
        assert_eq!(reply.json()["error"], format!("Input validation error: {message}"));
    }
}

/// `(body, status, part of the message)`.
fn bodies() -> Vec<(&'static [u8], u16, &'static str)> {
    vec![
        (b"", 400, "EOF"),
        (br#"{"inputs": "a", }"#, 400, "trailing comma"),
        (br#"{"inputs": "a"} x"#, 400, "trailing characters"),
        (br#"{"inputs": "a"}}}"#, 400, "trailing characters"),
        (b"{\"inputs\": \"\xff\"}", 400, "unicode"),
        (br#"{"inputs": "\ud800"}"#, 400, "not valid JSON"),
        (br#"{"inputs": "a", "parameters": {"temperature": 1e400}}"#, 400, "number out of range"),
        (br#"{"inputs": "a", "parameters": {"temperature": NaN}}"#, 400, "expected value"),
        (br#"[1]"#, 422, "must be a JSON object"),
        (br#"["a", {"max_new_tokens": 1}]"#, 422, "must be a JSON object"),
        (br#"{}"#, 422, "missing field `inputs`"),
        (br#"{"inputs": null}"#, 422, "missing field `inputs`"),
        (br#"{"inputs": 1}"#, 422, "`inputs`: invalid type: integer `1`, expected a string"),
        (br#"{"inputs": ["a"]}"#, 422, "`inputs`"),
        (br#"{"inputs": "a", "parameters": []}"#, 422, "`parameters`: invalid type: sequence"),
        (br#"{"inputs": "a", "parameters": {"max_new_tokens": 1.5}}"#, 422, "`parameters.max_new_tokens`"),
        (br#"{"inputs": "a", "parameters": {"temperature": "0.5"}}"#, 422, "`parameters.temperature`"),
        (br#"{"inputs": "a", "parameters": {"seed": -1}}"#, 422, "`parameters.seed`"),
        (br#"{"inputs": "a", "parameters": {"stop": [1]}}"#, 422, "`parameters.stop[0]`"),
        (br#"{"inputs": "a", "parameters": {"temprature": 1}}"#, 422, "unknown field `temprature`"),
        (br#"{"inputs": "a", "input": "b"}"#, 422, "unknown field `input`"),
        (br#"{"inputs": "a", "inputs": "b"}"#, 422, "duplicate field `inputs`"),
        (br#"{"inputs": "a", "stream": true}"#, 422, "`/generate_stream`"),
    ]
}

#[tokio::test]
async fn bodies_that_are_not_what_the_route_takes() {
    let harness = scripted(Script::Words);
    for (body, status, part) in bodies() {
        let reply = harness.post_text("/generate", body).await;
        let text = String::from_utf8_lossy(body);
        assert_eq!(reply.status.as_u16(), status, "{text}: {}", reply.body);
        assert_eq!(reply.json()["error_type"], "validation");
        assert!(reply.json()["error"].as_str().unwrap().contains(part), "{text}: {}", reply.body);
    }
}

#[tokio::test]
async fn content_types() {
    let harness = scripted(Script::Words);
    for (given, status) in [
        (Some("application/json; charset=utf-8"), 200),
        (Some("application/vnd.x+json"), 200),
        (Some("APPLICATION/JSON"), 200),
        (Some("text/plain"), 415),
        (Some("application/jsonp"), 415),
        (None, 415),
    ] {
        let request =
            given.into_iter().fold(Request::post("/generate"), |request, given| request.header("content-type", given));
        let reply = harness.send(request.body(Body::from(r#"{"inputs":"a"}"#)).unwrap()).await;
        assert_eq!(reply.status.as_u16(), status, "{given:?}");
    }
}

#[tokio::test]
async fn bodies_over_the_limit() {
    let harness = scripted(Script::Words);
    let infer = "/v2/models/m/versions/1/infer";
    let alias = "/v1/endpoints/1/deployedModels/2:predict";
    let tgi =
        ["/", "/generate", "/generate_stream", "/tokenize", "/chat_tokenize", "/invocations", "/vertex", infer, alias];
    for path in tgi {
        let reply = harness.post(path, json!({"inputs": "a".repeat(3000)})).await;
        assert_eq!(reply.status, 413, "{path}");
        assert!(reply.json()["error"].as_str().unwrap().contains("2000 bytes"));
    }
    for path in ["/v1/completions", "/v1/chat/completions"] {
        let reply = harness.post(path, json!({"prompt": "a".repeat(3000)})).await;
        assert_eq!(reply.status, 413, "{path}");
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains("2000 bytes"));
    }
}

/// `(fields, field at fault, part of the message)`: refused by chat with 400.
fn chat_fields() -> Vec<(Value, &'static str, &'static str)> {
    let part = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]);
    vec![
        (json!({"top_p": 2}), "top_p", "must be > 0.0 and <= 1.0"),
        (json!({"temperature": -0.1}), "temperature", "must be >= 0.0"),
        (json!({"temperature": "0.5"}), "temperature", "invalid type: string"),
        (json!({"max_tokens": 9000}), "max_tokens", "`messages` tokens + `max_tokens` must be <= 120"),
        (json!({"max_tokens": 0}), "max_tokens", "strictly positive"),
        (json!({"max_tokens": 1, "max_completion_tokens": 2}), "max_tokens", "give one of them"),
        (json!({"n": 0}), "n", "strictly positive"),
        (json!({"n": 1000000}), "n", "must be <= 4 (`--max-client-batch-size`). Given: 1000000"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs", "must be >= 0 and <= 5"),
        (json!({"top_logprobs": 1}), "top_logprobs", "needs `logprobs`"),
        (
            json!({"truncate_prompt_tokens": 0}),
            "truncate_prompt_tokens",
            "strictly positive and less than 100. Given: 0",
        ),
        (json!({"truncate_prompt_tokens": 101}), "truncate_prompt_tokens", "less than 100. Given: 101"),
        (json!({"truncate_prompt_tokens": -2}), "truncate_prompt_tokens", "-1 for 100"),
        (
            json!({"skip_special_tokens": false, "spaces_between_special_tokens": true}),
            "spaces_between_special_tokens",
            "no space",
        ),
        (json!({"seed": 1.5}), "seed", "invalid"),
        (json!({"n": -1}), "n", "invalid"),
        (json!({"n": true}), "n", "invalid"),
        (json!({"logit_bias": {"a": 1}}), "logit_bias", "`a`"),
        (json!({"logit_bias": {"01": 1}}), "logit_bias", "`01`"),
        (json!({"logit_bias": {"1": "x"}}), "logit_bias", "must be a number"),
        (json!({"logit_bias": [1]}), "logit_bias", "sequence"),
        (json!({"stop_token_ids": [-1]}), "stop_token_ids[0]", "invalid"),
        (json!({"stop_token_ids": 1}), "stop_token_ids", "expected a sequence"),
        (json!({"min_tokens": -1}), "min_tokens", "invalid"),
        (json!({"min_tokens": 3, "max_tokens": 2}), "min_tokens", "`max_tokens`"),
        (json!({"min_p": 1.5}), "min_p", "must be >= 0.0 and <= 1.0"),
        (json!({"logit_bias": {"1": 101}}), "logit_bias", "must be >= -100.0 and <= 100.0"),
        (json!({"logit_bias": {"257": 1}}), "logit_bias", "257"),
        (json!({"stop_token_ids": [257]}), "stop_token_ids", "257"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "y": 1}]}]}),
            "messages",
            "`y`",
        ),
        (json!({"messages": [{"role": "user", "content": [{"type": "text"}]}]}), "messages", "without `text`"),
        (json!({"top_k": -2}), "top_k", "-1 for off"),
        (json!({"seed": -1}), "seed", "invalid"),
        (json!({"presence_penalty": 3}), "presence_penalty", "must be >= -2.0"),
        (json!({"stop": 5}), "stop", "a string or a list of strings"),
        (json!({"tools": [{}]}), "tools", "not supported"),
        (json!({"response_format": {"type": "json_object"}}), "response_format", "not supported"),
        (json!({"store": true}), "store", "not supported"),
        (json!({"modalities": ["audio"]}), "modalities", "not supported"),
        (json!({"nonsense": 1}), "nonsense", "unknown field"),
        (json!({"messages": []}), "messages", "cannot be empty"),
        (json!({"messages": "hi"}), "messages", "expected a sequence"),
        (json!({"messages": null}), "messages", "missing field"),
        (json!({"messages": [["user", "hi"]]}), "messages[0]", "expected an object"),
        (json!({"messages": [{"role": "alien", "content": "x"}]}), "messages", "`alien`"),
        (json!({"messages": [{"role": "user", "content": 5}]}), "messages[0].content", "a string or a list"),
        (json!({"messages": part}), "messages", "`image_url`"),
        (json!({"messages": [{"role": "user", "content": "x", "weight": 1}]}), "messages[0].weight", "unknown field"),
        (
            json!({"continue_final_message": true, "add_generation_prompt": true}),
            "continue_final_message",
            "exclude each other",
        ),
    ]
}

#[tokio::test]
async fn chat_refusals_name_the_field() {
    let harness = scripted(Script::Words);
    for (fields, field, part) in chat_fields() {
        for stream in [false, true] {
            let mut body = json!({"messages": [{"role": "user", "content": "hi"}], "stream": stream});
            for (name, value) in fields.as_object().unwrap() {
                body[name] = value.clone();
            }
            let reply = harness.post("/v1/chat/completions", body).await;
            assert_eq!(reply.status, 400, "{fields}: {}", reply.body);
            let error = &reply.json()["error"];
            assert_eq!(error["param"], field, "{fields}: {error}");
            assert_eq!(error["type"], "invalid_request_error");
            assert!(error["message"].as_str().unwrap().contains(part), "{fields}: {error}");
        }
    }
}

#[tokio::test]
async fn completion_refusals_name_the_field() {
    let harness = scripted(Script::Words);
    for (body, field) in [
        (json!({}), "prompt"),
        (json!({"prompt": ""}), "prompt"),
        (json!({"prompt": []}), "prompt"),
        (json!({"prompt": [[]]}), "prompt"),
        (json!({"prompt": ["a", ""]}), "prompt"),
        (json!({"prompt": [257]}), "prompt"),
        (json!({"prompt": [-1]}), "prompt"),
        (json!({"prompt": ["a", 1]}), "prompt"),
        (json!({"prompt": ["a", "b", "c", "d", "e"]}), "prompt"),
        (json!({"prompt": "a", "suffix": "x"}), "suffix"),
        (json!({"prompt": "a", "echo": true, "truncate_prompt_tokens": 5}), "truncate_prompt_tokens"),
        (json!({"prompt": [300], "echo": true}), "prompt"),
        (json!({"prompt": "a", "max_tokens": 0}), "max_tokens"),
        (json!({"prompt": "a", "best_of": 1, "n": 2}), "best_of"),
        (json!({"prompt": "a", "best_of": 3}), "best_of"),
        (json!({"prompt": "a", "best_of": 0}), "best_of"),
        (json!({"prompt": "a", "best_of": 1000000}), "best_of"),
        (json!({"prompt": "a", "best_of": 2, "temperature": 0}), "best_of"),
        (json!({"prompt": "a", "best_of": 2, "stream": true}), "best_of"),
        (json!({"prompt": "a", "n": 0}), "n"),
        (json!({"prompt": "a", "prompt_logprobs": 6}), "prompt_logprobs"),
        (json!({"prompt": "a", "stream_options": {}}), "stream_options"),
        (json!({"prompt": "a", "stream": true, "stream_options": {"x": 1}}), "stream_options.x"),
        (json!({"prompt": "a", "stream": true, "stream_options": {"continuous_usage_stats": true}}), "stream_options"),
        (json!({"prompt": "a", "stream": true, "prompt_logprobs": 1}), "prompt_logprobs"),
        (json!({"prompt": "a", "logprobs": 6}), "logprobs"),
        (json!({"prompt": "a", "messages": []}), "messages"),
    ] {
        let reply = harness.post("/v1/completions", body.clone()).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        assert_eq!(reply.json()["error"]["param"], field, "{body}: {}", reply.body);
    }
    assert_eq!(harness.post("/v1/completions", json!({"prompt": "a"})).await.status, 200);
}
