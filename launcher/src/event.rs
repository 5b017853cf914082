//! What the supervisor hears of, in one queue: children that ended, progress of the preparation, signals.

use std::fmt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

/// The part that a child plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The HTTP server and scheduler.
    Router,
    /// Fetches and converts the model, then ends.
    Prepare,
    /// Executes forward passes; with its rank.
    Shard(usize),
}

/// One thing that happened.
#[derive(Debug)]
pub enum Event {
    /// A child ended.
    Ended(Role, ExitStatus),
    /// The preparation said what it is doing.
    Progress(String),
    /// Someone wants the launcher to end.
    Signal(Signal),
}

// === impl Role ===

impl Role {
    /// Whether this is a shard.
    pub fn is_shard(self) -> bool {
        matches!(self, Self::Shard(_))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Router => out.write_str("router"),
            Self::Prepare => out.write_str("prepare"),
            Self::Shard(rank) => write!(out, "shard {rank}"),
        }
    }
}
