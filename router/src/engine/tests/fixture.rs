//! What the engine's tests share: a tiny tokenizer, an engine on a scripted shard, requests, and the reference that
//! says what a request must produce whatever else runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::shard::{POISON, ScriptedShard, VOCABULARY, next_token};
use crate::engine::{Engine, EngineLimits, EngineSetup, Geometry, Observer, Rules, start};
use crate::event::{Done, Event, EventReceiver, FinishReason, TokenEvent};
use crate::queue::Entry;
use crate::request::SamplingParameters;
use crate::shard::ShardError;
use crate::text::Tokenizer;

pub const END: u32 = 0;

/// Token `id` as text.
pub fn letter(id: u32) -> String {
    if id == END { "</s>".to_owned() } else { char::from(b'a' + id as u8 - 1).to_string() }
}

/// Letters as tokens, and an end token.
pub fn tokenizer() -> Arc<Tokenizer> {
    let vocabulary: serde_json::Map<_, _> = (0..=POISON).map(|id| (letter(id), id.into())).collect();
    let end = serde_json::json!({
        "id": END, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true
    });
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [end], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"}
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).expect("writes");
    Tokenizer::load(folder.path()).expect("a tokenizer")
}

#[derive(Default)]
pub struct Counts {
    pub imbalances: AtomicUsize,
    pub abandoned: AtomicUsize,
}

impl Observer for Counts {
    fn imbalance(&self) {
        self.imbalances.fetch_add(1, Ordering::Relaxed);
    }

    fn abandoned(&self, sequences: usize) {
        self.abandoned.fetch_add(sequences, Ordering::Relaxed);
    }
}

/// An engine that runs on a scripted shard.
pub struct Bench {
    pub engine: Engine,
    pub shard: ScriptedShard,
    pub counts: Arc<Counts>,
    task: JoinHandle<Result<(), ShardError>>,
}

/// Sizes of a bench: everything small, so that it is full soon.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub blocks: u32,
    pub block_size: usize,
    pub slots: usize,
    pub prefill: usize,
    pub step: usize,
}

impl Bench {
    pub fn new(sizes: Sizes, tokenizer: Arc<Tokenizer>) -> Self {
        let geometry = Geometry { blocks: sizes.blocks, block_size: sizes.block_size, max_step_tokens: sizes.step };
        let limits = EngineLimits {
            max_input_tokens: geometry.cache_tokens() - 1,
            max_total_tokens: geometry.cache_tokens(),
            max_batch_prefill_tokens: sizes.prefill,
            max_batch_total_tokens: geometry.cache_tokens(),
            max_batch_size: sizes.slots,
        };
        let shard = ScriptedShard::new(limits, geometry);
        let counts = Arc::new(Counts::default());
        let rules = Rules { eos_token_ids: vec![END], ..Rules::default() };
        let setup = EngineSetup { limits, geometry, tokenizer, rules, observer: counts.clone() };
        let (engine, run) = start(setup, shard.clone(), shard.clone());
        Self { engine, shard, counts, task: tokio::spawn(run) }
    }

    /// Waits until everything has ended, then checks that nothing is left anywhere.
    pub async fn finish(self) {
        let mut status = self.engine.status();
        let ended = tokio::time::timeout(Duration::from_secs(20), status.wait_for(|status| status.unfinished == 0));
        ended.await.expect("nothing starves").expect("the engine lives");
        drop(self.engine);
        self.task.await.expect("no panic").expect("no failure");
        assert_eq!(self.shard.live_rows(), 0, "every row was released");
        assert_eq!(self.counts.imbalances.load(Ordering::Relaxed), 0, "every block was freed");
    }

    /// Waits for the engine to end by itself.
    pub async fn outcome(self) -> Result<(), ShardError> {
        self.task.await.expect("no panic")
    }
}

/// A request of a test.
#[derive(Debug, Clone, Default)]
pub struct Case {
    pub prompt: Vec<u32>,
    pub max_new_tokens: u32,
    pub stop: Vec<String>,
    pub ignore_eos: bool,
    pub top_n: u32,
    pub prompt_logprobs: bool,
}

