//! Server-sent events: the bodies of streamed answers. All events that are ready go out in one write; a frame is
//! serialised once, into the buffer that is sent. What a frame says is the business of the API (`Frames`).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use http_body::Frame;
use serde::Serialize;
use tokio::time::{Instant, Sleep};

use crate::error::Error;
use crate::event::Event;
use crate::queue::Generation;

/// How long a stream may be silent before it sends a comment, so that nobody takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVE_COMMENT: &[u8] = b":\n\n";
/// Room for some frames; more is made when needed.
const BUFFER_BYTES: usize = 4096;
/// Ends OpenAI's streams.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// How an API shows events.
pub trait Frames: Send + Unpin + 'static {
    /// Writes the frames of one event of the sequence with this index.
    fn event(&mut self, sequence: usize, event: Event, out: &mut BytesMut);

    /// Writes what follows when every sequence has ended well.
    fn end(&mut self, out: &mut BytesMut);

    /// Writes the end of a stream that breaks off.
    fn error(&mut self, error: Error, out: &mut BytesMut);
}

/// Writes one `data:` frame. Serialising plain structures into memory cannot fail.
pub fn write_frame(out: &mut BytesMut, frame: &impl Serialize) {
    let start = out.len();
    out.extend_from_slice(b"data: ");
    if let Err(error) = serde_json::to_writer((&mut *out).writer(), frame) {
        tracing::error!(%error, "a stream frame could not be written");
        out.truncate(start);
        return;
    }
    out.extend_from_slice(b"\n\n");
}

/// The body of a streamed answer.
struct EventStream<F> {
    /// The sequences of the call, by index; `None` once ended.
    sequences: Vec<Option<Generation>>,
    frames: F,
    /// Written but not sent. Its memory is used again once what was taken from it is sent.
    buffer: BytesMut,
    ended: bool,
    last_write: Instant,
    alarm: Pin<Box<Sleep>>,
    /// A stream that has been silent for so long sends a comment.
    patience: Duration,
}

/// Answers with a stream. Waits for the first token: what fails before it is an error with a status of its own.
///
/// # Errors
/// The error of the first sequence that fails before any has a token.
pub async fn respond(generations: Vec<Generation>, frames: impl Frames) -> Result<Response, Error> {
    respond_with(generations, frames, KEEP_ALIVE).await
}

/// As `respond`, with a patience of its own.
///
/// # Errors
/// As `respond`.
pub async fn respond_with(
    generations: Vec<Generation>,
    frames: impl Frames,
    patience: Duration,
) -> Result<Response, Error> {
    let now = Instant::now();
    let mut stream = EventStream {
        sequences: generations.into_iter().map(Some).collect(),
        frames,
        buffer: BytesMut::with_capacity(BUFFER_BYTES),
        ended: false,
        last_write: now,
        alarm: Box::pin(tokio::time::sleep_until(now + patience)),
        patience,
    };
    std::future::poll_fn(|context| stream.poll_begin(context)).await?;
    let mut response = Response::new(Body::new(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

// === impl EventStream ===

impl<F: Frames> EventStream<F> {
    /// Ready with the first token or end. The prompt's tokens are not yet an answer: what fails after them still has a
    /// status of its own.
    fn poll_begin(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        for index in 0..self.sequences.len() {
            while let Some(Poll::Ready(event)) = self.poll_sequence(index, context) {
                match event {
                    Event::Error(error) => return Poll::Ready(Err(error)),
                    Event::Start { .. } => {}
                    event @ Event::Prompt(_) => self.take(index, event),
                    event => {
                        self.take(index, event);
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
        Poll::Pending
    }

    /// `None` when the sequence has ended.
    fn poll_sequence(&mut self, index: usize, context: &mut Context<'_>) -> Option<Poll<Event>> {
        self.sequences.get_mut(index)?.as_mut().map(|sequence| sequence.poll_next(context))
    }

    /// Writes everything that is ready.
    fn drain(&mut self, context: &mut Context<'_>) {
        for index in 0..self.sequences.len() {
            while let Some(Poll::Ready(event)) = self.poll_sequence(index, context) {
                self.take(index, event);
            }
        }
        if !self.ended && self.sequences.iter().all(Option::is_none) {
            self.frames.end(&mut self.buffer);
            self.ended = true;
        }
    }

    fn take(&mut self, index: usize, event: Event) {
        match event {
            Event::Error(error) => {
                self.frames.error(error, &mut self.buffer);
                self.sequences.clear();
                self.ended = true;
            }
            event => {
                if matches!(event, Event::Done(_)) {
                    self.sequences[index] = None;
                }
                self.frames.event(index, event, &mut self.buffer);
            }
        }
    }

    /// A comment, when the stream has been silent for too long.
    fn poll_keep_alive(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        while self.alarm.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let silent = now - self.last_write;
            if silent >= self.patience {
                self.last_write = now;
                self.alarm.as_mut().reset(now + self.patience);
                return Poll::Ready(Bytes::from_static(KEEP_ALIVE_COMMENT));
            }
            let due = self.last_write + self.patience;
            self.alarm.as_mut().reset(due);
        }
        Poll::Pending
    }
}

impl<F: Frames> http_body::Body for EventStream<F> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let stream = &mut *self;
        if !stream.ended {
            stream.drain(context);
        }
        if !stream.buffer.is_empty() {
            stream.last_write = Instant::now();
            return Poll::Ready(Some(Ok(Frame::data(stream.buffer.split().freeze()))));
        }
        if stream.ended {
            return Poll::Ready(None);
        }
        stream.poll_keep_alive(context).map(|comment| Some(Ok(Frame::data(comment))))
    }
}
