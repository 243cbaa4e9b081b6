//! Arithmetic on f32 and f64 with every rounding mode, `.ftz` and `.sat`.
//!
//! Round-to-nearest is the host's; directed rounding goes through [`soft`].

use super::{FloatMode, Format, NAN_F32, NAN_F64, Rounding, Value, soft};

/// Zero of the same sign for a subnormal f32, anything else as it is.
#[inline(always)]
pub(crate) fn flush_f32(x: u32) -> u32 {
    match x & 0x7f80_0000 {
        0 => x & 0x8000_0000,
        _ => x,
    }
}

/// The canonical NaN for any NaN.
#[inline(always)]
pub(crate) fn canonical_f32(x: f32) -> u32 {
    match x.is_nan() {
        true => NAN_F32,
        false => x.to_bits(),
    }
}

/// The NaN of an invalid operation for any NaN.
#[inline]
pub(crate) fn canonical_f64(x: f64) -> u64 {
    match x.is_nan() {
        true => NAN_F64,
        false => x.to_bits(),
    }
}

/// The first NaN among operands, made quiet: what an f64 instruction passes on.
#[inline]
fn passed_nan<const N: usize>(operands: [u64; N]) -> Option<u64> {
    const QUIET: u64 = 1 << 51;
    let nan = |x: &u64| f64::from_bits(*x).is_nan();
    operands.into_iter().find(nan).map(|x| x | QUIET)
}

/// `neg.f32`
#[inline(always)]
pub(crate) fn neg_f32(x: u32, ftz: bool) -> u32 {
    let x = if ftz { flush_f32(x) } else { x };
    canonical_f32(-f32::from_bits(x))
}

/// `abs.f32`
#[inline(always)]
pub(crate) fn abs_f32(x: u32, ftz: bool) -> u32 {
    let x = if ftz { flush_f32(x) } else { x };
    canonical_f32(f32::from_bits(x).abs())
}

/// `neg.f64`: NaN keeps its sign.
pub(crate) fn neg_f64(x: u64) -> u64 {
    passed_nan([x]).unwrap_or(x ^ 1 << 63)
}

/// `abs.f64`: NaN keeps its sign.
pub(crate) fn abs_f64(x: u64) -> u64 {
    passed_nan([x]).unwrap_or(x & !(1 << 63))
}

#[inline]
fn operand(x: u32, mode: FloatMode) -> u32 {
    if mode.ftz { flush_f32(x) } else { x }
}

/// Flushes and clamps a rounded result. The hardware decides by the result rounded as if there
/// were no subnormals, so some that come out as the smallest normal number go too; `exact` is
/// asked only about that one.
#[inline]
fn result(x: u32, mode: FloatMode, exact: impl FnOnce() -> Value) -> u32 {
    const SMALLEST_NORMAL: u32 = 0x0080_0000;
    let x = match (mode.ftz, x & 0x7fff_ffff) {
        (true, SMALLEST_NORMAL) if Format::F32.is_tiny(exact(), mode.rounding) => x & 0x8000_0000,
        (true, _) => flush_f32(x),
        (false, _) => x,
    };
    if mode.sat { saturate_f32(x) } else { x }
}

/// `.sat`: clamps to [0, 1]; NaN and negative numbers become +0.
#[inline]
pub(crate) fn saturate_f32(x: u32) -> u32 {
    let value = f32::from_bits(x);
    if value >= 1.0 {
        1f32.to_bits()
    } else if value > 0.0 {
        x
    } else {
        0
    }
}

fn f32_of(value: Value, mode: FloatMode) -> u32 {
    Format::F32.encode(value, mode.rounding, false) as u32
}

fn value32(x: u32) -> Value {
    Format::F32.decode(u64::from(x))
}

fn value64(x: u64) -> Value {
    Format::F64.decode(x)
}

macro_rules! float32 {
    ($(#[$doc:meta])* $name:ident($($arg:ident),+), $near:expr, $exact:expr) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name($($arg: u32),+, mode: FloatMode) -> u32 {
            $(let $arg = operand($arg, mode);)+
            let exact = || {
                $(let $arg = value32($arg);)+
                $exact(mode.rounding)
            };
            let bits = match mode.rounding {
                Rounding::NearestEven => {
                    $(let $arg = f32::from_bits($arg);)+
                    canonical_f32($near)
                }
                _ => f32_of(exact(), mode),
            };
            result(bits, mode, exact)
        }
    };
}

/// The operands in brackets are in the order in which their NaNs are passed on.
macro_rules! float64 {
    ($(#[$doc:meta])* $name:ident($($arg:ident),+) passes [$($nan:ident),+], $near:expr, $exact:expr) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name($($arg: u64),+, rounding: Rounding) -> u64 {
            if let Some(nan) = passed_nan([$($nan),+]) {
                return nan;
            }
            match rounding {
                Rounding::NearestEven => {
                    $(let $arg = f64::from_bits($arg);)+
                    canonical_f64($near)
                }
                rounding => {
                    $(let $arg = value64($arg);)+
                    Format::F64.encode($exact(rounding), rounding, false)
                }
            }
        }
    };
}

