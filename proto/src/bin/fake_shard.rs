//! The fake shard as a process of its own.

fn main() {}
