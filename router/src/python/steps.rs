//! `Steps`, the iterator over plans that is a shard's main loop: `for plan in steps:` and `steps.reply(plan, ...)`.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use text_generation_protocol::{check, v1};

use super::exchange::Exchange;
use super::plan::Plan;
use super::result;
use super::server::{SIGNAL_INTERVAL, wait};

/// Iterates over plans; waits without holding the interpreter lock. Ends when `close` is called.
#[pyclass(frozen, module = "text_generation_server._native")]
pub(super) struct Steps {
    exchange: Arc<Exchange>,
}

// === impl Steps ===

impl Steps {
    /// The plans of an exchange.
    pub(super) fn new(exchange: Arc<Exchange>) -> Self {
        Self { exchange }
    }
}

#[pymethods]
impl Steps {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Plan>> {
        let job = wait(py, || self.exchange.take_plan(SIGNAL_INTERVAL))?;
        job.map(|job| Plan::new(py, job)).transpose()
    }

    /// Answers a plan; from any thread, in the order of the plans. See `_native.pyi`.
    #[pyo3(signature = (plan, result, *, wait_us = 0, forward_us = 0, sample_us = 0))]
    fn reply(
        &self,
        plan: &Bound<'_, Plan>,
        result: Option<&Bound<'_, PyAny>>,
        wait_us: u64,
        forward_us: u64,
        sample_us: u64,
    ) -> PyResult<()> {
        let ticket = plan.get().ticket();
        let mut answer = result.map(result::read).transpose()?.unwrap_or_default();
        answer.epoch = ticket.epoch;
        answer.step = ticket.step;
        answer.timings = Some(v1::StepTimings { wait_us, forward_us, sample_us });
        check::result_shape(&answer).and_then(|()| self.exchange.answer(ticket, answer)).map_err(PyValueError::new_err)
    }
}
