//! The instruction sets of x86-64: AVX-512, and AVX2 with FMA and F16C.

use std::arch::x86_64::*;

use crate::element::{Bf16, F16};
use crate::simd::Simd;

/// 512-bit vectors.
pub(crate) struct Avx512;

/// 256-bit vectors.
pub(crate) struct Avx2;

impl Simd for Avx512 {
    const LANES: usize = 16;
    const TILE: usize = 4;
    type Vector = __m512;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(at) }
    }

    #[inline(always)]
    unsafe fn load_f16(at: *const F16) -> __m512 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())) }
    }

    #[inline(always)]
    unsafe fn load_bf16(at: *const Bf16) -> __m512 {
        unsafe {
            let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: __m512, b: __m512, sum: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn sum(vector: __m512) -> f32 {
        unsafe { _mm512_reduce_add_ps(vector) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}

impl Simd for Avx2 {
    const LANES: usize = 8;
    const TILE: usize = 2;
    type Vector = __m256;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(at) }
    }

    #[inline(always)]
    unsafe fn load_f16(at: *const F16) -> __m256 {
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
    }

    #[inline(always)]
    unsafe fn load_bf16(at: *const Bf16) -> __m256 {
        unsafe {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: __m256, b: __m256, sum: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn sum(vector: __m256) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(vector), _mm256_extractf128_ps::<1>(vector));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
