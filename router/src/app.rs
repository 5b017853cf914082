//! The composition root: builds every part from the configuration and joins them. The only place that knows them all.

/// Runs the router with this command line and returns the exit code.
pub fn main_from(argv: Vec<String>) -> i32 {
    drop(argv);
    2
}
