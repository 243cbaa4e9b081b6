use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::*;
use crate::operator::{SCALE_BLOCK, decode_e2m1, decode_e4m3};
use dgx_core::domain::Distribution;
use dgx_core::domain::Shape;
use dgx_core::operator::default_operator;
use dgx_core::record::synthetic::group;

fn shape(groups: &[(u32, u32, u32)]) -> Shape {
    let groups = groups.iter().map(|&(m, n, k)| group(m, n, k)).collect();
    let name = "t".to_owned();
    Shape { name, groups }
}

/// One element of A·Bᵀ.
fn dot(left: &Tensor, right: &Tensor, row: usize, column: usize) -> f64 {
    let depth = left.columns();
    let value = |tensor: &Tensor, row: usize, i: usize| {
        let byte = tensor.elements[row * depth / 2 + i / 2];
        let code = byte >> (4 * (i % 2)) & 15;
        let scale = tensor.scales[row * depth / SCALE_BLOCK + i / SCALE_BLOCK];
        decode_e2m1(code) * decode_e4m3(scale)
    };
    (0..depth)
        .map(|i| value(left, row, i) * value(right, column, i))
        .sum()
}

#[test]
fn agrees_with_the_definition_on_ragged_groups() {
    let shape = shape(&[(3, 128, 256), (37, 640, 512)]);
    for distribution in Distribution::ALL {
        let operands = Operands::draw(default_operator(), &shape, distribution, 11);
        let oracle = Oracle::compute(&operands);
        for (group, answer) in operands.groups.iter().zip(&oracle.groups) {
            let (m, n) = (answer.rows, answer.columns);
            for (row, column) in [(0, 0), (m - 1, n - 1), (m / 2, n / 3), (1, n - 2)] {
                let gate = dot(group.left(), group.gate(), row, column);
                let up = dot(group.left(), group.up(), row, column);
                let at = row * n + column;
                let (found, c) = (answer.c(at), silu(gate) * up);
                if c.is_nan() {
                    assert!(found.is_nan(), "{distribution}");
                    continue;
                }
                assert_eq!(answer.gate[at], gate as f32);
                assert!((found - c).abs() <= 1e-6 * (1.0 + c.abs()));
            }
        }
    }
}

/// If there is a faster method, it is used.
#[test]
fn the_way_taken_gives_the_bits_of_f64() {
    let shape = shape(&[(3, 128, 256), (37, 96, 512), (6, 48, 7168)]);
    for distribution in Distribution::ALL {
        let mut operands = Operands::draw(default_operator(), &shape, distribution, 7);
        // The largest of everything in one row, a NaN scale in another.
        let group = &mut operands.groups[0];
        group.inputs[0].elements[..128].fill(0xf7);
        group.inputs[0].scales[..16].fill(0x7e);
        group.inputs[1].elements[..128].fill(0x7f);
        group.inputs[2].scales[17] = 0x7f;
        let oracle = Oracle::compute(&operands);
        assert!(oracle.groups[0].up[1].is_nan());
        for (group, taken) in operands.groups.iter().zip(&oracle.groups) {
            let same = |found: &[f32], right: &Tensor| {
                found.par_iter().enumerate().all(|(at, found)| {
                    let (row, column) = (at / taken.columns, at % taken.columns);
                    let wanted = dot(group.left(), right, row, column) as f32;
                    found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan()
                })
            };
            assert!(same(&taken.gate, group.gate()), "gate, {distribution}");
            assert!(same(&taken.up, group.up()), "up, {distribution}");
        }
    }
}

#[test]
fn an_answer_from_elsewhere_is_held_against_the_definition() {
    let shape = shape(&[(40, 256, 512), (3, 384, 256)]);
    for distribution in Distribution::ALL {
        let operands = Operands::draw(default_operator(), &shape, distribution, 3);
        let right = Oracle::compute(&operands);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        right.spot_check(&operands, &mut rng).unwrap();
        // One bit in a corner, a product of the other weights, NaN.
        let mut wrong = right.clone();
        let last = wrong.groups[1].up.last_mut().unwrap();
        *last = match last.is_nan() {
            true => 1.0,
            false => f32::from_bits(last.to_bits() ^ 1),
        };
        assert_eq!(wrong.spot_check(&operands, &mut rng).unwrap_err().group, 1);
        let mut wrong = right.clone();
        let group = &mut wrong.groups[0];
        std::mem::swap(&mut group.gate, &mut group.up);
        assert!(wrong.spot_check(&operands, &mut rng).is_err());
        let mut wrong = right.clone();
        wrong.groups[0].gate.fill(f32::NAN);
        assert!(wrong.spot_check(&operands, &mut rng).is_err());
    }
}

