//! Operators of other kinds: norms, gathers, sorts, quantisation.

use super::{Case, operator};
use crate::operator::rounded;
use dgx_core::operator::ElementType;

fn tensors(
    header: &str,
    inputs: &[(&str, &str, &str)],
    outputs: &[(&str, &str, &str, &str)],
) -> dgx_core::operator::Operator {
    let mut text = format!("summary = \"test\"\n{header}\n");
    for (name, element, rest) in inputs {
        text += &format!("[in.{name}]\ntype = \"{element}\"\nsize = {rest}\n");
    }
    for (name, element, size, rest) in outputs {
        text += &format!("[out.{name}]\ntype = \"{element}\"\nsize = {size}\n{rest}\n");
    }
    operator(&text)
}

#[test]
fn group_norm() {
    let size = "[\"b\", \"g\", \"c\", \"s\"]";
    let operator = tensors(
        "sizes = [\"b\", \"g\", \"c\", \"s\"]\nconst = { eps = 1e-5 }\nsmall = [{ b = 2, g = 3, c = 4, s = 8 }]",
        &[("x", "f32", size), ("w", "f32", "[\"g\", \"c\", 1]")],
        &[(
            "y",
            "f32",
            size,
            "let = { d = \"x - mean(mean(x, -1), -2)\" }\nvalue = \"d * rsqrt(mean(mean(d * d, -1), -2) + eps) * w\"",
        )],
    );
    for sizes in [[2, 3, 4, 8], [1, 2, 5, 7], [3, 1, 40, 700]] {
        let case = Case::draw(&operator, &sizes, 5);
        let [_, g, c, s] = sizes.map(|e| e as usize);
        let mut moments = Vec::new();
        for b in 0..sizes[0] as usize {
            for g in 0..g {
                let each = || (0..c).flat_map(|c| (0..s).map(move |s| (c, s)));
                let count = (c * s) as f64;
                let mean = each().map(|(c, s)| case.at(0, &[b, g, c, s])).sum::<f64>() / count;
                let square = |(c, s): (usize, usize)| (case.at(0, &[b, g, c, s]) - mean).powi(2);
                moments.push((mean, each().map(square).sum::<f64>() / count));
            }
        }
        case.check(&operator, 0, |at| {
            let (mean, variance) = moments[at[0] * g + at[1]];
            (case.at(0, at) - mean) / (variance + 1e-5).sqrt() * case.at(1, &[at[1], at[2], 0])
        });
    }
}

#[test]
fn rope() {
    let size = "[\"b\", \"s\", \"h\", 2, \"e\"]";
    let operator = tensors(
        "sizes = [\"b\", \"s\", \"h\", \"e\"]\nsmall = [{ b = 1, s = 4, h = 2, e = 8 }]",
        &[("x", "f16", size), ("t", "f32", "[\"s\", 1, 1, \"e\"]")],
        &[(
            "y",
            "f16",
            size,
            "value = \"x * cos(t) + where(i(-2) == 0, -1, 1) * take(x, 1 - i(-2), -2) * sin(t)\"",
        )],
    );
    let case = Case::draw(&operator, &[2, 5, 3, 7], 1);
    case.check(&operator, 0, |at| {
        let [b, s, h, half, e] = [0, 1, 2, 3, 4].map(|i| at[i]);
        let t = case.at(1, &[s, 0, 0, e]);
        let other = case.at(0, &[b, s, h, 1 - half, e]);
        let sign = if half == 0 { -1.0 } else { 1.0 };
        case.at(0, at) * t.cos() + sign * other * t.sin()
    });
}

