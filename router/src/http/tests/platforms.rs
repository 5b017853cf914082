//! The routes of serving platforms: SageMaker, Vertex AI, KServe.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::harness::{Script, Settings, harness, scripted};
use crate::http::{HttpConfig, Server, router};

const INFER: &str = "/v2/models/any/versions/7/infer";
const PREDICT: &str = "/v1/endpoints/1/deployedModels/2:predict";

fn chat(max_tokens: u32) -> Value {
    json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": max_tokens})
}

#[tokio::test]
async fn invocations_take_three_bodies_and_their_streams() {
    let harness = scripted(Script::Words);
    let reply = harness.post("/invocations", json!({"inputs": "hi", "parameters": {"max_new_tokens": 1}})).await;
    assert_eq!(reply.body, r#"[{"generated_text":"hi pere"}]"#);
    assert_eq!(reply.header("x-generated-tokens"), "1");
    let reply = harness.post("/invocations", chat(2)).await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], " pere pract");
    let reply = harness.post("/invocations", json!({"prompt": "hi", "max_tokens": 1})).await;
    assert_eq!(reply.json()["choices"][0]["text"], " pere");
    let streams = [
        json!({"inputs": "hi", "stream": true, "parameters": {"max_new_tokens": 1}}),
        json!({"prompt": "hi", "stream": true, "max_tokens": 1}),
    ];
    for body in streams {
        assert_eq!(harness.post("/invocations", body).await.header("content-type"), "text/event-stream");
    }
}

#[tokio::test]
async fn invocations_refuse_in_the_frame_of_tgi() {
    let harness = scripted(Script::Words);
    for (body, part) in [
        (json!({}), "one of `inputs`"),
        (json!({"messages": [], "inputs": 5}), "`inputs`"),
        (json!({"messages": []}), "`messages` cannot be empty"),
        (json!({"prompt": "a", "nonsense": 1}), "`nonsense`"),
    ] {
        let reply = harness.post("/invocations", body.clone()).await;
        assert_eq!(reply.status, 422, "{body}");
        assert!(reply.json()["error"].as_str().unwrap().contains(part), "{body}: {}", reply.body);
    }
}

#[tokio::test]
async fn vertex_answers_every_instance_in_order() {
    let harness = scripted(Script::Words);
    let text = json!({"inputs": "hi", "parameters": {"max_new_tokens": 1, "return_full_text": true}});
    let stopped = json!({"inputs": "hi", "parameters": {"stop": ["rama"]}});
    let body = json!({"instances": [text, chat(2), stopped]});
    for path in ["/vertex", PREDICT] {
        let reply = harness.post(path, body.clone()).await;
        assert_eq!(reply.body, r#"{"predictions":["hi pere"," pere pract"," pere pract drama"]}"#, "{path}");
        assert_eq!(reply.header("x-compute-type"), "");
    }
    assert_eq!(harness.get("/alive").await.status, 200);
    let reply = harness.get(PREDICT).await;
    assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, "POST"));
}

#[tokio::test]
async fn vertex_refuses_what_it_cannot_answer() {
    let mut settings = Settings::default();
    settings.limits.max_concurrent_requests = 2;
    let harness = harness(settings);
    let text = json!({"inputs": "hi"});
    let with = |parameters: Value| json!({"instances": [{"inputs": "hi", "parameters": parameters}]});
    let asked = |name: &str, value: Value| {
        let mut body = chat(1);
        body[name] = value;
        json!({"instances": [body]})
    };
    for (body, part) in [
        (json!({}), "`instances` must be a list"),
        (json!({"instances": []}), "`instances` cannot be empty"),
        (json!({"instances": [text, text, text]}), "at most 2 items (`--max-concurrent-requests`). Given: 3"),
        (json!({"instances": [text], "parameters": {}}), "unknown field `parameters`"),
        (json!({"instances": [text, 5]}), "instances[1]"),
        (json!({"instances": [text, {"inputs": 5}]}), "instances[1]"),
        (with(json!({"details": true})), "`details` is not supported here"),
        (with(json!({"top_n_tokens": 1})), "`top_n_tokens` is not supported here"),
        (with(json!({"best_of": 2, "do_sample": true})), "`best_of`"),
        (with(json!({"top_p": 2})), "`top_p` must be > 0.0 and <= 1.0"),
        (asked("stream", json!(true)), "`stream`"),
        (asked("n", json!(2)), "`n` must be 1"),
        (asked("logprobs", json!(true)), "`logprobs`"),
    ] {
        let reply = harness.post("/vertex", body.clone()).await;
        assert_eq!(reply.status, 422, "{body}: {}", reply.body);
        assert!(reply.json()["error"].as_str().unwrap().contains(part), "{body}: {}", reply.body);
        assert_eq!(harness.post(PREDICT, body).await.body, reply.body);
    }
    assert_eq!(scripted(Script::Fail(0)).post("/vertex", json!({"instances": [text]})).await.status, 424);
}

