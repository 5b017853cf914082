//! The end of the service: signals, and the end of the launcher. The first SIGTERM or SIGINT makes the router unready
//! and lets running requests finish; the second ends it at once.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::http::Readiness;

/// Exit code offset of a process that a signal ended.
const SIGNAL_EXIT: i32 = 128;

/// Why the service ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A signal asked for it.
    Signal(i32),
    /// The launcher is gone: its end of the control channel closed.
    LauncherGone,
}

/// Installed signal handlers.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

// === impl Signals ===

impl Signals {
    /// Installs the handlers; must run inside the runtime, before anything slow.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn install() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for a signal, and returns its number.
    pub async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        }
    }
}

/// Refuses new requests from now on.
pub fn stop_admitting(readiness: &watch::Sender<Readiness>) {
    readiness.send_modify(|state| {
        *state = match state {
            Readiness::Ready(serving) | Readiness::Draining(serving) => Readiness::Draining(serving.clone()),
            Readiness::Starting(_) => Readiness::Failed("the server is shutting down".into()),
            Readiness::Failed(cause) => Readiness::Failed(cause.clone()),
        };
    });
}

/// Waits until every running request has ended, at most until the deadline. Returns whether they all did.
pub async fn finish_running(readiness: &watch::Sender<Readiness>, deadline: Duration) -> bool {
    let Readiness::Draining(serving) = readiness.borrow().clone() else { return true };
    let running = serving.admission.running();
    if running > 0 {
        tracing::info!(running, ?deadline, "Waiting for running requests");
    }
    tokio::time::timeout(deadline, serving.admission.idle()).await.is_ok()
}

/// The exit code after a second signal.
pub fn killed_by(signal: i32) -> i32 {
    SIGNAL_EXIT + signal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_router_that_never_was_ready_has_nothing_to_finish() {
        let readiness = watch::Sender::new(Readiness::Starting("loading".into()));
        stop_admitting(&readiness);
        assert!(matches!(&*readiness.borrow(), Readiness::Failed(cause) if &**cause == "the server is shutting down"));
        assert!(finish_running(&readiness, Duration::ZERO).await);
    }

    #[test]
    fn the_cause_of_a_failure_outlives_the_end_of_the_service() {
        let readiness = watch::Sender::new(Readiness::Failed("shard 0 is gone".into()));
        stop_admitting(&readiness);
        assert!(matches!(&*readiness.borrow(), Readiness::Failed(cause) if &**cause == "shard 0 is gone"));
        assert_eq!(killed_by(SignalKind::terminate().as_raw_value()), 143);
    }
}
