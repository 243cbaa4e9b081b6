//! Tests of the verifier: correct outputs pass, and every known kind of mistake is detected and
//! named.

mod guesses;

use super::*;
use crate::operator::silu;
use dgx_core::domain::{Group, Shape};
use dgx_core::operator::default_operator;
use dgx_core::record::synthetic::{dense, group};
use half::f16;

use dgx_core::domain::Distribution;

const TOLERANCE: Tolerance = Tolerance {
    rtol: 1e-3,
    atol: 1e-3,
};

struct Case {
    operands: Operands,
    oracle: Oracle,
    c: Vec<Vec<u16>>,
}

fn case_of(groups: &[(u32, u32, u32)], distribution: Distribution) -> Case {
    let shape = Shape {
        name: "t".to_owned(),
        groups: groups.iter().map(|&(m, n, k)| group(m, n, k)).collect(),
    };
    let operands = Operands::draw(default_operator(), &shape, distribution, 42);
    let oracle = Oracle::compute(&operands);
    let c = oracle
        .groups
        .iter()
        .map(|g| (0..g.gate.len()).map(|i| bits(g.c(i))).collect())
        .collect();
    Case {
        operands,
        oracle,
        c,
    }
}

fn case() -> Case {
    case_of(
        &[(40, 256, 512), (150, 256, 256), (40, 256, 512)],
        Distribution::Full,
    )
}

/// The value of an unwritten element.
const POISON: u16 = 0x7e5a;

fn halves(c: &[Vec<u16>]) -> Vec<OutputValues> {
    let output =
        |c: &Vec<u16>| OutputValues::of_bits(ElementType::F16, c.iter().map(|b| (*b).into()));
    c.iter().map(output).collect()
}

fn half(bits: u16) -> OutputElement {
    halves(&[vec![bits]])[0].at(0)
}

fn bits(value: f64) -> u16 {
    f16::from_f64(value).to_bits()
}

impl Case {
    fn judge(&self) -> Judgement {
        judge(&halves(&self.c), &self.operands, &self.oracle, TOLERANCE)
    }

    fn mismatch(&self) -> Mismatch {
        match self.judge() {
            Judgement::Wrong(mismatch) => *mismatch,
            Judgement::Right { worst } => panic!("passed with worst {worst}"),
        }
    }

    fn reason(&self) -> String {
        self.mismatch().reason()
    }

    /// Replaces every element by a function of both products.
    fn with(mut self, formula: impl Fn(f64, f64) -> f64) -> Self {
        for (c, answer) in self.c.iter_mut().zip(&self.oracle.groups) {
            for (i, c) in c.iter_mut().enumerate() {
                *c = bits(formula(answer.gate[i].into(), answer.up[i].into()));
            }
        }
        self
    }

    /// The result for modified operands: that of a kernel with a mistake in reading its inputs.
    fn answering(mut self, tamper: impl Fn(&mut GroupOperandsMut)) -> Self {
        let mut wrong = self.operands.clone();
        wrong.groups.iter_mut().for_each(tamper);
        let oracle = Oracle::compute(&wrong);
        for (c, answer) in self.c.iter_mut().zip(&oracle.groups) {
            for (i, c) in c.iter_mut().enumerate() {
                *c = bits(answer.c(i));
            }
        }
        self
    }
}

type GroupOperandsMut = crate::operator::GroupOperands;

#[test]
fn the_right_output_passes_on_every_distribution() {
    for distribution in Distribution::ALL {
        let case = case_of(&[(40, 256, 512), (1, 128, 256)], distribution);
        let Judgement::Right { worst } = case.judge() else {
            panic!("{distribution}: {}", case.reason());
        };
        assert!(worst > 0.0 && worst <= 1.0);
    }
}

#[test]
fn tolerance_accepts_only_what_is_near() {
    assert!(TOLERANCE.accepts(half(bits(1.0)), 1.0015));
    assert!(!TOLERANCE.accepts(half(bits(1.0)), 1.0025));
    for never in [POISON, 0x7fff, 0xffff, 0x7c00, 0xfc00] {
        for expected in [0.0, 1.0, -1.0] {
            assert!(!TOLERANCE.accepts(half(never), expected));
        }
    }
    let exact = Tolerance {
        rtol: 0.0,
        atol: 0.0,
    };
    assert!(exact.accepts(half(bits(2.0)), 2.0));
    assert!(!exact.accepts(half(bits(2.0)), 2.001));
}

