//! Floating formats as data, and the one place where a real number is rounded into one.
//!
//! Every conversion goes through [`Value`]: decode the source exactly, encode into the target
//! under a rounding mode. Nothing here knows which PTX instruction asked.

use super::Rounding;

/// What the codes with the largest exponent mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Fraction zero is infinity, anything else NaN.
    Ieee,
    /// All ones is NaN, there is no infinity (e4m3).
    OnlyNan,
    /// Every code is a number (the 4- and 6-bit formats).
    None,
}

/// A binary floating format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    special: Special,
    /// The NaN that the hardware writes; for formats without NaN, what it writes instead.
    nan: u64,
    /// Low storage bits below the fraction (tf32 lives in the top of a 32-bit register).
    padding: u32,
}

impl Format {
    pub(crate) const F64: Self = Self::ieee(11, 52, super::NAN_F64);
    pub(crate) const F32: Self = Self::ieee(8, 23, 0x7fff_ffff);
    pub(crate) const F16: Self = Self::ieee(5, 10, 0x7fff);
    pub(crate) const BF16: Self = Self::ieee(8, 7, 0x7fff);
    pub(crate) const E5M2: Self = Self::ieee(5, 2, 0x7f);
    pub(crate) const TF32: Self = Self {
        padding: 13,
        ..Self::ieee(8, 10, 0x7fff_e000)
    };
    pub(crate) const E4M3: Self = Self {
        special: Special::OnlyNan,
        ..Self::ieee(4, 3, 0x7f)
    };
    pub(crate) const E2M1: Self = Self::finite(2, 1);
    pub(crate) const E2M3: Self = Self::finite(2, 3);
    pub(crate) const E3M2: Self = Self::finite(3, 2);

    const fn ieee(exponent_bits: u32, fraction_bits: u32, nan: u64) -> Self {
        Self {
            exponent_bits,
            fraction_bits,
            special: Special::Ieee,
            nan,
            padding: 0,
        }
    }

    /// A format whose every code is finite; NaN becomes its largest number, as in PTX `cvt`.
    const fn finite(exponent_bits: u32, fraction_bits: u32) -> Self {
        Self {
            exponent_bits,
            fraction_bits,
            special: Special::None,
            nan: (1 << (exponent_bits + fraction_bits)) - 1,
            padding: 0,
        }
    }

    const fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    const fn sign_shift(&self) -> u32 {
        self.exponent_bits + self.fraction_bits
    }

    /// The largest finite magnitude, without padding.
    const fn max_magnitude(&self) -> u64 {
        let all = (1 << self.sign_shift()) - 1;
        match self.special {
            Special::Ieee => all - (1 << self.fraction_bits),
            Special::OnlyNan => all - 1,
            Special::None => all,
        }
    }