float32!(/// `add.f32`
    add_f32(a, b), a + b, |r| soft::add(a, b, r));
float32!(/// `sub.f32`
    sub_f32(a, b), a - b, |r| soft::add(a, b.negated(), r));
float32!(/// `mul.f32`
    mul_f32(a, b), a * b, |_| soft::mul(a, b));
float32!(/// `fma.f32`
    fma_f32(a, b, c), a.mul_add(b, c), |r| soft::fma(a, b, c, r));
float32!(/// `div.rnd.f32`
    div_f32(a, b), a / b, |_| soft::div(a, b));
float32!(/// `rcp.rnd.f32`
    rcp_f32(a), 1.0 / a, |_| soft::div(Value::integer(false, 1), a));
float32!(/// `sqrt.rnd.f32`
    sqrt_f32(a), a.sqrt(), |_| soft::sqrt(a));

float64!(/// `add.f64`
    add_f64(a, b) passes [b, a], a + b, |r| soft::add(a, b, r));
float64!(/// `sub.f64`
    sub_f64(a, b) passes [b, a], a - b, |r| soft::add(a, b.negated(), r));
float64!(/// `mul.f64`
    mul_f64(a, b) passes [b, a], a * b, |_| soft::mul(a, b));
float64!(/// `fma.f64`
    fma_f64(a, b, c) passes [b, c, a], a.mul_add(b, c), |r| soft::fma(a, b, c, r));
float64!(/// `div.f64`
    div_f64(a, b) passes [a, b], a / b, |_| soft::div(a, b));
float64!(/// `rcp.f64`
    rcp_f64(a) passes [a], 1.0 / a, |_| soft::div(Value::integer(false, 1), a));
float64!(/// `sqrt.f64`
    sqrt_f64(a) passes [a], a.sqrt(), |_| soft::sqrt(a));

/// f64 addition by the L2 cache, for atomics and bulk reductions: a NaN passes as it is.
pub(crate) fn add_f64_in_l2(old: u64, operand: u64) -> u64 {
    let nan = |x: &u64| f64::from_bits(*x).is_nan();
    match [operand, old].into_iter().find(nan) {
        Some(nan) => nan,
        None => add_f64(old, operand, Rounding::NearestEven),
    }
}

/// The modifiers of `min` and `max` on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Extremum {
    /// Take the larger instead of the smaller.
    pub max: bool,
    pub ftz: bool,
    /// `.NaN`: a NaN operand makes the result NaN; otherwise the number wins.
    pub nan: bool,
    /// `.xorsign.abs`: compare magnitudes, then sign by the exclusive or of the signs.
    pub xorsign_abs: bool,
}

impl Extremum {
    /// The chosen operand's magnitude order for a sign-magnitude code of `bits` width, by PTX's
    /// rules (−0 is below +0). `infinity` is the code of +∞ and `nan` the canonical NaN.
    pub(super) fn pick(self, a: u64, b: u64, bits: u32, infinity: u64, nan: u64) -> u64 {
        let sign = 1u64 << (bits - 1);
        let (left_nan, right_nan) = (a & !sign > infinity, b & !sign > infinity);
        if left_nan && right_nan || self.nan && (left_nan || right_nan) {
            return nan;
        }
        let (left, right) = match self.xorsign_abs {
            true => (a & !sign, b & !sign),
            false => (a, b),
        };
        let order = |x: u64| match x & sign {
            0 => (x + sign) as i128,
            _ => (sign - 1) as i128 - (x & !sign) as i128,
        };
        let chosen = match (left_nan, right_nan) {
            (true, _) => right,
            (_, true) => left,
            _ if (order(left) > order(right)) == self.max => left,
            _ => right,
        };
        match self.xorsign_abs {
            true => chosen | ((a ^ b) & sign),
            false => chosen,
        }
    }

    /// `min.f32` / `max.f32`
    pub(crate) fn f32(self, a: u32, b: u32) -> u32 {
        let (a, b) = match self.ftz {
            true => (flush_f32(a), flush_f32(b)),
            false => (a, b),
        };
        self.pick(a.into(), b.into(), 32, 0x7f80_0000, NAN_F32.into()) as u32
    }

    /// `min.f64` / `max.f64`
    pub(crate) fn f64(self, a: u64, b: u64) -> u64 {
        let nan = passed_nan([b, a]).unwrap_or(NAN_F64);
        self.pick(a, b, 64, 0x7ff0_0000_0000_0000, nan)
    }
}