#[test]
fn values_are_compared_by_their_class() {
    let (nan, infinity, largest) = (0x7fff, 0x7c00, 0x7bff);
    assert!(
        TOLERANCE.accepts(half(nan), f64::NAN) && TOLERANCE.accepts(half(nan | 0x8000), f64::NAN)
    );
    for never in [POISON, 0, bits(480.0), infinity] {
        assert!(!TOLERANCE.accepts(half(never), f64::NAN), "{never:#x}");
    }
    assert!(TOLERANCE.accepts(half(infinity), 1e6));
    for never in [infinity | 0x8000, largest, 0, nan] {
        assert!(!TOLERANCE.accepts(half(never), 1e6), "{never:#x}");
    }
    // At the border both are right.
    for expected in [65470.0, 65510.0, 65530.0, 65560.0] {
        assert!(TOLERANCE.accepts(half(infinity), expected), "{expected}");
        assert!(TOLERANCE.accepts(half(largest), expected), "{expected}");
    }
    assert!(!TOLERANCE.accepts(half(infinity), 65400.0));
    assert!(!TOLERANCE.accepts(half(largest), 65600.0));
}

#[test]
fn what_is_below_the_normal_numbers_is_not_taken_for_zero() {
    let flushed = |mut case: Case| {
        let small = |bits: &u16| (1..0x400).contains(&(bits & 0x7fff));
        let mut count = 0;
        for bits in case.c.iter_mut().flatten().filter(|bits| small(bits)) {
            count += usize::from(*bits & 0x7fff > 2);
            *bits &= 0x8000;
        }
        (count, case.judge())
    };
    let corner = || case_of(&[(100, 256, 256)], Distribution::Corner);
    assert!(matches!(corner().judge(), Judgement::Right { .. }));
    let (count, Judgement::Wrong(mismatch)) = flushed(corner()) else {
        panic!("zeros pass");
    };
    assert!(count > 100 && mismatch.wrong > count / 2, "{count}");
    let reason = mismatch.reason();
    assert!(reason.contains("below the normal numbers"), "{reason}");
}

/// The absolute tolerance accepts zero for any of these.
#[test]
fn the_least_normal_numbers_are_not_taken_for_zero() {
    let corner = || case_of(&[(100, 256, 256)], Distribution::Corner);
    for most in [2f64.powi(-13), 9.9e-4] {
        let mut case = corner();
        let mut count = 0;
        for bits in case.c.iter_mut().flatten() {
            let value = f16::from_bits(*bits).to_f64().abs();
            if (6.2e-5..most).contains(&value) {
                count += 1;
                *bits = 0;
            }
        }
        let mismatch = case.mismatch();
        assert!(count > 50 && mismatch.wrong > count / 2, "{count}");
        let reason = mismatch.reason();
        assert!(reason.contains("zero where C is small"), "{reason}");
    }
}

/// The tolerance was not the criterion, so the text does not mention it.
#[test]
fn a_value_wrong_within_the_tolerance_says_what_decided() {
    let mut case = case_of(&[(40, 128, 256)], Distribution::Full);
    let answer = &case.oracle.groups[0];
    let small = |i: &usize| (3e-5..6e-5).contains(&answer.c(*i).abs());
    let doubtful = (0..answer.gate.len()).find(small).expect("a small one");
    case.c[0][doubtful] = bits(answer.c(doubtful) * 3.0);
    let mismatch = case.mismatch();
    assert!(mismatch.worst > 1.0, "{}", mismatch.worst);
    for text in [mismatch.reason(), mismatch.detail()] {
        assert!(!text.contains("times the tolerance"), "{text}");
        assert!(
            text.contains("more than rounding explains in so small a value"),
            "{text}"
        );
    }
}

#[test]
fn one_wrong_element_is_enough() {
    let mut case = case();
    let at = 77 * 256 + 13;
    case.c[1][at] = bits(case.oracle.groups[1].c(at) * 1.01 + 0.01);
    let mismatch = case.mismatch();
    assert_eq!((mismatch.wrong, mismatch.first.group), (1, 1));
    assert_eq!((mismatch.first.row, mismatch.first.column), (77, 13));
    assert!(
        mismatch
            .reason()
            .starts_with("one element (row 77, column 13) of group 1")
    );
    assert!(mismatch.detail().contains("row 77, column 13: got"));
}

#[test]
fn nan_never_passes() {
    let mut case = case();
    case.c[0][5] = 0x7fff;
    let mismatch = case.mismatch();
    assert_eq!(mismatch.nan, 1);
    assert!(mismatch.reason().contains("NaN"));
    assert!(mismatch.worst.is_infinite());
}

