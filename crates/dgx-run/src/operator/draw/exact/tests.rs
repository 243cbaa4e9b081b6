use dgx_core::operator::{Operator, built_in};
use half::f16;

use super::{ExactData, Recipe};
use crate::operator::{Evaluator, Packed, Problem, evaluate::tests::operator};

/// A product of two tensors of one type.
fn gemm(element: &str) -> Operator {
    let range = match element {
        "i8" => "range = [-6, 6]\n",
        _ => "",
    };
    gemm_within(element, range)
}

fn gemm_within(element: &str, range: &str) -> Operator {
    operator(&format!(
        "summary = \"test\"\nsizes = [\"m\", \"n\", \"k\"]\nrequires = [\"k % 32 == 0\"]\n\
         small = [{{ m = 4, n = 8, k = 256 }}]\n\
         [in.a]\ntype = \"{element}\"\nsize = [\"m\", \"k\"]\n{range}\
         [in.b]\ntype = \"{element}\"\nsize = [\"n\", \"k\"]\n{range}\
         [out.c]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\nvalue = \"a @ b.T\"\n"
    ))
}

fn problem<'d>(operator: &Operator, sizes: &[u64], data: &'d [ExactData]) -> Problem<'d> {
    let tensors = operator.inputs.iter().zip(data);
    let packed = tensors.map(|(tensor, data)| Packed {
        element: tensor.element,
        elements: &data.elements,
        scales: &data.scales,
        extents: tensor
            .extents(sizes)
            .unwrap()
            .iter()
            .map(|e| *e as usize)
            .collect(),
    });
    Problem {
        sizes: sizes.to_vec(),
        inputs: packed.collect(),
        outputs: Vec::new(),
    }
}

fn row(packed: &Packed<'_>, row: usize) -> Vec<f64> {
    let mut numbers = vec![0.0; packed.width()];
    packed.read(row, 0..packed.width(), &mut numbers);
    numbers
}

fn evaluated(operator: &Operator, sizes: &[u64], problem: &Problem<'_>) -> Vec<f64> {
    let output = &operator.outputs[0];
    let extents = output.tensor.extents(sizes).unwrap();
    let evaluator = Evaluator::new(&output.value, &extents, problem).unwrap();
    evaluator.rows(0..evaluator.row_count())
}

/// Whether a tolerance like the dual GEMM's would show the difference.
fn seen(found: f64, wanted: f64) -> bool {
    let near = (found - wanted).abs() <= 1e-3 + 1e-3 * wanted.abs();
    !near
}

fn in_fp16(terms: &[f64]) -> f64 {
    let add = |sum: f16, term: &f64| f16::from_f64(sum.to_f64() + term);
    terms.iter().fold(f16::ZERO, add).to_f64()
}

/// All but the smallest of a hundred.
fn without_the_smallest(terms: &[f64]) -> f64 {
    let mut sorted = terms.to_vec();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    sorted[terms.len().div_ceil(100)..].iter().sum()
}

/// Eleven significant bits, to the nearest.
fn tf32(x: f64) -> f64 {
    let bits = (x as f32).to_bits();
    f64::from(f32::from_bits((bits + 0x1000) & !0x1fff))
}

/// The terms of every element of a product, row by row.
fn each_element(problem: &Problem<'_>, mut visit: impl FnMut(&[f64], &[f64])) {
    let [a, b] = [0, 1].map(|input| &problem.inputs[input]);
    let rows = |packed: &Packed<'_>| packed.extents[packed.extents.len() - 2];
    for i in 0..rows(a) {
        for j in 0..rows(b) {
            visit(&row(a, i), &row(b, j));
        }
    }
}

