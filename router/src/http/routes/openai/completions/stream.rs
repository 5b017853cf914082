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

    fn logprobs(&self) -> bool {
        self.logprobs
    }

    fn text<'a>(&mut self, index: usize, text: &'a str, tokens: &'a [TokenEvent]) -> CompletionChoice<'a> {
        let logprobs = (!tokens.is_empty()).then(|| {
            let mut added = CompletionLogprobs::default();
            self.offsets[index] = added.extend(tokens.iter(), self.offsets[index]);
            added
        });
        CompletionChoice { logprobs, ..plain(index, text) }
    }

    fn finish<'a>(&mut self, index: usize, reason: &'static str) -> CompletionChoice<'a> {
        CompletionChoice { finish_reason: Some(reason), ..plain(index, "") }
    }
}
