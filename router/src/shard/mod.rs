//! The shards as the router sees them: one connection a rank, one plan to all, one result from all. Knows the
//! protocol and nothing of scheduling.

mod agreement;
mod connection;
mod group;
#[cfg(test)]
mod tests;

pub use group::{PlanSender, ResultReceiver, ShardError, ShardGroup};
