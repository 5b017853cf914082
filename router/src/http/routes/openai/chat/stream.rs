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

    fn token<'a>(&mut self, index: usize, token: &'a TokenEvent) -> Option<ChunkChoice<'a>> {
        let logprobs = self.logprobs && !token.token.special;
        if token.delta.is_empty() && !logprobs {
            return None;
        }
        let logprobs = logprobs.then(|| chat_logprobs(std::slice::from_ref(token)));
        Some(ChunkChoice { logprobs, ..plain(index, Delta { role: None, content: Some(&token.delta) }) })
    }

    fn tail<'a>(&mut self, index: usize, text: &'a str) -> ChunkChoice<'a> {
        plain(index, Delta { role: None, content: Some(text) })
    }

    fn finish<'a>(&mut self, index: usize, reason: &'static str) -> ChunkChoice<'a> {
        ChunkChoice { finish_reason: Some(reason), ..plain(index, Delta::default()) }
    }
}
