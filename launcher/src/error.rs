//! Why the launcher cannot start or go on, as people read it: a cause and a way out, one line each.

use thiserror::Error;

/// A reason not to start. Shown as two lines: what is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("Error: {cause}\nHint: {way_out}")]
pub struct StartError {
    /// What is wrong, with the names and numbers involved.
    pub cause: String,
    /// What the user can do next.
    pub way_out: String,
}

// === impl StartError ===

impl StartError {
    /// Build one from its two lines.
    pub fn new(cause: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { cause: cause.into(), way_out: way_out.into() }
    }
}
