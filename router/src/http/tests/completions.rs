//! `/v1/completions`: shapes and meanings.

use serde_json::{Value, json};

use super::harness::{Harness, Reply, Script, scripted};

async fn complete(harness: &Harness, fields: Value) -> Reply {
    let reply = harness.post("/v1/completions", fields).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

#[tokio::test]
async fn whole_answer() {
    insta::assert_snapshot!(complete(&scripted(Script::End(1)), json!({"prompt": "hi"})).await.stable());
}

#[tokio::test]
async fn logprobs() {
    let fields = json!({"prompt": "hi", "max_tokens": 2, "logprobs": 2});
    insta::assert_snapshot!(complete(&scripted(Script::Words), fields).await.stable());
}

#[tokio::test]
async fn stream() {
    let fields = json!({
        "prompt": "hi", "max_tokens": 2, "logprobs": 0, "stream": true, "stream_options": {"include_usage": true},
    });
    insta::assert_snapshot!(complete(&scripted(Script::Words), fields).await.stable());
}

#[tokio::test]
async fn every_kind_of_prompt() {
    let harness = scripted(Script::Words);
    for (prompt, choices, prompt_tokens) in [
        (json!("abc"), 1, 3),
        (json!(["abc", "d"]), 2, 4),
        (json!([1, 2, 3, 4, 5]), 1, 5),
        (json!([[1, 2], [256]]), 2, 3),
    ] {
        let reply = complete(&harness, json!({"prompt": prompt, "max_tokens": 2})).await;
        let body = reply.json();
        assert_eq!(body["choices"].as_array().unwrap().len(), choices);
        assert_eq!(body["usage"]["prompt_tokens"], prompt_tokens);
        assert_eq!(body["usage"]["completion_tokens"], 2 * choices);
        assert_eq!(reply.header("x-prompt-tokens"), prompt_tokens.to_string());
    }
}

#[tokio::test]
async fn choices_of_several_prompts_are_numbered_in_their_order() {
    let fields = json!({"prompt": ["abc", "d"], "n": 2, "max_tokens": 1});
    let body = complete(&scripted(Script::Words), fields).await.json();
    let indices: Vec<_> = body["choices"].as_array().unwrap().iter().map(|choice| choice["index"].clone()).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    assert_eq!(body["usage"]["prompt_tokens"], 4);
    assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 6);
}
