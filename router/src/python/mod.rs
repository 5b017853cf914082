//! The native module of the wheel, `text_generation_server._native`: the shard's end of the shard protocol and the
//! entry points of the Rust programs. Converts between Python and Rust; knows nothing of models and nothing of the
//! router's scheduling. Its Python face is described in `server/text_generation_server/_native.pyi`.

mod exchange;
mod kernels;
mod plan;
mod programs;
mod result;
mod server;
mod service;
mod steps;

use pyo3::prelude::pymodule;

/// The module as Python sees it.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::kernels::{CpuMatrix, CpuPool};
    #[pymodule_export]
    use super::plan::{NewSequence, Plan, Sampling, WarmupRequest};
    #[pymodule_export]
    use super::programs::{launcher_main, router_main};
    #[pymodule_export]
    use super::server::ShardServer;
    #[pymodule_export]
    use super::steps::Steps;
}