#[test]
fn top_k_uses_what_was_written() {
    let operator = tensors(
        "sizes = [\"m\", \"n\", \"t\"]\nrequires = [\"t <= n\"]\nsmall = [{ m = 8, n = 64, t = 4 }]",
        &[("x", "f16", "[\"m\", \"n\"]")],
        &[
            (
                "idx",
                "i32",
                "[\"m\", \"t\"]",
                "value = \"argsort(-x, -1)[..., :t]\"",
            ),
            (
                "p",
                "f32",
                "[\"m\", \"t\"]",
                "value = \"take(softmax(x, -1), idx, -1)\"",
            ),
        ],
    );
    let (m, n, t) = (6, 37, 5);
    let mut case = Case::draw(&operator, &[m, n, t], 2);
    case.set(0, 3, f64::INFINITY);
    case.set(0, 40, 1.5);
    case.set(0, 44, 1.5);
    let row = |case: &Case, i: usize| -> Vec<f64> {
        (0..n as usize).map(|j| case.at(0, &[i, j])).collect()
    };
    // By counting: the rank of an element is the number of those before it.
    let sorted = |case: &Case, i: usize, rank: usize| {
        let row = row(case, i);
        let before = |j: usize| {
            (0..row.len())
                .filter(|o| row[*o] > row[j] || row[*o] == row[j] && *o < j)
                .count()
        };
        (0..row.len()).find(|j| before(*j) == rank).unwrap() as f64
    };
    case.check(&operator, 0, |at| sorted(&case, at[0], at[1]));
    // The kernel's outputs, right or wrong; and an index outside.
    let mut written: Vec<f64> = (0..m * t).map(|i| (i * 7 % n) as f64).collect();
    written[3] = n as f64;
    case.above = vec![(vec![m as usize, t as usize], written.clone())];
    case.check(&operator, 1, |at| {
        let index = written[at[0] * t as usize + at[1]] as usize;
        let row = row(&case, at[0]);
        let most = row.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = row.iter().map(|x| (x - most).exp()).sum();
        row.get(index)
            .map_or(f64::NAN, |x| (x - most).exp() / total)
    });
}

#[test]
fn cross_entropy() {
    let operator = tensors(
        "sizes = [\"m\", \"n\"]\nsmall = [{ m = 4, n = 16 }]",
        &[
            ("x", "f32", "[\"m\", \"n\"]"),
            ("y", "i32", "[\"m\", 1]\nrange = [0, \"n - 1\"]"),
        ],
        &[(
            "loss",
            "f32",
            "[\"m\", 1]",
            "value = \"log(sum(exp(x - max(x, -1)), -1)) + max(x, -1) - take(x, y, -1)\"",
        )],
    );
    let case = Case::draw(&operator, &[9, 50], 4);
    case.check(&operator, 0, |at| {
        let total: f64 = (0..50).map(|j| case.at(0, &[at[0], j]).exp()).sum();
        total.ln() - case.at(0, &[at[0], case.at(1, &[at[0], 0]) as usize])
    });
}

#[test]
fn int8_gemm_with_scales() {
    let operator = tensors(
        "sizes = [\"m\", \"n\", \"k\"]\nsmall = [{ m = 4, n = 8, k = 16 }]",
        &[
            ("a", "i8", "[\"m\", \"k\"]\nrange = [-128, 127]"),
            ("b", "i8", "[\"n\", \"k\"]\nrange = [-128, 127]"),
            ("sa", "f32", "[\"m\", 1]"),
            ("sb", "f32", "[\"n\", 1]"),
        ],
        &[(
            "c",
            "f16",
            "[\"m\", \"n\"]",
            "value = \"(a @ b.T) * sa * sb.T\"",
        )],
    );
    let case = Case::draw(&operator, &[5, 9, 33], 6);
    case.check(&operator, 0, |at| {
        let sum: f64 = (0..33)
            .map(|i| case.at(0, &[at[0], i]) * case.at(1, &[at[1], i]))
            .sum();
        sum * case.at(2, &[at[0], 0]) * case.at(3, &[at[1], 0])
    });
}

#[test]
fn fp8_gemm_with_block_scales() {
    let operator = tensors(
        "sizes = [\"m\", \"n\", \"k\"]\nrequires = [\"n % 128 == 0\", \"k % 128 == 0\"]\nsmall = [{ m = 4, n = 128, k = 256 }]",
        &[
            ("a", "e4m3", "[\"m\", \"k\"]"),
            ("b", "e4m3", "[\"n\", \"k\"]"),
            ("sa", "f32", "[\"m\", \"k // 128\"]"),
            ("sb", "f32", "[\"n // 128\", \"k // 128\"]"),
        ],
        &[(
            "c",
            "bf16",
            "[\"m\", \"n\"]",
            "value = \"(a * take(sa, i(-1) // 128, -1)) @ (b * take(take(sb, i(-2) // 128, -2), i(-1) // 128, -1)).T\"",
        )],
    );
    let case = Case::draw(&operator, &[3, 256, 384], 7);
    case.check(&operator, 0, |at| {
        let term = |i: usize| {
            let a = case.at(0, &[at[0], i]) * case.at(2, &[at[0], i / 128]);
            a * case.at(1, &[at[1], i]) * case.at(3, &[at[1] / 128, i / 128])
        };
        (0..384).map(term).sum()
    });
}

