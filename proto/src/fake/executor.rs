//! Runs the steps of one stream of the fake shard: order, latency, faults and results. The rules of plans live in
//! `rows`, the tokens in `model`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use super::handle::lock;
use super::model::HashModel;
use super::rows::{Ran, Rows};
use super::service::Shared;
use super::settings::Fault;
use crate::check::{self, Arrival, PlanOrder};
use crate::v1::{self, ResultFlag};

/// Plans that may be without an answer: one step of lookahead.
const MOST_UNANSWERED: u64 = 2;

/// Where results go.
pub(super) type Results = mpsc::UnboundedSender<Result<v1::StepResult, Status>>;

/// A plan, and whether rows from before it are void.
type Job = (v1::StepPlan, bool);

/// The steps of one stream.
struct Executor {
    shared: Arc<Shared>,
    results: Results,
    unanswered: Arc<AtomicU64>,
    /// When the pretended device is free. It carries over, so that timer slack does not add up.
    busy_until: tokio::time::Instant,
}

/// Serves one stream to its end, and leaves its place.
pub(super) async fn serve_stream(shared: Arc<Shared>, plans: Streaming<v1::StepPlan>, results: Results) {
    let unanswered = Arc::new(AtomicU64::new(0));
    let (sender, jobs) = mpsc::unbounded_channel();
    let reader = tokio::spawn(read_plans(plans, sender, Arc::clone(&unanswered)));
    let now = tokio::time::Instant::now();
    let mut executor = Executor { shared: Arc::clone(&shared), results: results.clone(), unanswered, busy_until: now };
    tokio::select! {
        () = executor.run(jobs) => (),
        // The client has left.
        () = results.closed() => (),
    }
    reader.abort();
    lock(&shared.status).running_since = None;
    if let Some(rows) = lock(&shared.rows).as_mut() {
        rows.reset();
    }
    lock(&shared.status).live_rows = 0;
    shared.leave_place();
}

/// Passes plans on, in order and in shape.
async fn read_plans(
    mut plans: Streaming<v1::StepPlan>,
    jobs: mpsc::UnboundedSender<Result<Job, Status>>,
    unanswered: Arc<AtomicU64>,
) {
    let mut order = PlanOrder::default();
    loop {
        let job = match plans.message().await {
            Ok(Some(plan)) => accept(plan, &mut order, &unanswered).map_err(Status::invalid_argument).transpose(),
            Ok(None) => return,
            Err(status) => Some(Err(status)),
        };
        let Some(job) = job else { continue };
        let last = job.is_err();
        if jobs.send(job).is_err() || last {
            return;
        }
    }
}

/// A plan that is to run; None when it is of an older epoch.
fn accept(plan: v1::StepPlan, order: &mut PlanOrder, unanswered: &AtomicU64) -> Result<Option<Job>, String> {
    check::plan_shape(&plan)?;
    let arrival = order.follow(plan.epoch, plan.step)?;
    if arrival == Arrival::Stale {
        return Ok(None);
    }
    let waiting = unanswered.fetch_add(1, Ordering::AcqRel) + 1;
    if waiting > MOST_UNANSWERED {
        return Err(format!("step {} is the {waiting}th without an answer, {MOST_UNANSWERED} are allowed", plan.step));
    }
    Ok(Some((plan, arrival == Arrival::First)))
}

// === impl Executor ===

impl Executor {
    async fn run(&mut self, mut jobs: mpsc::UnboundedReceiver<Result<Job, Status>>) {
        loop {
            let idle = Instant::now();
            let Some(job) = jobs.recv().await else { return };
            let waited = idle.elapsed();
            let answer = match job {
                Ok((plan, reset)) => self.step(plan, reset).await,
                Err(status) => Err(status),
            };
            let answer = answer.map(|mut result| {
                result.timings.get_or_insert_default().wait_us = waited.as_micros() as u64;
                result
            });
            let failure = answer.as_ref().err().map(|status| (status.code(), status.message().to_owned()));
            self.unanswered.fetch_sub(1, Ordering::AcqRel);
            // Fails only when the client has gone, which ends this task anyway.
            let _ = self.results.send(answer);
            match failure {
                None => (),
                // The client's own end of the stream is no failure of the shard.
                Some((tonic::Code::Cancelled | tonic::Code::Unknown, _)) => return,
                Some((_, reason)) => return self.shared.fail(&reason),
            }
        }
    }

