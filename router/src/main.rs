//! The `text-generation-router` binary.

fn main() {}
