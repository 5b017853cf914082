//! Chat's chunks: the role first, then text, then an empty delta with the reason.

use super::super::chunks::Chunk;
use super::convert::{ASSISTANT, chat_logprobs};
use super::types::{ChunkChoice, Delta};
use crate::event::TokenEvent;

/// What chat shows of a stream.
#[derive(Debug)]
pub struct ChatChunks {
    /// Show the logprob of each token.
    pub logprobs: bool,
}

fn plain(index: usize, delta: Delta<'_>) -> ChunkChoice<'_> {
    ChunkChoice { index, delta, logprobs: None, finish_reason: None }
}

// === impl ChatChunks ===

impl Chunk for ChatChunks {
    type Choice<'a> = ChunkChoice<'a>;

    fn opening<'a>(&mut self, index: usize) -> Option<ChunkChoice<'a>> {
        Some(plain(index, Delta { role: Some(ASSISTANT), content: Some("") }))
    }

    fn logprobs(&self) -> bool {
        self.logprobs
    }

    fn text<'a>(&mut self, index: usize, text: &'a str, tokens: &'a [TokenEvent]) -> ChunkChoice<'a> {
        let logprobs = (!tokens.is_empty()).then(|| chat_logprobs(tokens.iter()));
        ChunkChoice { logprobs, ..plain(index, Delta { role: None, content: Some(text) }) }
    }

    fn finish<'a>(&mut self, index: usize, reason: &'static str) -> ChunkChoice<'a> {
        ChunkChoice { finish_reason: Some(reason), ..plain(index, Delta::default()) }
    }
}
