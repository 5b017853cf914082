//! Health, info, metrics, documents, and what surrounds every route.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use super::harness::{Script, Settings, harness, scripted};
use crate::http::Readiness;

#[tokio::test]
async fn health_follows_readiness() {
    let harness = scripted(Script::Words);
    for path in ["/health", "/ping", "/"] {
        let reply = harness.get(path).await;
        assert_eq!((reply.status.as_u16(), reply.body.as_str()), (200, ""));
    }
    for (state, reason) in [
        (Readiness::Starting("loading weights".into()), "not ready: loading weights"),
        (Readiness::Draining(harness.serving.clone()), "not ready: the server is shutting down"),
        (Readiness::Failed("shard 1 is gone: killed".into()), "not ready: shard 1 is gone: killed"),
    ] {
        harness.readiness.send_replace(state);
        let reply = harness.get("/health").await;
        assert_eq!(reply.status, 503);
        assert_eq!(reply.json(), json!({"error": reason, "error_type": "healthcheck"}));
        assert_eq!(harness.post("/generate", json!({"inputs": "hi"})).await.status, 503);
        let reply = harness.post("/v1/completions", json!({"prompt": "hi"})).await;
        assert_eq!(reply.status, 503);
        assert_eq!(reply.json()["error"]["message"], reason);
        assert_eq!(harness.get("/metrics").await.status, 200);
    }
}

#[tokio::test]
async fn info_and_models() {
    let harness = scripted(Script::Words);
    let mut info = harness.get("/info").await.json();
    info["version"] = json!("VERSION");
    info["sha"] = json!(null);
    insta::assert_snapshot!(info.to_string());
    insta::assert_snapshot!(harness.get("/v1/models").await.body);
    let list = harness.get("/v1/models").await.json();
    assert_eq!(harness.get("/v1/models/demo").await.json(), list["data"][0]);
    for path in ["/v1/models/other", "/v1/models/owner/other", "/v1/models/owner%2Fother"] {
        let reply = harness.get(path).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (404, &json!("model_not_found")), "{path}");
    }
}

#[tokio::test]
async fn metrics_count_requests() {
    let harness = scripted(Script::Words);
    harness.post("/generate", json!({"inputs": "hi"})).await;
    harness.post("/generate", json!({"inputs": ""})).await;
    let reply = harness.get("/metrics").await;
    assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
    for line in [
        "tgi_request_count 2",
        "tgi_request_success 1",
        "tgi_request_failure{err=\"validation\"} 1",
        "tgi_request_generated_tokens_count 1",
        "tgi_request_duration_bucket{le=\"0.00015\"} 0",
        "tgi_request_input_length_bucket{le=\"2\"} 1",
    ] {
        assert!(reply.body.lines().any(|found| found == line), "{line}\n{}", reply.body);
    }
}

#[tokio::test]
async fn tokens_of_a_text() {
    let harness = scripted(Script::Words);
    let reply = harness.post("/tokenize", json!({"inputs": "\u{e9}<|end|>"})).await;
    insta::assert_snapshot!(reply.body);
    assert_eq!(harness.post("/tokenize", json!({"inputs": ""})).await.body, "[]");
}

#[tokio::test]
async fn tokens_in_vllms_shapes() {
    let harness = scripted(Script::Words);
    let reply = harness.post("/tokenize", json!({"model": "x", "prompt": "ab<|end|>"})).await.json();
    let ids = reply["tokens"].clone();
    assert_eq!(reply, json!({"count": 3, "max_model_len": 120, "tokens": ids}));
    assert_eq!(ids[2], 256);
    let messages = json!([{"role": "user", "content": "hi"}]);
    let chat = harness.post("/tokenize", json!({"messages": messages, "max_tokens": 5})).await.json();
    let template = harness.post("/chat_tokenize", json!({"messages": messages})).await.json();
    assert_eq!(chat["count"], template["tokenize_response"].as_array().unwrap().len());
    let reply = harness.post("/detokenize", json!({"model": "x", "tokens": ids})).await;
    assert_eq!(reply.json(), json!({"prompt": "ab<|end|>"}));
    assert_eq!(harness.post("/detokenize", json!({"tokens": []})).await.json(), json!({"prompt": ""}));
    for (path, body, part) in [
        ("/tokenize", json!({"prompt": ["a"]}), "`prompt`"),
        ("/tokenize", json!({"prompt": "a", "inputs": "a"}), "`inputs`"),
        ("/tokenize", json!({"prompt": "a", "return_token_strs": true}), "`return_token_strs`"),
        ("/tokenize", json!({"messages": []}), "`messages`"),
        ("/detokenize", json!({"tokens": [257]}), "`tokens` token ids must be < 257. Given: 257"),
        ("/detokenize", json!({"tokens": [-1]}), "`tokens[0]`"),
        ("/detokenize", json!({}), "`tokens`"),
    ] {
        let reply = harness.post(path, body.clone()).await;
        assert_eq!(reply.status, 422, "{body}");
        assert!(reply.json()["error"].as_str().unwrap().contains(part), "{body}: {}", reply.body);
    }
}