    async fn step(&mut self, plan: v1::StepPlan, reset: bool) -> Result<v1::StepResult, Status> {
        let started = Instant::now();
        lock(&self.shared.status).running_since = Some(started);
        if self.shared.settings.record {
            lock(&self.shared.plans).push(plan.clone());
        }
        self.break_if_told().await?;
        let mut result = self.execute(&plan, reset).map_err(Status::invalid_argument)?;
        self.take_time(plan.token_counts.iter().sum()).await;
        let forward_us = started.elapsed().as_micros() as u64;
        result.timings = Some(v1::StepTimings { forward_us, ..v1::StepTimings::default() });
        let mut status = lock(&self.shared.status);
        status.running_since = None;
        status.last_step = plan.step;
        Ok(result)
    }

    async fn break_if_told(&self) -> Result<(), Status> {
        let step = self.shared.steps.fetch_add(1, Ordering::Relaxed) + 1;
        if self.shared.breaks(Fault::KillAtStep(step)) {
            self.shared.killed.notify_one();
            std::future::pending::<()>().await;
        }
        if self.shared.breaks(Fault::HangAtStep(step)) {
            std::future::pending::<()>().await;
        }
        if self.shared.breaks(Fault::OutOfMemoryAtStep(step)) {
            return Err(Status::resource_exhausted("out of memory: tried to allocate 2 GiB, 1 GiB is free"));
        }
        Ok(())
    }

    async fn take_time(&mut self, tokens: u32) {
        let settings = &self.shared.settings;
        let time = settings.step_time + settings.token_time * tokens;
        if !time.is_zero() {
            self.busy_until = self.busy_until.max(tokio::time::Instant::now()) + time;
            tokio::time::sleep_until(self.busy_until).await;
        }
    }

    fn execute(&self, plan: &v1::StepPlan, reset: bool) -> Result<v1::StepResult, String> {
        let mut rows = lock(&self.shared.rows);
        let rows = rows.as_mut().ok_or("the shard is not warmed up")?;
        if reset {
            rows.reset();
        }
        let ran = rows.apply(plan)?;
        let rank = self.shared.settings.info.rank;
        let mut result = v1::StepResult { epoch: plan.epoch, step: plan.step, rank, ..v1::StepResult::default() };
        for row in ran {
            self.answer_row(rows, row, &mut result);
        }
        lock(&self.shared.status).live_rows = rows.live();
        if rank != 0 {
            result = v1::StepResult { epoch: plan.epoch, step: plan.step, rank, ..v1::StepResult::default() };
        }
        Ok(result)
    }

    fn answer_row(&self, rows: &mut Rows, ran: Ran, result: &mut v1::StepResult) {
        let Some(row) = rows.get(ran.slot) else { return };
        if row.prompt_logprobs {
            let position = ran.start.max(1);
            let count = (ran.start + ran.count).min(row.prompt_length).saturating_sub(position);
            if count > 0 {
                let ranks = || (0..count).flat_map(|_| 0..row.prompt_top_n);
                result.prompt_logprobs.push(v1::PromptLogprobs {
                    slot: ran.slot,
                    position,
                    logprobs: vec![-1.0; count as usize],
                    top_ids: ranks().collect(),
                    top_logprobs: ranks().map(|rank| HashModel::logprob(0, rank)).collect(),
                });
            }
        }
        if !ran.sample {
            return;
        }
        let (index, top_n) = (row.token_index(), row.sampling.top_n);
        let broken = self.shared.breaks(Fault::NotFinite { slot: ran.slot, token_index: index });
        let token = if broken { 0 } else { self.shared.settings.model.sample(row.hash(), &row.sampling, index) };
        rows.append(ran.slot, token);
        result.slots.push(ran.slot);
        result.token_counts.push(1);
        result.row_flags.push(if broken { ResultFlag::RowNotFinite as u32 } else { 0 });
        result.token_ids.push(token);
        result.logprobs.push(HashModel::logprob(token, 0));
        self.push_candidates(token, top_n, result);
    }

    /// The candidates beside a token are the ids that follow it. Tokens before the first that asks get a count of 0.
    fn push_candidates(&self, token: u32, top_n: u32, result: &mut v1::StepResult) {
        if top_n > 0 || !result.top_counts.is_empty() {
            result.top_counts.resize(result.token_ids.len() - 1, 0);
            result.top_counts.push(top_n);
        }
        for rank in 0..top_n {
            result.top_ids.push((token + rank) % self.shared.settings.model.vocab_size);
            result.top_logprobs.push(HashModel::logprob(token, rank));
        }
    }
}
