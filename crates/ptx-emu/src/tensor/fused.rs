//! The sum of products as Hopper's and Blackwell's tensor cores do it.
//!
//! Products are exact. All of an instruction's products and the accumulator are aligned to the
//! largest exponent among them, cut off (towards zero) a fixed number of bits below it, summed as
//! integers and truncated into the result. f16 results are rounded to nearest instead.
//!
//! The machines differ in the bits kept for fp8, in the exponent a zero counts with, and in what
//! overflows: Blackwell's sums become infinite. Its rule is that of MMA-Sim 2.1.1, which agrees
//! with a B200 bit for bit; block-scaled 4-bit products have one of their own, in
//! [`super::scaled`].

use crate::numeric::{Format, NAN_F32, Rounding, Value};

use super::Element;

/// Fraction bits kept below the largest exponent.
const HALF_FRACTION: i32 = 25;
/// Hopper's fp8 datapath is narrower, and so is its result.
const FP8_FRACTION: i32 = 13;
/// The exponents Blackwell counts a zero with, by the result's type.
const ZERO_F32: i32 = -133;
const ZERO_F16: i32 = -21;

/// One operand element: `significand * 2^(exponent - fraction bits)`, or not a number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Term {
    significand: i32,
    /// Exponent of the leading digit's place (not normalised for subnormals).
    exponent: i32,
    special: Special,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Special {
    #[default]
    Finite,
    Infinite,
    Nan,
}

/// A floating operand type, with what the sum needs to know about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fused {
    element: Element,
    fraction_bits: i32,
    kept: i32,
    blackwell: bool,
}

impl Fused {
    /// The fused sum for operands of this type; `None` for integers and f64.
    pub(crate) fn new(element: Element) -> Option<Self> {
        let (fraction_bits, kept) = match element {
            Element::F16 | Element::Tf32 => (10, HALF_FRACTION),
            Element::Bf16 => (7, HALF_FRACTION),
            Element::E4m3 => (3, FP8_FRACTION),
            Element::E5m2 => (2, FP8_FRACTION),
            _ => return None,
        };
        Some(Self {
            element,
            fraction_bits,
            kept,
            blackwell: false,
        })
    }

    /// The same for Blackwell's tensor cores.
    pub(crate) fn blackwell(element: Element) -> Option<Self> {
        let fraction_bits = match element {
            Element::F16 | Element::Tf32 => 10,
            Element::Bf16 => 7,
            Element::E4m3 | Element::E2m3 => 3,
            Element::E5m2 | Element::E3m2 => 2,
            Element::E2m1 => 1,
            _ => return None,
        };
        Some(Self {
            element,
            fraction_bits,
            kept: HALF_FRACTION,
            blackwell: true,
        })
    }

    /// The same operands on the f16 datapath, where `mma.sync` puts fp8.
    #[must_use]
    pub(crate) fn on_halves(self) -> Self {
        Self {
            kept: HALF_FRACTION,
            ..self
        }
    }

    /// Decodes an operand. `negate` is `imm-scale` −1.
    pub(crate) fn term(&self, code: u32, negate: bool) -> Term {
        let Some(format) = self.element.format() else {
            return Term::default();
        };
        match format.decode(u64::from(code)) {
            Value::Nan => Term {
                special: Special::Nan,
                ..Term::default()
            },
            Value::Infinite { negative } => Term {
                significand: if negative != negate { -1 } else { 1 },
                special: Special::Infinite,
                ..Term::default()
            },
            Value::Finite {
                negative,
                significand,
                exponent,
            } => {
                let magnitude = significand as i32;
                Term {
                    significand: if negative != negate {
                        -magnitude
                    } else {
                        magnitude
                    },
                    exponent: exponent + self.fraction_bits,
                    special: Special::Finite,
                }
            }
        }
    }
}

/// The f32 sum of `a[i] * b[i]` and an f32 accumulator, truncated as the hardware does.
/// `a` and `b` may differ in type (e4m3 with e5m2) but not in datapath.
pub(crate) fn dot_f32(fused: (&Fused, &Fused), a: &[Term], b: &[Term], accumulator: f32) -> u32 {
    dot_f32_scaled(fused, (a, b), 0, accumulator)
}

