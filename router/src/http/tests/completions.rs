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

#[tokio::test]
async fn echo_scores_the_prompt() {
    let fields = json!({"prompt": "hi", "max_tokens": 1, "logprobs": 1, "echo": true});
    insta::assert_snapshot!(complete(&scripted(Script::Words), fields).await.stable());
}

#[tokio::test]
async fn echo_without_a_token() {
    for stream in [false, true] {
        let options = if stream { json!({"include_usage": true}) } else { json!(null) };
        let fields = json!({
            "prompt": [1, 256], "max_tokens": 0, "logprobs": 1, "echo": true, "stream": stream, "stream_options": options,
        });
        insta::assert_snapshot!(complete(&scripted(Script::Words), fields).await.stable());
    }
}

#[tokio::test]
async fn echo_of_token_ids_is_their_text() {
    let harness = scripted(Script::Words);
    let ids = harness.post("/tokenize", json!({"prompt": "h\u{e9} \u{1f642}"})).await.json()["tokens"].clone();
    let fields = json!({"prompt": [ids], "max_tokens": 1, "echo": true, "n": 2});
    for choice in complete(&harness, fields).await.json()["choices"].as_array().unwrap() {
        assert_eq!(choice["text"], "h\u{e9} \u{1f642} pere");
        assert_eq!(choice["logprobs"], Value::Null);
    }
}

#[tokio::test]
async fn prompt_logprobs_have_vllms_shape() {
    let fields = json!({"prompt": "hi", "max_tokens": 1, "prompt_logprobs": 1});
    insta::assert_snapshot!(complete(&scripted(Script::Words), fields).await.stable());
}

#[tokio::test]
async fn best_of_answers_with_the_likeliest() {
    let harness = scripted(Script::Corpus(7));
    let sum = |choice: &Value| -> f64 {
        choice["logprobs"]["token_logprobs"].as_array().unwrap().iter().map(|logprob| logprob.as_f64().unwrap()).sum()
    };
    let common =
        json!({"prompt": ["a", "b"], "seed": 3, "logprobs": 0, "ignore_eos": true, "skip_special_tokens": false});
    let mut every = common.clone();
    every["n"] = json!(2);
    let every = complete(&harness, every).await.json();
    let mut best = common;
    best["best_of"] = json!(2);
    let best = complete(&harness, best).await.json();
    for prompt in 0..2 {
        let choice = &best["choices"][prompt];
        assert_eq!(choice["index"], prompt);
        let candidates = [&every["choices"][2 * prompt], &every["choices"][2 * prompt + 1]];
        let likeliest = candidates.into_iter().max_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap();
        assert_eq!(choice["text"], likeliest["text"]);
    }
    assert_eq!(best["choices"].as_array().unwrap().len(), 2);
    // Every token that was generated is paid for.
    assert_eq!(best["usage"], every["usage"]);
}

#[tokio::test]
async fn what_stopped_the_text_is_told() {
    let harness = scripted(Script::Words);
    let fields = json!({"prompt": "hi", "stop": ["rama"]});
    assert_eq!(complete(&harness, fields).await.json()["choices"][0]["stop_reason"], "rama");
    let fields = json!({"prompt": "hi", "max_tokens": 1, "stop": ["rama"]});
    assert_eq!(complete(&harness, fields).await.json()["choices"][0].get("stop_reason"), None);
}

#[tokio::test]
async fn tokens_by_their_ids() {
    let fields = json!({"prompt": "hi", "max_tokens": 1, "logprobs": 1, "return_tokens_as_token_ids": true});
    let choice = complete(&scripted(Script::Words), fields).await.json()["choices"][0].clone();
    assert_eq!(choice["logprobs"]["tokens"], json!(["token_id:100"]));
    assert_eq!(choice["logprobs"]["top_logprobs"], json!([{"token_id:100": -1.0}]));
    assert_eq!(choice["text"], " pere");
}

#[tokio::test]
async fn usage_in_every_chunk() {
    let fields = json!({
        "prompt": "hi", "max_tokens": 2, "stream": true,
        "stream_options": {"include_usage": true, "continuous_usage_stats": true},
    });
    let reply = complete(&scripted(Script::Words), fields).await;
    let usage =
        |frame: &Value| (frame["usage"]["prompt_tokens"].as_u64(), frame["usage"]["completion_tokens"].as_u64());
    let usages: Vec<_> = reply.frames().iter().map(usage).collect();
    assert_eq!(usages, [1, 2, 2, 2].map(|tokens| (Some(2), Some(tokens))));
}

#[tokio::test]
async fn truncated_prompts() {
    let harness = scripted(Script::Words);
    for (keep, tokens) in [(json!(7), 7), (json!(-1), 100), (json!(100), 100)] {
        let fields = json!({"prompt": "a".repeat(500), "max_tokens": 1, "truncate_prompt_tokens": keep});
        assert_eq!(complete(&harness, fields).await.json()["usage"]["prompt_tokens"], tokens);
    }
}
