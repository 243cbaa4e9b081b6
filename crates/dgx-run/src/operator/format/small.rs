//! Floating-point formats of at most eight bits: a table of their values, and
//! the nearest code by search in it.

use std::cmp::Ordering;
use std::sync::LazyLock;

/// A format of at most eight bits, as the tables of its values.
pub(crate) struct Small {
    /// By code; codes beyond the format's bits repeat.
    values: [f64; 256],
    /// Finite values that are not negative, ascending: index `i` is code `i`.
    finite: Vec<f64>,
    /// The sign bit, 0 if the format has none.
    sign: u8,
    /// The code for NaN.
    nan: u8,
}

impl Small {
    /// `value` gives the magnitude of a code without its sign, infinite or NaN for the format's
    /// last codes.
    fn new(bits: u32, signed: bool, nan: u8, value: impl Fn(u8) -> f64) -> Self {
        let sign = if signed { 1 << (bits - 1) } else { 0 };
        let codes = if signed {
            1 << (bits - 1)
        } else {
            1_u16 << bits
        };
        let mask = (codes - 1) as u8;
        let values = std::array::from_fn(|code| {
            let magnitude = value(code as u8 & mask);
            if code as u8 & sign == 0 {
                magnitude
            } else {
                -magnitude
            }
        });
        let finite = values[..usize::from(codes)].iter().copied();
        Self {
            values,
            finite: finite.take_while(|v| v.is_finite()).collect(),
            sign,
            nan,
        }
    }

    pub(crate) fn decode(&self, code: u8) -> f64 {
        self.values[usize::from(code)]
    }

    /// The values by code.
    pub(crate) fn values(&self) -> &[f64; 256] {
        &self.values
    }

    /// The largest finite value.
    pub(crate) fn largest(&self) -> f64 {
        self.finite[self.finite.len() - 1]
    }

    /// The nearest code, the even one on a tie. Values beyond the largest finite one, including
    /// infinity, become that value.
    pub(crate) fn encode(&self, value: f64) -> u8 {
        if value.is_nan() {
            return self.nan;
        }
        if value.is_sign_negative() && self.sign == 0 {
            return 0;
        }
        let sign = if value.is_sign_negative() {
            self.sign
        } else {
            0
        };
        sign | self.nearest(value.abs())
    }

    fn nearest(&self, magnitude: f64) -> u8 {
        let above = self.finite.partition_point(|v| *v < magnitude);
        if above == 0 {
            return 0;
        }
        if above == self.finite.len() {
            return (above - 1) as u8;
        }
        // Exact where it matters: a tie has few bits, and so do its neighbours.
        let (low, high) = (self.finite[above - 1], self.finite[above]);
        let nearest = match (magnitude - low).total_cmp(&(high - magnitude)) {
            Ordering::Less => above - 1,
            Ordering::Greater => above,
            Ordering::Equal => above - above % 2,
        };
        nearest as u8
    }
}

/// A magnitude with `mantissa` bits below an exponent of that bias.
fn magnitude(code: u8, mantissa: u32, bias: i32) -> f64 {
    let (exponent, low) = (
        i32::from(code >> mantissa),
        f64::from(code & ((1 << mantissa) - 1)),
    );
    let unit = 2f64.powi(-(mantissa as i32));
    match exponent {
        0 => low * unit * 2f64.powi(1 - bias),
        _ => (1.0 + low * unit) * 2f64.powi(exponent - bias),
    }
}

/// Bias 1, no infinity, no NaN: NaN becomes 6, as in `cvt.rn.satfinite.e2m1x2`.
pub(crate) static E2M1: LazyLock<Small> =
    LazyLock::new(|| Small::new(4, true, 7, |code| magnitude(code, 1, 1)));

/// Bias 7, no infinity; the last code is NaN.
pub(crate) static E4M3: LazyLock<Small> = LazyLock::new(|| {
    Small::new(8, true, 0x7f, |code| match code {
        0x7f => f64::NAN,
        _ => magnitude(code, 3, 7),
    })
});

/// Bias 15, like the upper byte of fp16.
pub(crate) static E5M2: LazyLock<Small> = LazyLock::new(|| {
    Small::new(8, true, 0x7f, |code| match code {
        0x7c => f64::INFINITY,
        0x7d.. => f64::NAN,
        _ => magnitude(code, 2, 15),
    })
});

/// A power of two from 2⁻¹²⁷ on, no sign, no zero; the last code is NaN. Values that are not
/// positive become the smallest.
pub(crate) static E8M0: LazyLock<Small> = LazyLock::new(|| {
    Small::new(8, false, 0xff, |code| match code {
        0xff => f64::NAN,
        _ => 2f64.powi(i32::from(code) - 127),
    })
});

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [(&'static str, &'static Small, u16); 4] {
        [
            ("e2m1", &*E2M1, 16),
            ("e4m3", &*E4M3, 256),
            ("e5m2", &*E5M2, 256),
            ("e8m0", &*E8M0, 256),
        ]
    }

    #[test]
    fn every_code_is_its_values_code() {
        for (name, format, codes) in all() {
            for code in 0..codes {
                let value = format.decode(code as u8);
                if value.is_finite() {
                    assert_eq!(u16::from(format.encode(value)), code, "{name} {value}");
                }
            }
            assert_eq!(
                format.encode(f64::INFINITY),
                format.encode(format.largest())
            );
        }
    }

    /// A midpoint between neighbours goes to the even code, and values just beside it to the nearer
    /// one.
    #[test]
    fn ties_go_to_even_and_all_else_to_the_nearest() {
        for (name, format, _) in all() {
            for code in 0..format.finite.len() as u8 - 1 {
                let (low, high) = (format.decode(code), format.decode(code + 1));
                let middle = low + (high - low) / 2.0;
                let even = code + code % 2;
                let below = f64::from_bits(middle.to_bits() - 1);
                let above = f64::from_bits(middle.to_bits() + 1);
                for (value, wanted) in [(below, code), (middle, even), (above, code + 1)] {
                    assert_eq!(format.encode(value), wanted, "{name} {value:e}");
                    if format.sign != 0 {
                        assert_eq!(format.encode(-value), wanted | format.sign, "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_ends_are_those_of_the_formats() {
        let largest = all().map(|(_, format, _)| format.largest());
        assert_eq!(largest, [6.0, 448.0, 57344.0, 2f64.powi(127)]);
        assert_eq!(E4M3.decode(1), 2f64.powi(-9));
        assert_eq!(E5M2.decode(1), 2f64.powi(-16));
        assert_eq!(E8M0.decode(0), 2f64.powi(-127));
        assert_eq!(E5M2.decode(0xfc), f64::NEG_INFINITY);
        for (name, format, _) in &all()[1..] {
            assert!(format.decode(format.encode(f64::NAN)).is_nan(), "{name}");
        }
        assert_eq!(E2M1.decode(E2M1.encode(f64::NAN)), 6.0);
        assert_eq!(E8M0.encode(-1.0), 0);
        assert_eq!(E2M1.encode(-0.0), 8);
    }

    /// The upper byte of an fp16 is an e5m2.
    #[test]
    fn e5m2_is_the_upper_half_of_fp16() {
        for code in 0..=255_u8 {
            let wanted = half::f16::from_bits(u16::from(code) << 8).to_f64();
            let found = E5M2.decode(code);
            assert!(found == wanted || found.is_nan() && wanted.is_nan());
        }
    }
}
