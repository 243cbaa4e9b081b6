//! f16 and bf16 arithmetic, one element or one packed pair at a time.
//!
//! Each result is the exact one rounded once. Warp-wide versions of what kernels use in their
//! inner loops are in [`super::lanes`].

use super::arith::Extremum;
use super::{Format, NAN_F16, Rounding, Value, soft};

/// Which 16-bit float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Half {
    F16,
    Bf16,
}

/// The modifiers an instruction on halves may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct HalfMode {
    /// `.ftz` (f16 only): subnormals become zero of the same sign.
    pub ftz: bool,
    /// `.sat`: clamp to [0, 1], NaN becomes +0.
    pub sat: bool,
    /// `.relu`: negative results become +0, NaN stays.
    pub relu: bool,
}

impl Half {
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::F16 => Format::F16,
            Self::Bf16 => Format::BF16,
        }
    }

    const fn infinity(self) -> u16 {
        match self {
            Self::F16 => 0x7c00,
            Self::Bf16 => 0x7f80,
        }
    }

    const fn one(self) -> u16 {
        match self {
            Self::F16 => 0x3c00,
            Self::Bf16 => 0x3f80,
        }
    }

    /// The f32 of the same value, for comparisons and approximations.
    pub(crate) fn widen(self, bits: u16) -> f32 {
        match self {
            Self::F16 => half::f16::from_bits(bits).to_f32(),
            Self::Bf16 => f32::from_bits(u32::from(bits) << 16),
        }
    }

    /// The nearest half of an f32, NaN canonical.
    pub(crate) fn narrow(self, x: f32) -> u16 {
        let bits = match self {
            Self::F16 => half::f16::from_f32(x).to_bits(),
            Self::Bf16 => half::bf16::from_f32(x).to_bits(),
        };
        if x.is_nan() { NAN_F16 } else { bits }
    }

    /// The next value towards zero.
    pub(crate) fn truncate(self, x: f32, ftz: bool) -> u16 {
        let near = self.narrow(x);
        let beyond = self.widen(near).is_finite() && self.widen(near).abs() > x.abs();
        self.flush(near - u16::from(beyond), ftz)
    }

    fn flush(self, bits: u16, ftz: bool) -> u16 {
        match ftz && bits & self.infinity() == 0 {
            true => bits & 0x8000,
            false => bits,
        }
    }

    fn operand(self, bits: u16, mode: HalfMode) -> Value {
        self.format().decode(u64::from(self.flush(bits, mode.ftz)))
    }

    fn result(self, value: Value, mode: HalfMode) -> u16 {
        let bits = self.format().encode(value, Rounding::NearestEven, false) as u16;
        let tiny = mode.ftz && self.format().is_tiny(value, Rounding::NearestEven);
        let bits = if tiny { bits & 0x8000 } else { bits };
        let is_nan = bits & 0x7fff > self.infinity();
        let negative = bits & 0x8000 != 0;
        match mode {
            HalfMode { sat: true, .. } if is_nan || negative => 0,
            HalfMode { sat: true, .. } => bits.min(self.one()),
            HalfMode { relu: true, .. } if negative && !is_nan => 0,
            _ => bits,
        }
    }

    pub(crate) fn add(self, a: u16, b: u16, mode: HalfMode) -> u16 {
        let sum = soft::add(
            self.operand(a, mode),
            self.operand(b, mode),
            Rounding::NearestEven,
        );
        self.result(sum, mode)
    }

    pub(crate) fn sub(self, a: u16, b: u16, mode: HalfMode) -> u16 {
        let sum = soft::add(
            self.operand(a, mode),
            self.operand(b, mode).negated(),
            Rounding::NearestEven,
        );
        self.result(sum, mode)
    }

    pub(crate) fn mul(self, a: u16, b: u16, mode: HalfMode) -> u16 {
        let product = soft::mul(self.operand(a, mode), self.operand(b, mode));
        self.result(product, mode)
    }

    pub(crate) fn fma(self, a: u16, b: u16, c: u16, mode: HalfMode) -> u16 {
        let sum = soft::fma(
            self.operand(a, mode),
            self.operand(b, mode),
            self.operand(c, mode),
            Rounding::NearestEven,
        );
        self.result(sum, mode)
    }

    /// `neg`
    pub(crate) fn neg(self, x: u16, ftz: bool) -> u16 {
        self.canonical(self.flush(x, ftz) ^ 0x8000)
    }

    /// `abs`
    pub(crate) fn abs(self, x: u16, ftz: bool) -> u16 {
        self.canonical(self.flush(x, ftz) & 0x7fff)
    }

    fn canonical(self, bits: u16) -> u16 {
        match bits & 0x7fff > self.infinity() {
            true => NAN_F16,
            false => bits,
        }
    }

    /// `min` and `max`.
    pub(crate) fn extremum(self, a: u16, b: u16, which: Extremum) -> u16 {
        let (a, b) = (self.flush(a, which.ftz), self.flush(b, which.ftz));
        which.pick(
            a.into(),
            b.into(),
            16,
            self.infinity().into(),
            NAN_F16.into(),
        ) as u16
    }
}

/// Applies an operation to both halves of packed registers.
#[inline]
pub(crate) fn both<const N: usize>(operands: [u32; N], op: impl Fn([u16; N]) -> u16) -> u32 {
    let low = op(operands.map(|x| x as u16));
    let high = op(operands.map(|x| (x >> 16) as u16));
    u32::from(high) << 16 | u32::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RN: HalfMode = HalfMode {
        ftz: false,
        sat: false,
        relu: false,
    };

    proptest! {
        /// Sums and products of halves are exact in f64.
        #[test]
        fn results_are_rounded_once(a in any::<u16>(), b in any::<u16>()) {
            for kind in [Half::F16, Half::Bf16] {
                let (x, y) = (f64::from(kind.widen(a)), f64::from(kind.widen(b)));
                let once = |z: f64| kind.format().encode(Format::F64.decode(z.to_bits()), Rounding::NearestEven, false) as u16;
                prop_assert_eq!(kind.mul(a, b, RN), once(x * y));
                if kind == Half::F16 {
                    prop_assert_eq!(kind.add(a, b, RN), once(x + y));
                    prop_assert_eq!(kind.sub(a, b, RN), once(x - y));
                }
            }
        }
    }

    #[test]
    fn modifiers_clamp_the_result() {
        let relu = HalfMode { relu: true, ..RN };
        let sat = HalfMode { sat: true, ..RN };
        let ftz = HalfMode { ftz: true, ..RN };
        assert_eq!(Half::F16.add(0xbc00, 0, relu), 0);
        assert_eq!(Half::F16.add(0x7e00, 0, relu), NAN_F16);
        assert_eq!(Half::F16.add(0x4000, 0, sat), 0x3c00);
        assert_eq!(Half::F16.add(0x7e00, 0, sat), 0);
        assert_eq!(Half::F16.mul(0x8001, 0x3c00, ftz), 0x8000);
        assert_eq!(Half::F16.mul(0x0400, 0x3bff, ftz), 0);
        assert_eq!(Half::F16.neg(0x7e00, false), NAN_F16);
        assert_eq!(Half::F16.abs(0x8001, true), 0);
        assert_eq!(Half::Bf16.extremum(0x8000, 0, Extremum::default()), 0x8000);
        assert_eq!(
            both([0x3c00_4000, 0x4000_4000], |[a, b]| Half::F16.mul(a, b, RN)),
            0x4000_4400
        );
    }
}
