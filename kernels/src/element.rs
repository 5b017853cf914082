//! The types in which weights are stored, and how each is widened to float32. Knows no instruction set.

use crate::simd::Simd;

/// IEEE half precision, as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The upper 16 bits of single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

/// A stored weight. `ZERO` fills a vector that a row's end does not.
pub(crate) trait Element: Copy + Sync {
    /// Zero.
    const ZERO: Self;

    /// Widen `S::LANES` consecutive weights.
    ///
    /// # Safety
    /// `at` must be valid for reading that many, and the CPU must have the instructions of `S`.
    unsafe fn load<S: Simd>(at: *const Self) -> S::Vector;
}

// === impl F16 ===

impl F16 {
    /// Numbers whose bits are these.
    pub fn of_bits(bits: &[u16]) -> &[Self] {
        // SAFETY: the type is a transparent wrapper, and every pattern of bits is a number.
        unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) }
    }

    /// The value in single precision; exact.
    #[inline(always)]
    pub fn widen(self) -> f32 {
        let (sign, magnitude) = (u32::from(self.0 & 0x8000) << 16, u32::from(self.0 & 0x7fff));
        // The exponent is moved from half to single precision by a product, which also makes subnormal numbers normal.
        let finite = f32::from_bits(magnitude << 13) * f32::from_bits((254 - 15) << 23);
        let bits = if magnitude >= 0x7c00 { 0x7f80_0000 | (magnitude << 13) } else { finite.to_bits() };
        f32::from_bits(sign | bits)
    }
}

impl Element for F16 {
    const ZERO: Self = Self(0);

    #[inline(always)]
    unsafe fn load<S: Simd>(at: *const Self) -> S::Vector {
        unsafe { S::load_f16(at) }
    }
}

// === impl Bf16 ===

impl Bf16 {
    /// Numbers whose bits are these.
    pub fn of_bits(bits: &[u16]) -> &[Self] {
        // SAFETY: the type is a transparent wrapper, and every pattern of bits is a number.
        unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) }
    }

    /// The value in single precision; exact.
    #[inline(always)]
    pub fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl Element for Bf16 {
    const ZERO: Self = Self(0);

    #[inline(always)]
    unsafe fn load<S: Simd>(at: *const Self) -> S::Vector {
        unsafe { S::load_bf16(at) }
    }
}

// === impl f32 ===

impl Element for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    unsafe fn load<S: Simd>(at: *const Self) -> S::Vector {
        unsafe { S::load_f32(at) }
    }
}
