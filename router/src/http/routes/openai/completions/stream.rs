//! Completions' chunks: text, then an empty text with the reason.

use super::super::chunks::Chunk;
use super::types::{CompletionChoice, CompletionLogprobs};
use crate::event::TokenEvent;

/// What completions show of a stream.
#[derive(Debug)]
pub struct TextChunks {
    /// Show the logprob of each token.
    pub logprobs: bool,
    /// Where the next token of each choice begins in its text.
    pub offsets: Vec<usize>,
}

fn plain(index: usize, text: &str) -> CompletionChoice<'_> {
    CompletionChoice { index, text, logprobs: None, finish_reason: None }
}

// === impl TextChunks ===

impl Chunk for TextChunks {
    type Choice<'a> = CompletionChoice<'a>;

    fn opening<'a>(&mut self, _index: usize) -> Option<CompletionChoice<'a>> {
        None
    }

    fn token<'a>(&mut self, index: usize, token: &'a TokenEvent) -> Option<CompletionChoice<'a>> {
        let logprobs = self.logprobs && !token.token.special;
        if token.delta.is_empty() && !logprobs {
            return None;
        }
        let logprobs = logprobs.then(|| {
            let mut one = CompletionLogprobs::default();
            self.offsets[index] = one.push(token, self.offsets[index]);
            one
        });
        Some(CompletionChoice { logprobs, ..plain(index, &token.delta) })
    }

    fn tail<'a>(&mut self, index: usize, text: &'a str) -> CompletionChoice<'a> {
        plain(index, text)
    }

    fn finish<'a>(&mut self, index: usize, reason: &'static str) -> CompletionChoice<'a> {
        CompletionChoice { finish_reason: Some(reason), ..plain(index, "") }
    }
}
