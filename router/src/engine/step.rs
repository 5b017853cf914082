//! The loop: take entries, plan, send, then do the text work of the last result while the shards compute, then wait.
//! Up to two plans are under way at once, so the shards never wait for the router between steps. Decides nothing
//! about what runs; `plan` does.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use text_generation_protocol::v1::StepResult;

use super::commit::{Output, Outputs, Verdict, commit};
use super::draft::StepRecord;
use super::emit::End;
use super::handle::{Engine, Intake};
use super::limits::{EngineLimits, Geometry};
use super::observer::{Observer, StepReport};
use super::plan::Planner;
use super::port::{PlanPort, ResultPort};
use super::rows::RowId;
use super::rules::Rules;
use crate::error::Error;
use crate::shard::ShardError;
use crate::text::Tokenizer;

/// Plans that may be under way at once: the one that runs and the next (the protocol allows no more).
const PLANS_UNDER_WAY: usize = 2;

/// What the engine needs to know before it starts.
pub struct EngineSetup {
    /// The bounds of sequences and steps.
    pub limits: EngineLimits,
    /// The shards' memory.
    pub geometry: Geometry,
    /// Turns tokens into text.
    pub tokenizer: Arc<Tokenizer>,
    /// What holds for every sequence.
    pub rules: Rules,
    /// Listens to the numbers.
    pub observer: Arc<dyn Observer>,
}

/// The engine's state beside the planner's.
struct EngineTask<P> {
    plans: P,
    intake: Intake,
    /// Whether an `Engine` handle is left.
    open: bool,
    planner: Planner,
    observer: Arc<dyn Observer>,
    under_way: VecDeque<StepRecord>,
    last_result: Instant,
    /// Sequences that began in plans whose `Start` event is due.
    begun: Vec<RowId>,
    outputs: Outputs,
}

/// Makes an engine: the handle, and the task that runs until every handle is dropped or the shards fail. Once they
/// have, every sequence has got the cause as its error, and the task returns it.
pub fn start<P: PlanPort, R: ResultPort>(
    setup: EngineSetup,
    plans: P,
    mut results: R,
) -> (Engine, impl Future<Output = Result<(), ShardError>> + Send) {
    let (engine, intake) = Engine::with_intake(setup.limits);
    let mut task = EngineTask {
        plans,
        intake,
        open: true,
        planner: Planner::new(setup.limits, setup.geometry, setup.tokenizer, setup.rules),
        observer: setup.observer,
        under_way: VecDeque::with_capacity(PLANS_UNDER_WAY),
        last_result: Instant::now(),
        begun: Vec::new(),
        outputs: Outputs::default(),
    };
    let run = async move {
        let outcome = task.serve(&mut results).await;
        if let Err(cause) = &outcome {
            task.fail(cause).await;
        }
        outcome
    };
    (engine, run)
}

// === impl EngineTask ===

impl<P: PlanPort> EngineTask<P> {
    async fn serve<R: ResultPort>(&mut self, results: &mut R) -> Result<(), ShardError> {
        loop {
            self.advance()?;
            if !self.under_way.is_empty() {
                let result = self.next_result(results).await?;
                self.take_result(result)?;
            } else if !self.next_entry().await {
                return Ok(());
            }
        }
    }

    /// Sends what can be sent, then does the text work that is due. A stop string found in the text makes room for
    /// more, so it goes round until nothing ends.
    fn advance(&mut self) -> Result<(), ShardError> {
        loop {
            self.take_entries();
            let abandoned = self.planner.remove_abandoned();
            if abandoned > 0 {
                self.observer.abandoned(abandoned);
            }
            let sent = self.send_plans();
            let stopped = self.emit();
            self.intake.ended(self.planner.take_ended());
            sent?;
            if !stopped || self.under_way.len() == PLANS_UNDER_WAY {
                break;
            }
        }
        self.observer.waiting(self.planner.waiting());
        self.observer.running(self.planner.running(), self.planner.max_tokens());
        Ok(())
    }

    fn take_entries(&mut self) {
        while let Ok(entry) = self.intake.entries.try_recv() {
            self.planner.enqueue(entry);
        }
    }