#[tokio::test]
async fn a_configured_path_must_be_reachable() {
    for (predict, health, refused) in [
        (Some("/vertex"), Some("/health"), None),
        (Some("/predict"), Some("/predict"), None),
        (Some("/generate"), None, Some("--aip-predict-route /generate")),
        (None, Some("/info"), Some("--aip-health-route /info")),
        (Some("predict"), None, Some("begins with `/`")),
    ] {
        let config = HttpConfig {
            api_key: None,
            cors_allow_origin: Vec::new(),
            payload_limit: 1,
            compute_type: String::new(),
            predict_route: predict.map(str::to_owned),
            health_route: health.map(str::to_owned),
        };
        let (_, observed) = tokio::sync::watch::channel(crate::http::Readiness::Starting("x".into()));
        let outcome = router(Server::new(config, observed)).map(drop).map_err(|error| error.to_string());
        match refused {
            None => assert_eq!(outcome, Ok(()), "{predict:?} {health:?}"),
            Some(part) => assert!(outcome.unwrap_err().contains(part), "{part}"),
        }
    }
}

fn tensor(name: &str, text: &str) -> Value {
    json!({"name": name, "shape": [1], "datatype": "BYTES", "data": text.as_bytes()})
}

#[tokio::test]
async fn kserve_describes_itself() {
    let harness = scripted(Script::Words);
    let version = env!("CARGO_PKG_VERSION");
    let server = format!(
        r#"{{"name":"text-generation-inference","version":"{version}","extensions":["health","models","metrics"]}}"#
    );
    assert_eq!(harness.get("/v2").await.body, server);
    assert_eq!(harness.get("/v2/health/live").await.body, r#"{"live":true}"#);
    assert_eq!(harness.get("/v2/health/ready").await.body, r#"{"live":true}"#);
    let model = "/v2/models/any/versions/7";
    assert_eq!(harness.get(model).await.body, r#"{"name":"any","version":"7","extensions":["infer","ready"]}"#);
    assert_eq!(harness.get(&format!("{model}/ready")).await.body, r#"{"live":true}"#);
    harness.readiness.send_replace(crate::http::Readiness::Failed("shard 0 is gone".into()));
    assert_eq!(harness.get("/v2/health/live").await.status, 200);
    assert_eq!(harness.get("/v2/health/ready").await.status, 503);
    assert_eq!(harness.get(&format!("{model}/ready")).await.status, 503);
}

#[tokio::test]
async fn kserve_infers_in_order() {
    let body = json!({
        "id": "call-1", "inputs": [tensor("a", "hi"), tensor("b", "h\u{e9}")], "outputs": [{"name": "x"}, {"name": "y"}],
        "parameters": {"max_new_tokens": 1, "return_full_text": true},
    });
    let reply = scripted(Script::Words).post(INFER, body).await;
    let output = |name: &str, text: &str| json!({"name": name, "shape": [1, text.len()], "datatype": "BYTES", "data": text.as_bytes()});
    assert_eq!(reply.json(), json!({"id": "call-1", "outputs": [output("x", "hi pere"), output("y", "h\u{e9} pere")]}));
}

#[tokio::test]
async fn kserve_refuses_what_it_cannot_answer() {
    let harness = scripted(Script::Words);
    let infer = |inputs: Value, outputs: Value| json!({"id": "x", "inputs": inputs, "outputs": outputs});
    let output = json!([{"name": "x"}]);
    for (body, part) in [
        (infer(json!([]), json!([])), "`inputs` cannot be empty"),
        (infer(json!([tensor("a", "hi")]), json!([])), "one item for each of `inputs`. Given: 1 and 0"),
        (
            infer(json!([{"name": "a", "shape": [1], "datatype": "BYTES", "data": [255]}]), output.clone()),
            "must be UTF-8",
        ),
        (infer(json!([{"name": "a", "shape": [1], "datatype": "FP32", "data": [1]}]), output.clone()), "FP32"),
        (infer(json!([{"name": "a", "shape": [1], "datatype": "BYTES", "data": [256]}]), output.clone()), "data[0]"),
        (infer(json!([tensor("a", "")]), output.clone()), "`inputs` cannot be empty"),
        (infer(json!([tensor("a", "hi")]), json!(["x"])), "outputs[0]"),
    ] {
        let reply = harness.post(INFER, body.clone()).await;
        assert_eq!(reply.status, 422, "{body}: {}", reply.body);
        assert!(reply.json()["error"].as_str().unwrap().contains(part), "{body}: {}", reply.body);
    }
    let mut details = infer(json!([tensor("a", "hi")]), output);
    details["parameters"] = json!({"details": true});
    assert!(harness.post(INFER, details).await.body.contains("`details`"));
}

#[tokio::test]
async fn a_trace_parent_is_taken_without_a_word() {
    let request = Request::post("/generate")
        .header("content-type", "application/json")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let body = json!({"inputs": "hi", "parameters": {"max_new_tokens": 1}}).to_string();
    let reply = scripted(Script::Words).send(request.body(Body::from(body)).unwrap()).await;
    assert_eq!(reply.status, 200);
    assert!(reply.headers.get("traceparent").is_none());
}
