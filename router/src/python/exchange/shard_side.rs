//! What Python does with the exchange: it declares states, waits for work, and answers it.

use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use text_generation_protocol::v1::{self, ShardState};
use tonic::Status;

use super::{Exchange, Job, Results, State, Ticket, Wait};

// === impl Exchange ===

impl Exchange {
    pub(in crate::python) fn loading(&self, detail: String) {
        let mut state = self.state.lock();
        state.phase = ShardState::Loading;
        state.detail = detail;
    }

    pub(in crate::python) fn loaded(&self, info: v1::InfoResponse) {
        let mut state = self.state.lock();
        state.phase = ShardState::Loaded;
        state.detail = "weights are loaded".into();
        state.info = Some(info);
    }

    pub(in crate::python) fn take_warmup(&self, patience: Duration) -> Wait<v1::WarmupRequest> {
        self.wait(patience, |state| state.warmup.take())
    }

    /// Answers every caller of `Warmup`.
    pub(in crate::python) fn answer_warmup(&self, answer: Result<v1::Capacity, Status>) {
        let mut state = self.state.lock();
        if let Ok(capacity) = answer {
            state.capacity = Some(capacity);
            state.phase = ShardState::Ready;
            state.detail = "ready".into();
        }
        state.warmup = None;
        for caller in state.warmup_callers.drain(..) {
            // A caller that has hung up asks again; the capacity is kept.
            let _ = caller.send(answer.clone());
        }
    }

    pub(in crate::python) fn take_plan(&self, patience: Duration) -> Wait<Job> {
        self.wait(patience, |state| state.stream.as_mut().and_then(|stream| stream.plans.pop_front()))
    }

    /// Sends the answer of a plan. Does nothing when its stream has ended.
    ///
    /// # Errors
    /// A sentence when an older plan is still to be answered, or this one has its answer already.
    pub(in crate::python) fn answer(&self, ticket: Ticket, mut result: v1::StepResult) -> Result<(), String> {
        let mut state = self.state.lock();
        result.rank = state.info.as_ref().map_or(0, |info| info.rank);
        let Some(stream) = state.stream_numbered(ticket.stream) else { return Ok(()) };
        match stream.unanswered.front() {
            Some(oldest) if *oldest == ticket => stream.unanswered.pop_front(),
            Some(oldest) => return Err(format!("step {} was answered before step {}", ticket.step, oldest.step)),
            None => return Err(format!("step {} was answered twice", ticket.step)),
        };
        stream.running_since = (!stream.unanswered.is_empty()).then(Instant::now);
        // Fails only when the client has gone; the reader of its plans ends the stream.
        let _ = stream.results.send(Ok(result));
        state.last_step = ticket.step;
        self.end_if_answered(&mut state);
        Ok(())
    }

    /// Declares the shard failed and returns the ended stream's channel, if one was open.
    pub(in crate::python) fn fail(&self, message: &str) -> Option<Results> {
        self.answer_warmup(Err(Status::internal(message)));
        let mut state = self.state.lock();
        state.phase = ShardState::Failed;
        state.detail = message.into();
        self.end_open_stream(&mut state, Some(Status::internal(message)))
    }

    /// Waits until a client has read the state FAILED.
    pub(in crate::python) async fn failure_read(&self) {
        self.failure_read.notified().await;
    }

    /// Ends the stream and every wait.
    pub(in crate::python) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        self.end_open_stream(&mut state, Some(Status::unavailable("the shard is closing")));
        self.arrived.notify_all();
    }

    fn wait<T>(&self, patience: Duration, mut take: impl FnMut(&mut State) -> Option<T>) -> Wait<T> {
        let deadline = Instant::now() + patience;
        let mut state: MutexGuard<'_, State> = self.state.lock();
        loop {
            if state.closed {
                return Wait::Closed(state.broken.clone());
            }
            if let Some(value) = take(&mut state) {
                return Wait::Ready(value);
            }
            if self.arrived.wait_until(&mut state, deadline).timed_out() {
                return Wait::TimedOut;
            }
        }
    }
}