/// `min.f32` / `max.f32` without modifiers, in a form vector units can do: the bits of a number
/// in the order of an integer, and a number wins over a NaN.
#[inline(always)]
pub(crate) fn nearer_f32(max: bool, a: u32, b: u32) -> u32 {
    const INFINITY: u32 = 0x7f80_0000;
    let is_nan = |x: u32| x & 0x7fff_ffff > INFINITY;
    let key = |x: u32| (x ^ ((x as i32 >> 31) as u32 >> 1)) as i32;
    let left = (key(a) > key(b)) == max;
    let number = if left { a } else { b };
    let number = if is_nan(a) { b } else { number };
    let number = if is_nan(b) { a } else { number };
    if is_nan(a) & is_nan(b) {
        NAN_F32
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIRECTED: [Rounding; 3] = [Rounding::Zero, Rounding::Down, Rounding::Up];

    fn mode(rounding: Rounding) -> FloatMode {
        FloatMode {
            rounding,
            ..FloatMode::default()
        }
    }

    proptest! {
        /// Products of two f32 are exact in f64, so the directed result is found by stepping.
        #[test]
        fn directed_products_bracket_the_exact_one(a in any::<u32>(), b in any::<u32>()) {
            let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
            prop_assume!(exact.is_finite());
            for rounding in DIRECTED {
                let got = f64::from(f32::from_bits(mul_f32(a, b, mode(rounding))));
                let next = |x: f64, up: bool| {
                    let x = x as f32;
                    f64::from(if up { x.next_up() } else { x.next_down() })
                };
                let down = rounding == Rounding::Down || (rounding == Rounding::Zero && exact > 0.0);
                if down {
                    prop_assert!(got <= exact && next(got, true) > exact);
                } else {
                    prop_assert!(got >= exact && next(got, false) < exact);
                }
            }
        }

        #[test]
        fn the_vector_form_of_extrema_is_the_plain_one(a in any::<u32>(), b in any::<u32>()) {
            let specials = [0, 1 << 31, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_0001];
            for max in [false, true] {
                let plain = Extremum { max, ..Extremum::default() };
                for x in specials.into_iter().chain([a, b]) {
                    for y in specials.into_iter().chain([b, a]) {
                        prop_assert_eq!(nearer_f32(max, x, y), plain.f32(x, y));
                    }
                }
            }
        }

        #[test]
        fn nearest_addition_agrees_with_the_soft_path(a in any::<u32>(), b in any::<u32>(), c in any::<u32>()) {
            let soft = Format::F32.encode(soft::fma(value32(a), value32(b), value32(c), Rounding::NearestEven), Rounding::NearestEven, false);
            prop_assert_eq!(u64::from(fma_f32(a, b, c, FloatMode::default())), soft);
        }
    }

    #[test]
    fn saturation_and_flushing_follow_the_operands() {
        let sat = FloatMode {
            sat: true,
            ..FloatMode::default()
        };
        assert_eq!(add_f32(NAN_F32, 0, sat), 0);
        assert_eq!(add_f32(2f32.to_bits(), 0, sat), 1f32.to_bits());
        let ftz = FloatMode {
            ftz: true,
            ..FloatMode::default()
        };
        assert_eq!(add_f32(1, 0x8000_0001, ftz), 0);
        assert_eq!(mul_f32(0x8000_0001, 1f32.to_bits(), ftz), 0x8000_0000);
        // Rounds up to the smallest normal, but was below it.
        assert_eq!(mul_f32(0x0080_0000, 0x3f7f_ffff, ftz), 0);
        assert_eq!(mul_f32(0x0080_0000, 1f32.to_bits(), ftz), 0x0080_0000);
    }

    #[test]
    fn doubles_pass_the_last_nan_on() {
        let (quiet, signalling) = (0xfff8_0000_0000_0003, 0x7ff0_0000_0000_0001);
        let near = Rounding::NearestEven;
        assert_eq!(add_f64(quiet, signalling, near), 0x7ff8_0000_0000_0001);
        assert_eq!(mul_f64(quiet, 0, near), quiet);
        assert_eq!(div_f64(quiet, signalling, near), quiet);
        assert_eq!(div_f64(0, 0, near), NAN_F64);
        assert_eq!(Extremum::default().f64(signalling, quiet), quiet);
        assert_eq!(abs_f64(quiet), quiet);
        assert_eq!(neg_f64(signalling), 0x7ff8_0000_0000_0001);
        assert_eq!(neg_f32(0xffc0_0000, false), NAN_F32);
    }

    #[test]
    fn extrema_prefer_numbers_and_order_the_zeros() {
        let min = Extremum::default();
        assert_eq!(min.f32(0, 0x8000_0000), 0x8000_0000);
        assert_eq!(min.f32(0x8000_0000, 0), 0x8000_0000);
        assert_eq!(min.f32(0xffc0_0000, 5), 5);
        assert_eq!(min.f32(0xffc0_0000, 0x7f80_0001), NAN_F32);
        let max = Extremum { max: true, ..min };
        assert_eq!(max.f32(0, 0x8000_0000), 0);
        assert_eq!(
            max.f32((-3f32).to_bits(), (-2f32).to_bits()),
            (-2f32).to_bits()
        );
        assert_eq!(Extremum { nan: true, ..max }.f32(1, 0xffc0_0000), NAN_F32);
        let xorsign = Extremum {
            xorsign_abs: true,
            ..max
        };
        assert_eq!(
            xorsign.f32((-3f32).to_bits(), 2f32.to_bits()),
            (-3f32).to_bits()
        );
        assert_eq!(max.f64((-3f64).to_bits(), 2f64.to_bits()), 2f64.to_bits());
    }
}
