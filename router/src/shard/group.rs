//! All ranks as one: the same plan goes to each, and a step counts only when every rank has answered it.

use std::path::PathBuf;

use text_generation_protocol::v1;

/// Why the shards cannot be used (any longer).
#[derive(Debug, Clone, thiserror::Error)]
pub enum ShardError {
    /// A shard could not be reached or went away.
    #[error("shard {rank} is gone: {reason}")]
    Gone {
        /// Which one.
        rank: usize,
        /// What the transport said.
        reason: String,
    },
    /// A shard answered with an error.
    #[error("shard {rank} failed: {reason}")]
    Failed {
        /// Which one.
        rank: usize,
        /// Its own words.
        reason: String,
    },
    /// The shards contradict each other or the protocol.
    #[error("shards disagree: {0}")]
    Protocol(String),
}

/// Connections to every rank.
#[derive(Debug)]
pub struct ShardGroup {}

/// Sends plans to every rank.
#[derive(Debug)]
pub struct PlanSender {}

/// Receives results, one a step, when every rank has answered.
#[derive(Debug)]
pub struct ResultReceiver {}

// === impl ShardGroup ===

impl ShardGroup {
    /// Connects to the sockets, rank by rank, waiting until they exist and their weights are loaded. `status` is told
    /// what is being waited for.
    ///
    /// # Errors
    /// `ShardError` when a shard reports failure, or when ranks disagree about what they run.
    pub async fn connect(_sockets: &[PathBuf], _status: impl Fn(String) + Send) -> Result<Self, ShardError> {
        Err(ShardError::Protocol("not written yet".into()))
    }

    /// What the shards run (rank 0's answer; every rank's agrees).
    pub fn info(&self) -> &v1::InfoResponse {
        unimplemented!()
    }

    /// Warms up every rank at once and returns what all of them can hold (the least of each figure).
    ///
    /// # Errors
    /// `ShardError::Failed` with the shard's words, out of memory among them.
    pub async fn warmup(&self, _request: v1::WarmupRequest) -> Result<v1::Capacity, ShardError> {
        Err(ShardError::Protocol("not written yet".into()))
    }

    /// Opens the step streams.
    ///
    /// # Errors
    /// `ShardError` when a shard refuses.
    pub async fn open(&self) -> Result<(PlanSender, ResultReceiver), ShardError> {
        Err(ShardError::Protocol("not written yet".into()))
    }

    /// Asks every rank for its health.
    ///
    /// # Errors
    /// `ShardError` naming the first rank that does not answer or has failed.
    pub async fn health(&self) -> Result<(), ShardError> {
        Err(ShardError::Protocol("not written yet".into()))
    }
}

// === impl PlanSender ===

impl PlanSender {
    /// Sends one plan to every rank. Does not wait.
    ///
    /// # Errors
    /// `ShardError::Gone` when a stream has ended.
    pub fn send(&self, _plan: v1::StepPlan) -> Result<(), ShardError> {
        Err(ShardError::Protocol("not written yet".into()))
    }
}

// === impl ResultReceiver ===

impl ResultReceiver {
    /// The next step's result: rank 0's, once every rank has answered.
    ///
    /// # Errors
    /// `ShardError` when a stream ends or ranks answer different steps.
    pub async fn next(&mut self) -> Result<v1::StepResult, ShardError> {
        Err(ShardError::Protocol("not written yet".into()))
    }
}
