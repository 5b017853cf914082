//! Chat's chunks: the role first, then text, then an empty delta with the reason.

use super::super::chunks::Chunk;
use super::super::view::{Ending, TokenView};
use super::convert::{ASSISTANT, chat_logprobs};
use super::types::{ChunkChoice, Delta};
use crate::event::{PromptToken, TokenEvent};

/// What chat shows of a stream.
#[derive(Debug)]
pub struct ChatChunks {
    /// How tokens are shown.
    pub view: TokenView,
}

fn plain(index: usize, delta: Delta<'_>) -> ChunkChoice<'_> {
    ChunkChoice { index, delta, logprobs: None, finish_reason: None, stop_reason: None }
}

// === impl ChatChunks ===

impl Chunk for ChatChunks {
    type Choice<'a> = ChunkChoice<'a>;

    fn opening<'a>(&'a mut self, index: usize, _prompt: &'a [PromptToken]) -> Option<ChunkChoice<'a>> {
        Some(plain(index, Delta { role: Some(ASSISTANT), content: Some("") }))
    }

    fn text<'a>(&mut self, index: usize, text: &'a str, tokens: &'a [TokenEvent]) -> ChunkChoice<'a> {
        let logprobs = (!tokens.is_empty()).then(|| chat_logprobs(tokens.iter(), &self.view));
        ChunkChoice { logprobs, ..plain(index, Delta { role: None, content: Some(text) }) }
    }

    fn finish<'a>(&mut self, index: usize, ending: Ending<'a>) -> ChunkChoice<'a> {
        let Ending { reason, stop } = ending;
        ChunkChoice { finish_reason: Some(reason), stop_reason: stop, ..plain(index, Delta::default()) }
    }
}