/// As [`dot_f32`] of products that are all to be multiplied by a power of two.
pub(crate) fn dot_f32_scaled(
    fused: (&Fused, &Fused),
    (a, b): (&[Term], &[Term]),
    power: i32,
    accumulator: f32,
) -> u32 {
    match sum(fused, (a, b), power, accumulator, ZERO_F32) {
        Sum::Nan => NAN_F32,
        Sum::Infinite { negative } => f32::INFINITY.copysign(sign(negative)).to_bits(),
        Sum::Finite { value } if fused.0.blackwell => truncated(value),
        Sum::Finite { value } => {
            let narrow = match fused.0.kept {
                FP8_FRACTION => truncate_significand(value, FP8_FRACTION as u32 + 1),
                _ => value,
            };
            Format::F32.encode(narrow, Rounding::Zero, false) as u32
        }
    }
}

/// The f16 result: the same sum, rounded to nearest.
pub(crate) fn dot_f16(fused: (&Fused, &Fused), a: &[Term], b: &[Term], accumulator: f32) -> u16 {
    match sum(fused, (a, b), 0, accumulator, ZERO_F16) {
        Sum::Nan => crate::numeric::NAN_F16,
        Sum::Infinite { negative } => 0x7c00 | u16::from(negative) << 15,
        Sum::Finite { value } => Format::F16.encode(value, Rounding::NearestEven, false) as u16,
    }
}

fn sign(negative: bool) -> f32 {
    if negative { -1.0 } else { 1.0 }
}

enum Sum {
    Nan,
    Infinite { negative: bool },
    Finite { value: Value },
}

/// A value as f32, truncated; zero is positive, and what is too large infinite.
pub(super) fn truncated(value: Value) -> u32 {
    let Value::Finite {
        negative,
        significand,
        exponent,
    } = value
    else {
        return NAN_F32;
    };
    let magnitude = 64 - significand.leading_zeros() as i32 + exponent;
    match significand {
        0 => 0,
        _ if magnitude > 128 => f32::INFINITY.copysign(sign(negative)).to_bits(),
        _ => Format::F32.encode(value, Rounding::Zero, false) as u32,
    }
}

fn sum(
    fused: (&Fused, &Fused),
    (a, b): (&[Term], &[Term]),
    power: i32,
    accumulator: f32,
    zero: i32,
) -> Sum {
    if let Some(special) = special_sum(a, b, accumulator) {
        return special;
    }
    let (addend, addend_exponent) = split(accumulator);
    let mut top = if fused.0.blackwell { zero } else { i32::MIN };
    if addend != 0 {
        top = top.max(addend_exponent);
    }
    for (x, y) in a.iter().zip(b) {
        if x.significand != 0 && y.significand != 0 {
            top = top.max(x.exponent + y.exponent + power);
        }
    }
    if top == i32::MIN {
        return Sum::Finite {
            value: Value::integer(false, 0),
        };
    }
    let kept = fused.0.kept;
    let product_fraction = fused.0.fraction_bits + fused.1.fraction_bits;
    let mut total = align(addend, addend_exponent - 23 - (top - kept));
    for (x, y) in a.iter().zip(b) {
        let product = i64::from(x.significand) * i64::from(y.significand);
        if product != 0 {
            total += align(
                product,
                x.exponent + y.exponent + power - product_fraction - (top - kept),
            );
        }
    }
    Sum::Finite {
        value: Value::Finite {
            negative: total < 0,
            significand: total.unsigned_abs(),
            exponent: top - kept,
        },
    }
}

/// NaN and infinity decide the sum before any alignment.
fn special_sum(a: &[Term], b: &[Term], accumulator: f32) -> Option<Sum> {
    let mut infinity: Option<bool> = match accumulator.is_infinite() {
        true => Some(accumulator < 0.0),
        false => None,
    };
    let mut nan = accumulator.is_nan();
    for (x, y) in a.iter().zip(b) {
        if x.special == Special::Finite && y.special == Special::Finite {
            continue;
        }
        let is_nan = x.special == Special::Nan || y.special == Special::Nan;
        let negative = (x.significand < 0) != (y.significand < 0);
        let vanishing = x.significand == 0 || y.significand == 0;
        nan |= is_nan || vanishing || infinity.is_some_and(|other| other != negative);
        infinity = Some(negative);
    }
    match (nan, infinity) {
        (true, _) => Some(Sum::Nan),
        (false, Some(negative)) => Some(Sum::Infinite { negative }),
        (false, None) => None,
    }
}

