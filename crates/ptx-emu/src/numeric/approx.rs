//! The `.approx` functions.
//!
//! The hardware promises an error bound, not bits. Most of these are the correctly rounded or nearly
//! correctly rounded results, as an H200's are but for an ulp or two. Where it is further off, these
//! are as far off: halves are truncated, and `tanh.approx.f32` has 17 bits. Special values are exact.

use super::arith::{canonical_f32, canonical_f64, flush_f32};
use super::halves::Half;

#[inline(always)]
fn unary(x: u32, ftz: bool, f: impl Fn(f64) -> f64) -> u32 {
    let x = if ftz { flush_f32(x) } else { x };
    let y = canonical_f32(f(f64::from(f32::from_bits(x))) as f32);
    if ftz { flush_f32(y) } else { y }
}

/// As [`unary`] for what f32 itself rounds correctly.
#[inline(always)]
fn unary32(x: u32, ftz: bool, f: impl Fn(f32) -> f32) -> u32 {
    let x = if ftz { flush_f32(x) } else { x };
    let y = canonical_f32(f(f32::from_bits(x)));
    if ftz { flush_f32(y) } else { y }
}

/// `ex2.approx.f32`. The one formulation both the scalar and the warp-wide version use.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    // Beyond the reach the result is 0 or infinity; the clamp keeps the exponent arithmetic in range.
    let clamped = f64::from(x.clamp(-EXP2_REACH, EXP2_REACH));
    let shifted = clamped + SHIFTER;
    let fraction = clamped - (shifted - SHIFTER);
    let power = shifted.to_bits() << 52;
    let mantissa = exp2_fraction(fraction);
    let scaled = f64::from_bits(mantissa.to_bits().wrapping_add(power));
    // A clamp does not keep NaN on every path of the vectoriser, so it is put back here.
    if x.is_nan() {
        f32::from_bits(super::NAN_F32)
    } else {
        scaled as f32
    }
}

/// The Taylor series of 2^f.
pub(crate) const EXP2: [f64; 10] = {
    let mut c = [1.0; 10];
    let mut i = 1;
    while i < 10 {
        c[i] = c[i - 1] * std::f64::consts::LN_2 / i as f64;
        i += 1;
    }
    c
};

/// Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
pub(crate) const SHIFTER: f64 = 6_755_399_441_055_744.0;

/// Powers beyond are 0 or infinity.
pub(crate) const EXP2_REACH: f32 = 200.0;

/// 2^f for |f| ≤ ½ by the Taylor series of degree 9: relative error below 2^-36. Machine code
/// takes the same steps.
#[inline(always)]
fn exp2_fraction(f: f64) -> f64 {
    const C: [f64; 10] = EXP2;
    // Estrin's scheme: short dependency chains keep the vector units busy.
    let f2 = f * f;
    let f4 = f2 * f2;
    let low = (C[0] + C[1] * f) + (C[2] + C[3] * f) * f2;
    let mid = (C[4] + C[5] * f) + (C[6] + C[7] * f) * f2;
    let high = C[8] + C[9] * f;
    low + (mid + high * f4) * f4
}

/// `ex2.approx{.ftz}.f32`
#[inline(always)]
pub(crate) fn ex2_f32(x: u32, ftz: bool) -> u32 {
    let y = exp2(f32::from_bits(x)).to_bits();
    if ftz { flush_f32(y) } else { y }
}

/// `lg2.approx{.ftz}.f32`: −∞ at zero, NaN below.
pub(crate) fn lg2_f32(x: u32, ftz: bool) -> u32 {
    unary(x, ftz, f64::log2)
}

/// `sin.approx{.ftz}.f32`: NaN at infinity.
pub(crate) fn sin_f32(x: u32, ftz: bool) -> u32 {
    unary(x, ftz, f64::sin)
}

/// `cos.approx{.ftz}.f32`: NaN at infinity.
pub(crate) fn cos_f32(x: u32, ftz: bool) -> u32 {
    unary(x, ftz, f64::cos)
}

/// From here on an H200 approximates tanh; below, it is its operand.
const TANH_FROM: f32 = 1.0078125 / 256.0;

/// From here on it is one.
const TANH_ONE: f32 = 8.0;

