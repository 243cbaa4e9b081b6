//! Products of blocks that carry scales: `kind::mxf4`, `mxf4nvf4` and `mxf8f6f4`.
//!
//! An instruction's row of A and column of B come as one code a byte, with the scale of each block
//! of 16 or 32 of them. 4-bit products are exact in groups of sixteen; a group, times its scales,
//! is one term of the sum, which keeps 35 bits below the largest exponent. Wider products are a
//! term each, and 25 bits are kept ([`super::fused`]). The rules are those of MMA-Sim 2.1.1, which
//! agrees with a B200 bit for bit.

use std::sync::LazyLock;

use crate::numeric::{NAN_F32, Value};

use super::fused::{Fused, Term, align, dot_f32_scaled, split, truncated};
use super::{Element, Numerics};

/// How a scale is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scale {
    /// 2^(x − 127); 255 is NaN.
    Ue8m0,
    /// e4m3 without its sign, which is ignored; 127 is NaN.
    Ue4m3,
}

/// A scale's significand, in eighths, and exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Factor {
    pub(crate) eighths: i32,
    pub(crate) exponent: i32,
}

impl Scale {
    /// What a scale multiplies by; `None` for NaN.
    pub(crate) fn factor(self, code: u8) -> Option<Factor> {
        let (eighths, exponent) = match self {
            Self::Ue8m0 if code == 0xff => return None,
            Self::Ue8m0 => (8, i32::from(code) - 127),
            Self::Ue4m3 => {
                let (biased, fraction) = (i32::from(code >> 3 & 15), i32::from(code & 7));
                match (biased, fraction) {
                    (15, 7) => return None,
                    (0, fraction) => (fraction, -6),
                    (biased, fraction) => (8 + fraction, biased - 7),
                }
            }
        };
        Some(Factor { eighths, exponent })
    }

    /// What every code multiplies by, in f32.
    pub(crate) fn values(self) -> &'static [f32; 256] {
        static UE8M0: LazyLock<[f32; 256]> =
            LazyLock::new(|| std::array::from_fn(|code| Scale::Ue8m0.value(code as u8)));
        static UE4M3: LazyLock<[f32; 256]> =
            LazyLock::new(|| std::array::from_fn(|code| Scale::Ue4m3.value(code as u8)));
        match self {
            Self::Ue8m0 => &UE8M0,
            Self::Ue4m3 => &UE4M3,
        }
    }

    /// The same as f32.
    pub(crate) fn value(self, code: u8) -> f32 {
        match self.factor(code) {
            None => f32::NAN,
            Some(Factor { eighths, exponent }) => {
                // Two steps, because 2^-127 has no power of its own.
                let half = exponent / 2;
                eighths as f32 / 8.0 * 2f32.powi(half) * 2f32.powi(exponent - half)
            }
        }
    }
}

/// Codes of a row of A or a column of B, one a byte, and the scales of its blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'r> {
    pub(crate) codes: &'r [u8],
    pub(crate) scales: &'r [u8],
}

/// Types and scales of a product of two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scaled {
    /// e2m1 by e2m1: `kind::mxf4` and `mxf4nvf4`. As many scales a row as divide it evenly.
    Fours(Scale),
    /// 8-, 6- or 4-bit floats of two types, with a ue8m0 scale for each row: `kind::mxf8f6f4`.
    Eights(Element, Element),
}

/// 4-bit codes whose products are summed before they meet their scales.
pub(crate) const GROUP: usize = 16;

/// Bits kept below the largest exponent of 4-bit products.
const KEPT: i32 = 35;

/// The exponent a zero counts with there.
const ZERO: i32 = -139;

/// Twice the value of each e2m1 code.
pub(crate) const HALVES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// A group's products: their sum in quarters, and whether any is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GroupSum {
    pub(crate) quarters: i32,
    pub(crate) any: bool,
}

impl GroupSum {
    fn of(a: &[u8], b: &[u8]) -> Self {
        let mut sum = Self::default();
        for (x, y) in a.iter().zip(b) {
            let [x, y] = [x, y].map(|code| i32::from(HALVES[usize::from(code & 15)]));
            sum.quarters += x * y;
            sum.any |= x * y != 0;
        }
        sum
    }
}

