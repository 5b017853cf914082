//! The order of OpenAI's streams, for chat and completions alike: an opening, text, a finish chunk for each choice, the
//! usage if it was asked for, one `[DONE]`.

use serde::Serialize;

use super::types::{ErrorBody, Head, Usage, finish_reason};
use crate::error::Error;
use crate::event::{Event, TokenEvent};
use crate::http::problem::Problem;
use crate::http::sse::{DONE, Frames, write_frame};

/// What a route puts into the choices of its chunks.
pub trait Chunk: Send + Unpin + 'static {
    /// A choice of a chunk.
    type Choice<'a>: Serialize;

    /// What opens a choice, if anything does.
    fn opening<'a>(&mut self, index: usize) -> Option<Self::Choice<'a>>;

    /// A token and the text that it releases; `None` when there is nothing to show.
    fn token<'a>(&mut self, index: usize, token: &'a TokenEvent) -> Option<Self::Choice<'a>>;

    /// Text without a token, withheld until the end.
    fn tail<'a>(&mut self, index: usize, text: &'a str) -> Self::Choice<'a>;

    /// The end of a choice.
    fn finish<'a>(&mut self, index: usize, reason: &'static str) -> Self::Choice<'a>;
}

/// The frames of an OpenAI stream.
#[derive(Debug)]
pub struct ChunkFrames<C> {
    chunk: C,
    head: Head,
    /// Choices a prompt.
    n: usize,
    include_usage: bool,
    usage: Usage,
    /// Which choices were opened.
    opened: Vec<bool>,
}

/// A chunk on the wire.
#[derive(Serialize)]
struct WireChunk<'a, C> {
    #[serde(flatten)]
    head: &'a Head,
    choices: &'a [C],
    /// Absent unless usage was asked for; then null but in the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<Usage>>,
}

// === impl ChunkFrames ===

impl<C: Chunk> ChunkFrames<C> {
    /// Frames for `prompts` prompts with `n` choices each.
    pub fn new(chunk: C, head: Head, prompts: usize, n: usize, include_usage: bool) -> Self {
        Self { chunk, head, n, include_usage, usage: Usage::default(), opened: vec![false; prompts * n] }
    }

    fn open(&mut self, index: usize, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.opened[index], true)
            && let Some(choice) = self.chunk.opening(index)
        {
            self.write(&[choice], out);
        }
    }

    fn write<T: Serialize>(&self, choices: &[T], out: &mut Vec<u8>) {
        write_frame(out, &WireChunk { head: &self.head, choices, usage: self.include_usage.then_some(None) });
    }
}

impl<C: Chunk> Frames for ChunkFrames<C> {
    fn event(&mut self, index: usize, event: Event, out: &mut Vec<u8>) {
        match event {
            Event::Start { .. } | Event::Prompt(_) => {}
            Event::Token(token) => {
                self.open(index, out);
                if let Some(choice) = self.chunk.token(index, &token) {
                    self.write(&[choice], out);
                }
            }
            Event::Done(done) => {
                self.open(index, out);
                if !done.tail.is_empty() {
                    let choice = self.chunk.tail(index, &done.tail);
                    self.write(&[choice], out);
                }
                self.usage.add(index, self.n, &done);
                let choice = self.chunk.finish(index, finish_reason(&done.reason));
                self.write(&[choice], out);
            }
            Event::Error(error) => self.error(error, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.include_usage {
            let choices: &[()] = &[];
            write_frame(out, &WireChunk { head: &self.head, choices, usage: Some(Some(self.usage)) });
        }
        out.extend_from_slice(DONE);
    }

    fn error(&mut self, error: Error, out: &mut Vec<u8>) {
        write_frame(out, &ErrorBody::of(&Problem::from(error)));
        out.extend_from_slice(DONE);
    }
}