    const fn infinity(&self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    /// The NaN of this format with the sign and the leading payload of another format's NaN,
    /// made quiet: what conversions to and from f64 do.
    pub(crate) fn nan_like(&self, source: Self, bits: u64) -> u64 {
        let negative = bits >> source.sign_shift() & 1;
        let fraction = bits & ((1 << source.fraction_bits) - 1);
        let payload = match source.fraction_bits > self.fraction_bits {
            true => fraction >> (source.fraction_bits - self.fraction_bits),
            false => fraction << (self.fraction_bits - source.fraction_bits),
        };
        let quiet = 1 << (self.fraction_bits - 1);
        negative << self.sign_shift() | self.infinity() | quiet | payload
    }

    /// The bits the hardware writes for NaN in this format.
    pub(crate) const fn canonical_nan(&self) -> u64 {
        self.nan
    }

    /// The exact value of a code. Bits above the format are ignored.
    pub(crate) fn decode(&self, bits: u64) -> Value {
        let bits = bits >> self.padding;
        let negative = bits >> self.sign_shift() & 1 == 1;
        let magnitude = bits & ((1 << self.sign_shift()) - 1);
        match self.special {
            Special::Ieee if magnitude > self.infinity() => return Value::Nan,
            Special::Ieee if magnitude == self.infinity() => return Value::Infinite { negative },
            Special::OnlyNan if magnitude > self.max_magnitude() => return Value::Nan,
            _ => {}
        }
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let biased = (magnitude >> self.fraction_bits) as i32;
        let lowest = 1 - self.bias() - self.fraction_bits as i32;
        let (significand, exponent) = match biased {
            0 => (fraction, lowest),
            _ => (fraction | 1 << self.fraction_bits, lowest + biased - 1),
        };
        Value::Finite {
            negative,
            significand,
            exponent,
        }
    }

    /// Whether a value, rounded to the format's precision, is below its smallest normal number:
    /// what decides flushing to zero.
    pub(crate) fn is_tiny(&self, value: Value, rounding: Rounding) -> bool {
        // Rounded well inside the range, where no subnormal takes precision away.
        const UP: i32 = 16;
        match value {
            Value::Finite {
                negative,
                significand,
                exponent,
            } => {
                let raised = Value::Finite {
                    negative,
                    significand,
                    exponent: exponent + UP,
                };
                let magnitude = self.encode(raised, rounding, false) >> self.padding;
                let magnitude = magnitude & ((1 << self.sign_shift()) - 1);
                magnitude < (1 + UP as u64) << self.fraction_bits
            }
            Value::Nan | Value::Infinite { .. } => false,
        }
    }

    /// Rounds a value into the format. `saturate` turns overflow (and infinity) into the largest
    /// finite number of the same sign, as `.satfinite` does.
    pub(crate) fn encode(&self, value: Value, rounding: Rounding, saturate: bool) -> u64 {
        let (negative, magnitude) = match value {
            Value::Nan => return self.nan,
            Value::Infinite { negative } => (negative, self.infinite(saturate)),
            Value::Finite {
                negative,
                significand,
                exponent,
            } => {
                let rounded = self.round(negative, significand, exponent, rounding);
                let fits = rounded <= self.max_magnitude();
                let keeps_finite = match rounding {
                    Rounding::NearestEven | Rounding::NearestAway | Rounding::Stochastic(_) => {
                        false
                    }
                    Rounding::Zero => true,
                    Rounding::Down => !negative,
                    Rounding::Up => negative,
                };
                let magnitude = match fits {
                    true => rounded,
                    false => self.infinite(saturate || keeps_finite),
                };
                (negative, magnitude)
            }
        };
        (u64::from(negative) << self.sign_shift() | magnitude) << self.padding
    }

    fn infinite(&self, saturate: bool) -> u64 {
        match self.special {
            Special::Ieee if !saturate => self.infinity(),
            _ => self.max_magnitude(),
        }
    }

    /// The magnitude code nearest to `significand * 2^exponent`, possibly beyond the largest.
    fn round(&self, negative: bool, significand: u64, exponent: i32, rounding: Rounding) -> u64 {
        if significand == 0 {
            return 0;
        }
        let lead = significand.leading_zeros();
        let significand = significand << lead;
        let exponent = exponent + 63 - lead as i32;
        let lowest = 1 - self.bias();
        let below = (lowest - exponent).max(0) as u32;
        let dropped = 63 - self.fraction_bits + below;
        let kept = significand.checked_shr(dropped).unwrap_or(0);
        let rest = match dropped {
            0..64 => significand << (64 - dropped),
            // What falls below 64 bits only matters as not being zero.
            _ => significand >> (dropped - 64).min(63) | u64::from(dropped > 64),
        };
        let up = rounding.rounds_up(negative, kept & 1 == 1, rest);
        let base = (exponent - lowest).max(0) as u64;
        // A normal `kept` carries its leading one, which the exponent field absorbs by addition;
        // so does the carry of a rounding that reaches the next power of two.
        (base << self.fraction_bits) + kept + u64::from(up)
    }
}

impl Rounding {
    /// Whether a magnitude is increased, given the discarded part scaled so that half is 2^63.
    fn rounds_up(self, negative: bool, odd: bool, rest: u64) -> bool {
        const HALF: u64 = 1 << 63;
        match self {
            Self::NearestEven => rest > HALF || (rest == HALF && odd),
            Self::NearestAway => rest >= HALF,
            Self::Zero => false,
            Self::Down => negative && rest != 0,
            Self::Up => !negative && rest != 0,
            Self::Stochastic(bits) => rest.checked_add(u64::from(bits) << 48).is_none(),
        }
    }
}

/// A real number, exactly, or what is not one. A finite value is `significand * 2^exponent`;
/// producers of inexact results keep 64 bits and set the lowest if anything was lost below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Nan,
    Infinite {
        negative: bool,
    },
    Finite {
        negative: bool,
        significand: u64,
        exponent: i32,
    },
}

impl Value {
    /// An integer as a value.
    pub(crate) fn integer(negative: bool, magnitude: u64) -> Self {
        Self::Finite {
            negative,
            significand: magnitude,
            exponent: 0,
        }
    }

    pub(crate) fn is_nan(self) -> bool {
        self == Self::Nan
    }

    pub(crate) fn is_negative(self) -> bool {
        match self {
            Self::Nan => false,
            Self::Infinite { negative } | Self::Finite { negative, .. } => negative,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Self::Finite { significand: 0, .. })
    }

    /// The same magnitude with the other sign; NaN stays NaN.
    #[must_use]
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Nan => Self::Nan,
            Self::Infinite { negative } => Self::Infinite {
                negative: !negative,
            },
            Self::Finite {
                negative,
                significand,
                exponent,
            } => Self::Finite {
                negative: !negative,
                significand,
                exponent,
            },
        }
    }

    /// Rounds to an integer; `None` for NaN and infinity. The magnitude saturates at `u64::MAX`.
    pub(crate) fn to_integer(self, rounding: Rounding) -> Option<(bool, u64)> {
        let Self::Finite {
            negative,
            significand,
            exponent,
        } = self
        else {
            return None;
        };
        if exponent >= 0 {
            let fits = significand == 0 || significand.leading_zeros() as i32 >= exponent;
            let magnitude = match (significand, fits) {
                (0, _) => 0,
                (_, true) => significand << exponent,
                (_, false) => u64::MAX,
            };
            return Some((negative, magnitude));
        }
        let dropped = exponent.unsigned_abs();
        let kept = significand.checked_shr(dropped).unwrap_or(0);
        let rest = match dropped {
            0..64 => significand << (64 - dropped),
            64 => significand,
            _ => u64::from(significand != 0),
        };
        let up = rounding.rounds_up(negative, kept & 1 == 1, rest);
        Some((negative, kept + u64::from(up)))
    }
}
