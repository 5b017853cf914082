//! What the engine tells about itself, as numbers. `telemetry` turns them into metrics; the default of every method is
//! to look away, so that tests need not care.

use std::time::Duration;

use text_generation_protocol::v1::StepTimings;

/// Whether a step computed prompt tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// At least one row was a chunk of a prompt.
    Prefill,
    /// Every row decoded one token.
    Decode,
}

/// One finished step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepReport {
    /// What it computed.
    pub kind: StepKind,
    /// From the time when the shards could begin it (the plan sent and the step before it done) to its result.
    pub total: Duration,
    /// What the shards measured: waiting, forward pass, sampling.
    pub shard: StepTimings,
}

/// Listens to the engine. Called on the engine's own task: implementations must not block.
pub trait Observer: Send + Sync + 'static {
    /// So many entries wait for their first step.
    fn waiting(&self, _entries: usize) {}
    /// So many sequences run; `max_tokens` is the sum of the lengths that they may reach.
    fn running(&self, _sequences: usize, _max_tokens: usize) {}
    /// So many sequences began in one step, beside those that ran already.
    fn joined(&self, _new: usize, _running: usize) {}
    /// A plan that runs rows was sent.
    fn step_sent(&self, _kind: StepKind) {}
    /// Its result is in.
    fn step_done(&self, _report: &StepReport) {}
    /// The shards failed while a step ran.
    fn step_failed(&self, _kind: StepKind) {}
    /// The text work for so many tokens of one step took this long. The device did not wait for it.
    fn emitted(&self, _tokens: usize, _took: Duration) {}
    /// So many clients left before their sequences ended.
    fn abandoned(&self, _sequences: usize) {}
    /// The KV blocks did not balance when the engine got idle.
    fn imbalance(&self) {}
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
