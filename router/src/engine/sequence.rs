//! One live sequence as the planner sees it: its tokens, its blocks, how far plans have taken it and how far results
//! have followed. With one step of lookahead the two differ. Its text and its events are the emitter's business.

use text_generation_protocol::v1;

use super::emit::{Emitter, End};
use super::prompt_scores::PromptScores;
use super::rules::Rules;
use crate::cache::Allocation;
use crate::event::PromptToken;
use crate::queue::Entry;

/// A sequence that holds a slot and blocks.
#[derive(Debug)]
pub struct Sequence {
    /// Tells it from others that have had the same slot.
    pub serial: u64,
    /// Turns its tokens into events.
    pub emitter: Emitter,
    /// Its block table so far.
    pub blocks: Vec<u32>,
    /// Blocks promised to it, `blocks` included.
    pub reserved: usize,
    /// The prompt, then the tokens whose results are in.
    tokens: Vec<u32>,
    prompt_length: usize,
    max_new_tokens: u32,
    /// The model's end tokens; empty when they are generated through.
    end_tokens: Vec<u32>,
    /// Further tokens that end it.
    stop_tokens: Vec<u32>,
    sampling: v1::Sampling,
    /// `None` = not asked for.
    prompt_scores: Option<PromptScores>,
    /// Tokens whose keys and values are in the cache once the plans sent so far have run.
    computed: usize,
    /// Tokens sampled once the plans sent so far have run.
    sampled: u32,
}

// === impl Sequence ===

impl Sequence {
    /// Begins to run an entry in the blocks allocated for it.
    pub fn new(serial: u64, entry: Entry, allocation: Allocation, emitter: Emitter, rules: &Rules) -> Self {
        let sampling = rules.sampling(&entry);
        let prompt_length = entry.prompt.len();
        Self {
            serial,
            emitter,
            blocks: allocation.blocks,
            reserved: allocation.reserved,
            tokens: entry.prompt,
            prompt_length,
            max_new_tokens: entry.max_new_tokens,
            end_tokens: rules.end_tokens(entry.ignore_eos),
            stop_tokens: entry.stop_token_ids,
            sampling,
            prompt_scores: entry.prompt_logprobs.map(|top_n| PromptScores::new(prompt_length, top_n)),
            computed: allocation.cached_tokens,
            sampled: 0,
        }
    }

    /// The message that begins its row.
    pub fn introduction(&self, slot: u32) -> v1::NewSequence {
        v1::NewSequence {
            slot,
            token_ids: self.tokens.clone(),
            prompt_length: self.prompt_length as u32,
            computed: self.computed as u32,
            block_ids: self.blocks.clone(),
            sampling: Some(self.sampling.clone()),
            prompt_logprobs: self.prompt_scores.is_some(),
            prompt_top_n: self.prompt_scores.as_ref().map_or(0, PromptScores::top_n),
        }
    }

    /// Prompt tokens that no plan has computed yet.
    pub fn prompt_left(&self) -> usize {
        self.prompt_length.saturating_sub(self.computed)
    }

    /// Whether the next plan may decode a token. The end by length is known ahead: no row is planned beyond it.
    pub fn may_decode(&self) -> bool {
        self.sampled > 0 && self.sampled < self.max_new_tokens
    }

    /// Longest it may become, prompt included.
    pub fn max_tokens(&self) -> usize {
        self.prompt_length + self.max_new_tokens as usize
    }

    /// Tokens in the cache after `count` more were computed.
    pub fn computed_after(&self, count: usize) -> usize {
        self.computed + count
    }

    /// Notes that a plan computes `count` more tokens. Returns whether it also samples one: always, but for a chunk of
    /// the prompt that is not its last.
    pub fn advance(&mut self, count: usize) -> bool {
        self.computed += count;
        let samples = self.computed >= self.prompt_length;
        self.sampled += u32::from(samples);
        samples
    }

    /// Takes a sampled token. Returns why it is the last, if its count or its id says so.
    pub fn accept(&mut self, token: u32) -> Option<End> {
        self.tokens.push(token);
        if self.generated() >= self.max_new_tokens as usize {
            Some(End::Length)
        } else if self.end_tokens.contains(&token) {
            Some(End::ModelToken)
        } else if self.stop_tokens.contains(&token) {
            Some(End::RequestToken)
        } else {
            None
        }
    }

    /// Tokens whose results are in.
    pub fn generated(&self) -> usize {
        self.tokens.len() - self.prompt_length
    }

    /// Whether the logprobs of the prompt were asked for.
    pub fn wants_prompt_logprobs(&self) -> bool {
        self.prompt_scores.is_some()
    }

    /// Takes scores of prompt tokens. `None` when they do not fit the prompt or were not asked for.
    pub fn accept_prompt_logprobs(&mut self, told: &v1::PromptLogprobs) -> Option<()> {
        self.prompt_scores.as_mut()?.accept(told)
    }

    /// Whether the shards have told the logprobs of the whole prompt, if they were asked for.
    pub fn is_described(&self) -> bool {
        self.prompt_scores.as_ref().is_none_or(PromptScores::is_complete)
    }

    /// The tokens of the prompt for the `Prompt` event, if asked for.
    pub fn prompt_tokens(&self) -> Option<Vec<PromptToken>> {
        let scores = self.prompt_scores.as_ref()?;
        let prompt = &self.tokens[..self.prompt_length];
        Some(prompt.iter().zip(scores.all()).map(|(&id, score)| self.emitter.prompt_token(id, score)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::tests::fixture::{Case, tokenizer};
    use super::*;

    #[test]
    fn cached_tokens_are_not_computed_again() {
        let case = Case { prompt: vec![1, 2, 3, 4, 5, 6], max_new_tokens: 2, ..Case::default() };
        let (entry, _events) = case.entry();
        let allocation = Allocation { blocks: vec![8, 9], cached_tokens: 4, reserved: 2 };
        let emitter = Emitter::new(tokenizer(), &entry, allocation.cached_tokens, Instant::now());
        let mut sequence = Sequence::new(0, entry, allocation, emitter, &Rules::default());
        let introduction = sequence.introduction(0);
        assert_eq!((introduction.computed, introduction.block_ids), (4, vec![8, 9]));
        assert_eq!(sequence.prompt_left(), 2);
        assert!(!sequence.advance(1), "a chunk that is not the last samples nothing");
        assert!(!sequence.may_decode());
        assert!(sequence.advance(1));
        assert!(sequence.may_decode());
        assert!(sequence.advance(1));
        assert!(!sequence.may_decode(), "the second token is the last");
    }
}