#[test]
fn outputs_stay_inside_fp16_and_are_not_all_tiny() {
    for k in [256, 7168] {
        let shape = shape(&[(64, 256, k)]);
        for distribution in [Distribution::Benchmark, Distribution::Full] {
            let oracle =
                Oracle::compute(&Operands::draw(default_operator(), &shape, distribution, 5));
            let group = &oracle.groups[0];
            let outputs: Vec<f64> = (0..group.gate.len()).map(|i| group.c(i)).collect();
            let largest = outputs.iter().fold(0.0, |a: f64, c| a.max(c.abs()));
            let telling = outputs.iter().filter(|c| c.abs() > 0.05).count();
            assert!(largest < 65504.0, "{distribution} k {k}: {largest}");
            assert!(
                telling * 3 > outputs.len(),
                "{distribution} k {k}: {telling}"
            );
        }
    }
}

/// Every kind of overflow of fp16 occurs, and most of C can still be compared.
#[test]
fn corners_have_every_class_of_value() {
    type Class<'c> = &'c dyn Fn(f64, f64, f64) -> bool;
    for distribution in [Distribution::Corner, Distribution::CornerUnsigned] {
        for seed in 0..8 {
            let shape = shape(&[(100, 128, 256)]);
            let operands = Operands::draw(default_operator(), &shape, distribution, seed);
            let group = &Oracle::compute(&operands).groups[0];
            let count = |of: Class<'_>| {
                let places = 0..group.gate.len();
                let values =
                    |i: usize| (f64::from(group.gate[i]), f64::from(group.up[i]), group.c(i));
                let all = places.map(values);
                all.filter(|&(gate, up, c)| of(gate, up, c)).count()
            };
            let finite = count(&|_, _, c| c.abs() < 65000.0);
            assert!(finite > 100 * 128 / 2, "{distribution} {seed}: {finite}");
            let tiny = 2f64.powi(-23)..2f64.powi(-14);
            let classes: [(&str, Class<'_>); 6] = [
                ("NaN", &|_, _, c| c.is_nan()),
                ("infinity", &|_, _, c| c > 65520.0),
                ("minus infinity", &|_, _, c| c < -65520.0),
                ("denormal", &|_, _, c| tiny.contains(&c.abs())),
                ("gate beyond fp16", &|gate, _, c| {
                    gate > 70000.0 && c != 0.0 && c.abs() < 65000.0
                }),
                ("up beyond fp16", &|_, up, c| {
                    up.abs() > 70000.0 && c != 0.0 && c.abs() < 65000.0
                }),
            ];
            for (class, of) in classes {
                assert!(count(of) > 0, "{distribution} {seed}: no {class}");
            }
            let scales = &operands.groups[0].left().scales;
            let negative = scales.iter().any(|scale| *scale > 0x80);
            assert_eq!(negative, distribution == Distribution::Corner);
        }
    }
}

