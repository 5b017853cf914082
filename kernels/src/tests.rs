//! Every instruction set of this CPU and every stored type against float64, at odd sizes.

use crate::product::{Level, Product};
use crate::{Bf16, F16, Matrix, Pool, Weights, linear};

/// Numbers in -1..1, the same on each run.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Half precision numbers near -1..1: the upper bits, rounded towards zero.
fn half(value: f32) -> F16 {
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    let sign = (bits >> 16 & 0x8000) as u16;
    if exponent <= 0 { F16(sign) } else { F16(sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16) }
}

fn reference(x: &[f32], w: &[f32], columns: usize) -> Vec<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    x.chunks(columns).flat_map(|a| w.chunks(columns).map(move |b| dot(a, b))).collect()
}

fn check(pool: &Pool, weights: Weights<'_>, wide: &[f32], (m, rows, columns): (usize, usize, usize)) {
    let x = numbers(m * columns, 7);
    let expected = reference(&x, wide, columns);
    for level in Level::available() {
        let mut y = vec![f32::NAN; m * rows];
        Product::new(&x, m, columns, rows, &mut y).run(pool, weights, level);
        for (at, (got, wanted)) in y.iter().zip(&expected).enumerate() {
            let error = (f64::from(*got) - wanted).abs();
            assert!(error <= 2e-6 * columns as f64, "{level:?} m={m} {rows}x{columns} at {at}: {got} for {wanted}");
        }
    }
}

#[test]
fn all_types_and_shapes_equal_the_reference() {
    let pool = Pool::new(3).unwrap();
    let shapes = [(1, 1), (3, 5), (4, 16), (7, 31), (33, 64), (130, 100), (65, 577), (257, 1537)];
    for (rows, columns) in shapes {
        let single = numbers(rows * columns, 3);
        let halves: Vec<F16> = single.iter().map(|v| half(*v)).collect();
        let brains: Vec<Bf16> = single.iter().map(|v| Bf16((v.to_bits() >> 16) as u16)).collect();
        let from_halves: Vec<f32> = halves.iter().map(|v| v.widen()).collect();
        let from_brains: Vec<f32> = brains.iter().map(|v| v.widen()).collect();
        for m in [1, 2, 3, 4, 5, 8, 9, 16, 17] {
            check(&pool, Weights::F32(&single), &single, (m, rows, columns));
            check(&pool, Weights::F16(&halves), &from_halves, (m, rows, columns));
            check(&pool, Weights::Bf16(&brains), &from_brains, (m, rows, columns));
        }
    }
}

/// The value of half precision bits, by definition.
fn value_of(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[test]
fn every_half_precision_number_is_widened_exactly() {
    let pool = Pool::new(1).unwrap();
    let all: Vec<F16> = (0..=u16::MAX).map(F16).collect();
    for level in Level::available() {
        let mut y = vec![0.0; all.len()];
        Product::new(&[1.0], 1, 1, all.len(), &mut y).run(&pool, Weights::F16(&all), level);
        for (bits, got) in all.iter().zip(y) {
            let wanted = value_of(bits.0);
            assert!(f64::from(got) == wanted || (got.is_nan() && wanted.is_nan()), "{level:?} {bits:?}: {got}");
        }
    }
}

#[test]
fn the_result_does_not_depend_on_the_threads() {
    let (rows, columns) = (999, 576);
    let (x, w) = (numbers(5 * columns, 1), numbers(rows * columns, 2));
    let run = |threads| {
        let mut y = vec![0.0; 5 * rows];
        let matrix = Matrix::new(Weights::F32(&w), rows, columns).unwrap();
        linear(&Pool::new(threads).unwrap(), &x, matrix, &mut y).unwrap();
        y
    };
    let alone = run(1);
    assert!((2..6).all(|threads| run(threads) == alone));
}

#[test]
fn wrong_lengths_are_refused() {
    let w = [0.0; 12];
    assert!(Matrix::new(Weights::F32(&w), 5, 2).is_err());
    let matrix = Matrix::new(Weights::F32(&w), 3, 4).unwrap();
    let pool = Pool::new(1).unwrap();
    assert!(linear(&pool, &[0.0; 7], matrix, &mut [0.0; 3]).is_err());
    assert!(linear(&pool, &[0.0; 4], matrix, &mut [0.0; 4]).is_err());
    assert!(linear(&pool, &[], matrix, &mut []).is_ok());
}

#[test]
fn a_pool_serves_many_jobs_from_many_callers_and_ends() {
    let pool = Pool::new(4).unwrap();
    let w = numbers(400 * 64, 5);
    let x = numbers(64, 6);
    let expected = reference(&x, &w, 64);
    std::thread::scope(|scope| {
        for caller in 0..3 {
            let (pool, w, x, expected) = (&pool, &w, &x, &expected);
            scope.spawn(move || {
                for round in 0..300 {
                    let mut y = vec![0.0; 400];
                    linear(pool, x, Matrix::new(Weights::F32(w), 400, 64).unwrap(), &mut y).unwrap();
                    assert!(y.iter().zip(expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-4));
                    if round % 50 == caller {
                        // Long enough for the workers to sleep.
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                }
            });
        }
    });
}