/// `tanh.approx.f32`: an H200 is off by 2^-16.7 (the ISA allows 2^-11), this by 2^-17.
pub(crate) fn tanh_f32(x: u32) -> u32 {
    const DROPPED: u32 = 7;
    tanh_by_ranges(x, |exact| {
        (exact + (1 << (DROPPED - 1))) >> DROPPED << DROPPED
    })
}

/// tanh, of which `approximate` makes what the middle range gives.
fn tanh_by_ranges(x: u32, approximate: impl Fn(u32) -> u32) -> u32 {
    let operand = f32::from_bits(x);
    match operand.abs() {
        small if small < TANH_FROM => x,
        large if large >= TANH_ONE => 1f32.copysign(operand).to_bits(),
        _ => match unary(x, false, f64::tanh) {
            exact if operand.is_nan() => exact,
            exact => approximate(exact),
        },
    }
}

/// `rcp.approx{.ftz}.f32`
#[inline(always)]
pub(crate) fn rcp_f32(x: u32, ftz: bool) -> u32 {
    unary32(x, ftz, |x| 1.0 / x)
}

/// `sqrt.approx{.ftz}.f32`
#[inline(always)]
pub(crate) fn sqrt_f32(x: u32, ftz: bool) -> u32 {
    unary32(x, ftz, f32::sqrt)
}

/// `rsqrt.approx{.ftz}.f32`: infinity of the operand's sign at zero, NaN below.
#[inline(always)]
pub(crate) fn rsqrt_f32(x: u32, ftz: bool) -> u32 {
    unary(x, ftz, |x| 1.0 / x.sqrt())
}

/// `div.approx{.ftz}.f32`. A divisor above 2^126 has no normal reciprocal and gives zero (NaN for
/// an infinite dividend); a subnormal one is scaled first, unless flushed.
#[inline(always)]
pub(crate) fn div_approx_f32(a: u32, b: u32, ftz: bool) -> u32 {
    const LARGEST_DIVISOR: u32 = 0x7e80_0000;
    let (a, b) = match ftz {
        true => (flush_f32(a), flush_f32(b)),
        false => (a, b),
    };
    let quotient = match b & 0x7fff_ffff > LARGEST_DIVISOR {
        true => f32::from_bits(a) * f32::from_bits(flush_f32(rcp_f32(b, ftz))),
        false => f32::from_bits(a) / f32::from_bits(b),
    };
    let y = canonical_f32(quotient);
    if ftz { flush_f32(y) } else { y }
}

/// `div.full{.ftz}.f32`: right to 2 ulp over the whole range; here, correctly rounded.
#[inline(always)]
pub(crate) fn div_full_f32(a: u32, b: u32, ftz: bool) -> u32 {
    let (a, b) = match ftz {
        true => (flush_f32(a), flush_f32(b)),
        false => (a, b),
    };
    let y = canonical_f32(f32::from_bits(a) / f32::from_bits(b));
    if ftz { flush_f32(y) } else { y }
}

/// Only the upper word of an f64 takes part in its approximations; subnormals flush. Whether it
/// is a NaN is also decided by that word.
fn upper_f64(x: u64, f: impl Fn(f64) -> f64) -> u64 {
    const UPPER: u64 = 0xffff_ffff_0000_0000;
    let flush = |x: u64| match x & 0x7ff0_0000_0000_0000 {
        0 => x & 1 << 63,
        _ => x & UPPER,
    };
    let y = f(f64::from_bits(flush(x)));
    match y.is_nan() {
        true => 0x7fff_ffff_0000_0000,
        false => flush(y.to_bits()),
    }
}

/// `rcp.approx.ftz.f64`
pub(crate) fn rcp_f64(x: u64) -> u64 {
    upper_f64(x, |x| 1.0 / x)
}

/// `rsqrt.approx.ftz.f64`
pub(crate) fn rsqrt_f64(x: u64) -> u64 {
    upper_f64(x, |x| 1.0 / x.sqrt())
}

/// `rsqrt.approx.f64` without `.ftz`: a whole routine, right to an ulp or so.
pub(crate) fn rsqrt_full_f64(x: u64) -> u64 {
    let x = f64::from_bits(x);
    canonical_f64(1.0 / x.sqrt())
}

