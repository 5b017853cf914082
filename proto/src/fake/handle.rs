//! Starts a fake shard on a thread of its own and holds on to it: what it was sent, why it ended, and how to kill it.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::runtime;

use super::service::{Shared, serve};
use super::settings::FakeShard;
use crate::v1;

/// How a fake shard ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// By a kill: the fault, `FakeShardHandle::kill`, or the end of the handle.
    Killed,
    /// By an error, which the router was told.
    Failed(String),
}

/// A running fake shard. Dropping it kills it.
#[derive(Debug)]
pub struct FakeShardHandle {
    socket: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Outcome>>,
}

// === impl FakeShard ===

impl FakeShard {
    /// Listens on a unix socket and serves.
    ///
    /// # Errors
    /// When the socket cannot be bound, or threads are not to be had.
    pub fn serve(self, socket: &Path) -> io::Result<FakeShardHandle> {
        let listener = UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared::new(self));
        let serving = Arc::clone(&shared);
        // Dropping the runtime drops every connection with it: to the router, the process is gone.
        let run = move || runtime.block_on(serve(listener, serving));
        let thread = std::thread::Builder::new().name("fake-shard".into()).spawn(run)?;
        Ok(FakeShardHandle { socket: socket.to_path_buf(), shared, thread: Some(thread) })
    }
}

// === impl FakeShardHandle ===

impl FakeShardHandle {
    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Every plan so far, oldest first.
    pub fn plans(&self) -> Vec<v1::StepPlan> {
        lock(&self.shared.plans).clone()
    }

    /// How many rows are live.
    pub fn live_rows(&self) -> usize {
        lock(&self.shared.status).live_rows
    }

    /// The rule that a plan broke, or what else the shard failed of.
    pub fn failure(&self) -> Option<String> {
        lock(&self.shared.status).failure.clone()
    }

    /// Ends it abruptly, as SIGKILL would.
    pub fn kill(&self) {
        self.shared.killed.notify_one();
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Outcome {
        self.join()
    }

    fn join(&mut self) -> Outcome {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Outcome::Failed("the fake shard panicked".into()),
            None => Outcome::Killed,
        }
    }
}

impl Drop for FakeShardHandle {
    fn drop(&mut self) {
        self.kill();
        self.join();
    }
}

/// Locks; what is behind stays whole even if a holder panicked.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
