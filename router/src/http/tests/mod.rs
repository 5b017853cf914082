//! The HTTP front end against a scripted engine: wire shapes, refusals, streams.

mod chat;
mod completions;
mod generate;
pub(super) mod harness;
mod refusals;
mod server;
mod streams;
