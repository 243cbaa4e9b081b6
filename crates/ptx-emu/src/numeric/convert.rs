//! `cvt`, one lane at a time, for every pair of types.

use super::arith::flush_f32;
use super::{Format, Rounding, Value};

/// The modifiers of a conversion into a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Cvt {
    pub rounding: Rounding,
    /// `.ftz`: f32 subnormals on either side become zero.
    pub ftz: bool,
    /// `.sat`: clamp to [0, 1], NaN becomes +0.
    pub sat: bool,
    /// `.satfinite`: beyond the largest number becomes the largest number.
    pub satfinite: bool,
    /// `.relu`: negative numbers become +0, NaN stays.
    pub relu: bool,
}

/// An integer type of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Integer {
    /// 8, 16, 32 or 64.
    pub bits: u32,
    pub signed: bool,
}

impl Integer {
    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// The number a register of this type holds. Bits above the type are ignored.
    pub(crate) fn decode(self, register: u64) -> i128 {
        let raw = register & self.mask();
        let negative = self.signed && raw >> (self.bits - 1) & 1 == 1;
        i128::from(raw) - if negative { 1 << self.bits } else { 0 }
    }

    fn range(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    fn clamp(self, value: i128) -> u64 {
        let (low, high) = self.range();
        value.clamp(low, high) as u64 & self.mask()
    }
}

fn source(from: Format, bits: u64, ftz: bool) -> Value {
    match ftz && from == Format::F32 {
        true => from.decode(u64::from(flush_f32(bits as u32))),
        false => from.decode(bits),
    }
}

fn target(to: Format, value: Value, cvt: Cvt) -> u64 {
    let value = match value {
        Value::Nan if cvt.sat => Value::integer(false, 0),
        v if (cvt.relu || cvt.sat) && v.is_negative() => Value::integer(false, 0),
        v => v,
    };
    let bits = to.encode(value, cvt.rounding, cvt.satfinite);
    let bits = match cvt.sat {
        true => bits.min(to.encode(Value::integer(false, 1), Rounding::Zero, false)),
        false => bits,
    };
    match cvt.ftz && to == Format::F32 {
        true => u64::from(flush_f32(bits as u32)),
        false => bits,
    }
}

/// Float to float, whatever the two formats.
pub(crate) fn float_to_float(from: Format, to: Format, bits: u64, cvt: Cvt) -> u64 {
    match source(from, bits, cvt.ftz) {
        Value::Nan if !cvt.sat => nan(from, to, bits, cvt),
        value => target(to, value, cvt),
    }
}

/// What becomes of a NaN. The narrow formats have one; f64 keeps sign and payload, and the
/// conversions that only move bits move those of a NaN too.
fn nan(from: Format, to: Format, bits: u64, cvt: Cvt) -> u64 {
    match (from, to) {
        (Format::F32, Format::F64) if cvt.ftz => to.nan_like(from, Format::F32.canonical_nan()),
        (_, Format::F64) | (Format::F64, Format::F32 | Format::F16 | Format::BF16) => {
            to.nan_like(from, bits)
        }
        (Format::BF16, Format::F32) => (bits & 0xffff) << 16,
        (Format::F32, Format::TF32) if cvt.rounding == Rounding::NearestAway => {
            let truncated = bits & 0xffff_e000;
            if cvt.satfinite {
                truncated - 0x2000
            } else {
                truncated
            }
        }
        _ => to.canonical_nan(),
    }
}

/// `cvt.rni.f32.f32` and its kin: rounds to an integer in the same (or another) float format.
/// The sign of zero is that of the operand.
pub(crate) fn round_to_integral(
    from: Format,
    to: Format,
    bits: u64,
    integer: Rounding,
    cvt: Cvt,
) -> u64 {
    let value = source(from, bits, cvt.ftz);
    let whole = match value {
        // From 2^52 on every float is whole already, and may not fit 64 bits.
        Value::Finite { exponent, .. } if exponent >= 0 => value,
        _ => match value.to_integer(integer) {
            Some((negative, magnitude)) => Value::integer(negative, magnitude),
            None if value.is_nan() => return float_to_float(from, to, bits, cvt),
            None => value,
        },
    };
    target(to, whole, cvt)
}

/// Float to integer. Out of range saturates; NaN is zero for conversions of at most 32 bits and
/// otherwise the one with only the top bit set.
pub(crate) fn float_to_int(
    from: Format,
    to: Integer,
    bits: u64,
    rounding: Rounding,
    ftz: bool,
) -> u64 {
    let value = source(from, bits, ftz);
    match (value, value.to_integer(rounding)) {
        (Value::Nan, _) if from == Format::F64 || to.bits == 64 => 1 << (to.bits - 1),
        (Value::Nan, _) => 0,
        (_, Some((negative, magnitude))) => {
            let magnitude = i128::from(magnitude);
            to.clamp(if negative { -magnitude } else { magnitude })
        }
        (infinite, None) => {
            let (low, high) = to.range();
            to.clamp(if infinite.is_negative() { low } else { high })
        }
    }
}

/// Integer to float.
pub(crate) fn int_to_float(from: Integer, to: Format, register: u64, cvt: Cvt) -> u64 {
    let number = from.decode(register);
    target(
        to,
        Value::integer(number < 0, number.unsigned_abs() as u64),
        cvt,
    )
}

/// Integer to integer: extends or truncates, or clamps with `sat`. A destination narrower than
/// its register is extended by its own sign, as `cvt` into a wide register does.
pub(crate) fn int_to_int(from: Integer, to: Integer, register: u64, sat: bool) -> u64 {
    let number = from.decode(register);
    let bits = match sat {
        true => to.clamp(number),
        false => number as u64 & to.mask(),
    };
    to.decode(bits) as u64
}

/// Bits per element in the packed pairs of `cvt`: 4 for e2m1, a byte for the other small formats.
fn pair_width(format: Format) -> u32 {
    match format {
        Format::E2M1 => 4,
        Format::E4M3 | Format::E5M2 | Format::E2M3 | Format::E3M2 => 8,
        _ => 16,
    }
}

/// `cvt.*x2.f32 d, high, low`: the first operand goes to the upper half.
pub(crate) fn pair_from_f32(to: Format, high: u32, low: u32, cvt: Cvt) -> u32 {
    let one = |x: u32| float_to_float(Format::F32, to, u64::from(x), cvt) as u32;
    one(high) << pair_width(to) | one(low)
}

/// `cvt.rs`: two or four singles, the first of which goes to the top. Of `random`, halves take the
/// half word of their place (f16 as many bits as it discards), and bytes share one for two. The
/// nibbles of e2m1 share the upper or the lower bytes of both half words.
pub(crate) fn stochastic(to: Format, singles: &[u32], random: u32, cvt: Cvt) -> u32 {
    let [low, high] = [random & 0xffff, random >> 16];
    let each = singles.len() / 2;
    let one = |(place, &single): (usize, &u32)| {
        let upper = place < each;
        let bits = match (to, upper) {
            (Format::F16, true) => high << 3,
            (Format::F16, false) => low << 3,
            (Format::E2M1, true) => (high & 0xff00) | low >> 8,
            (Format::E2M1, false) => (high & 0xff) << 8 | (low & 0xff),
            (_, true) => high,
            (_, false) => low,
        };
        let rounding = Rounding::Stochastic(bits as u16);
        float_to_float(Format::F32, to, u64::from(single), Cvt { rounding, ..cvt }) as u32
    };
    let codes = singles.iter().enumerate().map(one);
    codes.fold(0, |packed, code| packed << pair_width(to) | code)
}

/// `cvt.*x2.f16x2`, `cvt.f16x2.e4m3x2` and every other pair to pair.
pub(crate) fn pair_to_pair(from: Format, to: Format, pair: u32, cvt: Cvt) -> u32 {
    let width = pair_width(from);
    let one = |x: u32| {
        let bits = u64::from(x & ((1 << width) - 1));
        float_to_float(from, to, bits, cvt) as u32
    };
    one(pair >> width) << pair_width(to) | one(pair)
}

/// A scale of `cvt.scaled::n2::ue8m0`: a power of two to multiply by, or NaN.
fn powered(value: Value, scale: u8, divide: bool) -> Value {
    let power = i32::from(scale) - 127;
    match value {
        _ if scale == 0xff => Value::Nan,
        Value::Finite {
            negative,
            significand,
            exponent,
        } => Value::Finite {
            negative,
            significand,
            exponent: exponent + if divide { -power } else { power },
        },
        other => other,
    }
}

/// A pair of narrow floats, or of s2f6, times a scale each, as bf16.
pub(crate) fn scaled_to_bf16(from: Option<Format>, pair: u32, scales: u32, cvt: Cvt) -> u32 {
    let width = from.map_or(8, pair_width);
    let one = |code: u32, scale: u32| {
        let value = match from {
            Some(format) => format.decode(u64::from(code & ((1 << width) - 1))),
            None => s2f6(code as u8),
        };
        target(Format::BF16, powered(value, scale as u8, false), cvt) as u32
    };
    one(pair >> width, scales >> 8) << 16 | one(pair, scales)
}

/// Eight bits of fixed point, six of them behind the point.
fn s2f6(code: u8) -> Value {
    let number = i64::from(code as i8);
    Value::Finite {
        negative: number < 0,
        significand: number.unsigned_abs(),
        exponent: -6,
    }
}

/// `cvt.rn.satfinite.s2f6x2`, one element divided by its scale: at most 127/64, whatever its sign,
/// and NaN the largest.
pub(crate) fn to_s2f6(from: Format, bits: u64, scale: u8, relu: bool) -> u8 {
    const MOST: u64 = 127;
    let value = powered(powered(from.decode(bits), scale, true), 127 + 6, false);
    if value.is_nan() {
        return MOST as u8;
    }
    let (negative, magnitude) = value
        .to_integer(Rounding::NearestEven)
        .unwrap_or((value.is_negative(), MOST));
    let magnitude = magnitude.min(MOST) as u8;
    match (negative, relu) {
        (false, _) => magnitude,
        (true, true) => 0,
        (true, false) => magnitude.wrapping_neg(),
    }
}

/// `cvt.ue8m0x2.f32`, one element: the power of two at or around the magnitude.
/// `rounding` is `Zero` or `Up`; NaN is 0xff.
pub(crate) fn ue8m0_from_f32(x: u32, rounding: Rounding) -> u8 {
    let magnitude = x & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0xff;
    }
    let exponent = magnitude >> 23;
    let fraction = magnitude & 0x7f_ffff;
    let up = match exponent {
        // Below the smallest normal: 2^-127 is fraction 0x40_0000.
        0 => fraction > 0x40_0000,
        _ => fraction != 0,
    };
    (exponent + u32::from(up && rounding == Rounding::Up)).min(254) as u8
}

/// `cvt.bf16x2.ue8m0x2`, one element: 2^(code − 127), exact.
pub(crate) fn bf16_from_ue8m0(code: u8) -> u16 {
    match code {
        0 => 0x0040,
        0xff => super::NAN_F16,
        _ => u16::from(code) << 7,
    }
}

#[cfg(test)]
mod tests;
