//! The router: HTTP front end, scheduler and batching engine of the text generation server.
//!
//! It owns every truth about a request (token ids, sampling parameters, block tables, budgets) and drives the shards,
//! which only execute forward passes. Layers, each knowing only those below it:
//! `http` → `queue` (admission) → `chat`, `text` → `engine` → `cache`, `shard`.

pub mod app;
pub mod cache;
pub mod chat;
pub mod cli;
pub mod drain;
pub mod engine;
pub mod error;
pub mod event;
pub mod http;
pub mod model;
#[cfg(feature = "python")]
pub mod python;
pub mod queue;
pub mod request;
pub mod shard;
pub mod telemetry;
pub mod text;
