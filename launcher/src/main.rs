//! The `text-generation-launcher` binary.

fn main() {}
