//! The Rust programs as functions, for the console scripts of the wheel.

use pyo3::prelude::*;

/// Runs `text-generation-router` with this argv (argv[0] is the program's name); returns the exit code.
#[pyfunction]
pub(super) fn router_main(py: Python<'_>, argv: Vec<String>) -> i32 {
    py.detach(|| crate::app::main_from(argv))
}

/// Runs `text-generation-launcher` with this argv (argv[0] is the program's name); returns the exit code.
#[pyfunction]
pub(super) fn launcher_main(py: Python<'_>, argv: Vec<String>) -> i32 {
    py.detach(|| text_generation_launcher::main_from(argv))
}
