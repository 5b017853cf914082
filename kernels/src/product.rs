//! One product, cut into chunks of matrix rows for the threads, and each chunk into tiles of four matrix rows by a few
//! activation rows, whose sums stay in registers. Written once for all element types and instruction sets.

use std::ops::Range;
use std::sync::OnceLock;

use crate::Weights;
use crate::element::Element;
use crate::pool::Pool;
use crate::simd::{Portable, Simd};

/// Matrix rows of a tile: four streams of memory, and enough independent sums to hide an addition's latency.
const TILE_ROWS: usize = 4;
/// Bytes of weights below which a chunk costs more to hand out than it saves.
const CHUNK_BYTES: usize = 32 << 10;
/// Chunks a thread, so that a thread which the system interrupts does not hold up the others.
const CHUNKS_PER_THREAD: usize = 4;
/// How far ahead of the reading weights are requested from memory, in bytes.
const PREFETCH_BYTES: usize = 16 << 10;
/// The same where a tile's rows are longer than that.
const PREFETCH_IN_ROW_BYTES: usize = 2 << 10;
const CACHE_LINE_BYTES: usize = 64;

/// The best instructions of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// x (m, columns), y (m, rows).
#[derive(Clone, Copy)]
pub(crate) struct Product {
    x: *const f32,
    y: *mut f32,
    m: usize,
    columns: usize,
    rows: usize,
}

// SAFETY: x is only read, and each thread writes its own columns of y.
unsafe impl Sync for Product {}

// === impl Level ===

impl Level {
    /// What this CPU has.
    pub(crate) fn of_this_cpu() -> Self {
        static FOUND: OnceLock<Level> = OnceLock::new();
        *FOUND.get_or_init(|| Self::available().last().copied().unwrap_or(Self::Portable))
    }

    /// All that this CPU has, the best one last.
    pub(crate) fn available() -> Vec<Self> {
        let mut levels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
                levels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                levels.push(Self::Avx512);
            }
        }
        levels
    }
}

// === impl Product ===

impl Product {
    /// The caller has checked the lengths: x (m, columns), y (m, rows).
    pub(crate) fn new(x: &[f32], m: usize, columns: usize, rows: usize, y: &mut [f32]) -> Self {
        debug_assert!(x.len() == m * columns && y.len() == m * rows);
        Self { x: x.as_ptr(), y: y.as_mut_ptr(), m, columns, rows }
    }

    /// Compute it. `weights` are (rows, columns), and the CPU has the instructions of `level`.
    pub(crate) fn run(&self, pool: &Pool, weights: Weights<'_>, level: Level) {
        match weights {
            Weights::F32(values) => self.run_over(pool, values, level),
            Weights::F16(values) => self.run_over(pool, values, level),
            Weights::Bf16(values) => self.run_over(pool, values, level),
        }
    }

