//! What Python sees of plans: frozen objects whose arrays are read-only numpy views of the decoded message. No array
//! is copied on the way.

use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyList;
use text_generation_protocol::v1;

use super::exchange::{Job, Ticket};

/// A read-only numpy array of unsigned 32-bit integers.
type U32 = Py<PyArray1<u32>>;

/// Sampling parameters of one sequence; definitions in `proto/shard.proto`.
#[pyclass(frozen, get_all, module = "text_generation_server._native")]
pub(super) struct Sampling {
    temperature: f32,
    top_k: u32,
    top_p: f32,
    typical_p: f32,
    repetition_penalty: f32,
    frequency_penalty: f32,
    presence_penalty: f32,
    seed: u64,
    top_n: u32,
    min_p: f32,
    bias_ids: U32,
    biases: Py<PyArray1<f32>>,
    min_tokens: u32,
    end_ids: U32,
    watermark_gamma: f32,
    watermark_delta: f32,
    raw_logprobs: bool,
}

/// A row that begins. Fields as in `proto/shard.proto`.
#[pyclass(frozen, get_all, module = "text_generation_server._native")]
pub(super) struct NewSequence {
    slot: u32,
    token_ids: U32,
    prompt_length: u32,
    computed: u32,
    block_ids: U32,
    sampling: Py<Sampling>,
    prompt_logprobs: bool,
    prompt_top_n: u32,
}

/// One step to run. Array fields are read-only numpy arrays, named as in `proto/shard.proto`.
#[pyclass(frozen, module = "text_generation_server._native")]
pub(super) struct Plan {
    ticket: Ticket,
    #[pyo3(get)]
    reset: bool,
    #[pyo3(get)]
    released_slots: U32,
    #[pyo3(get)]
    copy_from: U32,
    #[pyo3(get)]
    copy_to: U32,
    #[pyo3(get)]
    new_sequences: Py<PyList>,
    #[pyo3(get)]
    slots: U32,
    #[pyo3(get)]
    token_counts: U32,
    #[pyo3(get)]
    row_flags: U32,
    #[pyo3(get)]
    block_counts: U32,
    #[pyo3(get)]
    block_ids: U32,
}

/// What the router wants to serve; 0 = the shard decides.
#[pyclass(frozen, get_all, module = "text_generation_server._native")]
pub(super) struct WarmupRequest {
    max_total_tokens: u32,
    max_sequences: u32,
    max_step_tokens: u32,
    max_cache_tokens: u32,
}

// === impl Plan ===

impl Plan {
    /// Hands a decoded plan over to Python.
    pub(super) fn new(py: Python<'_>, job: Job) -> PyResult<Self> {
        let plan = job.plan;
        let sequences: Vec<NewSequence> =
            plan.new_sequences.into_iter().map(|sequence| NewSequence::new(py, sequence)).collect::<PyResult<_>>()?;
        Ok(Self {
            ticket: job.ticket,
            reset: job.reset,
            released_slots: array(py, plan.released_slots),
            copy_from: array(py, plan.copy_from),
            copy_to: array(py, plan.copy_to),
            new_sequences: PyList::new(py, sequences)?.unbind(),
            slots: array(py, plan.slots),
            token_counts: array(py, plan.token_counts),
            row_flags: array(py, plan.row_flags),
            block_counts: array(py, plan.block_counts),
            block_ids: array(py, plan.block_ids),
        })
    }

    /// Which plan of which stream this is.
    pub(super) fn ticket(&self) -> Ticket {
        self.ticket
    }
}

#[pymethods]
impl Plan {
    #[getter]
    fn epoch(&self) -> u64 {
        self.ticket.epoch
    }

    #[getter]
    fn step(&self) -> u64 {
        self.ticket.step
    }
}

// === impl NewSequence ===

impl NewSequence {
    fn new(py: Python<'_>, sequence: v1::NewSequence) -> PyResult<Self> {
        Ok(Self {
            slot: sequence.slot,
            token_ids: array(py, sequence.token_ids),
            prompt_length: sequence.prompt_length,
            computed: sequence.computed,
            block_ids: array(py, sequence.block_ids),
            // Present: the shape of a plan is checked when it arrives.
            sampling: Py::new(py, Sampling::new(py, sequence.sampling.unwrap_or_default()))?,
            prompt_logprobs: sequence.prompt_logprobs,
            prompt_top_n: sequence.prompt_top_n,
        })
    }
}

// === impl Sampling ===

impl Sampling {
    fn new(py: Python<'_>, sampling: v1::Sampling) -> Self {
        Self {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            typical_p: sampling.typical_p,
            repetition_penalty: sampling.repetition_penalty,
            frequency_penalty: sampling.frequency_penalty,
            presence_penalty: sampling.presence_penalty,
            seed: sampling.seed,
            top_n: sampling.top_n,
            min_p: sampling.min_p,
            bias_ids: array(py, sampling.bias_ids),
            biases: array(py, sampling.biases),
            min_tokens: sampling.min_tokens,
            end_ids: array(py, sampling.end_ids),
            watermark_gamma: sampling.watermark_gamma,
            watermark_delta: sampling.watermark_delta,
            raw_logprobs: sampling.raw_logprobs,
        }
    }
}

// === impl WarmupRequest ===

impl From<v1::WarmupRequest> for WarmupRequest {
    fn from(request: v1::WarmupRequest) -> Self {
        Self {
            max_total_tokens: request.max_total_tokens,
            max_sequences: request.max_sequences,
            max_step_tokens: request.max_step_tokens,
            max_cache_tokens: request.max_cache_tokens,
        }
    }
}

/// Moves a vector into a numpy array that Python cannot write to.
fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
    let array = PyArray1::from_vec(py, values);
    array.readwrite().make_nonwriteable();
    array.unbind()
}
