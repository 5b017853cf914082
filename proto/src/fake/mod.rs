//! The fake shard: speaks the real protocol with a scripted model, checks every plan against the rules of
//! `shard.proto`, and breaks on command. It stands in for a shard when the router is tested or measured without a
//! model. Computes nothing and knows nothing of the router.

mod executor;
mod handle;
mod model;
mod row;
mod rows;
mod service;
mod settings;

pub use handle::{FakeShardHandle, Outcome};
pub use model::HashModel;
pub use settings::{FakeShard, Fault};
