//! Reads a step's result from a Python object with array attributes. Copies; checks types, not meaning.

use numpy::{Element, PyReadonlyArray1, dtype};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use text_generation_protocol::v1;

/// The arrays of a result; epoch, step and rank are left to the caller.
///
/// # Errors
/// TypeError naming the attribute that is missing or no one-dimensional array of the right type.
pub(super) fn read(result: &Bound<'_, PyAny>) -> PyResult<v1::StepResult> {
    let py = result.py();
    Ok(v1::StepResult {
        slots: array(&result.getattr(intern!(py, "slots"))?, "slots")?,
        token_counts: array(&result.getattr(intern!(py, "token_counts"))?, "token_counts")?,
        row_flags: array(&result.getattr(intern!(py, "row_flags"))?, "row_flags")?,
        token_ids: array(&result.getattr(intern!(py, "token_ids"))?, "token_ids")?,
        logprobs: array(&result.getattr(intern!(py, "logprobs"))?, "logprobs")?,
        top_counts: array(&result.getattr(intern!(py, "top_counts"))?, "top_counts")?,
        top_ids: array(&result.getattr(intern!(py, "top_ids"))?, "top_ids")?,
        top_logprobs: array(&result.getattr(intern!(py, "top_logprobs"))?, "top_logprobs")?,
        prompt_logprobs: prompt_logprobs(&result.getattr(intern!(py, "prompt_logprobs"))?)?,
        ..v1::StepResult::default()
    })
}

fn prompt_logprobs(entries: &Bound<'_, PyAny>) -> PyResult<Vec<v1::PromptLogprobs>> {
    entries
        .try_iter()?
        .map(|entry| {
            let entry = entry?;
            let py = entry.py();
            Ok(v1::PromptLogprobs {
                slot: entry.getattr(intern!(py, "slot"))?.extract()?,
                position: entry.getattr(intern!(py, "position"))?.extract()?,
                logprobs: array(&entry.getattr(intern!(py, "logprobs"))?, "prompt_logprobs.logprobs")?,
                top_ids: array(&entry.getattr(intern!(py, "top_ids"))?, "prompt_logprobs.top_ids")?,
                top_logprobs: array(&entry.getattr(intern!(py, "top_logprobs"))?, "prompt_logprobs.top_logprobs")?,
            })
        })
        .collect()
}

fn array<T: Element + Copy>(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<T>> {
    let array: PyReadonlyArray1<'_, T> = value.extract().map_err(|_| {
        let wanted = dtype::<T>(value.py());
        let found = value.get_type();
        PyTypeError::new_err(format!("{name} must be a one-dimensional array of {wanted}, not {found}"))
    })?;
    // A strided view is copied element by element.
    Ok(array.as_slice().map_or_else(|_| array.as_array().iter().copied().collect(), <[T]>::to_vec))
}