fn products(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

#[test]
fn partial_sums_are_exact_and_large() {
    for element in [
        "f16", "bf16", "f32", "e4m3", "i8", "nvfp4", "mxfp4", "mxfp8",
    ] {
        let operator = gemm(element);
        let recipe = Recipe::of(&operator).unwrap();
        // The unit of the products: scales have two bits after the point, twice.
        let unit = if element == "nvfp4" { 1.0 / 16.0 } else { 1.0 };
        for k in [256, 2080, 7168] {
            let sizes = [3, 4, k];
            let data = recipe.draw(&operator, &sizes, 0, 11).unwrap();
            let problem = problem(&operator, &sizes, &data);
            let mut telling = [0; 3];
            each_element(&problem, |a, b| {
                let terms = products(a, b);
                assert!(
                    terms.iter().all(|t| *t != 0.0 && (t / unit).fract() == 0.0),
                    "{element}"
                );
                // In any order no sum is larger than that of all terms of one sign.
                let positive: f64 = terms.iter().filter(|t| **t > 0.0).sum();
                let negative: f64 = terms.iter().filter(|t| **t < 0.0).sum();
                let most = positive.max(-negative) / unit;
                assert!(most < 16_777_216.0, "{element} {k}: {most}");
                let third: f64 = terms[..k as usize / 3].iter().sum();
                let result: f64 = terms.iter().sum();
                assert!(result.abs() < 128.0, "{element}: {result}");
                assert!(
                    third.abs() > 4.0 * result.abs(),
                    "{element} {k}: {third} {result}"
                );
                let ways = [in_fp16(&terms), without_the_smallest(&terms)];
                telling[0] += usize::from(seen(ways[0], result));
                telling[1] += usize::from(seen(ways[1], result));
                let a: Vec<f64> = a.iter().map(|x| tf32(*x)).collect();
                let b: Vec<f64> = b.iter().map(|x| tf32(*x)).collect();
                let rounded: f64 = products(&a, &b).iter().sum();
                telling[2] += usize::from(seen(rounded, result));
            });
            // Of twelve elements; some dropped terms cancel.
            assert!(
                k < 2080 || telling[0] >= 9,
                "fp16 sums, {element} {k}: {telling:?}"
            );
            assert!(telling[1] >= 6, "dropped terms, {element} {k}: {telling:?}");
            assert!(
                element != "f32" || telling[2] >= 9,
                "TF32, {k}: {telling:?}"
            );
        }
    }
}

/// A kernel that treats i8 as symmetric reads −128 as −127.
#[test]
fn the_least_of_i8_is_seen_where_it_may_occur() {
    let drawn = |range: &str, k: u64| {
        let operator = gemm_within("i8", range);
        let recipe = Recipe::of(&operator).unwrap();
        let sizes = [16, 16, k];
        let data = recipe.draw(&operator, &sizes, 0, 5).unwrap();
        (operator, sizes, data)
    };
    let is_least = |byte: &u8| *byte == 0x80;
    for k in [256, 7168] {
        let (operator, sizes, data) = drawn("", k);
        let right = evaluated(&operator, &sizes, &problem(&operator, &sizes, &data));
        for side in 0..2 {
            let mut wrong = data.clone();
            for byte in wrong[side].elements.iter_mut().filter(|b| is_least(b)) {
                *byte = 0x81;
            }
            let found = evaluated(&operator, &sizes, &problem(&operator, &sizes, &wrong));
            let pairs = right.iter().zip(&found);
            let many = pairs.filter(|(a, b)| seen(**b, **a)).count();
            assert!(many > right.len() / 16, "side {side}, k = {k}: {many}");
        }
    }
    let (.., data) = drawn("range = [-127, 127]\n", 256);
    let bytes = || data.iter().flat_map(|data| &data.elements);
    assert!(!bytes().any(is_least));
}

/// Scales rounded to powers of two along a part of the sum.
#[test]
fn rounded_scales_are_seen() {
    let operator = built_in("nvfp4-gemm").unwrap();
    let sizes = [4, 128, 7168];
    let recipe = Recipe::of(operator).unwrap();
    let data = recipe.draw(operator, &sizes, 0, 3).unwrap();
    let right = evaluated(operator, &sizes, &problem(operator, &sizes, &data));
    let mut wrong = data.clone();
    for scales in wrong[0].scales.chunks_mut(7168 / 16) {
        for scale in &mut scales[..64] {
            *scale &= 0x78;
        }
    }
    let found = evaluated(operator, &sizes, &problem(operator, &sizes, &wrong));
    let many = right
        .iter()
        .zip(&found)
        .filter(|(a, b)| seen(**b, **a))
        .count();
    assert!(many > right.len() * 9 / 10, "{many} of {}", right.len());
}

#[test]
fn both_products_and_batches_have_a_recipe() {
    for (name, sizes) in [
        ("nvfp4-dual-gemm", [5, 128, 256]),
        ("nvfp4-gemv", [128, 512, 2]),
    ] {
        let operator = built_in(name).unwrap();
        let recipe = Recipe::of(operator).unwrap();
        let data = recipe.draw(operator, &sizes, 0, 1).unwrap();
        let values = evaluated(operator, &sizes, &problem(operator, &sizes, &data));
        let nonzero = values.iter().filter(|v| **v != 0.0).count();
        assert!(values.iter().all(|v| v.abs() < 65504.0), "{name}");
        assert!(
            nonzero * 2 > values.len(),
            "{name}: {nonzero} of {}",
            values.len()
        );
        assert_ne!(
            data,
            recipe.draw(operator, &sizes, 1, 1).unwrap(),
            "groups differ"
        );
        assert_ne!(
            data,
            recipe.draw(operator, &sizes, 0, 2).unwrap(),
            "seeds differ"
        );
    }
}

#[test]
fn one_of_each_row_has_a_third_of_the_squares() {
    let operator = built_in("rms-norm").unwrap();
    let recipe = Recipe::of(operator).unwrap();
    assert_eq!(recipe, Recipe::Squares { input: 0 });
    for n in [256, 4096, 16384] {
        let sizes = [8, n];
        let data = recipe.draw(operator, &sizes, 0, 4).unwrap();
        let problem = problem(operator, &sizes, &data);
        for index in 0..8 {
            let squares: Vec<f64> = row(&problem.inputs[0], index)
                .iter()
                .map(|x| x * x)
                .collect();
            let sum: f64 = squares.iter().sum();
            assert!(squares.iter().all(|s| s.fract() == 0.0 && *s > 0.0));
            assert!(sum < 16_777_216.0, "{sum}");
            let spike = squares.iter().copied().fold(0.0, f64::max);
            assert!((spike / sum - 1.0 / 3.0).abs() < 0.02, "{}", spike / sum);
            let halved = (in_fp16(&squares) / sum).sqrt();
            assert!((halved - 1.0).abs() > 8e-3, "fp16 sums: {halved}");
        }
    }
}

#[test]
fn softmax_has_few_maxima_or_many() {
    let operator = built_in("softmax").unwrap();
    let recipe = Recipe::of(operator).unwrap();
    let sizes = [6, 4096];
    let data = recipe.draw(operator, &sizes, 0, 5).unwrap();
    let problem = problem(operator, &sizes, &data);
    let values = evaluated(operator, &sizes, &problem);
    for (index, values) in values.chunks(4096).enumerate() {
        let maxima = values.iter().filter(|p| **p > 1e-30).count();
        let expected = if index % 2 == 0 { 1..=8 } else { 4088..=4095 };
        assert!(expected.contains(&maxima), "{index}: {maxima}");
        let ones = vec![1.0; maxima];
        assert!(maxima < 9 || in_fp16(&ones) == 2048.0);
        let right = 1.0 / maxima as f64;
        assert!(
            values
                .iter()
                .all(|p| *p < 1e-50 || (p - right).abs() < 1e-15)
        );
    }
}

/// Each query finds one key: the result is a row of v.
#[test]
fn attention_finds_one_key() {
    let operator = built_in("attention").unwrap();
    let recipe = Recipe::of(operator).unwrap();
    for sizes in [[1, 2, 300, 64], [2, 1, 700, 128], [1, 1, 5, 16]] {
        let data = recipe.draw(operator, &sizes, 0, 6).unwrap();
        let problem = problem(operator, &sizes, &data);
        let values = evaluated(operator, &sizes, &problem);
        let (s, d) = (sizes[2] as usize, sizes[3] as usize);
        let mut distances = std::collections::BTreeSet::new();
        for (index, found) in values.chunks(d).enumerate() {
            let (head, query) = (index / s, index % s);
            assert!(found.iter().all(|x| x.abs().round() % 2.0 == 1.0));
            let same = |key: &usize| {
                let v = row(&problem.inputs[2], head * s + key);
                v.iter().zip(found).all(|(v, x)| (v - x).abs() < 1e-9)
            };
            let key = (0..=query).find(same);
            distances.insert(query - key.expect("a key at or before the query"));
        }
        assert!(distances.len() > s / 4, "{distances:?}");
    }
}

#[test]
fn other_operators_have_none() {
    let text = "summary = \"test\"\nsizes = [\"m\", \"n\"]\nsmall = [{ m = 4, n = 8 }]\n\
        [in.x]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
        [out.y]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n";
    for value in ["x * 2", "cumsum(x, -1)", "x @ x.T @ x", "x - mean(x, -1)"] {
        let operator = operator(&format!("{text}value = \"{value}\"\n"));
        assert_eq!(Recipe::of(&operator), None, "{value}");
    }
}
