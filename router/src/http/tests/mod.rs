//! The HTTP front end against a scripted engine: wire shapes, refusals, streams.

mod chat;
mod completions;
mod generate;
mod harness;
mod platforms;
mod refusals;
mod server;
mod streams;
