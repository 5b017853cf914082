//! From token ids to the events of one sequence: text, stop strings, the reason of the end, timings. It runs after the
//! next plan was sent, so the device never waits for it. Knows nothing of slots, blocks or steps.

use std::sync::Arc;
use std::time::Instant;

use super::description::{Candidate, Place};
use crate::error::Error;
use crate::event::{Done, Event, EventSender, FinishReason, PromptToken, Timings, Token, TokenEvent};
use crate::queue::Entry;
use crate::text::{Detokenizer, StopMatcher, Tokenizer};

/// Why a token is a sequence's last, as far as its count and its id tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The token budget is used up. Goes before an end token.
    Length,
    /// One of the model's end tokens.
    Eos,
    /// A token that the request names as an end.
    StopToken,
}

/// A token as the shards report it.
#[derive(Debug, Clone, Copy)]
pub struct Sampled<'a> {
    /// Vocabulary id.
    pub id: u32,
    /// Natural log of its probability.
    pub logprob: f32,
    /// The best candidates, best first.
    pub top_ids: &'a [u32],
    /// Their logprobs.
    pub top_logprobs: &'a [f32],
}

/// Produces the events of one sequence.
#[derive(Debug)]
pub struct Emitter {
    tokenizer: Arc<Tokenizer>,
    events: EventSender,
    detokenizer: Detokenizer,
    stops: StopMatcher,
    include_stop: bool,
    skip_special_tokens: bool,
    min_tokens: usize,
    generated_text: String,
    generated_tokens: usize,
    prompt_tokens: usize,
    cached_tokens: usize,
    seed: Option<u64>,
    received: Instant,
    queued: Instant,
    started: Instant,
}

// === impl Emitter ===

impl Emitter {
    /// For a sequence whose first step is planned at `started`.
    pub fn new(tokenizer: Arc<Tokenizer>, entry: &Entry, cached_tokens: usize, started: Instant) -> Self {
        Self {
            detokenizer: Detokenizer::new(tokenizer.clone(), &entry.prompt),
            tokenizer,
            events: entry.events.clone(),
            stops: StopMatcher::new(&entry.stop).keeping(entry.include_stop),
            include_stop: entry.include_stop,
            skip_special_tokens: entry.skip_special_tokens,
            min_tokens: entry.min_tokens as usize,
            generated_text: String::new(),
            generated_tokens: 0,
            prompt_tokens: entry.prompt.len(),
            cached_tokens,
            seed: entry.sampling.seed.filter(|_| entry.sampling.samples()),
            received: entry.received,
            queued: entry.queued,
            started,
        }
    }

    /// Whether the client is gone.
    pub fn is_abandoned(&self) -> bool {
        self.events.is_closed()
    }

    /// Says that the first step was sent.
    pub fn start(&self) {
        self.send(Event::Start { at: self.started });
    }

    /// Reports the tokens of the prompt.
    pub fn prompt(&self, tokens: Vec<PromptToken>) {
        self.send(Event::Prompt(tokens));
    }

    /// Ends the sequence with an error.
    pub fn fail(&self, error: Error) {
        self.send(Event::Error(error));
    }

    /// One token of the prompt, as it stands in the middle of a text.
    pub fn prompt_token(&self, id: u32, place: Option<&Place>) -> PromptToken {
        let top_tokens = place.map_or_else(Vec::new, |place| self.candidates(place.candidates.iter().copied()));
        let (text, logprob) = (self.tokenizer.token_text(id), place.map(|place| place.logprob));
        PromptToken { id, text, logprob, top_tokens }
    }

    /// Reports a generated token. When `end`, or a stop string in the text, makes it the last one, reports the end too
    /// and returns true.
    pub fn token(&mut self, sampled: Sampled<'_>, end: Option<End>) -> bool {
        let special = self.tokenizer.is_special(sampled.id);
        // What ends a text is no part of it unless the request keeps it, be it special to the tokenizer or not.
        let ends = matches!(end, Some(End::Eos | End::StopToken));
        let hidden = special && self.skip_special_tokens || ends && !self.include_stop;
        let text = if hidden { self.tokenizer.token_text(sampled.id) } else { self.detokenizer.push(sampled.id) };
        let text: Arc<str> = text.into();
        self.generated_tokens += 1;
        let (delta, stop) = if hidden { (Arc::default(), None) } else { self.watch(&text) };
        self.generated_text.push_str(&delta);
        let token = Token { id: sampled.id, text, logprob: sampled.logprob, special };
        let last = end.is_some() || stop.is_some();
        let candidates = sampled.top_ids.iter().copied().zip(sampled.top_logprobs.iter().copied());
        self.send(Event::Token(TokenEvent { token, top_tokens: self.candidates(candidates), delta, last }));
        self.finish(sampled.id, end, stop)
    }

    /// Passes text through the stop strings. Those that are complete before the least number of tokens do not count.
    fn watch(&mut self, text: &Arc<str>) -> (Arc<str>, Option<Arc<str>>) {
        if self.generated_tokens > self.min_tokens { self.stops.push(text) } else { (self.stops.pass(text), None) }
    }

    fn finish(&mut self, token: u32, end: Option<End>, stop: Option<Arc<str>>) -> bool {
        // What follows a stop string is no part of the completion, whatever ended it.
        let tail = match (&stop, end) {
            (Some(stop), _) => {
                if !self.include_stop {
                    self.generated_text.push_str(stop);
                }
                String::new()
            }
            (None, Some(_)) => self.tail(),
            (None, None) => return false,
        };
        let reason = match (end, stop) {
            (Some(End::Eos), _) => FinishReason::EndOfSequence,
            (Some(End::StopToken), _) => FinishReason::StopToken(token),
            (None, Some(stop)) => FinishReason::Stop(stop),
            (Some(End::Length), _) | (None, None) => FinishReason::Length,
        };
        self.done(reason, tail);
        true
    }

    /// The text that was withheld: an incomplete character, the beginning of a stop string.
    fn tail(&mut self) -> String {
        let rest: Arc<str> = self.detokenizer.finish().into();
        let (shown, stop) = self.watch(&rest);
        let mut tail = shown.to_string();
        if stop.is_none() {
            tail.push_str(&self.stops.finish());
        }
        self.generated_text.push_str(&tail);
        tail
    }

    fn done(&mut self, reason: FinishReason, tail: String) {
        let timings = Timings {
            validation: self.queued.saturating_duration_since(self.received),
            queue: self.started.saturating_duration_since(self.queued),
            inference: self.started.elapsed(),
        };
        let generated_text = std::mem::take(&mut self.generated_text);
        self.send(Event::Done(Box::new(Done {
            reason,
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            generated_tokens: self.generated_tokens,
            tail,
            generated_text,
            seed: self.seed,
            timings,
        })));
    }

    fn candidates(&self, candidates: impl Iterator<Item = Candidate>) -> Vec<Token> {
        candidates
            .map(|(id, logprob)| {
                let text = self.tokenizer.token_text(id).into();
                Token { id, text, logprob, special: self.tokenizer.is_special(id) }
            })
            .collect()
    }

    fn send(&self, event: Event) {
        // A client that left is noticed by `is_abandoned` before the next plan; until then its events go nowhere.
        self.events.send(event).ok();
    }
}

#[cfg(test)]
#[path = "emit_tests.rs"]
mod tests;
