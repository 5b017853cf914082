//! Products of a few activation rows with a large matrix on a CPU: `y = x W^T`, float32 in and out, W as a checkpoint
//! stores it. 16-bit weights are widened in registers, which is exact, so they cost half the memory and half the traffic
//! of float32 ones at the same result. Such a product is bound by memory: what counts is that every weight is read once
//! and that all threads read.
//!
//! Owns the threads and the instructions. Knows nothing of models, and nothing of Python.
#![allow(unsafe_code)] // Vector instructions and work shared between threads; the public interface is safe slices.

mod element;
mod pool;
mod product;
mod simd;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use element::{Bf16, F16};
pub use pool::Pool;

use product::{Level, Product};

/// Weights as they are stored, row after row.
#[derive(Clone, Copy)]
pub enum Weights<'a> {
    /// IEEE single precision.
    F32(&'a [f32]),
    /// IEEE half precision.
    F16(&'a [F16]),
    /// The upper half of single precision.
    Bf16(&'a [Bf16]),
}

/// A matrix (rows, columns).
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    weights: Weights<'a>,
    rows: usize,
    columns: usize,
}

/// Slices whose lengths do not belong together.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// The weights are not full rows.
    #[error("{values} weights are not {rows} rows of {columns}; pass the whole matrix, contiguous")]
    Weights {
        /// Weights passed.
        values: usize,
        /// Rows named.
        rows: usize,
        /// Columns named.
        columns: usize,
    },
    /// The activations are not full rows, or the results are not as many.
    #[error("{inputs} inputs and {outputs} outputs do not fit a matrix of {rows} rows of {columns}")]
    Activations {
        /// Length of x.
        inputs: usize,
        /// Length of y.
        outputs: usize,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
    },
}

/// `y = x W^T`: x (m, columns), y (m, rows), both row after row. Sums are float32, in an order that depends on m, on the
/// shape and on the CPU, but not on the threads.
///
/// # Errors
/// The lengths do not fit.
pub fn linear(pool: &Pool, x: &[f32], matrix: Matrix<'_>, y: &mut [f32]) -> Result<(), ShapeError> {
    let Matrix { rows, columns, .. } = matrix;
    let m = x.len() / columns.max(1);
    if m * columns != x.len() || m * rows != y.len() {
        return Err(ShapeError::Activations { inputs: x.len(), outputs: y.len(), rows, columns });
    }
    Product::new(x, m, columns, rows, y).run(pool, matrix.weights, Level::of_this_cpu());
    Ok(())
}

// === impl Matrix ===

impl<'a> Matrix<'a> {
    /// A matrix of this shape.
    ///
    /// # Errors
    /// The number of weights is another one.
    pub fn new(weights: Weights<'a>, rows: usize, columns: usize) -> Result<Self, ShapeError> {
        let values = match weights {
            Weights::F32(values) => values.len(),
            Weights::F16(values) => values.len(),
            Weights::Bf16(values) => values.len(),
        };
        if rows.checked_mul(columns) != Some(values) {
            return Err(ShapeError::Weights { values, rows, columns });
        }
        Ok(Self { weights, rows, columns })
    }
}