#[tokio::test]
async fn documents() {
    let harness = scripted(Script::Words);
    let reply = harness.get("/docs").await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (303, "/docs/"));
    assert!(harness.get("/docs/").await.body.contains("swagger-ui"));
    let document = harness.get("/api-doc/openapi.json").await.json();
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().cloned().collect();
    for path in ["/", "/generate", "/generate_stream", "/v1/chat/completions", "/v1/completions", "/v1/models"] {
        assert!(paths.iter().any(|found| found == path), "{path} is missing in {paths:?}");
    }
    // Every reference leads somewhere.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn the_key_protects_every_route_that_works() {
    let harness = harness(Settings { api_key: Some("Secret"), ..Settings::default() });
    let with = |path: &str, key: Option<&str>| {
        let request = Request::post(path).header("content-type", "application/json");
        let request = key.into_iter().fold(request, |request, key| request.header("authorization", key));
        let body = r#"{"inputs":"hi","parameters":{"max_new_tokens":1}}"#;
        harness.send(request.body(Body::from(body)).unwrap())
    };
    let platforms = ["/invocations", "/vertex", "/v2/models/m/versions/1/infer"];
    for path in ["/", "/generate", "/generate_stream", "/tokenize", "/chat_tokenize", "/detokenize"]
        .into_iter()
        .chain(platforms)
    {
        let reply = with(path, None).await;
        assert_eq!((reply.status.as_u16(), reply.body.as_str()), (401, ""), "{path}");
    }
    for path in ["/v1/completions", "/v1/chat/completions", "/v1/endpoints/1/deployedModels/2:predict"] {
        let reply = with(path, None).await;
        assert_eq!(reply.status, 401);
        assert_eq!(reply.json()["error"]["type"], "authentication_error");
    }
    for (key, status) in [
        ("Bearer Secret", 200),
        ("bearer Secret", 200),
        ("Bearer secret", 401),
        ("Bearer Secret2", 401),
        ("Bearer ", 401),
        ("Secret", 401),
    ] {
        assert_eq!(with("/generate", Some(key)).await.status.as_u16(), status, "{key}");
    }
    for path in ["/health", "/info", "/metrics", "/v1/models", "/v2", "/v2/health/live", "/v2/health/ready", "/alive"] {
        assert_eq!(harness.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn request_ids_come_back() {
    let harness = scripted(Script::Words);
    let with = |id: &str| harness.send(Request::get("/health").header("x-request-id", id).body(Body::empty()).unwrap());
    assert_eq!(with("my-id.1").await.header("x-request-id"), "my-id.1");
    assert_eq!(with("with space").await.header("x-request-id").len(), 32);
    assert_eq!(with(&"x".repeat(200)).await.header("x-request-id").len(), 32);
}

#[tokio::test]
async fn methods_paths_and_preflights() {
    let harness = scripted(Script::Words);
    let reply = harness.send(Request::delete("/info").body(Body::empty()).unwrap()).await;
    assert_eq!((reply.status.as_u16(), reply.header("allow"), reply.body.as_str()), (405, "GET,HEAD", ""));
    assert_eq!(harness.get("/generate").await.header("allow"), "POST");
    let reply = harness.get("/v1/completions").await;
    assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, "POST"));
    assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    let reply = harness.get("/nothing").await;
    assert_eq!((reply.status.as_u16(), reply.body.as_str()), (404, ""));
    assert_eq!(harness.get("/v1/nothing").await.json()["error"]["type"], "invalid_request_error");
    let preflight = Request::options("/generate")
        .header("origin", "https://example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization");
    let reply = harness.send(preflight.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("access-control-allow-headers").contains("authorization"));
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    assert_eq!(reply.header("access-control-allow-methods"), "GET,POST");
}
