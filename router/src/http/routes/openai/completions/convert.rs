//! From a completion call to requests, and from finished sequences to its answer.

use super::super::fields::Extras;
use super::super::shown::shown;
use super::super::types::{Head, Usage, finish_reason};
use super::types::{Completion, CompletionChoice, CompletionFields, CompletionLogprobs, Prompt};
use crate::event::TokenEvent;
use crate::http::collect::Collected;
use crate::request::{Input, Spelling};

/// Completions' field names.
static SPELLING: Spelling = Spelling {
    input: "prompt",
    max_new_tokens: "max_tokens",
    top_n_tokens: "logprobs",
    prompt_logprobs: "prompt_logprobs",
};

// === impl CompletionFields ===

impl CompletionFields {
    /// What completions ask of each sequence.
    pub fn extras(&self) -> Extras {
        Extras { top_n_tokens: self.logprobs.unwrap_or(0), spelling: &SPELLING }
    }
}

// === impl Prompt ===

impl Prompt {
    /// How many prompts there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            // An empty list is one empty prompt, and refused as that.
            Self::Tokens(_) => 1,
            Self::Texts(texts) => texts.len(),
            Self::TokenLists(lists) => lists.len(),
        }
    }

    /// The prompts, one by one.
    pub fn into_inputs(self) -> Vec<Input> {
        match self {
            Self::Text(text) => vec![Input::Text(text)],
            Self::Tokens(tokens) => vec![Input::Tokens(tokens)],
            Self::Texts(texts) => texts.into_iter().map(Input::Text).collect(),
            Self::TokenLists(lists) => lists.into_iter().map(Input::Tokens).collect(),
        }
    }
}

// === impl CompletionLogprobs ===

impl<'a> CompletionLogprobs<'a> {
    /// Adds tokens of which the first begins at `offset`, and returns where the next one will.
    pub fn extend(&mut self, tokens: impl Iterator<Item = &'a TokenEvent>, offset: usize) -> usize {
        tokens.fold(offset, |offset, token| self.push(token, offset))
    }

    fn push(&mut self, token: &'a TokenEvent, offset: usize) -> usize {
        let chosen = &token.token;
        self.tokens.push(&chosen.text);
        self.token_logprobs.push(chosen.logprob);
        let candidates = token.top_tokens.iter().chain(std::iter::once(chosen));
        let candidates = candidates.map(|candidate| (candidate.text.to_string(), candidate.logprob.into()));
        self.top_logprobs.push(candidates.collect());
        self.text_offset.push(offset);
        offset + chosen.text.chars().count()
    }
}

/// The whole answer; the prompts have `n` choices each.
pub fn completion<'a>(head: &'a Head, sequences: &'a [Collected], n: usize, logprobs: bool) -> Completion<'a> {
    let mut usage = Usage::default();
    for (index, sequence) in sequences.iter().enumerate() {
        usage.add(index, n, &sequence.done);
    }
    let choice = |(index, sequence): (usize, &'a Collected)| CompletionChoice {
        index,
        text: &sequence.text,
        logprobs: logprobs.then(|| all_logprobs(sequence)),
        finish_reason: Some(finish_reason(&sequence.done.reason)),
    };
    Completion { head, choices: sequences.iter().enumerate().map(choice).collect(), usage }
}

fn all_logprobs(sequence: &Collected) -> CompletionLogprobs<'_> {
    let mut logprobs = CompletionLogprobs::default();
    logprobs.extend(shown(&sequence.tokens, &sequence.text), 0);
    logprobs
}
