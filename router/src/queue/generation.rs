//! A running sequence as its client sees it: the event stream, with the place that it holds and the record that is
//! kept of it. Dropping it cancels the sequence and frees the place, on every path.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::OwnedSemaphorePermit;

use crate::error::Error;
use crate::event::{Done, Event, EventReceiver, FinishReason};
use crate::telemetry::Metrics;

/// An admitted sequence.
#[derive(Debug)]
pub struct Generation {
    /// Names the request in logs.
    pub request_id: Arc<str>,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Unicode characters of the prompt's text; 0 when the client sent token ids.
    pub prompt_characters: usize,
    events: EventReceiver,
    metrics: Arc<Metrics>,
    ended: bool,
    /// Held until the generation is dropped.
    _place: OwnedSemaphorePermit,
}

// === impl Generation ===

impl Generation {
    /// A sequence whose events arrive on this channel; `prompt` is its length in tokens and in characters.
    pub fn new(
        request_id: Arc<str>,
        prompt: (usize, usize),
        events: EventReceiver,
        place: OwnedSemaphorePermit,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (prompt_tokens, prompt_characters) = prompt;
        Self { request_id, prompt_tokens, prompt_characters, events, metrics, ended: false, _place: place }
    }

    /// The next event; `Event::Error` if the stream breaks off. Must not be called after `Done` or `Error`.
    pub async fn next(&mut self) -> Event {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As `next`, for hand-written bodies.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let received = self.events.poll_recv(context);
        received.map(|event| {
            let event = event.unwrap_or(Event::Error(Error::Incomplete));
            match &event {
                Event::Done(done) => self.succeeded(done),
                Event::Error(error) => self.failed(error),
                Event::Start { .. } | Event::Prompt(_) | Event::Token(_) => {}
            }
            event
        })
    }

    fn succeeded(&mut self, done: &Done) {
        self.ended = true;
        self.metrics.finished(done);
        let timings = &done.timings;
        tracing::info!(
            request_id = &*self.request_id,
            prompt_tokens = done.prompt_tokens,
            cached_tokens = done.cached_tokens,
            generated_tokens = done.generated_tokens,
            finish_reason = reason_name(&done.reason),
            total_time = ?timings.total(),
            validation_time = ?timings.validation,
            queue_time = ?timings.queue,
            inference_time = ?timings.inference,
            time_per_token = ?timings.per_token(done.generated_tokens),
            seed = ?done.seed,
            "Success"
        );
    }

    fn failed(&mut self, error: &Error) {
        self.ended = true;
        self.metrics.refused(error);
        tracing::error!(request_id = &*self.request_id, error = %error, "Failed");
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if !self.ended {
            self.metrics.dropped();
            tracing::info!(request_id = &*self.request_id, "Dropped by the client");
        }
    }
}

/// The name of a finish reason in TGI's responses and in logs.
pub fn reason_name(reason: &FinishReason) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::EndOfSequence | FinishReason::StopToken(_) => "eos_token",
        FinishReason::Stop(_) => "stop_sequence",
    }
}
