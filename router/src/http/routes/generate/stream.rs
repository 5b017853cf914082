//! TGI's stream: one frame a token. The last token and the end share a frame.

use bytes::BytesMut;

use super::convert::{Shape, candidates};
use super::types::{StreamDetails, StreamResponse, WireToken};
use crate::error::Error;
use crate::event::{Done, Event, TokenEvent};
use crate::http::problem::Problem;
use crate::http::sse::{Frames, write_frame};
use crate::queue::reason_name;

/// Projects the events of one sequence onto TGI's frames.
#[derive(Debug)]
pub struct TokenFrames {
    shape: Shape,
    index: u32,
    /// The last token, until `Done` arrives.
    last: Option<TokenEvent>,
}

// === impl TokenFrames ===

impl TokenFrames {
    /// Frames of this shape.
    pub fn new(shape: Shape) -> Self {
        Self { shape, index: 0, last: None }
    }

    fn token(&mut self, token: &TokenEvent, end: Option<&Done>, out: &mut BytesMut) {
        self.index += 1;
        let text = end.map(|done| format!("{}{}", self.shape.prefix, done.generated_text));
        let details = |done: &Done| StreamDetails {
            finish_reason: reason_name(&done.reason),
            generated_tokens: done.generated_tokens,
            seed: done.seed,
            input_length: done.prompt_tokens,
        };
        let frame = StreamResponse {
            index: self.index,
            token: WireToken::from(&token.token),
            top_tokens: candidates(token),
            generated_text: text.as_deref(),
            details: end.filter(|_| self.shape.details).map(details),
        };
        write_frame(out, &frame);
    }
}

impl Frames for TokenFrames {
    fn event(&mut self, _sequence: usize, event: Event, out: &mut BytesMut) {
        match event {
            Event::Start { .. } | Event::Prompt(_) => {}
            Event::Token(token) if token.last => self.last = Some(token),
            Event::Token(token) => self.token(&token, None, out),
            Event::Done(done) => match self.last.take() {
                Some(token) => self.token(&token, Some(&done), out),
                None => self.error(Error::Incomplete, out),
            },
            Event::Error(error) => self.error(error, out),
        }
    }

    fn end(&mut self, _out: &mut BytesMut) {}

    fn error(&mut self, error: Error, out: &mut BytesMut) {
        write_frame(out, &Problem::from(error).as_tgi());
    }
}