impl Scaled {
    /// `a · b + accumulator` of one instruction, as the bits of an f32.
    pub(crate) fn dot(self, a: Row<'_>, b: Row<'_>, accumulator: f32, mode: Numerics) -> u32 {
        match (self, mode) {
            (_, Numerics::Fast) => self.fast(a, b, accumulator),
            (Self::Fours(scale), Numerics::Exact) => {
                let pairs = a.codes.chunks(GROUP).zip(b.codes.chunks(GROUP));
                let of = |scales: &[u8], group: usize| {
                    scale.factor(scales[group * GROUP * scales.len() / a.codes.len()])
                };
                let terms = pairs.enumerate().map(|(group, (x, y))| {
                    (GroupSum::of(x, y), of(a.scales, group), of(b.scales, group))
                });
                sum_of_groups(terms, accumulator)
            }
            (Self::Eights(left, right), Numerics::Exact) => {
                let (Some(left), Some(right)) = (Fused::blackwell(left), Fused::blackwell(right))
                else {
                    return NAN_F32;
                };
                let factors = [a, b].map(|row| Scale::Ue8m0.factor(row.scales[0]));
                let [Some(x), Some(y)] = factors else {
                    return NAN_F32;
                };
                let terms = |fused: &Fused, codes: &[u8]| -> Vec<Term> {
                    let code = |&code: &u8| fused.term(code.into(), false);
                    codes.iter().map(code).collect()
                };
                let (a, b) = (terms(&left, a.codes), terms(&right, b.codes));
                let power = x.exponent + y.exponent;
                dot_f32_scaled((&left, &right), (&a, &b), power, accumulator)
            }
        }
    }

    /// f32 sums, block by block.
    fn fast(self, a: Row<'_>, b: Row<'_>, accumulator: f32) -> u32 {
        let (left, right, scale) = match self {
            Self::Fours(scale) => (Element::E2m1, Element::E2m1, scale),
            Self::Eights(left, right) => (left, right, Scale::Ue8m0),
        };
        let block = a.codes.len() / a.scales.len();
        let mut sum = accumulator;
        let blocks = a.codes.chunks(block).zip(b.codes.chunks(block));
        for ((x, y), (s, t)) in blocks.zip(a.scales.iter().zip(b.scales)) {
            let value = |element: Element, code: &u8| element.value((*code).into());
            let products = x.iter().zip(y);
            let dot: f32 = products
                .map(|(x, y)| value(left, x) * value(right, y))
                .sum();
            sum += dot * scale.value(*s) * scale.value(*t);
        }
        crate::numeric::arith::canonical_f32(sum)
    }
}

