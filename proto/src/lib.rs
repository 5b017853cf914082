//! Everything that two processes of the server say to each other: the shard protocol (`v1`, generated from
//! `shard.proto`), the configurations that the launcher writes for its children (`config`), and the lines that it
//! sends to the router while the model is prepared (`control`). Knows no policy and starts nothing.

#[cfg(feature = "grpc")]
pub mod check;
pub mod config;
pub mod control;
#[cfg(feature = "fake")]
pub mod fake;

/// The generated shard protocol, version 1. The commented source is `proto/shard.proto`.
#[cfg(feature = "grpc")]
#[allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used)]
pub mod v1 {
    tonic::include_proto!("shard.v1");
}

/// The version of the shard protocol that this crate speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// The largest message that either end accepts: a plan that begins many long sequences at once has several megabytes.
pub const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// How long a shard lets a new stream wait for the end of an old one before it refuses: a router that reconnects may
/// be faster than the news that its old connection has ended.
pub const RECONNECT_GRACE: std::time::Duration = std::time::Duration::from_millis(200);