impl Case {
    pub fn entry(&self) -> (Entry, EventReceiver) {
        let (events, receiver) = mpsc::unbounded_channel();
        let entry = Entry {
            request_id: "test".into(),
            prompt: self.prompt.clone(),
            max_new_tokens: self.max_new_tokens,
            stop: self.stop.clone(),
            stop_token_ids: Vec::new(),
            include_stop: false,
            ignore_eos: self.ignore_eos,
            min_tokens: 0,
            skip_special_tokens: true,
            sampling: SamplingParameters::default(),
            top_n_tokens: self.top_n,
            prompt_logprobs: self.prompt_logprobs.then_some(0),
            events,
            received: Instant::now(),
            queued: Instant::now(),
        };
        (entry, receiver)
    }

    /// What it must produce: tokens, completion text, reason.
    pub fn reference(&self) -> (Vec<u32>, String, FinishReason) {
        let mut tokens = self.prompt.clone();
        let mut text = String::new();
        loop {
            let token = next_token(&tokens);
            tokens.push(token);
            if token != END {
                text.push_str(&letter(token));
            }
            let hit = self.stop.iter().filter_map(|stop| text.find(stop.as_str()).map(|at| (at, stop)));
            let hit = hit.min_by_key(|(at, stop)| (*at, usize::MAX - stop.len())).map(|(at, stop)| (at, stop.clone()));
            if let Some((at, _)) = hit {
                text.truncate(at);
            }
            let generated = tokens[self.prompt.len()..].to_vec();
            if generated.len() == self.max_new_tokens as usize {
                return (generated, text, FinishReason::Length);
            }
            if token == END && !self.ignore_eos {
                return (generated, text, FinishReason::EndOfSequence);
            }
            if let Some((_, stop)) = hit {
                return (generated, text, FinishReason::Stop(stop.as_str().into()));
            }
        }
    }

    /// Checks the events of a whole run against the reference.
    pub fn check(&self, events: Vec<Event>) {
        let mut events = events.into_iter();
        assert!(matches!(events.next(), Some(Event::Start { .. })));
        if self.prompt_logprobs {
            let Some(Event::Prompt(prompt)) = events.next() else { panic!("the prompt comes first") };
            assert_eq!(prompt.iter().map(|token| token.id).collect::<Vec<_>>(), self.prompt);
            assert!(prompt.iter().all(|token| token.text == letter(token.id)));
            let expected = (0..self.prompt.len()).map(|at| (at > 0).then_some(-(at as f32)));
            assert!(prompt.iter().map(|token| token.logprob).eq(expected));
        }
        let (tokens, done) = split(events);
        let (ids, text, reason) = self.reference();
        assert_eq!(tokens.iter().map(|event| event.token.id).collect::<Vec<_>>(), ids);
        assert!(tokens.iter().rev().map(|event| event.last).eq((0..ids.len()).map(|before_end| before_end == 0)));
        assert!(tokens.iter().all(|event| event.top_tokens.len() == self.top_n as usize));
        assert!(tokens.iter().all(|event| event.token.text.as_ref() == letter(event.token.id)));
        let shown = tokens.iter().map(|event| &*event.delta).chain([&*done.tail]).collect::<String>();
        assert_eq!((&shown, &done.reason), (&text, &reason));
        assert!(done.generated_text.starts_with(&text));
        assert_eq!((done.prompt_tokens, done.generated_tokens), (self.prompt.len(), ids.len()));
    }
}

fn split(events: impl Iterator<Item = Event>) -> (Vec<TokenEvent>, Done) {
    let mut tokens = Vec::new();
    let mut end = None;
    for event in events {
        assert!(end.is_none(), "nothing follows the end");
        match event {
            Event::Token(token) => tokens.push(token),
            Event::Done(done) => end = Some(*done),
            other => panic!("unexpected {other:?}"),
        }
    }
    (tokens, end.expect("an end"))
}

/// Every event until the channel closes.
pub async fn collect(mut events: EventReceiver) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(event) = events.recv().await {
        all.push(event);
    }
    all
}

/// A prompt of so many tokens, different for each seed.
pub fn prompt(length: usize, seed: u32) -> Vec<u32> {
    let mut tokens = vec![seed % VOCABULARY];
    while tokens.len() < length {
        tokens.push((next_token(&tokens) + seed) % VOCABULARY);
    }
    tokens
}
