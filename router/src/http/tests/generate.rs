//! TGI's own routes: shapes and meanings.

use serde_json::{Value, json};

use super::harness::{Harness, Script, Settings, harness, scripted};

async fn generate(harness: &Harness, parameters: Value) -> String {
    let reply = harness.post("/generate", json!({"inputs": "hi", "parameters": parameters})).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

#[tokio::test]
async fn plain_text() {
    insta::assert_snapshot!(generate(&scripted(Script::Words), json!({"max_new_tokens": 3})).await);
}

#[tokio::test]
async fn details() {
    let parameters = json!({"max_new_tokens": 2, "details": true});
    insta::assert_snapshot!(generate(&scripted(Script::Words), parameters).await);
}

#[tokio::test]
async fn prompt_details_candidates_and_seed() {
    let parameters = json!({
        "max_new_tokens": 1, "decoder_input_details": true, "top_n_tokens": 2, "seed": 18446744073709551615u64,
        "do_sample": true,
    });
    insta::assert_snapshot!(generate(&scripted(Script::Words), parameters).await);
}

#[tokio::test]
async fn end_token() {
    insta::assert_snapshot!(generate(&scripted(Script::End(1)), json!({"details": true})).await);
}

#[tokio::test]
async fn stop_string_stays_in_the_text() {
    let parameters = json!({"stop": ["rama"], "details": true, "return_full_text": true});
    insta::assert_snapshot!(generate(&scripted(Script::Words), parameters).await);
}

#[tokio::test]
async fn best_of() {
    let parameters = json!({"max_new_tokens": 1, "best_of": 2, "do_sample": true, "details": true});
    let mut body: Value = serde_json::from_str(&generate(&scripted(Script::Words), parameters).await).unwrap();
    assert!(body["details"]["seed"].is_u64());
    body["details"]["seed"] = json!(0);
    body["details"]["best_of_sequences"][0]["seed"] = json!(0);
    insta::assert_snapshot!(body.to_string());
}

#[tokio::test]
async fn missing_parameters_sample_and_empty_ones_do_not() {
    let harness = scripted(Script::Words);
    let seed = |body: String| serde_json::from_str::<Value>(&body).unwrap()["details"]["seed"].clone();
    for (parameters, sampled) in [
        (json!({}), false),
        (json!({"temperature": 1.0}), false),
        (json!({"top_p": 1.0}), false),
        (json!({"temperature": 0.5}), true),
        (json!({"top_p": 0.5}), true),
        (json!({"typical_p": 0.5}), true),
        (json!({"top_k": 5}), true),
        (json!({"do_sample": true}), true),
        (json!({"temperature": 1e-8}), false),
    ] {
        let mut with_details = parameters.clone();
        with_details["details"] = json!(true);
        let seed = seed(generate(&harness, with_details).await);
        assert_eq!(seed.is_u64(), sampled, "{parameters}: {seed}");
    }
}

#[tokio::test]
async fn compat_wraps_the_answer_and_repeats_the_prompt() {
    let body = json!({"inputs": "hi", "parameters": {"max_new_tokens": 1}});
    let reply = scripted(Script::Words).post("/", body.clone()).await;
    assert_eq!(reply.body, r#"[{"generated_text":"hi pere"}]"#);
    let other = Settings { pipeline_tag: Some("text2text-generation"), ..Settings::default() };
    assert_eq!(harness(other).post("/", body).await.body, r#"[{"generated_text":" pere"}]"#);
}

#[tokio::test]
async fn nulls_are_absent_fields() {
    let body = json!({
        "inputs": "hi", "stream": null,
        "parameters": {
            "adapter_id": null, "best_of": null, "decoder_input_details": false, "details": true, "do_sample": null,
            "frequency_penalty": null, "grammar": null, "max_new_tokens": 1, "repetition_penalty": null,
            "return_full_text": null, "seed": null, "stop": null, "temperature": null, "top_k": null,
            "top_n_tokens": null, "top_p": null, "truncate": null, "typical_p": null, "watermark": false,
        },
    });
    let reply = scripted(Script::Words).post("/", body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.json()[0]["details"]["seed"], Value::Null);
}

#[tokio::test]
async fn truncate_keeps_the_end_of_the_prompt() {
    let harness = scripted(Script::Words);
    let body = json!({"inputs": "a".repeat(500), "parameters": {"truncate": 7, "max_new_tokens": 1}});
    let reply = harness.post("/generate", body).await;
    assert_eq!(reply.header("x-prompt-tokens"), "7");
    assert_eq!(reply.header("x-compute-characters"), "500");
}

#[tokio::test]
async fn headers_tell_the_cost() {
    let body = json!({"inputs": "h\u{e9}", "parameters": {"max_new_tokens": 2}});
    let reply = scripted(Script::Words).post("/generate", body).await;
    for (name, value) in [
        ("content-type", "application/json"),
        ("x-compute-type", "test"),
        ("x-compute-time", "0.043"),
        ("x-compute-characters", "2"),
        ("x-total-time", "43"),
        ("x-validation-time", "1"),
        ("x-queue-time", "2"),
        ("x-inference-time", "40"),
        ("x-time-per-token", "20"),
        ("x-prompt-tokens", "3"),
        ("x-generated-tokens", "2"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    assert_eq!(reply.header("x-request-id").len(), 32);
}

#[tokio::test]
async fn stream_frames() {
    let body = json!({"inputs": "hi", "parameters": {"details": true, "top_n_tokens": 1}});
    let reply = scripted(Script::End(2)).post("/generate_stream", body).await;
    assert_eq!(reply.header("content-type"), "text/event-stream");
    assert_eq!(reply.header("x-accel-buffering"), "no");
    assert_eq!(reply.header("x-compute-characters"), "2");
    assert_eq!(reply.header("x-prompt-tokens"), "");
    insta::assert_snapshot!(reply.body);
}

#[tokio::test]
async fn compat_stream_repeats_the_prompt_at_the_end() {
    let body = json!({"inputs": "hi", "stream": true, "parameters": {"max_new_tokens": 2}});
    insta::assert_snapshot!(scripted(Script::Words).post("/", body).await.body);
}
