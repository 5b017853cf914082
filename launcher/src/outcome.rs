//! How a run of the launcher ended, as data: `supervisor` finds out, `report` says it.

use std::process::ExitStatus;

use nix::sys::signal::Signal;

use crate::error::StartError;
use crate::event::Role;

/// How the launcher's work ended.
#[derive(Debug)]
pub enum Outcome {
    /// A signal asked for it, and everything ended in order.
    Ended,
    /// A second signal cut it short.
    Cut(Signal),
    /// A child failed.
    Failed(Failure),
    /// A child could not be started.
    CannotStart(StartError),
}

/// The first child that failed.
#[derive(Debug)]
pub struct Failure {
    /// Which one.
    pub role: Role,
    /// How it ended.
    pub status: ExitStatus,
    /// Why, in one line, as far as its output tells.
    pub cause: Option<String>,
    /// What it printed last outside its log: a traceback, for example.
    pub last_lines: Vec<String>,
}
