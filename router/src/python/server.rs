//! `ShardServer`, the Python object that owns the socket and the I/O thread of a shard.

use std::io::{Error, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use text_generation_protocol::{PROTOCOL_VERSION, v1};
use tokio::runtime;
use tokio::sync::oneshot;
use tonic::Status;

use super::exchange::{Exchange, Wait};
use super::plan::WarmupRequest;
use super::service;
use super::steps::Steps;

/// How long a wait without the interpreter lock may last before signal handlers get their turn.
pub(super) const SIGNAL_INTERVAL: Duration = Duration::from_millis(200);

/// How long `fail` waits for the message to be sent.
const FAILURE_GRACE: Duration = Duration::from_secs(1);

/// Serves the shard protocol on a unix socket.
#[pyclass(frozen, module = "text_generation_server._native")]
pub(super) struct ShardServer {
    socket: PathBuf,
    exchange: Arc<Exchange>,
    runtime: runtime::Handle,
    running: Mutex<Option<Running>>,
}

/// The I/O thread, and what stops it.
struct Running {
    shutdown: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The keyword arguments of `loaded`: the fields of `InfoResponse` but the protocol version.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Loaded {
    rank: u32,
    world_size: u32,
    dtype: String,
    device: String,
    vocab_size: u32,
    layers: u32,
    kv_heads: u32,
    head_dim: u32,
    block_size: u32,
    max_positions: u32,
    attention: String,
    capabilities: Vec<String>,
}

/// How many fields `Loaded` has.
const LOADED_FIELDS: usize = 12;

// === impl ShardServer ===

#[pymethods]
impl ShardServer {
    #[new]
    fn new(socket: PathBuf) -> PyResult<Self> {
        let listener = bind(&socket)?;
        let exchange = Arc::new(Exchange::default());
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (shutdown, stopped) = oneshot::channel();
        let serving = Arc::clone(&exchange);
        let thread = std::thread::Builder::new().name("shard-io".into()).spawn(move || {
            if let Err(reason) = runtime.block_on(service::serve(listener, Arc::clone(&serving), stopped)) {
                serving.break_down(reason);
            }
        })?;
        Ok(Self { socket, exchange, runtime: handle, running: Mutex::new(Some(Running { shutdown, thread })) })
    }

    /// State LOADING, with a text for people.
    fn loading(&self, detail: String) {
        self.exchange.loading(detail);
    }

    /// State LOADED; `Info` answers with this.
    #[pyo3(signature = (**fields))]
    fn loaded(&self, fields: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let fields = fields.ok_or_else(|| PyTypeError::new_err("loaded() needs keyword arguments"))?;
        let loaded: Loaded = fields.extract().map_err(|error| PyTypeError::new_err(format!("loaded(): {error}")))?;
        if fields.len() != LOADED_FIELDS {
            return Err(PyTypeError::new_err(format!("loaded() got unexpected arguments among {}", fields.keys())));
        }
        self.exchange.loaded(loaded.into());
        Ok(())
    }

    /// Blocks until the router calls `Warmup`. Raises KeyboardInterrupt on SIGINT, and runs signal handlers.
    fn wait_warmup(&self, py: Python<'_>) -> PyResult<WarmupRequest> {
        let request = wait(py, || self.exchange.take_warmup(SIGNAL_INTERVAL))?;
        request.map(WarmupRequest::from).ok_or_else(|| PyRuntimeError::new_err("the shard server is closed"))
    }

    /// Answers `Warmup`; state READY. Later calls of `Warmup` get the same answer.
    #[pyo3(signature = (*, blocks, max_sequences, max_step_tokens, max_total_tokens))]
    fn warmed(&self, blocks: u32, max_sequences: u32, max_step_tokens: u32, max_total_tokens: u32) {
        let capacity = v1::Capacity { blocks, max_sequences, max_step_tokens, max_total_tokens };
        self.exchange.answer_warmup(Ok(capacity));
    }

    /// Answers `Warmup` with RESOURCE_EXHAUSTED and this message; `wait_warmup` may be called again.
    fn refuse_warmup(&self, message: String) {
        self.exchange.answer_warmup(Err(Status::resource_exhausted(message)));
    }

    /// The plans, stream after stream.
    fn steps(&self) -> Steps {
        Steps::new(Arc::clone(&self.exchange))
    }

    /// State FAILED: ends an open stream with INTERNAL and this message, and waits (at most 1 s) until it is sent.
    fn fail(&self, py: Python<'_>, message: &str) {
        let stream = self.exchange.fail(message);
        let told = async {
            match stream {
                Some(results) => results.closed().await,
                None => self.exchange.failure_read().await,
            }
        };
        // Running out of time is no error: the process ends either way.
        py.detach(|| {
            let _ = self.runtime.block_on(async { tokio::time::timeout(FAILURE_GRACE, told).await });
        });
    }

    /// Stops serving and removes the socket.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.stop())?;
        Ok(())
    }
}

impl ShardServer {
    /// Ends every stream and wait, and waits until the I/O thread has gone.
    fn stop(&self) -> std::io::Result<()> {
        let Some(running) = self.running.lock().take() else { return Ok(()) };
        self.exchange.close();
        // The thread may have ended by itself; joining it is right in both cases.
        let _ = running.shutdown.send(());
        let joined = running.thread.join();
        std::fs::remove_file(&self.socket).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        joined.map_err(|_| Error::other("the I/O thread of the shard server panicked"))
    }
}

impl Drop for ShardServer {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!(%error, socket = %self.socket.display(), "the shard server did not close well");
        }
    }
}

// === impl Loaded ===

impl From<Loaded> for v1::InfoResponse {
    fn from(loaded: Loaded) -> Self {
        Self {
            protocol_version: PROTOCOL_VERSION,
            rank: loaded.rank,
            world_size: loaded.world_size,
            dtype: loaded.dtype,
            device: loaded.device,
            vocab_size: loaded.vocab_size,
            layers: loaded.layers,
            kv_heads: loaded.kv_heads,
            head_dim: loaded.head_dim,
            block_size: loaded.block_size,
            max_positions: loaded.max_positions,
            attention: loaded.attention,
            capabilities: loaded.capabilities,
        }
    }
}

/// Repeats a short wait without the interpreter lock, with a look at signals in between; None when closed.
pub(super) fn wait<T: Send>(py: Python<'_>, attempt: impl Fn() -> Wait<T> + Send + Sync) -> PyResult<Option<T>> {
    loop {
        match py.detach(&attempt) {
            Wait::Ready(value) => return Ok(Some(value)),
            Wait::Closed(None) => return Ok(None),
            Wait::Closed(Some(reason)) => return Err(PyOSError::new_err(format!("the shard server broke: {reason}"))),
            Wait::TimedOut => py.check_signals()?,
        }
    }
}

/// Listens on the socket, in place of one that a dead process left behind.
fn bind(socket: &Path) -> std::io::Result<UnixListener> {
    let listener = match UnixListener::bind(socket) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && UnixStream::connect(socket).is_err() => {
            std::fs::remove_file(socket)?;
            UnixListener::bind(socket)?
        }
        other => other?,
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}