    fn send_plans(&mut self) -> Result<(), ShardError> {
        while self.under_way.len() < PLANS_UNDER_WAY {
            // Releases alone can wait for the next plan that runs rows, unless there is no step to hide them behind.
            let Some((plan, record)) = self.planner.plan(self.under_way.is_empty()) else { break };
            self.plans.send(plan)?;
            if let Some(kind) = record.kind {
                self.observer.step_sent(kind);
            }
            if !record.begun.is_empty() {
                let begun = record.begun.len();
                self.observer.joined(begun, self.planner.running().saturating_sub(begun));
                self.begun.extend_from_slice(&record.begun);
            }
            self.under_way.push_back(record);
        }
        Ok(())
    }

    /// Waits for the oldest plan's result. Entries that arrive meanwhile start at once if a plan may be sent.
    async fn next_result<R: ResultPort>(&mut self, results: &mut R) -> Result<StepResult, ShardError> {
        let mut result = pin!(results.next());
        loop {
            let listening = self.open && self.under_way.len() < PLANS_UNDER_WAY;
            tokio::select! {
                biased;
                result = &mut result => return result,
                entry = self.intake.entries.recv(), if listening => match entry {
                    Some(entry) => {
                        self.planner.enqueue(entry);
                        self.advance()?;
                    }
                    None => self.open = false,
                },
            }
        }
    }

    /// Waits for an entry while nothing runs. False when every handle is dropped.
    async fn next_entry(&mut self) -> bool {
        if let Err(imbalance) = self.planner.audit() {
            tracing::error!("{imbalance}");
            self.observer.imbalance();
        }
        let entry = self.intake.entries.recv().await;
        entry.map(|entry| self.planner.enqueue(entry)).is_some()
    }

    fn take_result(&mut self, result: StepResult) -> Result<(), ShardError> {
        let Some(record) = self.under_way.front() else {
            return Err(ShardError::Protocol("a result came that no plan asked for".into()));
        };
        let now = Instant::now();
        if let Some(kind) = record.kind {
            let total = now.saturating_duration_since(record.sent.max(self.last_result));
            let shard = result.timings.unwrap_or_default();
            self.observer.step_done(&StepReport { kind, total, shard });
        }
        self.last_result = now;
        self.outputs = commit(&mut self.planner, record, result)?;
        self.under_way.pop_front();
        Ok(())
    }

    /// Does the text work that is due. Returns whether a stop string ended a sequence.
    fn emit(&mut self) -> bool {
        for row in self.begun.drain(..) {
            if let Some(sequence) = self.planner.get(row) {
                sequence.emitter.start();
            }
        }
        let began = Instant::now();
        let tokens = self.outputs.len();
        let mut stopped = false;
        for output in self.outputs.take() {
            stopped |= self.emit_output(output);
        }
        if tokens > 0 {
            self.observer.emitted(tokens, began.elapsed());
        }
        stopped
    }

    /// Returns whether a stop string ended the sequence.
    fn emit_output(&mut self, mut output: Output) -> bool {
        let mut retired = output.retired.take();
        let live = retired.is_none();
        let sequence = match retired.as_deref_mut() {
            Some(sequence) => Some(sequence),
            None => self.planner.get(output.row),
        };
        // Gone since: its client left while the next plan was made.
        let Some(sequence) = sequence else { return false };
        let end: Option<End> = match output.verdict {
            Verdict::NotFinite => {
                let text = "the model's output is not finite (NaN or infinity) for this request; try another prompt, \
                            or serve the model with a wider --dtype";
                sequence.emitter.fail(Error::Shard(text.into()));
                return false;
            }
            Verdict::Token => None,
            Verdict::Last(end) => Some(end),
        };
        if sequence.generated() == 1
            && let Some(tokens) = sequence.prompt_tokens()
        {
            sequence.emitter.prompt(tokens);
        }
        let over = sequence.emitter.token(self.outputs.sampled(&output), end);
        if live && over {
            self.planner.retire(output.row.slot);
        }
        live && over
    }

    async fn fail(&mut self, cause: &ShardError) {
        let error = Error::Shard(cause.to_string().into());
        for kind in self.under_way.iter().filter_map(|record| record.kind) {
            self.observer.step_failed(kind);
        }
        self.planner.fail_all(&error);
        self.intake.ended(self.planner.take_ended());
        self.intake.fail(&error).await;
    }
}