/// An f32 as a signed 24-bit significand and the exponent of its leading place.
pub(super) fn split(x: f32) -> (i64, i32) {
    let bits = x.to_bits();
    let biased = (bits >> 23 & 0xff) as i32;
    let fraction = i64::from(bits & 0x7f_ffff);
    let magnitude = if biased == 0 {
        fraction
    } else {
        fraction | 1 << 23
    };
    let signed = if bits >> 31 == 1 {
        -magnitude
    } else {
        magnitude
    };
    (signed, biased.max(1) - 127)
}

/// Shifts by a power of two; what falls below is cut off towards zero.
pub(super) fn align(value: i64, shift: i32) -> i64 {
    match shift {
        0.. => value << shift,
        -62..0 => {
            let magnitude = (value.unsigned_abs() >> -shift) as i64;
            if value < 0 { -magnitude } else { magnitude }
        }
        _ => 0,
    }
}

/// Keeps the leading `bits` of a significand.
fn truncate_significand(value: Value, bits: u32) -> Value {
    match value {
        Value::Finite {
            negative,
            significand,
            exponent,
        } => {
            let spare = (64 - significand.leading_zeros()).saturating_sub(bits);
            Value::Finite {
                negative,
                significand: significand >> spare << spare,
                exponent,
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    fn terms(fused: &Fused, values: &[f32]) -> Vec<Term> {
        values
            .iter()
            .map(|&v| fused.term(f16::from_f32(v).to_bits().into(), false))
            .collect()
    }

    fn dot(a: &[f32], b: &[f32], c: f32) -> f32 {
        let fused = Fused::new(Element::F16).expect("f16 is a float");
        f32::from_bits(dot_f32(
            (&fused, &fused),
            &terms(&fused, a),
            &terms(&fused, b),
            c,
        ))
    }

    #[test]
    fn exact_sums_are_exact() {
        assert_eq!(dot(&[1.0, 2.0, -3.5], &[4.0, 0.5, 2.0], 10.0), 8.0);
        assert_eq!(dot(&[0.0], &[-1.0], 0.0).to_bits(), 0);
    }

    #[test]
    fn small_terms_fall_off_below_25_bits_of_the_largest() {
        let tiny = 2f32.powi(-12);
        assert_eq!(
            dot(&[1024.0, tiny], &[1024.0, 2f32.powi(7)], -1_048_576.0),
            2f32.powi(-5)
        );
        assert_eq!(
            dot(&[1024.0, tiny], &[1024.0, 2f32.powi(6)], -1_048_576.0),
            0.0
        );
    }

    #[test]
    fn results_are_truncated() {
        assert_eq!(dot(&[1.0], &[2f32.powi(-24)], 1.0), 1.0);
        assert_eq!(
            dot(&[1.0], &[3.0 * 2f32.powi(-24)], 1.0),
            1.0 + 2f32.powi(-23)
        );
    }

    #[test]
    fn blackwell_keeps_more_of_fp8_and_overflows() {
        let one = |fused: &Fused, code| [fused.term(code, false)];
        let sum = |fused: Fused, b: u32, c: f32| {
            let (x, y) = (one(&fused, 0x38), one(&fused, b));
            f32::from_bits(dot_f32((&fused, &fused), &x, &y, c))
        };
        let hopper = Fused::new(Element::E4m3).expect("a float");
        let blackwell = Fused::blackwell(Element::E4m3).expect("a float");
        // 1 + 2^15 needs sixteen bits.
        assert_eq!(sum(hopper, 0x38, 32768.0), 32768.0);
        assert_eq!(sum(blackwell, 0x38, 32768.0), 32769.0);
        let bf16 = Fused::blackwell(Element::Bf16).expect("a float");
        let large = [bf16.term(0x7f7f, false)];
        let two = [bf16.term(0x4000, false)];
        assert_eq!(dot_f32((&bf16, &bf16), &large, &two, 0.0), 0x7f80_0000);
        assert_eq!(dot_f32((&bf16, &bf16), &[], &[], -0.0), 0);
    }

    #[test]
    fn specials_are_canonical() {
        assert_eq!(dot(&[f32::INFINITY], &[0.0], 1.0).to_bits(), NAN_F32);
        assert_eq!(
            dot(&[f32::INFINITY, 1.0], &[1.0, f32::NEG_INFINITY], 1.0).to_bits(),
            NAN_F32
        );
        assert_eq!(dot(&[f32::INFINITY], &[-2.0], 1.0), f32::NEG_INFINITY);
        assert_eq!(dot(&[1.0], &[1.0], f32::INFINITY), f32::INFINITY);
    }
}
