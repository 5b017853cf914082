//! The order of OpenAI's streams, for chat and completions alike: an opening, text, a finish chunk for each choice, the
//! usage if it was asked for, one `[DONE]`.

use bytes::BytesMut;
use serde::Serialize;

use super::shown::ShownTokens;
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

    /// Whether tokens are shown beside their text.
    fn logprobs(&self) -> bool;

    /// More text, and the tokens that begin in it if they are shown.
    fn text<'a>(&mut self, index: usize, text: &'a str, tokens: &'a [TokenEvent]) -> Self::Choice<'a>;

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
    /// The tokens of each choice whose text is withheld.
    shown: Vec<ShownTokens>,
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
        let choices = prompts * n;
        let shown = std::iter::repeat_with(ShownTokens::default).take(choices).collect();
        Self { chunk, head, n, include_usage, usage: Usage::default(), opened: vec![false; choices], shown }
    }

    fn open(&mut self, index: usize, out: &mut BytesMut) {
        if !std::mem::replace(&mut self.opened[index], true)
            && let Some(choice) = self.chunk.opening(index)
        {
            write_chunk(&self.head, self.include_usage, &[choice], out);
        }
    }

    fn text(&mut self, index: usize, text: &str, tokens: &[TokenEvent], out: &mut BytesMut) {
        if !(text.is_empty() && tokens.is_empty()) {
            let choice = self.chunk.text(index, text, tokens);
            write_chunk(&self.head, self.include_usage, &[choice], out);
        }
    }
}

fn write_chunk<T: Serialize>(head: &Head, include_usage: bool, choices: &[T], out: &mut BytesMut) {
    write_frame(out, &WireChunk { head, choices, usage: include_usage.then_some(None) });
}

impl<C: Chunk> Frames for ChunkFrames<C> {
    fn event(&mut self, index: usize, event: Event, out: &mut BytesMut) {
        match event {
            Event::Start { .. } | Event::Prompt(_) => {}
            Event::Token(token) => {
                self.open(index, out);
                if self.chunk.logprobs() {
                    let text = token.delta.clone();
                    let tokens = self.shown[index].push(token, &text);
                    self.text(index, &text, &tokens, out);
                } else {
                    self.text(index, &token.delta, &[], out);
                }
            }
            Event::Done(done) => {
                self.open(index, out);
                let tokens = self.shown[index].show(&done.tail);
                self.text(index, &done.tail, &tokens, out);
                self.usage.add(index, self.n, &done);
                let choice = self.chunk.finish(index, finish_reason(&done.reason));
                write_chunk(&self.head, self.include_usage, &[choice], out);
            }
            Event::Error(error) => self.error(error, out),
        }
    }

    fn end(&mut self, out: &mut BytesMut) {
        if self.include_usage {
            let choices: &[()] = &[];
            write_frame(out, &WireChunk { head: &self.head, choices, usage: Some(Some(self.usage)) });
        }
        out.extend_from_slice(DONE);
    }

    fn error(&mut self, error: Error, out: &mut BytesMut) {
        write_frame(out, &ErrorBody::of(&Problem::from(error)));
        out.extend_from_slice(DONE);
    }
}
