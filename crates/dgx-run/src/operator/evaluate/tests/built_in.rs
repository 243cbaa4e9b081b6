//! The built-in operators.

use dgx_core::operator::{Operator, built_in, names};

use super::Case;
use crate::operator::silu;

fn each_case(name: &str, more: &[&[u64]], check: impl Fn(&Operator, &Case)) {
    let operator = built_in(name).unwrap();
    let small = operator.small.iter().map(Vec::as_slice);
    for (seed, sizes) in small.chain(more.iter().copied()).enumerate() {
        check(operator, &Case::draw(operator, sizes, seed as u64));
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn all_are_tested_here() {
    let tested = [
        "attention",
        "f16-gemm",
        "layer-norm",
        "nvfp4-dual-gemm",
        "nvfp4-gemm",
        "nvfp4-gemv",
        "rms-norm",
        "softmax",
    ];
    let mut all: Vec<&str> = names().collect();
    all.sort_unstable();
    assert_eq!(all, tested);
}

#[test]
fn f16_gemm() {
    let more: [&[u64]; 3] = [&[3, 5, 7], &[1, 1, 2], &[1030, 3, 8]];
    each_case("f16-gemm", &more, |operator, case| {
        case.check(operator, 0, |at| {
            dot(case.line(0, &at[..1]), case.line(1, &at[1..]))
        });
    });
}

/// Their products are rounded once to f32.
#[test]
fn nvfp4_products() {
    for (name, dual) in [("nvfp4-gemm", false), ("nvfp4-dual-gemm", true)] {
        each_case(name, &[&[3, 128, 512]], |operator, case| {
            let product = |b: usize, at: &[usize]| {
                let sum = dot(case.line(0, &at[..1]), case.line(b, &at[1..]));
                f64::from(sum as f32)
            };
            case.check(operator, 0, |at| match dual {
                true => silu(product(1, at)) * product(2, at),
                false => product(1, at),
            });
        });
    }
}

#[test]
fn nvfp4_gemv() {
    each_case("nvfp4-gemv", &[&[256, 256, 3]], |operator, case| {
        case.check(operator, 0, |at| {
            let sum = dot(case.line(0, &at[..2]), case.line(1, &[at[0], 0]));
            f64::from(sum as f32)
        });
    });
}

#[test]
fn rms_norm() {
    each_case(
        "rms-norm",
        &[&[1, 1], &[5, 33], &[40, 2000]],
        |operator, case| {
            let n = case.sizes[1] as usize;
            let root = |i| {
                let squares: f64 = (0..n).map(|j| case.at(0, &[i, j]).powi(2)).sum();
                (squares / n as f64 + 1e-5).sqrt()
            };
            let roots: Vec<f64> = (0..case.sizes[0] as usize).map(root).collect();
            case.check(operator, 0, |at| {
                case.at(0, at) / roots[at[0]] * case.at(1, &[at[1]])
            });
        },
    );
}

#[test]
fn layer_norm() {
    each_case(
        "layer-norm",
        &[&[1, 1], &[5, 33], &[40, 2000]],
        |operator, case| {
            let n = case.sizes[1] as usize;
            let mean_and_root = |i| {
                let row: Vec<f64> = (0..n).map(|j| case.at(0, &[i, j])).collect();
                let mean = row.iter().sum::<f64>() / n as f64;
                let squares: f64 = row.iter().map(|x| (x - mean).powi(2)).sum();
                (mean, (squares / n as f64 + 1e-5).sqrt())
            };
            let rows = (0..case.sizes[0] as usize).map(mean_and_root);
            let rows: Vec<(f64, f64)> = rows.collect();
            case.check(operator, 0, |at| {
                let (mean, root) = rows[at[0]];
                let column = [at[1]];
                (case.at(0, at) - mean) / root * case.at(1, &column) + case.at(2, &column)
            });
        },
    );
}

fn softmax_of(scores: &[f64], at: usize) -> f64 {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = scores.iter().map(|s| (s - most).exp()).sum();
    (scores[at] - most).exp() / total
}

#[test]
fn softmax() {
    each_case(
        "softmax",
        &[&[1, 1], &[7, 3], &[2, 20000]],
        |operator, case| {
            let n = case.sizes[1] as usize;
            let rows: Vec<Vec<f64>> = (0..case.sizes[0] as usize)
                .map(|i| (0..n).map(|j| case.at(0, &[i, j])).collect())
                .collect();
            let most: Vec<f64> = rows
                .iter()
                .map(|r| r.iter().copied().fold(f64::MIN, f64::max))
                .collect();
            let total: Vec<f64> = rows
                .iter()
                .zip(&most)
                .map(|(r, m)| r.iter().map(|x| (x - m).exp()).sum())
                .collect();
            case.check(operator, 0, |at| {
                (rows[at[0]][at[1]] - most[at[0]]).exp() / total[at[0]]
            });
        },
    );
}

/// Along columns, as a mistake of its file has it.
#[test]
fn a_mistake_of_softmax() {
    let operator = built_in("softmax").unwrap();
    let mistake = operator
        .mistakes
        .iter()
        .find(|m| m.name == "along columns")
        .unwrap();
    let mut other = operator.clone();
    other.outputs[0].value = mistake.value.clone();
    for sizes in [[16, 256], [300, 5], [1, 4]] {
        let case = Case::draw(&other, &sizes, 3);
        case.check(&other, 0, |at| {
            let column: Vec<f64> = (0..sizes[0] as usize)
                .map(|i| case.at(0, &[i, at[1]]))
                .collect();
            softmax_of(&column, at[0])
        });
    }
}

#[test]
fn attention() {
    each_case(
        "attention",
        &[&[2, 3, 5, 4], &[1, 1, 1, 1]],
        |operator, case| {
            let [_, _, s, d] = [0, 1, 2, 3].map(|i| case.sizes[i] as usize);
            let row = |b: usize, h: usize, i: usize| -> Vec<f64> {
                let score = |j: usize| {
                    let sum = dot(case.line(0, &[b, h, i]), case.line(1, &[b, h, j]));
                    if j <= i {
                        sum / (d as f64).sqrt()
                    } else {
                        f64::NEG_INFINITY
                    }
                };
                let scores: Vec<f64> = (0..s).map(score).collect();
                let most = scores.iter().copied().fold(f64::MIN, f64::max);
                let weights: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
                let total: f64 = weights.iter().sum();
                weights.iter().map(|w| w / total).collect()
            };
            let weights = std::cell::RefCell::new(std::collections::HashMap::new());
            case.check(operator, 0, |at| {
                let mut weights = weights.borrow_mut();
                let place = [at[0], at[1], at[2]];
                let p = weights
                    .entry(place)
                    .or_insert_with(|| row(at[0], at[1], at[2]));
                (0..s)
                    .map(|j| p[j] * case.at(2, &[at[0], at[1], j, at[3]]))
                    .sum()
            });
        },
    );
}
