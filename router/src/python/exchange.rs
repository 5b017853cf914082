//! What the I/O thread and Python exchange: the state of the shard, the warm-up, and the plans and results of the
//! one open stream. Plain data behind one lock; knows neither gRPC transport nor Python.

mod shard_side;
mod wire_side;

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use text_generation_protocol::check::PlanOrder;
use text_generation_protocol::v1::{self, ShardState};
use tokio::sync::{Notify, mpsc, oneshot};
use tonic::Status;

/// The results of one stream, on their way to the router.
pub(super) type Results = mpsc::UnboundedSender<Result<v1::StepResult, Status>>;

/// Names one plan of one stream, so that its answer finds the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    stream: u64,
    pub(super) epoch: u64,
    pub(super) step: u64,
}

/// A plan as it is handed to Python.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) ticket: Ticket,
    pub(super) plan: v1::StepPlan,
    /// The rows of an earlier stream or epoch are void.
    pub(super) reset: bool,
}

/// What a wait ended with.
#[derive(Debug)]
pub(super) enum Wait<T> {
    Ready(T),
    TimedOut,
    /// `close` was called, or serving broke down with this error.
    Closed(Option<String>),
}

/// Shared by the I/O thread and the Python objects.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    state: Mutex<State>,
    /// Wakes Python: a plan or a warm-up request arrived, or the end.
    arrived: Condvar,
    /// Wakes I/O tasks: the open stream ended.
    stream_ended: Notify,
    /// Wakes `fail`: a client has read the state FAILED.
    failure_read: Notify,
}

#[derive(Debug, Default)]
struct State {
    phase: ShardState,
    detail: String,
    info: Option<v1::InfoResponse>,
    capacity: Option<v1::Capacity>,
    warmup: Option<v1::WarmupRequest>,
    warmup_callers: Vec<oneshot::Sender<Result<v1::Capacity, Status>>>,
    stream: Option<Stream>,
    streams: u64,
    last_step: u64,
    closed: bool,
    broken: Option<String>,
}

#[derive(Debug)]
struct Stream {
    number: u64,
    results: Results,
    plans: VecDeque<Job>,
    /// Every plan without an answer, whether Python has taken it yet or not, oldest first.
    unanswered: VecDeque<Ticket>,
    /// Since when the oldest of them could have run.
    running_since: Option<Instant>,
    order: PlanOrder,
    /// The router has sent its last plan.
    finished: bool,
}

// === impl Exchange ===

impl Exchange {
    fn end_if_answered(&self, state: &mut State) {
        if state.stream.as_ref().is_some_and(|stream| stream.finished && stream.unanswered.is_empty()) {
            self.end_open_stream(state, None);
        }
    }

    fn end_open_stream(&self, state: &mut State, reason: Option<Status>) -> Option<Results> {
        let stream = state.stream.take()?;
        if let Some(status) = reason {
            // Fails only when the client has gone, who then needs no reason.
            let _ = stream.results.send(Err(status));
        }
        self.stream_ended.notify_waiters();
        Some(stream.results)
    }
}

// === impl State ===

impl State {
    fn stream_numbered(&mut self, number: u64) -> Option<&mut Stream> {
        self.stream.as_mut().filter(|stream| stream.number == number)
    }

    fn describe(&self) -> String {
        format!("{} ({})", self.phase.as_str_name(), self.detail)
    }

    fn not_loaded(&self) -> Status {
        Status::failed_precondition(format!("the shard has not loaded its weights: {}", self.describe()))
    }
}
