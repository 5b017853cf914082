//! Prepares the model, starts the shards and the router, and supervises them.

/// Runs the launcher with this command line and returns the exit code.
pub fn main_from(argv: Vec<String>) -> i32 {
    drop(argv);
    2
}
