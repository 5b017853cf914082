//! Milliseconds of one pass over matrices as large as a small model's, by activation rows, stored type and threads: the
//! best of some passes.
//!
//!     cargo run --release -p text-generation-kernels --example speed
#![allow(clippy::print_stdout)] // A measurement prints.

use std::time::{Duration, Instant};

use text_generation_kernels::{F16, Matrix, Pool, ShapeError, Weights, linear};

const COLUMNS: usize = 576;
const ROWS: usize = 2048;
const MATRICES: usize = 114;
const PASSES: usize = 9;

fn best(pool: &Pool, matrices: &[Matrix<'_>], m: usize) -> Result<Duration, ShapeError> {
    let (x, mut y) = (vec![0.5; m * COLUMNS], vec![0.0; m * ROWS]);
    let mut best = Duration::MAX;
    for _ in 0..PASSES {
        let began = Instant::now();
        for matrix in matrices {
            linear(pool, &x, *matrix, &mut y)?;
        }
        best = best.min(began.elapsed());
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let single = vec![0.25_f32; MATRICES * ROWS * COLUMNS];
    let half = vec![0x3400_u16; MATRICES * ROWS * COLUMNS];
    let cut = |weights| Matrix::new(weights, ROWS, COLUMNS);
    let singles = single.chunks(ROWS * COLUMNS).map(|w| cut(Weights::F32(w))).collect::<Result<Vec<_>, _>>()?;
    let halves =
        half.chunks(ROWS * COLUMNS).map(|w| cut(Weights::F16(F16::of_bits(w)))).collect::<Result<Vec<_>, _>>()?;
    for threads in [1, 2] {
        let pool = Pool::new(threads)?;
        for m in [1, 2, 4, 8, 16, 32] {
            let (single, half) = (best(&pool, &singles, m)?, best(&pool, &halves, m)?);
            println!("threads {threads}, {m:2} rows: float32 {single:8.1?}, float16 {half:8.1?}");
        }
    }
    Ok(())
}
