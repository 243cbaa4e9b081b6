//! Exact arithmetic on [`Value`]: what directed rounding and f64 corner cases are computed from.
//!
//! Results keep 64 significant bits with a sticky lowest bit, so that one later rounding into any
//! format of up to 62 bits of precision is correct.

use super::{Rounding, Value};

/// A magnitude wider than any product: `significand * 2^exponent`.
struct Wide {
    negative: bool,
    significand: u128,
    exponent: i32,
}

/// Where the leading one of a normalised [`Wide`] stands; one bit above is room for a carry.
const LEAD: u32 = 125;

impl Wide {
    fn normalised(negative: bool, significand: u128, exponent: i32) -> Self {
        let shift = significand.leading_zeros() as i32 - (127 - LEAD as i32);
        Self {
            negative,
            significand: significand << shift,
            exponent: exponent - shift,
        }
    }

    fn into_value(self) -> Value {
        let spare = 64 - self.significand.leading_zeros().min(64);
        let kept = (self.significand >> spare) as u64;
        let lost = self.significand & ((1 << spare) - 1) != 0;
        Value::Finite {
            negative: self.negative,
            significand: kept | u64::from(lost),
            exponent: self.exponent + spare as i32,
        }
    }
}

/// Shifts right, keeping in the lowest bit whether anything fell off.
fn shift_sticky(value: u128, by: u32) -> u128 {
    match by {
        0 => value,
        1..128 => value >> by | u128::from(value << (128 - by) != 0),
        _ => u128::from(value != 0),
    }
}

/// The sign of an exact zero sum of operands with different signs.
fn zero_sign(rounding: Rounding) -> bool {
    rounding == Rounding::Down
}

/// `a * b + c` with the product exact. `rounding` only decides the sign of an exact zero.
pub(crate) fn fma(a: Value, b: Value, c: Value, rounding: Rounding) -> Value {
    let negative = a.is_negative() != b.is_negative();
    match (a, b, c) {
        (Value::Nan, _, _) | (_, Value::Nan, _) | (_, _, Value::Nan) => Value::Nan,
        (Value::Infinite { .. }, other, _) | (other, Value::Infinite { .. }, _)
            if other.is_zero() =>
        {
            Value::Nan
        }
        (Value::Infinite { .. }, _, _) | (_, Value::Infinite { .. }, _) => match c {
            Value::Infinite { negative: other } if other != negative => Value::Nan,
            _ => Value::Infinite { negative },
        },
        (_, _, Value::Infinite { .. }) => c,
        (
            Value::Finite {
                significand: left,
                exponent: left_exponent,
                ..
            },
            Value::Finite {
                significand: right,
                exponent: right_exponent,
                ..
            },
            Value::Finite {
                negative: addend_negative,
                significand: addend,
                exponent: addend_exponent,
            },
        ) => {
            let product = u128::from(left) * u128::from(right);
            let exponent = left_exponent + right_exponent;
            match (product, addend) {
                (0, 0) if negative == addend_negative => Value::integer(negative, 0),
                (0, 0) => Value::integer(zero_sign(rounding), 0),
                (0, _) => c,
                (_, 0) => Wide::normalised(negative, product, exponent).into_value(),
                _ => sum(
                    Wide::normalised(negative, product, exponent),
                    Wide::normalised(addend_negative, u128::from(addend), addend_exponent),
                    rounding,
                ),
            }
        }
    }
}

fn sum(left: Wide, right: Wide, rounding: Rounding) -> Value {
    let (big, small) =
        match (left.exponent, left.significand) >= (right.exponent, right.significand) {
            true => (left, right),
            false => (right, left),
        };
    let aligned = shift_sticky(small.significand, big.exponent.abs_diff(small.exponent));
    let significand = match big.negative == small.negative {
        true => big.significand + aligned,
        false => big.significand - aligned,
    };
    match significand {
        0 => Value::integer(zero_sign(rounding), 0),
        _ => Wide { significand, ..big }.into_value(),
    }
}

/// `a + b`.
pub(crate) fn add(a: Value, b: Value, rounding: Rounding) -> Value {
    fma(a, Value::integer(false, 1), b, rounding)
}

/// `a * b`.
pub(crate) fn mul(a: Value, b: Value) -> Value {
    let negative_zero = Value::integer(a.is_negative() != b.is_negative(), 0);
    fma(a, b, negative_zero, Rounding::NearestEven)
}

/// `a / b`.
pub(crate) fn div(a: Value, b: Value) -> Value {
    let negative = a.is_negative() != b.is_negative();
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Infinite { .. }, Value::Infinite { .. }) => {
            Value::Nan
        }
        (Value::Infinite { .. }, _) => Value::Infinite { negative },
        (_, Value::Infinite { .. }) => Value::integer(negative, 0),
        (
            Value::Finite {
                significand: dividend,
                exponent: above,
                ..
            },
            Value::Finite {
                significand: divisor,
                exponent: below,
                ..
            },
        ) => match (dividend, divisor) {
            (0, 0) => Value::Nan,
            (_, 0) => Value::Infinite { negative },
            (0, _) => Value::integer(negative, 0),
            _ => {
                let shift = dividend.leading_zeros() + 64;
                let dividend = u128::from(dividend) << shift;
                let quotient = dividend / u128::from(divisor);
                let lost = dividend % u128::from(divisor) != 0;
                // The quotient has at least 64 bits, so the sticky bit is below all that count.
                Wide {
                    negative,
                    significand: quotient | u128::from(lost),
                    exponent: above - below - shift as i32,
                }
                .into_value()
            }
        },
    }
}

/// The square root.
pub(crate) fn sqrt(a: Value) -> Value {
    match a {
        Value::Finite { significand: 0, .. } | Value::Infinite { negative: false } => a,
        Value::Finite {
            negative: false,
            significand,
            exponent,
        } => {
            // An even exponent, and a root of at most 63 bits: one more is for what was lost.
            let lead = significand.leading_zeros() + 60;
            let shift = lead + ((exponent - lead as i32) & 1) as u32;
            let square = u128::from(significand) << shift;
            let root = square.isqrt();
            let lost = root * root != square;
            Value::Finite {
                negative: false,
                significand: (root as u64) << 1 | u64::from(lost),
                exponent: (exponent - shift as i32) / 2 - 1,
            }
        }
        _ => Value::Nan,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use proptest::prelude::*;

    fn decode(x: f64) -> Value {
        Format::F64.decode(x.to_bits())
    }

    fn nearest(value: Value) -> f64 {
        f64::from_bits(Format::F64.encode(value, Rounding::NearestEven, false))
    }

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    proptest! {
        /// The host's own arithmetic is an independent formulation of round-to-nearest.
        #[test]
        fn nearest_results_are_the_hosts(a in any::<u64>(), b in any::<u64>(), c in any::<u64>(), near in -80i64..80) {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            let far = f64::from_bits(c);
            let close = f64::from_bits((a * b).to_bits().wrapping_add((near << 52) as u64) ^ c >> 30);
            for c in [far, close, -a * b] {
                prop_assert!(same(nearest(fma(decode(a), decode(b), decode(c), Rounding::NearestEven)), a.mul_add(b, c)));
                prop_assert!(same(nearest(add(decode(a), decode(c), Rounding::NearestEven)), a + c));
            }
            prop_assert!(same(nearest(mul(decode(a), decode(b))), a * b));
            prop_assert!(same(nearest(div(decode(a), decode(b))), a / b));
            prop_assert!(same(nearest(sqrt(decode(a))), a.sqrt()));
        }
    }
}