#[test]
fn what_was_never_written_is_told_by_place() {
    let mut nothing = case();
    nothing.c.iter_mut().for_each(|c| c.fill(POISON));
    assert_eq!(nothing.reason(), "every element was never written");

    let mut group = case();
    group.c[2].fill(POISON);
    assert_eq!(group.reason(), "every element of group 2 was never written");

    let mut rows = case();
    rows.c[1][64 * 256..].fill(POISON);
    let reason = rows.reason();
    assert!(reason.starts_with("rows ≥ 64 of group 1"), "{reason}");
    assert!(reason.ends_with("were never written"), "{reason}");
}

#[test]
fn rows_of_each_tile_are_seen() {
    let mut case = case_of(&[(256, 128, 256)], Distribution::Benchmark);
    for row in (0..256).filter(|row| row % 128 >= 64) {
        for column in 0..128 {
            case.c[0][row * 128 + column] = bits(0.0);
        }
    }
    let reason = case.reason();
    assert!(reason.starts_with("rows ≥ 64 of each 128"), "{reason}");
}

#[test]
fn a_wrong_output_without_a_pattern_still_says_where_and_how_far() {
    let mut state = 1_u32;
    let mut case = case();
    for bits in &mut case.c[1] {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *bits = (state >> 18) as u16;
    }
    let mismatch = case.mismatch();
    assert_eq!(mismatch.guess, None, "{}", mismatch.reason());
    assert!(mismatch.reason().contains("group 1"));
    assert!(mismatch.detail().contains("where:"));
}

/// A gate of at least 8 over a product that cancels: the element with the smallest |up|.
fn most_cancelled(case: &Case) -> Element {
    let answer = &case.oracle.groups[0];
    let candidates = (0..answer.up.len()).filter(|i| answer.gate[*i] > 8.0);
    let index = candidates
        .min_by(|i, j| answer.up[*i].abs().total_cmp(&answer.up[*j].abs()))
        .expect("half the gates are positive");
    let columns = answer.columns;
    Element {
        group: 0,
        row: index / columns,
        column: index % columns,
        found: half(case.c[0][index]),
        expected: answer.c(index),
    }
}

#[test]
fn a_sum_may_lose_what_its_partial_sums_lose_but_seldom_and_no_more() {
    let mut case = case_of(&[(16, 128, 8192)], Distribution::Benchmark);
    let element = most_cancelled(&case);
    let at = element.row * 128 + element.column;
    let allowed = rounding::allowance(&case.operands.groups[0], &element);
    let lost = bits(element.expected + allowed / 2.0);
    assert!(
        !TOLERANCE.accepts(half(lost), element.expected),
        "needs no excuse"
    );
    case.c[0][at] = lost;
    assert_eq!(case.judge(), Judgement::Right { worst: 1.0 });
    case.c[0][at] = bits(element.expected + 3.0 * allowed);
    assert_eq!(case.mismatch().wrong, 1, "more than a sum loses");
    case.c[0][at] = lost;
    let other = usize::from(at == 0);
    case.c[0][other] = bits(case.oracle.groups[0].c(other) * 1.002 + 0.002);
    assert_eq!(case.mismatch().wrong, 2, "too many of so few");
}

/// A result of an H200, and of the rule of its tensor cores, where fp32 can hardly do better: A·B2ᵀ
/// climbs to 142 and comes back to −0.0837.
#[test]
fn the_element_that_no_kernel_got_right_is_right() {
    let k = 16384;
    // A row of A, of B1 and of B2, each followed by its scales.
    let mut rest = include_bytes!("tests/cancelled.bin").as_slice();
    let mut next = |bytes: usize| {
        let (row, behind) = rest.split_at(bytes);
        rest = behind;
        row.to_vec()
    };
    let mut row = || (next(k / 2), next(k / 16));
    let shape = dense(1, 1, k as u32);
    let mut operands = Operands::blank(default_operator(), &shape);
    for tensor in &mut operands.groups[0].inputs {
        (tensor.elements, tensor.scales) = row();
    }
    let oracle = Oracle::compute(&operands);
    let expected = oracle.groups[0].c(0);
    assert!((expected + 5.036_610_6).abs() < 1e-6, "{expected}");
    let judged = |value: f64| judge(&halves(&[vec![bits(value)]]), &operands, &oracle, TOLERANCE);
    assert!(TOLERANCE.error(half(bits(-5.046_707)), expected) > 1.5);
    assert!(matches!(judged(-5.046_707), Judgement::Right { .. }));
    let element = Element {
        group: 0,
        row: 0,
        column: 0,
        found: half(0),
        expected,
    };
    let allowed = rounding::allowance(&operands.groups[0], &element);
    assert!(allowed < 4.0, "{allowed}: C is 1000 on average here");
    assert!(matches!(
        judged(expected - 3.0 * allowed),
        Judgement::Wrong(_)
    ));
}

