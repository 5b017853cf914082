//! A router whose engine follows a script, and a client that calls it in process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use text_generation_protocol::config::Limits;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokio::sync::watch;
use tower::ServiceExt;

use super::corpus;
use crate::chat::{ChatTemplate, Replacement};
use crate::engine::{Engine, EngineLimits};
use crate::error::Error;
use crate::event::{Done, Event, FinishReason, PromptToken, Timings, Token, TokenEvent};
use crate::http::{HttpConfig, ModelCard, Readiness, Server, Serving, router};
use crate::model::SamplingDefaults;
use crate::queue::{Admission, Entry, Prompts};
use crate::telemetry::Metrics;
use crate::text::{EncodePool, StopMatcher, Tokenizer};

/// What the scripted engine says, token by token.
pub const WORDS: [&str; 6] = [" pere", " pract", " drama", " d\u{e9}j\u{e0}", " \u{1f642}", " end"];
/// Its end token.
const END: &str = "<|end|>";
/// Renders each message as `role: content` lines.
const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
                        {% if add_generation_prompt %}assistant:{% endif %}";

/// How the scripted engine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// `WORDS` over and over until the budget is used up.
    Words,
    /// So many words, then the end token.
    End(usize),
    /// So many words, then an error.
    Fail(usize),
    /// Nothing, until the client goes away.
    Silence,
    /// What `corpus` generates from this seed.
    Corpus(u64),
}

/// A router with everything behind it.
pub struct Harness {
    pub router: Router,
    pub readiness: watch::Sender<Readiness>,
    pub serving: Arc<Serving>,
}

/// Settings of a harness that tests change.
pub struct Settings {
    pub script: Script,
    pub limits: Limits,
    pub api_key: Option<&'static str>,
    pub pipeline_tag: Option<&'static str>,
    pub defaults: SamplingDefaults,
    pub template: bool,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            script: Script::Words,
            limits: Limits { payload_limit: 2000, enable_prefill_logprobs: true, ..Limits::default() },
            api_key: None,
            pipeline_tag: None,
            defaults: SamplingDefaults::default(),
            template: true,
        }
    }
}

/// A router that answers by this script.
pub fn scripted(script: Script) -> Harness {
    harness(Settings { script, ..Settings::default() })
}

/// A router with these settings; prompts of up to 100 bytes, 120 tokens in all.
pub fn harness(settings: Settings) -> Harness {
    let limits = EngineLimits {
        max_input_tokens: 100,
        max_total_tokens: 120,
        max_batch_prefill_tokens: 100,
        max_batch_total_tokens: 1000,
        max_batch_size: 8,
    };
    let folder = model_folder(settings.template);
    let tokenizer = Tokenizer::load(folder.path()).unwrap();
    let template = ChatTemplate::load(folder.path(), &Replacement::default()).unwrap().map(Arc::new);
    let (engine, mut entries) = Engine::channel(limits);
    let (script, vocabulary) = (settings.script, tokenizer.clone());
    tokio::spawn(async move {
        while let Some(entry) = entries.recv().await {
            match script {
                Script::Corpus(seed) => tokio::spawn(corpus::play(entry, vocabulary.clone(), seed)),
                _ => tokio::spawn(answer(entry, script)),
            };
        }
    });
    let metrics = Arc::new(Metrics::new(&limits).unwrap());
    let encoder = EncodePool::new(tokenizer.clone(), 1);
    let prompts = Prompts::new(encoder, template, 257);
    let config = HttpConfig {
        api_key: settings.api_key.map(str::to_owned),
        cors_allow_origin: Vec::new(),
        payload_limit: settings.limits.payload_limit,
        compute_type: "test".into(),
        predict_route: Some("/v1/endpoints/1/deployedModels/2:predict".into()),
        health_route: Some("/alive".into()),
    };
    let admission = Admission::new(settings.limits, prompts, engine, metrics.clone());
    let model = ModelCard {
        id: "demo".into(),
        sha: Some("abc".into()),
        pipeline_tag: settings.pipeline_tag.map(str::to_owned),
    };
    let serving = Arc::new(Serving { admission, model, defaults: settings.defaults, metrics });
    let (readiness, observed) = watch::channel(Readiness::Ready(serving.clone()));
    Harness { router: router(Server::new(config, observed)).unwrap(), readiness, serving }
}

