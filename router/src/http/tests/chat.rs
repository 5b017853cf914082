//! `/v1/chat/completions`: shapes and meanings.

use serde_json::{Value, json};

use super::harness::{Harness, Reply, Script, Settings, harness, scripted};
use crate::http::extract::RequestBody;
use crate::http::middleware::id::RequestId;
use crate::http::routes::openai::chat::types::ChatRequest;
use crate::model::SamplingDefaults;

async fn chat(harness: &Harness, fields: Value) -> Reply {
    let mut body = json!({"model": "tgi", "messages": [{"role": "user", "content": "hi"}]});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let reply = harness.post("/v1/chat/completions", body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

#[tokio::test]
async fn whole_answer() {
    insta::assert_snapshot!(chat(&scripted(Script::End(2)), json!({})).await.stable());
}

#[tokio::test]
async fn logprobs() {
    let fields = json!({"logprobs": true, "top_logprobs": 1, "model": "mine"});
    insta::assert_snapshot!(chat(&scripted(Script::End(1)), fields).await.stable());
}

#[tokio::test]
async fn several_choices_cost_one_prompt() {
    let reply = chat(&scripted(Script::Words), json!({"n": 2, "max_tokens": 2, "seed": 1})).await;
    insta::assert_snapshot!(reply.stable());
}

#[tokio::test]
async fn stop_string_is_cut() {
    for stop in [json!("rama"), json!(["rama"])] {
        let choice = chat(&scripted(Script::Words), json!({"stop": stop})).await.json()["choices"][0].clone();
        assert_eq!(choice["message"]["content"], " pere pract d");
        assert_eq!(choice["finish_reason"], "stop");
    }
}

#[tokio::test]
async fn stream() {
    insta::assert_snapshot!(chat(&scripted(Script::End(2)), json!({"stream": true})).await.stable());
}

#[tokio::test]
async fn stream_with_usage_and_logprobs() {
    let fields = json!({
        "stream": true, "stream_options": {"include_usage": true}, "logprobs": true, "max_tokens": 1,
    });
    insta::assert_snapshot!(chat(&scripted(Script::Words), fields).await.stable());
}

#[tokio::test]
async fn usage_comes_once_and_only_if_asked_for() {
    let harness = scripted(Script::Words);
    for (options, usages) in [(json!(null), 0), (json!({}), 0), (json!({"include_usage": true}), 1)] {
        let reply = chat(&harness, json!({"stream": true, "stream_options": options, "max_tokens": 2})).await;
        let with_usage = reply.frames().iter().filter(|frame| frame["usage"].is_object()).count();
        assert_eq!(with_usage, usages);
        assert!(reply.body.ends_with("data: [DONE]\n\n"));
        assert_eq!(reply.body.matches("[DONE]").count(), 1);
    }
}

#[tokio::test]
async fn stream_ids_are_constant() {
    let reply = chat(&scripted(Script::Words), json!({"stream": true, "n": 2, "max_tokens": 3})).await;
    let frames = reply.frames();
    assert!(frames[0]["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert!(frames.iter().all(|frame| frame["id"] == frames[0]["id"]));
    for index in 0..2 {
        let own: Vec<_> = frames.iter().filter(|frame| frame["choices"][0]["index"] == index).collect();
        assert_eq!(own.first().unwrap()["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
        assert_eq!(own.last().unwrap()["choices"][0]["finish_reason"], "length");
        assert_eq!(own.last().unwrap()["choices"][0]["delta"], json!({}));
    }
}

async fn prompt(harness: &Harness, messages: Value) -> String {
    let reply = harness.post("/chat_tokenize", json!({"messages": messages})).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()["templated_text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn messages_are_normalised() {
    let harness = scripted(Script::Words);
    for (messages, expected) in [
        (json!([{"role": "user", "content": null}]), "user: \nassistant:"),
        (json!([{"role": "user"}]), "user: \nassistant:"),
        (json!([{"role": "user", "content": []}]), "user: \nassistant:"),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
            "user: ab\nassistant:",
        ),
        (json!([{"role": "developer", "content": "x", "name": "n"}]), "system: x\nassistant:"),
        (
            json!([{"role": "system", "content": "x"}, {"role": "developer", "content": "y"}]),
            "system: x\ny\nassistant:",
        ),
        (
            json!([
                {"role": "assistant", "content": null, "refusal": null, "annotations": [],
                 "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "r"},
            ]),
            "assistant: \ntool: r\nassistant:",
        ),
    ] {
        assert_eq!(prompt(&harness, messages.clone()).await, expected, "{messages}");
    }
}

#[tokio::test]
async fn sampling_defaults_are_the_models_own() {
    let temperature = |value| SamplingDefaults { temperature: value, ..SamplingDefaults::default() };
    let greedy = SamplingDefaults { do_sample: Some(false), ..SamplingDefaults::default() };
    for (defaults, fields, sampled) in [
        (temperature(None), json!({}), true),
        (temperature(Some(0.0)), json!({}), false),
        (greedy, json!({}), false),
        (greedy, json!({"temperature": 0.7}), true),
        (temperature(None), json!({"temperature": 0}), false),
        (temperature(None), json!({"temperature": 1e-46}), false),
    ] {
        let harness = harness(Settings { defaults, ..Settings::default() });
        let mut own = fields.clone();
        own["messages"] = json!([{"role": "user", "content": "hi"}]);
        let body = serde_json::from_value(own).unwrap();
        let call: ChatRequest = RequestBody::read(body).unwrap();
        let requests = call.common.requests(
            &RequestId("x".into()),
            vec![crate::request::Input::Text("x".into())],
            &call.own.extras(1).unwrap(),
            &harness.serving,
        );
        let temperature = requests.unwrap()[0].sampling.temperature;
        assert_eq!(temperature > 0.0, sampled, "{fields}: {temperature}");
    }
}

#[tokio::test]
async fn neutral_and_ignored_fields_pass() {
    let fields = json!({
        "tools": [], "tool_choice": null, "logit_bias": {}, "response_format": {"type": "text"}, "store": false,
        "metadata": {"a": "b"}, "user": "u", "n": 1, "functions": null, "parallel_tool_calls": true, "max_tokens": 1,
        "max_completion_tokens": 1, "top_k": -1, "top_p": 1.0, "presence_penalty": 0, "stop": null, "seed": null,
        "service_tier": "auto", "chat_template_kwargs": {"x": 1}, "logprobs": null,
    });
    chat(&scripted(Script::Words), fields).await;
}

#[tokio::test]
async fn every_field_reaches_the_request() {
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "n": 2, "max_completion_tokens": 9, "min_tokens": 2,
        "stop": "x", "stop_token_ids": [4], "include_stop_str_in_output": true, "ignore_eos": true, "seed": 5,
        "skip_special_tokens": false, "add_special_tokens": true, "truncate_prompt_tokens": -1, "logprobs": true,
        "top_logprobs": 3, "prompt_logprobs": 1, "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1,
        "typical_p": 0.8, "repetition_penalty": 1.5, "presence_penalty": 1, "frequency_penalty": -1,
        "logit_bias": {"3": -100, "9": 0.5}, "watermark": true,
    });
    let harness = scripted(Script::Words);
    let call: ChatRequest = RequestBody::read(serde_json::from_value(body).unwrap()).unwrap();
    let requests = crate::http::routes::openai::chat::requests(call, &RequestId("x".into()), &harness.serving).unwrap();
    let seeds: Vec<_> = requests.iter().map(|request| request.sampling.seed).collect();
    assert_eq!(seeds, [Some(5), Some(6)]);
    insta::assert_debug_snapshot!(requests[0]);
}

#[tokio::test]
async fn prompt_logprobs_stand_beside_the_choices() {
    let reply = chat(&scripted(Script::Words), json!({"prompt_logprobs": 0, "max_tokens": 1})).await.json();
    let prompt = reply["prompt_logprobs"].as_array().unwrap();
    assert_eq!(prompt.len(), 19);
    assert_eq!(prompt[0], Value::Null);
    assert!(prompt[1].as_object().unwrap().values().all(|candidate| candidate["logprob"] == -0.5));
}

#[tokio::test]
async fn no_template_is_a_clear_refusal() {
    let harness = harness(Settings { template: false, ..Settings::default() });
    let body = json!({"messages": [{"role": "user", "content": "hi"}]});
    let reply = harness.post("/v1/chat/completions", body).await;
    assert_eq!(reply.status, 400);
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("no chat template"));
}
