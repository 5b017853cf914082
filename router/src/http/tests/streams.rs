//! What holds for streams whatever the API: same text as without, real statuses, nothing left behind.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::BytesMut;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::harness::{Harness, Reply, Script, Settings, harness, scripted};

fn messages() -> Value {
    json!([{"role": "user", "content": "hi"}])
}

async fn both(harness: &Harness, path: (&str, &str), mut body: Value) -> (Reply, Reply) {
    let whole = harness.post(path.0, body.clone()).await;
    if path.0 == path.1 {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    let streamed = harness.post(path.1, body).await;
    assert_eq!((whole.status.as_u16(), streamed.status.as_u16()), (200, 200), "{} {}", whole.body, streamed.body);
    (whole, streamed)
}

#[tokio::test]
async fn streamed_text_equals_whole_text() {
    for script in [Script::Words, Script::End(4)] {
        let harness = scripted(script);
        for stop in [json!([]), json!(["rama"]), json!(["zzzz"]), json!([" end of"])] {
            let fields = json!({"prompt": "hi", "max_tokens": 6, "stop": stop});
            let (whole, streamed) = both(&harness, ("/v1/completions", "/v1/completions"), fields).await;
            let text = |frame: &Value| frame["choices"][0]["text"].as_str().unwrap_or_default().to_owned();
            let joined: String = streamed.frames().iter().map(text).collect();
            assert_eq!(joined, whole.json()["choices"][0]["text"]);
            assert_eq!(streamed.frames().last().unwrap()["usage"], whole.json()["usage"]);

            let fields = json!({"messages": messages(), "max_tokens": 6, "stop": stop});
            let (whole, streamed) = both(&harness, ("/v1/chat/completions", "/v1/chat/completions"), fields).await;
            let text = |frame: &Value| frame["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned();
            let joined: String = streamed.frames().iter().map(text).collect();
            assert_eq!(joined, whole.json()["choices"][0]["message"]["content"]);

            let fields = json!({"inputs": "hi", "parameters": {"max_new_tokens": 6, "stop": stop, "details": true}});
            let (whole, streamed) = both(&harness, ("/generate", "/generate_stream"), fields).await;
            let last = streamed.frames().last().unwrap().clone();
            assert_eq!(last["generated_text"], whole.json()["generated_text"]);
            assert_eq!(last["details"]["finish_reason"], whole.json()["details"]["finish_reason"]);
        }
    }
}

#[tokio::test]
async fn what_fails_before_the_first_token_has_a_status() {
    let harness = scripted(Script::Fail(0));
    let native = json!({"inputs": "hi"});
    let reply = harness.post("/generate_stream", native).await;
    assert_eq!(reply.status, 424);
    assert_eq!(reply.json()["error_type"], "generation");
    let reply = harness.post("/v1/chat/completions", json!({"messages": messages(), "stream": true})).await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json()["error"]["type"], "server_error");
}

#[tokio::test]
async fn what_fails_later_is_a_frame() {
    let harness = scripted(Script::Fail(1));
    insta::assert_snapshot!(harness.post("/generate_stream", json!({"inputs": "hi"})).await.body);
    let reply = harness.post("/v1/completions", json!({"prompt": "hi", "stream": true})).await;
    insta::assert_snapshot!(reply.stable());
}

/// Waits until every place is free again.
async fn all_free(harness: &Harness) {
    tokio::time::timeout(Duration::from_secs(5), harness.serving.admission.idle()).await.unwrap();
}

#[tokio::test]
async fn places_come_back_on_every_path() {
    let harness = scripted(Script::Words);
    harness.post("/generate", json!({"inputs": "hi"})).await;
    harness.post("/generate", json!({"inputs": ""})).await;
    harness.post("/generate_stream", json!({"inputs": "hi"})).await;
    harness.post("/v1/completions", json!({"prompt": ["a", ""], "n": 2})).await;
    harness.post("/tokenize", json!({"inputs": "hi"})).await;
    all_free(&harness).await;
}

#[tokio::test]
async fn a_dropped_call_cancels_its_sequence() {
    let harness = scripted(Script::Silence);
    let body = json!({"inputs": "hi"}).to_string();
    for path in ["/generate", "/generate_stream"] {
        let request = Request::post(path).header("content-type", "application/json");
        let call = harness.router.clone().oneshot(request.body(Body::from(body.clone())).unwrap());
        let abandoned = tokio::time::timeout(Duration::from_millis(50), call).await;
        assert!(abandoned.is_err(), "the scripted engine says nothing");
        all_free(&harness).await;
    }
}

#[tokio::test]
async fn a_dropped_stream_cancels_its_sequence() {
    let harness = scripted(Script::Words);
    let request = Request::post("/generate_stream").header("content-type", "application/json");
    let body = json!({"inputs": "hi"}).to_string();
    let response = harness.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let mut body = response.into_body();
    assert!(body.frame().await.is_some());
    drop(body);
    all_free(&harness).await;
}

#[tokio::test]
async fn overload_is_refused_at_once_and_before_anything_else() {
    let mut settings = Settings { script: Script::Silence, ..Settings::default() };
    settings.limits.max_concurrent_requests = 1;
    let harness = harness(settings);
    let place = harness.serving.admission.enter(1).unwrap();
    let reply = harness.post("/generate", json!({"inputs": "hi", "parameters": {"max_new_tokens": 0}})).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.body, r#"{"error":"Model is overloaded","error_type":"overloaded"}"#);
    assert_eq!(reply.header("retry-after"), "1");
    let reply = harness.post("/v1/completions", json!({"prompt": "hi", "stream": true})).await;
    assert_eq!((reply.status.as_u16(), reply.header("retry-after")), (429, "1"));
    assert_eq!(reply.json()["error"]["type"], "rate_limit_error");
    drop(place);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    use crate::event::{Event, Token, TokenEvent};
    use crate::http::sse;
    use crate::queue::Generation;

    struct Silent;
    impl sse::Frames for Silent {
        fn event(&mut self, _sequence: usize, _event: Event, out: &mut BytesMut) {
            out.extend_from_slice(b"data: x\n\n");
        }
        fn end(&mut self, _out: &mut BytesMut) {}
        fn error(&mut self, _error: crate::error::Error, _out: &mut BytesMut) {}
    }

    let harness = scripted(Script::Silence);
    let (events, receiver) = tokio::sync::mpsc::unbounded_channel();
    let place = std::sync::Arc::new(tokio::sync::Semaphore::new(1)).try_acquire_owned().unwrap();
    let generation = Generation::new("x".into(), (1, 1), receiver, place, harness.serving.metrics.clone());
    let token = Token { id: 1, text: "a".into(), logprob: -1.0, special: false };
    events.send(Event::Token(TokenEvent { token, top_tokens: Vec::new(), delta: "a".into(), last: false })).unwrap();
    let response = sse::respond_with(vec![generation], Silent, Duration::from_millis(20)).await.unwrap();
    let mut body = response.into_body();
    let started = tokio::time::Instant::now();
    for expected in [&b"data: x\n\n"[..], b":\n\n", b":\n\n"] {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), expected);
    }
    assert!(started.elapsed() >= Duration::from_millis(40));
}
