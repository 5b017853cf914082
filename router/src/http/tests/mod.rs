//! The HTTP front end against a scripted engine: wire shapes, refusals, streams.

mod chat;
mod completions;
mod corpus;
mod generate;
pub(super) mod harness;
mod platforms;
mod properties;
mod refusals;
mod server;
mod streams;
