//! From token ids to the events of one sequence: text, stop strings, the reason of the end, timings. It runs after the
//! next plan was sent, so the device never waits for it. Knows nothing of slots, blocks or steps.

use std::sync::Arc;
use std::time::Instant;

use super::prompt_scores::PromptScore;
use crate::error::Error;
use crate::event::{Done, Event, EventSender, FinishReason, PromptToken, Timings, Token, TokenEvent};
use crate::queue::Entry;
use crate::text::{Detokenizer, StopMatcher, Tokenizer};

/// Why a token is a sequence's last, as far as its count and its id tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The token budget is used up. Goes before an end token.
    Length,
    /// An end token of the model.
    ModelToken,
    /// A token that the request named.
    RequestToken,
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
    /// No stop string is looked for before so many tokens.
    min_tokens: usize,
    /// What ends the text stays in it.
    include_stop: bool,
    skip_special_tokens: bool,
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
            stops: StopMatcher::new(&entry.stop),
            min_tokens: entry.min_tokens as usize,
            include_stop: entry.include_stop,
            skip_special_tokens: entry.skip_special_tokens,
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
    pub fn prompt_token(&self, id: u32, score: Option<&PromptScore>) -> PromptToken {
        let candidates = score.into_iter().flat_map(|score| &score.candidates);
        PromptToken {
            id,
            text: self.tokenizer.token_text(id),
            logprob: score.map(|score| score.logprob),
            top_tokens: candidates.map(|&(id, logprob)| self.candidate(id, logprob)).collect(),
        }
    }

    /// Reports a generated token. When `end`, or a stop string in the text, makes it the last one, reports the end too
    /// and returns true.
    pub fn token(&mut self, sampled: Sampled<'_>, end: Option<End>) -> bool {
        self.generated_tokens += 1;
        let special = self.tokenizer.is_special(sampled.id);
        let shown = self.shows(special, end);
        let text = if shown { self.detokenizer.push(sampled.id) } else { self.tokenizer.token_text(sampled.id) };
        let text: Arc<str> = text.into();
        let (mut delta, stop) = if !shown {
            (Arc::default(), None)
        } else if self.generated_tokens < self.min_tokens {
            (text.clone(), None)
        } else {
            self.stops.push(&text)
        };
        if let (Some(stop), true) = (&stop, self.include_stop) {
            delta = format!("{delta}{stop}").into();
        }
        self.generated_text.push_str(&delta);
        let token = Token { id: sampled.id, text, logprob: sampled.logprob, special };
        let last = end.is_some() || stop.is_some();
        self.send(Event::Token(TokenEvent { token, top_tokens: self.candidates(sampled), delta, last }));
        self.finish(end, stop, sampled.id)
    }

    /// Whether a token's text is part of the completion. What ends it is not, even where the tokenizer does not know an
    /// end token as special, unless the request wants to see it.
    fn shows(&self, special: bool, end: Option<End>) -> bool {
        let ends = matches!(end, Some(End::ModelToken | End::RequestToken));
        !(special && self.skip_special_tokens) && (self.include_stop || !ends)
    }

    fn finish(&mut self, end: Option<End>, stop: Option<Arc<str>>, token: u32) -> bool {
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
            (Some(End::ModelToken), _) => FinishReason::EndOfSequence,
            (Some(End::RequestToken), _) => FinishReason::StopToken(token),
            (None, Some(stop)) => FinishReason::Stop(stop),
            (Some(End::Length), _) | (None, None) => FinishReason::Length,
        };
        self.done(reason, tail);
        true
    }

    /// The text that was withheld: an incomplete character, the beginning of a stop string.
    fn tail(&mut self) -> String {
        let rest: Arc<str> = self.detokenizer.finish().into();
        let (shown, stop) = self.stops.push(&rest);
        let mut tail = shown.to_string();
        match stop {
            None => tail.push_str(&self.stops.finish()),
            Some(stop) if self.include_stop => tail.push_str(&stop),
            Some(_) => {}
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

    fn candidates(&self, sampled: Sampled<'_>) -> Vec<Token> {
        let candidates = sampled.top_ids.iter().zip(sampled.top_logprobs);
        candidates.map(|(&id, &logprob)| self.candidate(id, logprob)).collect()
    }

    fn candidate(&self, id: u32, logprob: f32) -> Token {
        Token { id, text: self.tokenizer.token_text(id).into(), logprob, special: self.tokenizer.is_special(id) }
    }

    fn send(&self, event: Event) {
        // A client that left is noticed by `is_abandoned` before the next plan; until then its events go nowhere.
        self.events.send(event).ok();
    }
}

#[cfg(test)]
#[path = "emit_tests.rs"]
mod tests;