    fn run_over<E: Element>(&self, pool: &Pool, weights: &[E], level: Level) {
        debug_assert_eq!(weights.len(), self.rows * self.columns);
        let chunks = (size_of_val(weights) / CHUNK_BYTES).clamp(1, pool.threads() * CHUNKS_PER_THREAD);
        let step = self.rows.div_ceil(chunks).next_multiple_of(TILE_ROWS);
        pool.run(self.rows.div_ceil(step), &|chunk| {
            let rows = chunk * step..((chunk + 1) * step).min(self.rows);
            // SAFETY: the lengths were checked, chunks do not overlap, and the level is one that the CPU has.
            unsafe {
                match level {
                    Level::Portable => self.tiles::<Portable, E>(weights, rows),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => self.tiles_avx2(weights, rows),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => self.tiles_avx512(weights, rows),
                }
            }
        });
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn tiles_avx2<E: Element>(&self, weights: &[E], rows: Range<usize>) {
        unsafe { self.tiles::<crate::x86::Avx2, E>(weights, rows) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn tiles_avx512<E: Element>(&self, weights: &[E], rows: Range<usize>) {
        unsafe { self.tiles::<crate::x86::Avx512, E>(weights, rows) }
    }

    #[inline(always)]
    unsafe fn tiles<S: Simd, E: Element>(&self, weights: &[E], rows: Range<usize>) {
        let full = rows.start + rows.len() / TILE_ROWS * TILE_ROWS;
        for row in (rows.start..full).step_by(TILE_ROWS) {
            unsafe { self.across::<S, E, TILE_ROWS>(weights, row) };
        }
        for row in full..rows.end {
            unsafe { self.across::<S, E, 1>(weights, row) };
        }
    }

    /// `R` matrix rows times all activation rows.
    #[inline(always)]
    unsafe fn across<S: Simd, E: Element, const R: usize>(&self, weights: &[E], row: usize) {
        let mut first = 0;
        while first < self.m {
            let count = (self.m - first).min(S::TILE);
            // SAFETY: `row + R <= rows` and `first + count <= m`.
            unsafe {
                match count {
                    1 => self.tile::<S, E, R, 1>(weights, row, first),
                    2 => self.tile::<S, E, R, 2>(weights, row, first),
                    3 => self.tile::<S, E, R, 3>(weights, row, first),
                    _ => self.tile::<S, E, R, 4>(weights, row, first),
                }
            }
            first += count;
        }
    }

    /// `R` matrix rows times `M` activation rows.
    #[inline(always)]
    unsafe fn tile<S: Simd, E: Element, const R: usize, const M: usize>(
        &self,
        weights: &[E],
        row: usize,
        first: usize,
    ) {
        unsafe {
            let w = weights.as_ptr().add(row * self.columns);
            let x = self.x.add(first * self.columns);
            let sums = dots::<S, E, R, M>(w, x, self.columns);
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    *self.y.add((first + j) * self.rows + row + i) = S::sum(*sum);
                }
            }
        }
    }
}

/// Sums of `R` consecutive rows of w times `M` consecutive rows of x, all of `columns` values, one vector each.
#[inline(always)]
unsafe fn dots<S: Simd, E: Element, const R: usize, const M: usize>(
    w: *const E,
    x: *const f32,
    columns: usize,
) -> [[S::Vector; M]; R] {
    let per_line = (CACHE_LINE_BYTES / size_of::<E>()).max(S::LANES);
    let ahead = prefetch_distance(R * columns * size_of::<E>());
    let mut at = 0;
    unsafe {
        let mut sums = [[S::zero(); M]; R];
        while at + per_line <= columns {
            for i in 0..R {
                // The address may lie past the matrix: a prefetch of it does nothing.
                S::prefetch(w.wrapping_add(i * columns + at).cast::<u8>().wrapping_add(ahead));
            }
            for part in 0..per_line / S::LANES {
                add::<S, E, R, M>(&mut sums, w.add(at + part * S::LANES), x.add(at + part * S::LANES), columns);
            }
            at += per_line;
        }
        while at + S::LANES <= columns {
            add::<S, E, R, M>(&mut sums, w.add(at), x.add(at), columns);
            at += S::LANES;
        }
        if at < columns {
            add_rest::<S, E, R, M>(&mut sums, w.add(at), x.add(at), (columns, columns - at));
        }
        sums
    }
}

/// One vector of each row.
#[inline(always)]
unsafe fn add<S: Simd, E: Element, const R: usize, const M: usize>(
    sums: &mut [[S::Vector; M]; R],
    w: *const E,
    x: *const f32,
    columns: usize,
) {
    unsafe {
        for (i, sums) in sums.iter_mut().enumerate() {
            let weight = E::load::<S>(w.add(i * columns));
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = S::multiply_add(weight, S::load_f32(x.add(j * columns)), *sum);
            }
        }
    }
}

/// The end of each row: `rest` values, filled up with zeros. `(columns, rest)`
#[inline(always)]
unsafe fn add_rest<S: Simd, E: Element, const R: usize, const M: usize>(
    sums: &mut [[S::Vector; M]; R],
    w: *const E,
    x: *const f32,
    (columns, rest): (usize, usize),
) {
    unsafe {
        for (i, sums) in sums.iter_mut().enumerate() {
            let weight = E::load::<S>(filled_up(w.add(i * columns), rest, E::ZERO).as_ptr());
            for (j, sum) in sums.iter_mut().enumerate() {
                let activation = S::load_f32(filled_up(x.add(j * columns), rest, 0.0).as_ptr());
                *sum = S::multiply_add(weight, activation, *sum);
            }
        }
    }
}

/// `count` values and then zeros, for the longest vector.
#[inline(always)]
unsafe fn filled_up<T: Copy>(at: *const T, count: usize, zero: T) -> [T; 16] {
    let mut values = [zero; 16];
    unsafe { std::ptr::copy_nonoverlapping(at, values.as_mut_ptr(), count) };
    values
}

/// Bytes between the weights that are read and those that are requested, for tiles of `tile` bytes. Whole tiles, since
/// the rows of a tile are read side by side.
fn prefetch_distance(tile: usize) -> usize {
    if tile > 2 * PREFETCH_BYTES { PREFETCH_IN_ROW_BYTES } else { PREFETCH_BYTES.next_multiple_of(tile.max(1)) }
}
