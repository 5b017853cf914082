//! The gRPC service of the fake shard: its states, its loading and warm-up, and the place of the one open stream. The
//! steps themselves are the business of `executor`.

use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::{UnboundedReceiverStream, UnixListenerStream};
use tonic::{Request, Response, Status, Streaming};

use super::executor;
use super::handle::{Outcome, lock};
use super::rows::Rows;
use super::settings::{FakeShard, Fault};
use crate::v1::shard_server::{Shard, ShardServer};
use crate::v1::{self, ShardState};
use crate::{MAX_MESSAGE_BYTES, RECONNECT_GRACE};

/// How long a failed shard stays, so that its last words arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What the service, the executor and the handle share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: FakeShard,
    pub(super) plans: Mutex<Vec<v1::StepPlan>>,
    pub(super) status: Mutex<State>,
    /// There once the shard is warmed up; what the blocks hold outlives a stream.
    pub(super) rows: Mutex<Option<Rows>>,
    /// Steps over the life of the shard.
    pub(super) steps: AtomicU64,
    pub(super) killed: Notify,
    failed: Notify,
    streaming: AtomicBool,
    stream_ended: Notify,
}

/// What `Health` and the handle report.
#[derive(Debug, Default)]
pub(super) struct State {
    phase: ShardState,
    detail: String,
    capacity: Option<v1::Capacity>,
    pub(super) last_step: u64,
    pub(super) running_since: Option<Instant>,
    pub(super) live_rows: usize,
    pub(super) failure: Option<String>,
}

/// The service over the shared state.
struct Service(Arc<Shared>);

/// Serves until the shard is killed or fails.
pub(super) async fn serve(listener: StdUnixListener, shared: Arc<Shared>) -> Outcome {
    let listener = match UnixListener::from_std(listener) {
        Ok(listener) => UnixListenerStream::new(listener),
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let service = ShardServer::new(Service(Arc::clone(&shared)))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let serving = tonic::transport::Server::builder().add_service(service).serve_with_incoming(listener);
    let failing = async {
        tokio::join!(shared.failed.notified(), shared.load());
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        ended = serving => Outcome::Failed(ended.err().map_or_else(|| "the socket was closed".into(), |error| error.to_string())),
        () = shared.killed.notified() => Outcome::Killed,
        () = failing => Outcome::Failed(lock(&shared.status).detail.clone()),
    }
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(settings: FakeShard) -> Self {
        Self {
            settings,
            plans: Mutex::default(),
            status: Mutex::default(),
            rows: Mutex::default(),
            steps: AtomicU64::new(0),
            killed: Notify::new(),
            failed: Notify::new(),
            streaming: AtomicBool::new(false),
            stream_ended: Notify::new(),
        }
    }

    pub(super) fn breaks(&self, fault: Fault) -> bool {
        self.settings.faults.contains(&fault)
    }

    /// Declares the shard failed; it ends soon after.
    pub(super) fn fail(&self, reason: &str) {
        tracing::error!(reason, "the fake shard fails");
        self.enter(ShardState::Failed, reason);
        lock(&self.status).failure = Some(reason.into());
        self.failed.notify_one();
    }

    fn enter(&self, phase: ShardState, detail: &str) {
        let mut status = lock(&self.status);
        status.phase = phase;
        status.detail = detail.into();
    }

    async fn load(&self) {
        self.enter(ShardState::Loading, "loading weights, 1 of 2 layers");
        tokio::time::sleep(self.settings.load_time).await;
        if self.breaks(Fault::FailLoading) {
            self.fail("model.safetensors is truncated");
        } else {
            self.enter(ShardState::Loaded, "weights are loaded");
        }
    }

    fn check_loaded(&self) -> Result<(), Status> {
        let status = lock(&self.status);
        match status.phase {
            ShardState::Loaded | ShardState::Ready => Ok(()),
            _ => Err(Status::failed_precondition(format!("the shard is not loaded: {}", status.detail))),
        }
    }

    /// Takes the place of the one stream, waiting shortly for an earlier one to end.
    async fn take_place(&self) -> Result<(), Status> {
        let deadline = tokio::time::Instant::now() + RECONNECT_GRACE;
        loop {
            let ended = self.stream_ended.notified();
            if !self.streaming.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
            if tokio::time::timeout_at(deadline, ended).await.is_err() {
                return Err(Status::already_exists("another Steps stream is open"));
            }
        }
    }

    pub(super) fn leave_place(&self) {
        self.streaming.store(false, Ordering::Release);
        self.stream_ended.notify_waiters();
    }
}

// === impl Service ===

#[tonic::async_trait]
impl Shard for Service {
    type StepsStream = UnboundedReceiverStream<Result<v1::StepResult, Status>>;

    async fn info(&self, _: Request<v1::InfoRequest>) -> Result<Response<v1::InfoResponse>, Status> {
        self.0.check_loaded()?;
        Ok(Response::new(self.0.settings.info.clone()))
    }

    async fn warmup(&self, request: Request<v1::WarmupRequest>) -> Result<Response<v1::Capacity>, Status> {
        self.0.check_loaded()?;
        if self.0.breaks(Fault::RefuseWarmup) {
            return Err(Status::resource_exhausted("the KV cache needs 9 GiB, 8 GiB are free"));
        }
        let mut status = lock(&self.0.status);
        let capacity = *status.capacity.get_or_insert_with(|| self.0.settings.grant(request.into_inner()));
        let info = &self.0.settings.info;
        lock(&self.0.rows).get_or_insert_with(|| Rows::new(capacity, info.block_size, info.vocab_size));
        status.phase = ShardState::Ready;
        Ok(Response::new(capacity))
    }

    async fn steps(&self, request: Request<Streaming<v1::StepPlan>>) -> Result<Response<Self::StepsStream>, Status> {
        if lock(&self.0.status).phase != ShardState::Ready {
            return Err(Status::failed_precondition("the shard is not warmed up"));
        }
        self.0.take_place().await?;
        let (results, outbound) = mpsc::unbounded_channel();
        tokio::spawn(executor::serve_stream(Arc::clone(&self.0), request.into_inner(), results));
        Ok(Response::new(UnboundedReceiverStream::new(outbound)))
    }

    async fn health(&self, _: Request<v1::HealthRequest>) -> Result<Response<v1::HealthResponse>, Status> {
        let status = lock(&self.0.status);
        let running = status.running_since.map_or(0, |since| since.elapsed().as_micros().max(1) as u64);
        Ok(Response::new(v1::HealthResponse {
            state: status.phase.into(),
            detail: status.detail.clone(),
            last_step: status.last_step,
            step_running_us: running,
        }))
    }
}
