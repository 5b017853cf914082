//! What the I/O thread does with the exchange: it answers calls, and begins and ends streams. Never waits for Python.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use text_generation_protocol::check::{Arrival, PlanOrder};
use text_generation_protocol::v1::{self, ShardState};
use tokio::sync::oneshot;
use tonic::Status;

use super::{Exchange, Job, Results, Stream, Ticket};

// === impl Exchange ===

impl Exchange {
    /// Answers `Health`.
    pub(in crate::python) fn health(&self) -> v1::HealthResponse {
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
    pub(in crate::python) fn info(&self) -> Result<v1::InfoResponse, Status> {
        let state = self.state.lock();
        state.info.clone().ok_or_else(|| state.not_loaded())
    }

    /// Answers `Warmup`, or says where the answer will arrive.
    pub(in crate::python) fn warmup(
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
    pub(in crate::python) fn open_stream(&self, results: Results) -> Result<u64, Status> {
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
    pub(in crate::python) async fn wait_for_place(&self, patience: Duration) {
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
    pub(in crate::python) fn push_plan(&self, number: u64, plan: v1::StepPlan) -> Result<(), Status> {
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
    pub(in crate::python) fn finish_stream(&self, number: u64) {
        let mut state = self.state.lock();
        if let Some(stream) = state.stream_numbered(number) {
            stream.finished = true;
            self.end_if_answered(&mut state);
        }
    }

    /// Ends a stream at once. Plans that wait are dropped; the answer of a running one will go nowhere.
    pub(in crate::python) fn end_stream(&self, number: u64, reason: Option<Status>) {
        let mut state = self.state.lock();
        if state.stream_numbered(number).is_some() {
            self.end_open_stream(&mut state, reason);
        }
    }

    /// Serving broke down: every wait ends.
    pub(in crate::python) fn break_down(&self, reason: String) {
        self.state.lock().broken = Some(reason);
        self.close();
    }
}
