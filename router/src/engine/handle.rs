//! The engine as the rest of the router sees it: a place to submit entries to, the limits found at warm-up, and how
//! much is unfinished.

use tokio::sync::{mpsc, watch};

use super::limits::EngineLimits;
use crate::error::Error;
use crate::event::Event;
use crate::queue::Entry;

/// How the engine is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineStatus {
    /// Sequences submitted and not ended, waiting or running.
    pub unfinished: usize,
    /// Why the engine has stopped, if it has.
    pub failure: Option<Error>,
}

/// A handle on the running engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine {
    entries: mpsc::UnboundedSender<Entry>,
    limits: EngineLimits,
    status: watch::Sender<EngineStatus>,
}

/// The engine's own end of the handle.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) entries: mpsc::UnboundedReceiver<Entry>,
    pub(super) status: watch::Sender<EngineStatus>,
}

// === impl Engine ===

impl Engine {
    /// A handle and the receiving end that a test serves. The running engine comes from `engine::start`.
    pub fn channel(limits: EngineLimits) -> (Self, mpsc::UnboundedReceiver<Entry>) {
        let (engine, intake) = Self::with_intake(limits);
        (engine, intake.entries)
    }

    pub(super) fn with_intake(limits: EngineLimits) -> (Self, Intake) {
        let (entries, receiver) = mpsc::unbounded_channel();
        let status = watch::Sender::new(EngineStatus::default());
        (Self { entries, limits, status: status.clone() }, Intake { entries: receiver, status })
    }

    /// Hands an entry to the engine. Its events arrive on the entry's own channel.
    ///
    /// # Errors
    /// `Error::Shard` with the cause when the engine has stopped.
    pub fn submit(&self, entry: Entry) -> Result<(), Error> {
        // Counted first, so that a drain never sees zero while an entry is on its way.
        self.status.send_modify(|status| status.unfinished += 1);
        self.entries.send(entry).map_err(|_| {
            self.status.send_modify(|status| status.unfinished -= 1);
            self.failure().unwrap_or_else(|| Error::Shard("the engine has stopped".into()))
        })
    }

    /// What the engine can hold.
    pub fn limits(&self) -> EngineLimits {
        self.limits
    }

    /// Why the engine has stopped, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.status.borrow().failure.clone()
    }

    /// Follows the status: `wait_for(|status| status.unfinished == 0)` waits until everything has ended.
    pub fn status(&self) -> watch::Receiver<EngineStatus> {
        self.status.subscribe()
    }
}

// === impl Intake ===

impl Intake {
    /// Notes that so many sequences have ended.
    pub(super) fn ended(&self, sequences: usize) {
        if sequences > 0 {
            self.status.send_modify(|status| status.unfinished = status.unfinished.saturating_sub(sequences));
        }
    }

    /// Refuses further entries with the cause, and ends those that are on their way.
    pub(super) async fn fail(&mut self, cause: &Error) {
        self.status.send_modify(|status| status.failure = Some(cause.clone()));
        self.entries.close();
        while let Some(entry) = self.entries.recv().await {
            entry.events.send(Event::Error(cause.clone())).ok();
            self.ended(1);
        }
    }
}
