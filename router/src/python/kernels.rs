//! CPU products for Python: threads, and matrices bound to them. Converts arrays; the arithmetic is in `kernels/`.

use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray2, PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use text_generation_kernels::{Bf16, F16, Matrix, Pool, Weights, linear};

/// The threads that share a product.
#[pyclass(frozen)]
pub(super) struct CpuPool {
    pool: Pool,
}

/// A matrix (rows, columns) of stored weights.
#[pyclass(frozen)]
pub(super) struct CpuMatrix {
    pool: Py<CpuPool>,
    weights: Stored,
    rows: usize,
    columns: usize,
}

/// Arrays whose memory the matrix reads; it keeps them alive.
enum Stored {
    F32(Py<PyArray2<f32>>),
    F16(Py<PyArray2<u16>>),
    Bf16(Py<PyArray2<u16>>),
}

// === impl CpuPool ===

#[pymethods]
impl CpuPool {
    #[new]
    fn new(threads: usize) -> PyResult<Self> {
        let pool = Pool::new(threads).map_err(|error| {
            PyOSError::new_err(format!("{threads} threads cannot be started: {error}; set OMP_NUM_THREADS lower"))
        })?;
        Ok(Self { pool })
    }
}

// === impl CpuMatrix ===

#[pymethods]
impl CpuMatrix {
    #[new]
    fn new(pool: Py<CpuPool>, weights: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Self> {
        let (stored, rows, columns) = match dtype {
            "float32" => {
                let array = weights.cast::<PyArray2<f32>>()?;
                (Stored::F32(array.clone().unbind()), array.shape()[0], array.shape()[1])
            }
            "float16" | "bfloat16" => {
                let array = weights.cast::<PyArray2<u16>>()?;
                let bits = array.clone().unbind();
                let stored = if dtype == "float16" { Stored::F16(bits) } else { Stored::Bf16(bits) };
                (stored, array.shape()[0], array.shape()[1])
            }
            _ => return Err(PyTypeError::new_err(format!("weights of type `{dtype}` have no product here"))),
        };
        Ok(Self { pool, weights: stored, rows, columns })
    }

    /// y = x W^T: x (m, columns), y (m, rows).
    // The interpreter lock is kept: a product takes less time than another thread needs to take it and give it back.
    fn multiply(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        mut y: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        let (x, y) = (x.as_slice()?, y.as_slice_mut()?);
        match &self.weights {
            Stored::F32(array) => self.run(Weights::F32(array.bind(py).readonly().as_slice()?), x, y),
            Stored::F16(array) => self.run(Weights::F16(F16::of_bits(array.bind(py).readonly().as_slice()?)), x, y),
            Stored::Bf16(array) => self.run(Weights::Bf16(Bf16::of_bits(array.bind(py).readonly().as_slice()?)), x, y),
        }
    }
}

impl CpuMatrix {
    fn run(&self, weights: Weights<'_>, x: &[f32], y: &mut [f32]) -> PyResult<()> {
        Matrix::new(weights, self.rows, self.columns)
            .and_then(|matrix| linear(&self.pool.get().pool, x, matrix, y))
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }
}
