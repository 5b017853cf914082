//! The engine: one task that owns every sequence. It admits entries, plans steps, sends them to the shards, and turns
//! results into events. Knows nothing of HTTP.

mod handle;

pub use handle::{Engine, EngineLimits};