/// `ex2.approx.f16` and `ex2.approx.ftz.bf16`, bit for bit as an H200 has them. Powers of less than
/// 2^-23 are one.
pub(crate) fn ex2_half(kind: Half, x: u16) -> u16 {
    let power = kind.widen(x);
    match power.abs() < f32::EPSILON {
        true => kind.narrow(1.0),
        false => kind.truncate(exp2(power), kind == Half::Bf16),
    }
}

/// `tanh.approx.f16` and `tanh.approx.bf16`: but for an ulp of one in four thousand operands as an H200
/// has them.
pub(crate) fn tanh_half(kind: Half, x: u16) -> u16 {
    let exact = tanh_by_ranges(kind.widen(x).to_bits(), |exact| exact);
    kind.truncate(f32::from_bits(exact), false)
}

#[cfg(test)]
mod tests {
    use super::super::NAN_F32;
    use super::*;

    const INF: u32 = 0x7f80_0000;
    const MINUS: u32 = 0x8000_0000;

    #[test]
    fn special_values_are_exact() {
        assert_eq!(ex2_f32(INF, false), INF);
        assert_eq!(ex2_f32(INF | MINUS, false), 0);
        assert_eq!(ex2_f32(MINUS, false), 1f32.to_bits());
        assert_eq!(ex2_f32(0xffc0_0000, true), NAN_F32);
        assert_eq!(ex2_f32((-130f32).to_bits(), true), 0);
        assert_eq!(ex2_f32((-130f32).to_bits(), false), 1 << 19);
        assert_eq!(lg2_f32(0, false), INF | MINUS);
        assert_eq!(lg2_f32((-1f32).to_bits(), false), NAN_F32);
        assert_eq!(rcp_f32(MINUS, false), INF | MINUS);
        assert_eq!(rcp_f32(1, true), INF);
        assert_eq!(rsqrt_f32(MINUS, false), INF | MINUS);
        assert_eq!(sin_f32(INF, false), NAN_F32);
        assert_eq!(div_approx_f32(1f32.to_bits(), 0x7f00_0001, false), 0);
        assert_eq!(div_approx_f32(INF, 0x7f00_0001, false), NAN_F32);
        assert_eq!(div_approx_f32(1, 1, false), 1f32.to_bits());
        assert_eq!(div_approx_f32(0, 1, true), NAN_F32);
        assert_eq!(rcp_f64(2f64.to_bits()), 0.5f64.to_bits());
        assert_eq!(rcp_f64(0x7ff0_0000_0000_0001), 0);
    }

    #[test]
    fn tanh_is_as_far_off_as_the_card_is() {
        let off = |x: f32| {
            let exact = f64::from(x).tanh();
            (f64::from(f32::from_bits(tanh_f32(x.to_bits()))) / exact - 1.0).abs()
        };
        let worst = (1..80_000)
            .map(|i| off(i as f32 * 1e-4))
            .fold(0.0, f64::max);
        assert!((-18.0..-16.0).contains(&worst.log2()), "{}", worst.log2());
        // As an H200 gave them.
        for (x, card) in [
            (-8.106_400_5_f32, 0xbf80_0000),
            (3.391_853_3e-3, 0x3b5e_49db),
            (1e-8, 1e-8f32.to_bits()),
        ] {
            assert_eq!(tanh_f32(x.to_bits()), card, "{x}");
        }
        assert_eq!(tanh_f32(MINUS), MINUS);
        assert_eq!(tanh_f32(0xffc0_0000), NAN_F32);
        // Halves are cut off: tanh(1) is 0.76159.
        assert_eq!(tanh_half(Half::F16, 0x3c00), 0x3a17);
        assert_eq!(ex2_half(Half::F16, 0x3800), 0x3da8);
    }

    #[test]
    fn exponentials_are_within_the_hardware_bound() {
        for i in -1_500_000..1_279_990i32 {
            let x = i as f32 * 1e-4;
            let (got, want) = (f64::from(exp2(x)), f64::from(x).exp2());
            assert!(
                (got - want).abs() <= want * 2f64.powi(-23) + 1e-45,
                "{x} {got} {want}"
            );
        }
    }
}