/// A byte-level tokenizer: each byte is a token, and 256 is the end token.
fn model_folder(template: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    let vocabulary: BTreeMap<String, usize> =
        alphabet.iter().enumerate().map(|(id, character)| (character.to_string(), id)).collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let end = json!({"id": 256, "content": END, "special": true, "single_word": false, "lstrip": false,
                     "rstrip": false, "normalized": false});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [end], "normalizer": null,
        "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                  "vocab": vocabulary, "merges": []},
    });
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    if template {
        std::fs::write(folder.path().join("chat_template.jinja"), TEMPLATE).unwrap();
    }
    folder
}

/// Plays a script for one sequence.
async fn answer(entry: Entry, script: Script) {
    let send = |event| entry.events.send(event).is_ok();
    send(Event::Start { at: Instant::now() });
    if entry.prompt_logprobs.is_some() {
        let logprob = |index| (index > 0).then_some(-0.5);
        let tokens = entry.prompt.iter().enumerate();
        send(Event::Prompt(
            tokens
                .map(|(i, &id)| PromptToken { id, text: format!("t{id}"), logprob: logprob(i), top_tokens: Vec::new() })
                .collect(),
        ));
    }
    let words = match script {
        Script::Words => entry.max_new_tokens as usize,
        Script::End(words) | Script::Fail(words) => words,
        Script::Silence | Script::Corpus(_) => return entry.events.closed().await,
    };
    let mut stops = StopMatcher::new(&entry.stop);
    let mut generated_text = String::new();
    for index in 0..words {
        let word = WORDS[index % WORDS.len()];
        let (delta, stop) = stops.push(&word.into());
        generated_text.push_str(&delta);
        let length = index + 1 == words && script == Script::Words;
        send(Event::Token(token(&entry, index, word, delta, stop.is_some() || length)));
        if let Some(stop) = stop {
            let text = format!("{generated_text}{stop}");
            send(Event::Done(done(&entry, FinishReason::Stop(stop), index + 1, String::new(), text)));
            return;
        }
        tokio::task::yield_now().await;
    }
    if let Script::Fail(_) = script {
        send(Event::Error(Error::Shard("shard 0 is gone: scripted failure".into())));
        return;
    }
    let tail = stops.finish();
    generated_text.push_str(&tail);
    let (reason, count) = match script {
        Script::End(_) => {
            send(Event::Token(token(&entry, words, END, Arc::default(), true)));
            (FinishReason::EndOfSequence, words + 1)
        }
        _ => (FinishReason::Length, words),
    };
    send(Event::Done(done(&entry, reason, count, tail, generated_text)));
}

fn token(entry: &Entry, index: usize, word: &str, delta: Arc<str>, last: bool) -> TokenEvent {
    let one = |rank: u32| Token {
        id: 100 + index as u32 + rank,
        text: if rank == 0 { word.into() } else { format!("{word}{rank}").into() },
        logprob: -1.0 - rank as f32 - index as f32 / 4.0,
        special: word == END,
    };
    TokenEvent { token: one(0), top_tokens: (0..entry.top_n_tokens).map(one).collect(), delta, last }
}

/// The end of a sequence, with made-up times.
pub fn done(entry: &Entry, reason: FinishReason, count: usize, tail: String, generated_text: String) -> Box<Done> {
    Box::new(Done {
        reason,
        prompt_tokens: entry.prompt.len(),
        cached_tokens: 3,
        generated_tokens: count,
        tail,
        generated_text,
        seed: entry.sampling.seed,
        timings: Timings {
            validation: Duration::from_millis(1),
            queue: Duration::from_millis(2),
            inference: Duration::from_millis(40),
        },
    })
}

impl Harness {
    /// Posts JSON.
    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_text(path, &body.to_string()).await
    }

    /// Posts bytes as JSON.
    pub async fn post_text(&self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.as_ref().to_vec())).unwrap()).await
    }

    /// Gets a page.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: parts.status, headers: parts.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The `data:` frames that are JSON.
    pub fn frames(&self) -> Vec<Value> {
        let data = self.body.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body with what differs from run to run replaced.
    pub fn stable(&self) -> String {
        let without_ids = replace_after(&self.body, "cmpl-", |c| c.is_ascii_hexdigit(), "ID");
        replace_after(&without_ids, "\"created\":", |c| c.is_ascii_digit(), "TIME")
    }
}

fn replace_after(text: &str, mark: &str, part: fn(char) -> bool, with: &str) -> String {
    let mut pieces = text.split(mark);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(mark);
        out.push_str(with);
        out.push_str(piece.trim_start_matches(part));
    }
    out
}
