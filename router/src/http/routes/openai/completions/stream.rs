//! Completions' chunks: the echoed prompt, text, then an empty text with the reason.

use super::super::chunks::Chunk;
use super::super::view::Ending;
use super::convert::Shape;
use super::types::{CompletionChoice, CompletionLogprobs};
use crate::event::{PromptToken, TokenEvent};

/// What completions show of a stream.
#[derive(Debug)]
pub struct TextChunks {
    shape: Shape,
    /// Where the next token of each choice begins in its text, in characters.
    offsets: Vec<usize>,
}

fn plain(index: usize, text: &str) -> CompletionChoice<'_> {
    CompletionChoice {
        index,
        text: text.into(),
        logprobs: None,
        finish_reason: None,
        stop_reason: None,
        prompt_logprobs: None,
    }
}

// === impl TextChunks ===

impl TextChunks {
    /// Chunks of so many choices.
    pub fn new(shape: Shape, choices: usize) -> Self {
        let start = |index| shape.echo_of(index).map_or(0, |prompt| prompt.chars().count());
        Self { offsets: (0..choices).map(start).collect(), shape }
    }
}

impl Chunk for TextChunks {
    type Choice<'a> = CompletionChoice<'a>;

    fn opening<'a>(&'a mut self, index: usize, prompt: &'a [PromptToken]) -> Option<CompletionChoice<'a>> {
        let text = self.shape.echo_of(index)?;
        let logprobs = self.shape.echo_candidates.map(|candidates| {
            let mut logprobs = CompletionLogprobs::default();
            logprobs.extend_prompt(prompt, candidates, &self.shape.view);
            logprobs
        });
        Some(CompletionChoice { logprobs, ..plain(index, text) })
    }

    fn text<'a>(&mut self, index: usize, text: &'a str, tokens: &'a [TokenEvent]) -> CompletionChoice<'a> {
        let logprobs = (!tokens.is_empty()).then(|| {
            let mut added = CompletionLogprobs::default();
            self.offsets[index] = added.extend(tokens.iter(), self.offsets[index], &self.shape.view);
            added
        });
        CompletionChoice { logprobs, ..plain(index, text) }
    }

    fn finish<'a>(&mut self, index: usize, ending: Ending<'a>) -> CompletionChoice<'a> {
        CompletionChoice { finish_reason: Some(ending.reason), stop_reason: ending.stop, ..plain(index, "") }
    }
}
