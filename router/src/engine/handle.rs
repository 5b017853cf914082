//! The engine as the rest of the router sees it: a place to submit entries to, and the limits found at warm-up.

use tokio::sync::mpsc;

use crate::error::Error;
use crate::queue::Entry;

/// What the engine can hold, from the shards' capacity and the configured limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Longest prompt, in tokens.
    pub max_input_tokens: usize,
    /// Longest prompt and completion together, in tokens.
    pub max_total_tokens: usize,
    /// Most prompt tokens computed in one step.
    pub max_batch_prefill_tokens: usize,
    /// KV cache size, in tokens.
    pub max_batch_total_tokens: usize,
    /// Most sequences that run at once.
    pub max_batch_size: usize,
}

/// A handle on the running engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine {
    entries: mpsc::UnboundedSender<Entry>,
    limits: EngineLimits,
}

// === impl Engine ===

impl Engine {
    /// A handle and the receiving end that an engine task (or a test) serves.
    pub fn channel(limits: EngineLimits) -> (Self, mpsc::UnboundedReceiver<Entry>) {
        let (entries, receiver) = mpsc::unbounded_channel();
        (Self { entries, limits }, receiver)
    }

    /// Hands an entry to the engine. Its events arrive on the entry's own channel.
    ///
    /// # Errors
    /// `Error::Shard` when the engine has ended.
    pub fn submit(&self, entry: Entry) -> Result<(), Error> {
        self.entries.send(entry).map_err(|_| Error::Shard("the engine has stopped".into()))
    }

    /// What the engine can hold.
    pub fn limits(&self) -> EngineLimits {
        self.limits
    }
}