#[test]
fn quantising_rounds_as_the_type_does() {
    let operator = tensors(
        "sizes = [\"m\", \"n\"]\nsmall = [{ m = 4, n = 2 }]",
        &[("x", "f32", "[\"m\", \"n\", 16]")],
        &[
            (
                "s",
                "e4m3",
                "[\"m\", \"n\", 1]",
                "value = \"e4m3(max(abs(x), -1) / 6)\"",
            ),
            (
                "q",
                "e2m1",
                "[\"m\", \"n\", 16]",
                "value = \"e2m1(where(s == 0, 0, x / s))\"",
            ),
        ],
    );
    let mut case = Case::draw(&operator, &[3, 5], 8);
    for place in 0..16 {
        case.set(0, 16 + place, 0.0);
    }
    let scale = |case: &Case, at: &[usize]| {
        let most = (0..16)
            .map(|i| case.at(0, &[at[0], at[1], i]).abs())
            .fold(0.0, f64::max);
        rounded(ElementType::E4m3, most / 6.0)
    };
    case.check(&operator, 0, |at| scale(&case, at));
    let scales: Vec<f64> = (0..15).map(|i| scale(&case, &[i / 5, i % 5])).collect();
    case.above = vec![(vec![3, 5, 1], scales)];
    case.check(&operator, 1, |at| match scale(&case, at) {
        0.0 => 0.0,
        s => rounded(ElementType::E2m1, case.at(0, at) / s),
    });
}

#[test]
fn embedding_scan_and_histogram() {
    let embedding = tensors(
        "sizes = [\"t\", \"v\", \"d\"]\nsmall = [{ t = 4, v = 16, d = 8 }]",
        &[
            ("w", "f16", "[\"v\", \"d\"]"),
            ("id", "i32", "[\"t\", 1]\nrange = [0, \"v - 1\"]"),
        ],
        &[("y", "f16", "[\"t\", \"d\"]", "value = \"take(w, id, -2)\"")],
    );
    let case = Case::draw(&embedding, &[9, 20, 5], 9);
    case.check(&embedding, 0, |at| {
        case.at(0, &[case.at(1, &[at[0], 0]) as usize, at[1]])
    });

    let scan = tensors(
        "sizes = [\"m\", \"n\"]\nsmall = [{ m = 4, n = 16 }]",
        &[("x", "f32", "[\"m\", \"n\"]")],
        &[(
            "y",
            "f32",
            "[\"m\", \"n\"]",
            "value = \"cumsum(x, -1) + cumsum(x, -2)\"",
        )],
    );
    let case = Case::draw(&scan, &[7, 300], 10);
    case.check(&scan, 0, |at| {
        let along: f64 = (0..=at[1]).map(|j| case.at(0, &[at[0], j])).sum();
        let down: f64 = (0..=at[0]).map(|i| case.at(0, &[i, at[1]])).sum();
        along + down
    });

    let histogram = tensors(
        "sizes = [\"n\", \"h\"]\nsmall = [{ n = 64, h = 8 }]",
        &[("x", "i32", "[\"n\"]\nrange = [0, \"h - 1\"]")],
        &[(
            "y",
            "i32",
            "[\"h\", 1]",
            "value = \"sum(where(x == i(-2), 1, 0), -1)\"",
        )],
    );
    let case = Case::draw(&histogram, &[1000, 7], 11);
    case.check(&histogram, 0, |at| {
        (0..1000)
            .filter(|i| case.at(0, &[*i]) == at[0] as f64)
            .count() as f64
    });
}
