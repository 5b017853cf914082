//! Streamed equals whole, byte for byte and field for field, over a generated corpus and generated calls.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Harness, Reply, Script, scripted};

/// A choice, put together from an answer of either kind.
#[derive(Debug, Default, PartialEq)]
struct Choice {
    text: String,
    /// The members of `logprobs`, each a list.
    logprobs: BTreeMap<String, Vec<Value>>,
    finish_reason: Value,
    stop_reason: Value,
}

// === impl Choice ===

impl Choice {
    fn add(&mut self, piece: &Value) {
        assert_eq!(self.finish_reason, Value::Null, "nothing follows the reason: {piece}");
        let message = if piece["delta"].is_object() { &piece["delta"] } else { &piece["message"] };
        let text = piece["text"].as_str().or(message["content"].as_str());
        self.text.push_str(text.unwrap_or_default());
        for (name, list) in piece["logprobs"].as_object().into_iter().flatten() {
            self.logprobs.entry(name.clone()).or_default().extend(list.as_array().unwrap().iter().cloned());
        }
        self.finish_reason = piece["finish_reason"].clone();
        self.stop_reason = piece["stop_reason"].clone();
    }

    /// Lists without an entry are as good as none: a stream without text has no place for them.
    fn normal(mut self) -> Self {
        self.logprobs.retain(|_, list| !list.is_empty());
        self
    }
}

/// The choices of answers or chunks, by index.
fn choices(pieces: &[Value]) -> BTreeMap<u64, Choice> {
    let mut choices: BTreeMap<u64, Choice> = BTreeMap::new();
    for piece in pieces.iter().flat_map(|piece| piece["choices"].as_array().unwrap()) {
        choices.entry(piece["index"].as_u64().unwrap()).or_default().add(piece);
    }
    choices.into_iter().map(|(index, choice)| (index, choice.normal())).collect()
}

fn check_order(streamed: &Reply, choices: usize) {
    let frames = streamed.frames();
    assert!(streamed.body.ends_with("data: [DONE]\n\n"));
    assert_eq!(streamed.body.matches("[DONE]").count(), 1);
    assert_eq!(frames.iter().filter(|frame| frame["choices"] == json!([])).count(), 1);
    assert!(frames.iter().all(|frame| frame["id"] == frames[0]["id"]));
    let finished = frames.iter().filter(|frame| frame["choices"][0]["finish_reason"].is_string()).count();
    assert_eq!(finished, choices);
}

/// Where each generated token begins, and that it does.
fn check_offsets(choice: &Value, echoed: usize) {
    let text: Vec<char> = choice["text"].as_str().unwrap().chars().collect();
    let Some(logprobs) = choice["logprobs"].as_object() else { return };
    let tokens = logprobs["tokens"].as_array().unwrap().iter().zip(logprobs["text_offset"].as_array().unwrap());
    for (token, offset) in tokens.skip(echoed) {
        let rest: String = text[offset.as_u64().unwrap() as usize..].iter().collect();
        let token = token.as_str().unwrap();
        assert!(rest.starts_with(token) || token.starts_with(&rest), "{token:?} at {offset} in {rest:?}");
    }
}

async fn both(harness: &Harness, path: &str, mut body: Value) -> (Reply, Reply) {
    let whole = harness.post(path, body.clone()).await;
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true, "continuous_usage_stats": body["n"] == 2});
    let streamed = harness.post(path, body.clone()).await;
    assert_eq!(
        (whole.status.as_u16(), streamed.status.as_u16()),
        (200, 200),
        "{body}: {} {}",
        whole.body,
        streamed.body
    );
    (whole, streamed)
}

fn check(body: &Value, whole: &Reply, streamed: &Reply) {
    let (answer, frames) = (whole.json(), streamed.frames());
    let expected = choices(std::slice::from_ref(&answer));
    assert_eq!(choices(&frames), expected, "{body}");
    assert_eq!(frames.last().unwrap()["usage"], answer["usage"], "{body}");
    check_order(streamed, expected.len());
}

/// Fields of chat and completions alike.
fn common() -> impl Strategy<Value = Value> {
    let stops = prop::sample::select(vec![json!(null), json!("STOP"), json!(["OP", "\u{1f642}"]), json!(["zz", " t"])]);
    let stop_tokens = prop::sample::select(vec![json!([]), json!([64, 97])]);
    (1..=2_usize, 1..30_u32, stops, stop_tokens, any::<[bool; 3]>(), any::<u32>()).prop_map(
        |(n, max_tokens, stop, stop_token_ids, flags, seed)| {
            json!({
                "n": n, "max_tokens": max_tokens, "stop": stop, "stop_token_ids": stop_token_ids, "seed": seed,
                "include_stop_str_in_output": flags[0], "skip_special_tokens": flags[1],
                "return_tokens_as_token_ids": flags[2],
            })
        },
    )
}

fn prompts() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!("h\u{e9}"), json!(["a", "\u{1f642}b"]), json!([5, 6, 7]), json!([[5], [7, 8]])])
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn completions(
        script in any::<u64>(),
        common in common(),
        prompt in prompts(),
        echo in any::<bool>(),
        alone in any::<bool>(),
        logprobs in prop::option::of(0..3_u32),
    ) {
        run(async {
            let mut body = common;
            body["prompt"] = prompt;
            body["echo"] = json!(echo);
            body["logprobs"] = json!(logprobs);
            if echo && alone {
                body["max_tokens"] = json!(0);
            }
            let (whole, streamed) = both(&scripted(Script::Corpus(script)), "/v1/completions", body.clone()).await;
            check(&body, &whole, &streamed);
            let answer = whole.json();
            if echo && alone {
                assert_eq!(answer["usage"]["completion_tokens"], 0);
            }
            if !(echo || body["return_tokens_as_token_ids"] == true) {
                answer["choices"].as_array().unwrap().iter().for_each(|choice| check_offsets(choice, 0));
            }
        });
    }

    #[test]
    fn chat(script in any::<u64>(), common in common(), top_logprobs in prop::option::of(0..3_u32)) {
        run(async {
            let mut body = common;
            body["messages"] = json!([{"role": "user", "content": "hi"}]);
            body["logprobs"] = json!(top_logprobs.is_some());
            body["top_logprobs"] = json!(top_logprobs);
            let (whole, streamed) = both(&scripted(Script::Corpus(script)), "/v1/chat/completions", body.clone()).await;
            check(&body, &whole, &streamed);
            if body["return_tokens_as_token_ids"] == false && top_logprobs.is_some() {
                check_bytes(&whole.json());
            }
        });
    }
}

/// The tokens of an answer spell its text, but for a stop string or an incomplete character that the last one brought.
fn check_bytes(answer: &Value) {
    for choice in answer["choices"].as_array().unwrap() {
        let text = choice["message"]["content"].as_str().unwrap();
        let tokens = choice["logprobs"]["content"].as_array().unwrap();
        let bytes = tokens.iter().flat_map(|token| token["bytes"].as_array().unwrap());
        let bytes: Vec<u8> = bytes.map(|byte| byte.as_u64().unwrap() as u8).collect();
        let spelt = String::from_utf8(bytes).unwrap();
        let rest = text.strip_prefix(spelt.as_str());
        let incomplete = rest.is_some_and(|rest| rest.chars().all(|left| left == char::REPLACEMENT_CHARACTER));
        assert!(spelt.starts_with(text) || incomplete, "{text:?} {spelt:?}");
    }
}
