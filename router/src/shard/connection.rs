//! One rank: its channel and the calls on it, with every error turned into one that names the rank.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use text_generation_protocol::MAX_MESSAGE_BYTES;
use text_generation_protocol::v1::shard_client::ShardClient;
use text_generation_protocol::v1::{self, ShardState};
use tokio::net::UnixStream;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Status, Streaming};

use super::ShardError;

/// How often a shard that is not ready is asked again.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long a shard may take to answer `Health`, which it answers also while a step runs.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to one rank.
#[derive(Debug)]
pub(super) struct Connection {
    rank: usize,
    client: ShardClient<Channel>,
}

/// Turns the status of a call into an error that names the rank.
pub(super) fn from_status(rank: usize, status: &Status) -> ShardError {
    let reason = status.message().to_owned();
    match status.code() {
        Code::Unavailable | Code::Unknown | Code::Cancelled => ShardError::Gone { rank, reason },
        _ => ShardError::Failed { rank, reason },
    }
}

// === impl Connection ===

impl Connection {
    /// Connects, waiting until the socket exists and somebody listens.
    pub(super) async fn open(rank: usize, socket: &Path, status: &impl Fn(String)) -> Result<Self, ShardError> {
        status(format!("waiting for shard {rank} to start"));
        while UnixStream::connect(socket).await.is_err() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let path: PathBuf = socket.into();
        let connector = tower::service_fn(move |_: Uri| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let gone = |error: tonic::transport::Error| ShardError::Gone { rank, reason: error.to_string() };
        // The address is never looked up: the connector knows the socket.
        let channel =
            Endpoint::from_static("http://localhost").connect_with_connector(connector).await.map_err(gone)?;
        let client = ShardClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { rank, client })
    }

    /// Waits until the weights are loaded.
    pub(super) async fn wait_loaded(&self, status: impl Fn(String)) -> Result<(), ShardError> {
        let mut told = None;
        loop {
            let health = self.health().await?;
            if matches!(health.state(), ShardState::Loaded | ShardState::Ready) {
                return Ok(());
            }
            // Only what is new: ranks that load together would talk over each other.
            if told.as_ref() != Some(&health.detail) {
                status(format!("shard {}: {}", self.rank, health.detail));
                told = Some(health.detail);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    pub(super) async fn info(&self) -> Result<v1::InfoResponse, ShardError> {
        self.content(self.client.clone().info(v1::InfoRequest {}).await)
    }

    pub(super) async fn warmup(&self, request: v1::WarmupRequest) -> Result<v1::Capacity, ShardError> {
        self.content(self.client.clone().warmup(request).await)
    }

    pub(super) async fn steps(
        &self,
        plans: UnboundedReceiverStream<v1::StepPlan>,
    ) -> Result<Streaming<v1::StepResult>, ShardError> {
        self.content(self.client.clone().steps(plans).await)
    }

    /// Asks for the health; a shard that has failed is an error.
    pub(super) async fn health(&self) -> Result<v1::HealthResponse, ShardError> {
        let mut client = self.client.clone();
        let answer = tokio::time::timeout(HEALTH_TIMEOUT, client.health(v1::HealthRequest {})).await;
        let silent = |_| ShardError::Gone { rank: self.rank, reason: format!("no health within {HEALTH_TIMEOUT:?}") };
        let health = self.content(answer.map_err(silent)?)?;
        match health.state() {
            ShardState::Failed => Err(ShardError::Failed { rank: self.rank, reason: health.detail }),
            _ => Ok(health),
        }
    }

    fn content<T>(&self, answer: Result<tonic::Response<T>, Status>) -> Result<T, ShardError> {
        answer.map(tonic::Response::into_inner).map_err(|status| from_status(self.rank, &status))
    }
}