/// In any order of the blocks along K, each of them has the only NaN in some row of B1, and of B2;
/// and where A has a NaN, some column has one in both.
#[test]
fn corners_have_a_nan_in_every_block_and_in_both_scales_of_one() {
    for distribution in [Distribution::Corner, Distribution::CornerUnsigned] {
        for m in [3, 8, 40, 100] {
            let group = group(m, 128, 256);
            let operands =
                GroupOperands::draw(default_operator(), &group, 0, distribution, u64::from(m));
            // The block of the only NaN of each row.
            let alone = |scales: &[u8]| -> Vec<Option<usize>> {
                let nan = |scale: &u8| scale & 0x7f == 0x7f;
                let one = |row: &[u8]| row.iter().filter(|scale| nan(scale)).count() == 1;
                let rows = scales.chunks(16);
                rows.map(|row| row.iter().position(nan).filter(|_| one(row)))
                    .collect()
            };
            let [a, b1, b2] = [0, 1, 2].map(|tensor: usize| alone(&operands.inputs[tensor].scales));
            for block in 0..16 {
                assert!(b1.contains(&Some(block)), "{distribution}, B1, {block}");
                assert!(b2.contains(&Some(block)), "{distribution}, B2, {block}");
            }
            let found = a.iter().flatten().count();
            assert_eq!(found, (m as usize / 8).min(16), "{distribution}, A");
            let twice = |scales: &[u8]| {
                let nan = |scale: &&u8| **scale & 0x7f == 0x7f;
                let rows = scales.chunks(16);
                rows.filter(|row| row.iter().filter(nan).count() == 2)
                    .count()
            };
            let [a2, b1_2, b2_2] =
                [0, 1, 2].map(|tensor: usize| twice(&operands.inputs[tensor].scales));
            assert_eq!(a2 > 0, m >= 8, "{distribution}, A");
            assert!(b1_2 > 0 && b2_2 > 0, "{distribution}, B");
            let pairs = || b1.iter().zip(&b2).filter(|(one, two)| one == two);
            let both = |at: &usize| pairs().any(|(one, _)| *one == Some(*at));
            assert!(m < 8 || a.iter().flatten().any(both), "{distribution} {m}");
        }
    }
}

/// Every tensor with enough rows has the largest scale and the most negative, and sums of many
/// blocks exceed fp16 where C does not.
#[test]
fn corners_have_both_ends_of_the_scales_and_large_sums_of_many_blocks() {
    for seed in 0..16 {
        let shape = shape(&[(64, 128, 256)]);
        let operands = Operands::draw(default_operator(), &shape, Distribution::Corner, seed);
        let [a, b1, b2] = [0, 1, 2].map(|tensor: usize| &operands.groups[0].inputs[tensor]);
        for tensor in [a, b1, b2] {
            let ends = [0x7e, 0xfe].map(|end: u8| tensor.scales.contains(&end));
            assert_eq!(ends, [true; 2], "{seed}");
        }
        let answer = &Oracle::compute(&operands).groups[0];
        let blocks = |elements: &[u8], row: usize| {
            let blocks = elements[row * 128..][..128].chunks(8);
            blocks
                .filter(|block| block.iter().any(|byte| byte & 0x77 != 0))
                .count()
        };
        for (product, b) in [(&answer.gate, b1), (&answer.up, b2)] {
            for least in [512.0, 66000.0] {
                let large = (0..64 * 128).filter(|&at| {
                    let many = blocks(&a.elements, at / 128).min(blocks(&b.elements, at % 128)) > 1;
                    let c = answer.c(at).abs();
                    many && product[at].abs() > least && (1e-3..6e4).contains(&c)
                });
                let found = large.count();
                assert!(found > 0, "{seed}: none above {least}");
            }
        }
    }
}

/// Small numbers of every size: two or three units of fp16, and values that an absolute tolerance
/// of 10⁻³ could hide.
#[test]
fn corners_have_small_values_of_every_size() {
    for seed in 0..16 {
        let shape = shape(&[(40, 128, 256)]);
        let operands = Operands::draw(default_operator(), &shape, Distribution::Corner, seed);
        let group = &Oracle::compute(&operands).groups[0];
        let count = |from: i32, to: f64| {
            let range = 2f64.powi(from)..to;
            let all = (0..group.gate.len()).map(|i| group.c(i).abs());
            all.filter(|c| range.contains(c)).count()
        };
        let deep = count(-22, 2f64.powi(-21));
        assert!(deep > 2, "{seed}: {deep} of four to eight units");
        let normal = count(-14, 9e-4);
        assert!(normal > 20, "{seed}: {normal} small normal numbers");
    }
}

#[test]
fn silu_at_its_ends() {
    assert_eq!(silu(0.0), 0.0);
    assert_eq!(silu(-1000.0), 0.0);
    assert_eq!(silu(1000.0), 1000.0);
    assert!((silu(1.0) - 0.731_058_578_630_005).abs() < 1e-12);
}
