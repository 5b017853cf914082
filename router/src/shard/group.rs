//! All ranks as one: the same plan goes to each, and a step counts only when every rank has answered it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::try_join_all;
use text_generation_protocol::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use super::connection::{Connection, from_status};

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
    /// A step takes longer than any step may.
    #[error("shard {rank} hangs: the step after {last_step} has been running for {seconds} s")]
    Hangs {
        /// Which one.
        rank: usize,
        /// How long its step has been running.
        seconds: u64,
        /// The newest step that it finished.
        last_step: u64,
    },
    /// The shards contradict each other or the protocol.
    #[error("shards disagree: {0}")]
    Protocol(String),
}

/// Connections to every rank.
#[derive(Debug)]
pub struct ShardGroup {
    ranks: Vec<Connection>,
    info: v1::InfoResponse,
}

/// Sends plans to every rank.
#[derive(Debug)]
pub struct PlanSender {
    ranks: Vec<mpsc::UnboundedSender<v1::StepPlan>>,
}

/// Receives results, one a step, when every rank has answered.
#[derive(Debug)]
pub struct ResultReceiver {
    ranks: Vec<Streaming<v1::StepResult>>,
}

// === impl ShardGroup ===

impl ShardGroup {
    /// Connects to the sockets, given rank by rank, waiting until they exist and the weights are loaded. `status` is
    /// told what is being waited for.
    ///
    /// # Errors
    /// `ShardError` when a shard reports failure, or when ranks disagree about what they run.
    pub async fn connect(sockets: &[PathBuf], status: impl Fn(String) + Send + Sync) -> Result<Self, ShardError> {
        // Together, so that a failing rank is noticed while another one starts or loads.
        let ranks = sockets.iter().enumerate().map(|(rank, socket)| Connection::open(rank, socket, &status));
        let ranks = try_join_all(ranks).await?;
        let infos = try_join_all(ranks.iter().map(Connection::info)).await?;
        let info = super::agreement::agree(&infos).map_err(ShardError::Protocol)?;
        Ok(Self { ranks, info })
    }

    /// How many ranks there are, from rank 0. Waits as `connect` does.
    ///
    /// # Errors
    /// `ShardError` when the shard reports failure.
    pub async fn world_size(first: &Path, status: impl Fn(String)) -> Result<usize, ShardError> {
        let info = Connection::open(0, first, status).await?.info().await?;
        Ok(info.world_size as usize)
    }

    /// What the shards run (rank 0's answer; every rank's agrees).
    pub fn info(&self) -> &v1::InfoResponse {
        &self.info
    }

    /// Warms up every rank at once and returns what all of them can hold (the least of each figure).
    ///
    /// # Errors
    /// `ShardError::Failed` with the shard's words, out of memory among them.
    pub async fn warmup(&self, request: v1::WarmupRequest) -> Result<v1::Capacity, ShardError> {
        let capacities = try_join_all(self.ranks.iter().map(|rank| rank.warmup(request))).await?;
        let least = |one: v1::Capacity, other: v1::Capacity| v1::Capacity {
            blocks: one.blocks.min(other.blocks),
            max_sequences: one.max_sequences.min(other.max_sequences),
            max_step_tokens: one.max_step_tokens.min(other.max_step_tokens),
            max_total_tokens: one.max_total_tokens.min(other.max_total_tokens),
        };
        let all = capacities.into_iter().reduce(least);
        all.ok_or_else(|| ShardError::Protocol("there is no shard".into()))
    }

    /// Opens the step streams.
    ///
    /// # Errors
    /// `ShardError` when a shard refuses.
    pub async fn open(&self) -> Result<(PlanSender, ResultReceiver), ShardError> {
        let (senders, plans): (Vec<_>, Vec<_>) = self.ranks.iter().map(|_| mpsc::unbounded_channel()).unzip();
        let streams = self.ranks.iter().zip(plans);
        let streams = streams.map(|(rank, plans)| rank.steps(UnboundedReceiverStream::new(plans)));
        let ranks = try_join_all(streams).await?;
        Ok((PlanSender { ranks: senders }, ResultReceiver { ranks }))
    }

    /// Asks every rank for its health.
    ///
    /// # Errors
    /// `ShardError` naming the first rank that does not answer, has failed, or has been running one step for longer
    /// than `longest_step`.
    pub async fn health(&self, longest_step: Duration) -> Result<(), ShardError> {
        try_join_all(self.ranks.iter().map(|rank| rank.check(longest_step))).await.map(drop)
    }
}

// === impl PlanSender ===

impl PlanSender {
    /// Sends one plan to every rank. Does not wait.
    ///
    /// # Errors
    /// `ShardError::Gone` when a stream has ended.
    pub fn send(&self, plan: v1::StepPlan) -> Result<(), ShardError> {
        let gone = |rank| ShardError::Gone { rank, reason: "the stream of plans has ended".into() };
        let Some((first, others)) = self.ranks.split_first() else { return Ok(()) };
        for (index, rank) in others.iter().enumerate() {
            rank.send(plan.clone()).map_err(|_| gone(index + 1))?;
        }
        first.send(plan).map_err(|_| gone(0))
    }
}

// === impl ResultReceiver ===

impl ResultReceiver {
    /// The next step's result: rank 0's, once every rank has answered.
    ///
    /// # Errors
    /// `ShardError` when a stream ends or ranks answer different steps.
    pub async fn next(&mut self) -> Result<v1::StepResult, ShardError> {
        // The first error ends the wait: a rank that hangs because another one died is not waited for.
        let mut results = try_join_all(self.ranks.iter_mut().enumerate().map(|(rank, stream)| async move {
            let gone = || ShardError::Gone { rank, reason: "it closed the stream of results".into() };
            stream.message().await.map_err(|status| from_status(rank, &status))?.ok_or_else(gone)
        }))
        .await?
        .into_iter();
        let first = results.next().ok_or_else(|| ShardError::Protocol("there is no shard".into()))?;
        text_generation_protocol::check::result_shape(&first).map_err(ShardError::Protocol)?;
        match results.find(|other| (other.epoch, other.step) != (first.epoch, first.step)) {
            Some(other) => Err(ShardError::Protocol(format!(
                "rank 0 answered step {}, rank {} answered step {}",
                first.step, other.rank, other.step
            ))),
            None => Ok(first),
        }
    }
}