/// A tolerance from the type is relative to the row, not to larger rows beside it, and has the
/// limits of the type.
#[test]
fn small_rows_are_not_measured_by_large_ones() {
    let operator = dgx_core::operator::built_in("softmax").unwrap();
    let mut values = vec![1e-3; 128];
    values[5] = 1.0;
    let answer = GroupOracle {
        rows: 2,
        columns: 64,
        gate: Vec::new(),
        up: Vec::new(),
        values,
    };
    let allowed = Allowed::of(&operator.outputs[0], &answer);
    assert!(allowed.at(0).atol > 50.0 * allowed.at(1).atol);
    let zero = OutputValues::rounded(ElementType::F16, [0.0].into_iter()).at(0);
    assert!(!allowed.at(1).accepts(zero, 1e-3));
    let strict = Tolerance {
        rtol: 1e-3,
        atol: 0.0,
    };
    let least = 2f64.powi(-24);
    assert!(strict.accepts(zero, 0.5002 * least));
    assert!(!strict.accepts(zero, 0.51 * least));
}

/// An operator with a constant, and a shape.
fn normed(text: &str, sizes: &[u32], eps: &str) -> (std::sync::Arc<Operator>, Shape) {
    let text = text.replace("1e-5", eps);
    let operator = crate::operator::evaluate::tests::operator(&text);
    let group = Group::new(operator.sizes.iter().cloned().zip(sizes.iter().copied()));
    let shape = Shape {
        name: "t".to_owned(),
        groups: vec![group],
    };
    (std::sync::Arc::new(operator), shape)
}

/// On data where a constant does not matter, any other would pass for it.
#[test]
fn another_constant_of_an_operator_is_wrong_on_some_data() {
    const LAYER_NORM: &str = "summary = \"layer norm\"\nsizes = [\"m\", \"n\"]\n\
        small = [{ m = 4, n = 32 }]\nconst = { eps = 1e-5 }\n\
        [in.x]\ntype = \"f16\"\nsize = [\"m\", \"n\"]\n\
        [out.y]\ntype = \"f16\"\nsize = [\"m\", \"n\"]\nlet = { d = \"x - mean(x, -1)\" }\n\
        value = \"d * rsqrt(mean(d * d, -1) + eps)\"\n";
    const GROUP_NORM: &str = "summary = \"group norm\"\nsizes = [\"b\", \"g\", \"c\", \"s\"]\n\
        small = [{ b = 2, g = 3, c = 4, s = 8 }]\nconst = { eps = 1e-5 }\n\
        [in.x]\ntype = \"f32\"\nsize = [\"b\", \"g\", \"c\", \"s\"]\n\
        [out.y]\ntype = \"f32\"\nsize = [\"b\", \"g\", \"c\", \"s\"]\n\
        let = { d = \"x - mean(mean(x, -1), -2)\" }\n\
        value = \"d * rsqrt(mean(mean(d * d, -1), -2) + eps)\"\n";
    let rms_norm = include_str!("../../../../operators/rms-norm.toml");
    let cases: [(&str, &[u32]); 7] = [
        (rms_norm, &[16, 256]),
        (rms_norm, &[3, 1000]),
        (rms_norm, &[1, 64]),
        (LAYER_NORM, &[64, 64]),
        (LAYER_NORM, &[2, 100]),
        (GROUP_NORM, &[2, 3, 4, 16]),
        (GROUP_NORM, &[1, 1, 40, 70]),
    ];
    for (text, sizes) in cases {
        let (operator, shape) = normed(text, sizes, "1e-5");
        for eps in ["2e-5", "1e-3", "1e-30"] {
            let (other, _) = normed(text, sizes, eps);
            let passes = |distribution| {
                let operands = Operands::draw(&operator, &shape, distribution, 3);
                let oracle = Oracle::compute(&operands);
                let answer = Oracle::compute(&Operands {
                    operator: std::sync::Arc::clone(&other),
                    ..operands.clone()
                });
                let answer = &answer.groups[0];
                let values = (0..answer.len()).map(|i| answer.c(i));
                let output = &operator.outputs[0];
                let written = OutputValues::rounded(output.tensor.element, values);
                let (rtol, atol) = output.tolerance();
                accepts(&[written], &operands, &oracle, Tolerance { rtol, atol })
            };
            let name = &operator.summary;
            assert!(
                Distribution::USUAL.into_iter().any(|d| !passes(d)),
                "{name} of {sizes:?} with {eps}"
            );
        }
    }
}