/// The truncated sum of groups of 4-bit products, each with its two scales, and an accumulator.
pub(crate) fn sum_of_groups(
    groups: impl Iterator<Item = (GroupSum, Option<Factor>, Option<Factor>)>,
    accumulator: f32,
) -> u32 {
    /// K96 has the most.
    const MOST: usize = 6;
    let mut terms = [(0i64, ZERO); MOST];
    let mut nan = accumulator.is_nan();
    for (term, (sum, a, b)) in terms.iter_mut().zip(groups) {
        let (Some(a), Some(b)) = (a, b) else {
            nan = true;
            continue;
        };
        if sum.any && a.eighths != 0 && b.eighths != 0 {
            let significand = i64::from(sum.quarters) * i64::from(a.eighths * b.eighths);
            *term = (significand, a.exponent + b.exponent);
        }
    }
    if nan {
        return NAN_F32;
    }
    if accumulator.is_infinite() {
        return accumulator.to_bits();
    }
    let (addend, exponent) = match split(accumulator) {
        (0, _) => (0, ZERO),
        nonzero => nonzero,
    };
    let top = terms.iter().fold(exponent, |top, term| top.max(term.1));
    let unit = top - KEPT;
    let mut total = align(addend, exponent - 23 - unit);
    for (significand, exponent) in terms {
        // Quarters times eighths times eighths.
        total += align(significand, exponent - 8 - unit);
    }
    truncated(Value::Finite {
        negative: total < 0,
        significand: total.unsigned_abs(),
        exponent: unit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One K64 instruction: codes, scales and the accumulator.
    struct Case {
        a: [u8; 64],
        b: [u8; 64],
        sa: [u8; 4],
        sb: [u8; 4],
        c: u32,
    }

    impl Case {
        fn new(c: u32) -> Self {
            let (codes, scales) = ([0; 64], [0x38; 4]);
            Self {
                a: codes,
                b: codes,
                sa: scales,
                sb: scales,
                c,
            }
        }

        fn at(mut self, k: usize, a: u8, b: u8) -> Self {
            (self.a[k], self.b[k]) = (a, b);
            self
        }

        fn scaled(mut self, group: usize, a: u8, b: u8) -> Self {
            (self.sa[group], self.sb[group]) = (a, b);
            self
        }

        fn run(&self, mode: Numerics) -> u32 {
            let row = |codes, scales| Row { codes, scales };
            let (a, b) = (row(&self.a, &self.sa), row(&self.b, &self.sb));
            Scaled::Fours(Scale::Ue4m3).dot(a, b, f32::from_bits(self.c), mode)
        }
    }

    fn ones() -> Case {
        Case {
            a: [2; 64],
            b: [2; 64],
            ..Case::new(0)
        }
    }

    /// The reference vectors of the model that was compared with a B200.
    #[test]
    fn reference_vectors_of_mxf4nvf4() {
        let cancelled = Case::new(0xbf80_0000)
            .at(0, 2, 2)
            .at(1, 2, 10)
            .at(16, 1, 1)
            .scaled(0, 0x7e, 0x7e)
            .scaled(1, 1, 1);
        let without = Case::new(0xbf80_0000)
            .at(16, 1, 1)
            .scaled(0, 0x7e, 0x7e)
            .scaled(1, 1, 1);
        let mixed = Case {
            a: std::array::from_fn(|k| (7 * k + 3) as u8 & 15),
            b: std::array::from_fn(|k| (5 * k + 1) as u8 & 15),
            sa: [0x38, 0x41, 0x2c, 0x07],
            sb: [0x30, 0x3b, 0x4a, 0x11],
            c: 0x3dcc_cccd,
        };
        let signed = Case {
            sa: [0xb8; 4],
            ..ones()
        };
        let cases = [
            (ones(), 0x4280_0000),
            (Case::new(0x4b80_0000).at(0, 1, 1), 0x4b80_0000),
            (Case::new(0xcb80_0000).at(0, 1, 1), 0xcb7f_ffff),
            (
                Case::new(0xc980_0000).at(0, 2, 2).scaled(0, 8, 1),
                0xc97f_ffff,
            ),
            (
                Case::new(0xc980_0000).at(0, 1, 2).scaled(0, 8, 1),
                0xc980_0000,
            ),
            (cancelled, 0xbf80_0000),
            (without, 0xbf7f_fff0),
            (signed, 0x4280_0000),
            (ones().scaled(2, 0x7f, 0x38), 0x7fff_ffff),
            (Case::new(0x8000_0000), 0),
            (mixed, 0xc22e_9d89),
        ];
        for (number, (case, expected)) in (1..).zip(&cases) {
            let found = case.run(Numerics::Exact);
            assert_eq!(found, *expected, "vector {number}: {found:#x}");
        }
        let mut c = 0;
        for s in 0..112usize {
            let chain = Case {
                a: std::array::from_fn(|k| (7 * k + 3 + s) as u8 & 15),
                b: std::array::from_fn(|k| (5 * k + 1 + 3 * s) as u8 & 15),
                sa: std::array::from_fn(|g| 0x30 + (s + g) as u8 % 16),
                sb: std::array::from_fn(|g| 0x28 + (3 * s + g) as u8 % 16),
                c,
            };
            c = chain.run(Numerics::Exact);
        }
        assert_eq!(c, 0xc501_cd00, "vector 12: {c:#x}");
    }

    #[test]
    fn fast_sums_agree_with_truncated_ones_but_for_rounding() {
        for s in 0..16usize {
            let case = Case {
                a: std::array::from_fn(|k| (11 * k + s) as u8 & 15),
                b: std::array::from_fn(|k| (3 * k + 5 * s) as u8 & 15),
                sa: std::array::from_fn(|g| 0x30 + (s + g) as u8 % 16),
                sb: std::array::from_fn(|g| 0x28 + (3 * s + g) as u8 % 16),
                c: 0x3f80_0000,
            };
            let [fast, exact] = [Numerics::Fast, Numerics::Exact].map(|mode| case.run(mode));
            let [fast, exact] = [fast, exact].map(f32::from_bits);
            assert!((fast - exact).abs() <= exact.abs() * 1e-6, "{fast} {exact}");
        }
    }

    #[test]
    fn two_scales_serve_two_groups_each() {
        let codes = [2; 64];
        let row = |scales| Row {
            codes: &codes,
            scales,
        };
        for mode in [Numerics::Fast, Numerics::Exact] {
            let dot =
                Scaled::Fours(Scale::Ue8m0).dot(row(&[127, 128]), row(&[127, 129]), 1.0, mode);
            assert_eq!(f32::from_bits(dot), 1.0 + 32.0 + 32.0 * 8.0);
        }
        let nan = Scaled::Fours(Scale::Ue8m0).dot(
            row(&[127, 255]),
            row(&[127, 129]),
            1.0,
            Numerics::Exact,
        );
        assert_eq!(nan, NAN_F32);
    }

    #[test]
    fn wider_floats_are_scaled_by_powers_of_two() {
        let form = Scaled::Eights(Element::E4m3, Element::E2m1);
        let (a, b) = ([0x38; 32], [3; 32]);
        let row = |codes, scales| Row { codes, scales };
        for mode in [Numerics::Fast, Numerics::Exact] {
            let dot = form.dot(row(&a, &[126]), row(&b, &[129]), -1.0, mode);
            assert_eq!(f32::from_bits(dot), 32.0 * 1.5 * 2.0 - 1.0);
        }
        assert_eq!(
            form.dot(row(&a, &[255]), row(&b, &[129]), 0.0, Numerics::Exact),
            NAN_F32
        );
    }

    #[test]
    fn scales_have_their_values() {
        assert_eq!(Scale::Ue8m0.value(0), 2f32.powi(-126) / 2.0);
        assert_eq!(Scale::Ue8m0.value(254), 2f32.powi(127));
        assert_eq!(Scale::Ue4m3.value(0x7e), 448.0);
        assert_eq!(Scale::Ue4m3.value(0x81), 2f32.powi(-9));
        assert!(Scale::Ue4m3.value(0x7f).is_nan() && Scale::Ue4m3.value(0xff).is_nan());
    }
}
