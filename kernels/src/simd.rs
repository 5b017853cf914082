//! What a product needs of an instruction set, and the version for CPUs without one of ours.

use crate::element::{Bf16, F16};

/// A set of vector instructions. All functions are unsafe for the same two reasons: the CPU must have the instructions,
/// and a pointer must be valid for reading `LANES` values (a prefetched one may point anywhere).
pub(crate) trait Simd {
    /// Values in a vector.
    const LANES: usize;
    /// Activation rows that are multiplied with a loaded weight at once: as many as sums fit into registers.
    const TILE: usize;
    /// A vector of float32 values.
    type Vector: Copy;

    unsafe fn zero() -> Self::Vector;
    unsafe fn load_f32(at: *const f32) -> Self::Vector;
    unsafe fn load_f16(at: *const F16) -> Self::Vector;
    unsafe fn load_bf16(at: *const Bf16) -> Self::Vector;
    /// `a * b + sum`
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    unsafe fn sum(vector: Self::Vector) -> f32;
    /// Bring the cache line with this address near.
    unsafe fn prefetch(at: *const u8);
}

/// Plain Rust, for the compiler to vectorise as it can.
pub(crate) struct Portable;

impl Simd for Portable {
    const LANES: usize = 8;
    const TILE: usize = 2;
    type Vector = [f32; 8];

    #[inline(always)]
    unsafe fn zero() -> [f32; 8] {
        [0.0; 8]
    }

    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> [f32; 8] {
        std::array::from_fn(|i| unsafe { *at.add(i) })
    }

    #[inline(always)]
    unsafe fn load_f16(at: *const F16) -> [f32; 8] {
        std::array::from_fn(|i| unsafe { *at.add(i) }.widen())
    }

    #[inline(always)]
    unsafe fn load_bf16(at: *const Bf16) -> [f32; 8] {
        std::array::from_fn(|i| unsafe { *at.add(i) }.widen())
    }

    #[inline(always)]
    unsafe fn multiply_add(a: [f32; 8], b: [f32; 8], sum: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i] + sum[i])
    }

    #[inline(always)]
    unsafe fn sum(vector: [f32; 8]) -> f32 {
        vector.iter().sum()
    }

    #[inline(always)]
    unsafe fn prefetch(_at: *const u8) {}
}
