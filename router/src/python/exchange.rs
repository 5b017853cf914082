//! What the I/O thread and Python exchange: the state of the shard, the warm-up, and the plans and results of the
//! one open stream. Plain data behind one lock; knows neither gRPC transport nor Python.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use text_generation_protocol::check::{Arrival, PlanOrder};
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

// === impl Exchange: the I/O thread's side ===

impl Exchange {
    /// Answers `Health`.
    pub(super) fn health(&self) -> v1::HealthResponse {
        let state = self.state.lock();
        if state.phase == ShardState::Failed {
            self.failure_read.notify_one();
        }
        let running = state.stream.as_ref().and_then(|stream| stream.running_since);
        v1::HealthResponse {
            state: state.phase.into(),
            detail: state.detail.clone(),
            last_step: state.last_step,
            // At least 1: 0 means idle.
            step_running_us: running
                .map_or(0, |since| u64::try_from(since.elapsed().as_micros().max(1)).unwrap_or(u64::MAX)),
        }
    }

    /// Answers `Info`.
    pub(super) fn info(&self) -> Result<v1::InfoResponse, Status> {
        let state = self.state.lock();
        state.info.clone().ok_or_else(|| state.not_loaded())
    }

    /// Answers `Warmup`, or says where the answer will arrive.
    pub(super) fn warmup(
        &self,
        request: v1::WarmupRequest,
    ) -> Result<Result<v1::Capacity, oneshot::Receiver<Result<v1::Capacity, Status>>>, Status> {
        let mut state = self.state.lock();
        if state.phase == ShardState::Failed || state.info.is_none() {
            return Err(state.not_loaded());
        }
        if let Some(capacity) = state.capacity {
            return Ok(Ok(capacity));
        }
        let (caller, answer) = oneshot::channel();
        if state.warmup_callers.is_empty() {
            state.warmup = Some(request);
        }
        state.warmup_callers.push(caller);
        self.arrived.notify_all();
        Ok(Err(answer))
    }

    /// Begins a stream and returns its number.
    pub(super) fn open_stream(&self, results: Results) -> Result<u64, Status> {
        let mut state = self.state.lock();
        if state.phase != ShardState::Ready {
            return Err(Status::failed_precondition(format!("the shard is not warmed up: {}", state.describe())));
        }
        if state.stream.is_some() {
            return Err(Status::already_exists("another Steps stream is open; a shard serves one router"));
        }
        state.streams += 1;
        let number = state.streams;
        state.stream = Some(Stream {
            number,
            results,
            plans: VecDeque::new(),
            unanswered: VecDeque::new(),
            running_since: None,
            order: PlanOrder::default(),
            finished: false,
        });
        Ok(number)
    }

    /// Waits until no stream is open, at most so long.
    pub(super) async fn wait_for_place(&self, patience: Duration) {
        let ended = self.stream_ended.notified();
        if self.state.lock().stream.is_some() {
            // Time running out is no error here: opening the stream then says ALREADY_EXISTS.
            let _ = tokio::time::timeout(patience, ended).await;
        }
    }

    /// Queues a plan of a stream; one of an older epoch is dropped.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when steps do not count up by one.
    pub(super) fn push_plan(&self, number: u64, plan: v1::StepPlan) -> Result<(), Status> {
        let mut state = self.state.lock();
        let Some(stream) = state.stream_numbered(number) else { return Ok(()) };
        let reset = match stream.order.follow(plan.epoch, plan.step).map_err(Status::invalid_argument)? {
            Arrival::Stale => return Ok(()),
            arrival => arrival == Arrival::First,
        };
        let ticket = Ticket { stream: number, epoch: plan.epoch, step: plan.step };
        stream.running_since.get_or_insert_with(Instant::now);
        stream.unanswered.push_back(ticket);
        stream.plans.push_back(Job { ticket, plan, reset });
        self.arrived.notify_all();
        Ok(())
    }

    /// The router will send no more plans: the stream ends when those sent are answered.
    pub(super) fn finish_stream(&self, number: u64) {
        let mut state = self.state.lock();
        if let Some(stream) = state.stream_numbered(number) {
            stream.finished = true;
            self.end_if_answered(&mut state);
        }
    }

    /// Ends a stream at once. Plans that wait are dropped; the answer of a running one will go nowhere.
    pub(super) fn end_stream(&self, number: u64, reason: Option<Status>) {
        let mut state = self.state.lock();
        if state.stream_numbered(number).is_some() {
            self.end_open_stream(&mut state, reason);
        }
    }

    /// Serving broke down: every wait ends.
    pub(super) fn break_down(&self, reason: String) {
        self.state.lock().broken = Some(reason);
        self.close();
    }

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

// === impl Exchange: Python's side ===

impl Exchange {
    pub(super) fn loading(&self, detail: String) {
        let mut state = self.state.lock();
        state.phase = ShardState::Loading;
        state.detail = detail;
    }

    pub(super) fn loaded(&self, info: v1::InfoResponse) {
        let mut state = self.state.lock();
        state.phase = ShardState::Loaded;
        state.detail = "weights are loaded".into();
        state.info = Some(info);
    }

    pub(super) fn take_warmup(&self, patience: Duration) -> Wait<v1::WarmupRequest> {
        self.wait(patience, |state| state.warmup.take())
    }

    /// Answers every caller of `Warmup`.
    pub(super) fn answer_warmup(&self, answer: Result<v1::Capacity, Status>) {
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

    pub(super) fn take_plan(&self, patience: Duration) -> Wait<Job> {
        self.wait(patience, |state| state.stream.as_mut().and_then(|stream| stream.plans.pop_front()))
    }

    /// Sends the answer of a plan. Does nothing when its stream has ended.
    ///
    /// # Errors
    /// A sentence when an older plan is still to be answered, or this one has its answer already.
    pub(super) fn answer(&self, ticket: Ticket, mut result: v1::StepResult) -> Result<(), String> {
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
    pub(super) fn fail(&self, message: &str) -> Option<Results> {
        self.answer_warmup(Err(Status::internal(message)));
        let mut state = self.state.lock();
        state.phase = ShardState::Failed;
        state.detail = message.into();
        self.end_open_stream(&mut state, Some(Status::internal(message)))
    }

    /// Waits until a client has read the state FAILED.
    pub(super) async fn failure_read(&self) {
        self.failure_read.notified().await;
    }

    /// Ends the stream and every wait.
    pub(super) fn close(&self) {
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
