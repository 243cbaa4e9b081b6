//! Whole-warp versions of what kernels do in their inner loops.
//!
//! Each function computes all 32 lanes; masking is the caller's. Results are those of the
//! one-lane functions bit for bit, at every [`Level`].

use super::Lanes;
use super::arith::canonical_f32;
#[cfg(target_arch = "x86_64")]
use super::simd::Level;

/// Defines a warp-wide function from a one-lane expression, compiled once per level so that the
/// vectoriser may use what the machine has.
macro_rules! lanewise {
    ($(#[$doc:meta])* $name:ident($($arg:ident),+) = $lane:expr) => {
        $(#[$doc])*
        pub(crate) fn $name($($arg: &Lanes),+) -> Lanes {
            #[inline(always)]
            fn all($($arg: &Lanes),+) -> Lanes {
                let mut all = [0; 32];
                for (i, one) in all.iter_mut().enumerate() {
                    *one = $lane($($arg[i]),+);
                }
                all
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2($($arg: &Lanes),+) -> Lanes {
                    all($($arg),+)
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
                fn avx512($($arg: &Lanes),+) -> Lanes {
                    all($($arg),+)
                }
                match Level::in_force() {
                    // SAFETY: `Level::in_force` only names levels whose features were detected.
                    Level::Avx512 => unsafe { avx512($($arg),+) },
                    // SAFETY: `Level::in_force` only names levels whose features were detected.
                    Level::Avx2 => unsafe { avx2($($arg),+) },
                    Level::Portable => all($($arg),+),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            all($($arg),+)
        }
    };
}

#[inline(always)]
fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

lanewise!(/// `cvt.rn.bf16x2.f32 d, high, low`
    bf16x2_from_f32(high, low) = |high, low| bf16_bits(f(high)) << 16 | bf16_bits(f(low)));
lanewise!(/// `cvt.rn.bf16.f32` into the low half of each lane
    bf16_from_f32(a) = |a| bf16_bits(f(a)));
lanewise!(/// `cvt.f32.bf16` from the low half of each lane
    f32_from_bf16(a) = |a: u32| a << 16);
lanewise!(/// `cvt.rn.f16x2.e4m3x2` from the low half of each lane
    f16x2_from_e4m3x2(a) = |a: u32| f16_from_e4m3(a >> 8) << 16 | f16_from_e4m3(a));
lanewise!(/// `cvt.rn.f16x2.e5m2x2` from the low half of each lane
    f16x2_from_e5m2x2(a) = |a: u32| f16_from_e5m2(a >> 8) << 16 | f16_from_e5m2(a));

/// The nearest bf16 of an f32, NaN canonical.
#[inline(always)]
fn bf16_bits(x: f32) -> u32 {
    let bits = x.to_bits();
    let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1))) >> 16;
    if x.is_nan() { 0x7fff } else { rounded }
}

/// Makes a nearest result odd when it was inexact, stepping towards the lost part.
#[inline(always)]
fn nudge_odd(nearest: f32, lost_is_positive: bool, inexact: bool) -> f32 {
    let bits = nearest.to_bits();
    let step = u32::from(inexact && bits & 1 == 0);
    let away = lost_is_positive == (bits >> 31 == 0);
    f32::from_bits(match away {
        true => bits.wrapping_add(step),
        false => bits.wrapping_sub(step),
    })
}

/// An f32 that rounds to the same f16 as the exact `a * b + c`. The product of two halves is
/// exact in f32, so one addition rounded to odd keeps all that the second rounding needs.
#[inline(always)]
fn f16_fma(a: f32, b: f32, c: f32) -> f32 {
    let product = a * b;
    let sum = product + c;
    let virtual_addend = sum - product;
    let error = (product - (sum - virtual_addend)) + (c - virtual_addend);
    nudge_odd(sum, error > 0.0, error.abs() > 0.0)
}

#[inline(always)]
fn f16_from_e4m3(code: u32) -> u32 {
    let magnitude = code & 0x7f;
    let normal = (magnitude << 7) + (8 << 10);
    // A subnormal is a small integer times 2^-9; the f32 of it has the right exponent to shift.
    let small = (magnitude as f32 * (1.0 / 512.0)).to_bits() >> 13;
    let subnormal = small.wrapping_sub(112 << 10);
    let value = match magnitude {
        0 => 0,
        1..8 => subnormal,
        _ => normal,
    };
    let signed = value | (code & 0x80) << 8;
    if magnitude == 0x7f { 0x7fff } else { signed }
}

#[inline(always)]
fn f16_from_e5m2(code: u32) -> u32 {
    match code & 0x7f > 0x7c {
        true => 0x7fff,
        false => (code & 0xff) << 8,
    }
}

/// Defines a warp-wide function on packed halves from an f32 expression per element.
macro_rules! f16_pairs {
    ($(#[$doc:meta])* $name:ident($($arg:ident),+) = $op:expr) => {
        $(#[$doc])*
        pub(crate) fn $name($($arg: &Lanes),+) -> Lanes {
            #[inline(always)]
            fn each($($arg: &[f32; 64]),+) -> [f32; 64] {
                let mut all = [0.0; 64];
                for (i, one) in all.iter_mut().enumerate() {
                    *one = $op($($arg[i]),+);
                }
                all
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2($($arg: &Lanes),+) -> Lanes {
                    x86::narrow_avx2(&each($(&x86::widen_avx2($arg)),+))
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
                fn avx512($($arg: &Lanes),+) -> Lanes {
                    x86::narrow_avx512(&each($(&x86::widen_avx512($arg)),+))
                }
                match Level::in_force() {
                    // SAFETY: `Level::in_force` only names levels whose features were detected.
                    Level::Avx512 => return unsafe { avx512($($arg),+) },
                    // SAFETY: `Level::in_force` only names levels whose features were detected.
                    Level::Avx2 => return unsafe { avx2($($arg),+) },
                    Level::Portable => {}
                }
            }
            narrow(&each($(&widen($arg)),+))
        }
    };
}

f16_pairs!(/// `add.rn.f16x2`
    add_f16x2(a, b) = |a: f32, b: f32| a + b);
f16_pairs!(/// `sub.rn.f16x2`
    sub_f16x2(a, b) = |a: f32, b: f32| a - b);
f16_pairs!(/// `mul.rn.f16x2`
    mul_f16x2(a, b) = |a: f32, b: f32| a * b);
f16_pairs!(/// `fma.rn.f16x2`
    fma_f16x2(a, b, c) = |a: f32, b: f32, c: f32| f16_fma(a, b, c));

/// `cvt.rn.f16x2.f32 d, high, low`
pub(crate) fn f16x2_from_f32(high: &Lanes, low: &Lanes) -> Lanes {
    let (high, low) = (f16_from_f32(high), f16_from_f32(low));
    std::array::from_fn(|i| high[i] << 16 | low[i])
}

/// `cvt.rn.f16.f32` into the low half of each lane.
pub(crate) fn f16_from_f32(a: &Lanes) -> Lanes {
    #[cfg(target_arch = "x86_64")]
    match Level::in_force() {
        // SAFETY: `Level::in_force` only names levels whose features were detected.
        Level::Avx512 => return unsafe { x86::f16_from_f32_avx512(a) },
        // SAFETY: `Level::in_force` only names levels whose features were detected.
        Level::Avx2 => return unsafe { x86::f16_from_f32_avx2(a) },
        Level::Portable => {}
    }
    a.map(|x| f16_bits(f(x)))
}

/// `cvt.f32.f16` from the low half of each lane.
pub(crate) fn f32_from_f16(a: &Lanes) -> Lanes {
    #[cfg(target_arch = "x86_64")]
    match Level::in_force() {
        // SAFETY: `Level::in_force` only names levels whose features were detected.
        Level::Avx512 => return unsafe { x86::f32_from_f16_avx512(a) },
        // SAFETY: `Level::in_force` only names levels whose features were detected.
        Level::Avx2 => return unsafe { x86::f32_from_f16_avx2(a) },
        Level::Portable => {}
    }
    a.map(|x| canonical_f32(half::f16::from_bits(x as u16).to_f32_const()))
}

/// The nearest f16 of an f32, NaN canonical.
fn f16_bits(x: f32) -> u32 {
    match x.is_nan() {
        true => 0x7fff,
        false => u32::from(half::f16::from_f32_const(x).to_bits()),
    }
}

/// The 64 halves of a register as f32.
fn widen(pairs: &Lanes) -> [f32; 64] {
    std::array::from_fn(|i| {
        half::f16::from_bits((pairs[i / 2] >> (16 * (i % 2))) as u16).to_f32_const()
    })
}

/// The nearest halves, NaN canonical.
fn narrow(values: &[f32; 64]) -> Lanes {
    std::array::from_fn(|i| f16_bits(values[2 * i + 1]) << 16 | f16_bits(values[2 * i]))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn f16_from_f32_avx2(a: &Lanes) -> Lanes {
        let mut halves = [0; 32];
        for (from, to) in a.chunks_exact(8).zip(halves.chunks_exact_mut(8)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let x = _mm256_loadu_ps(from.as_ptr().cast());
                let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                let bits = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x));
                let canonical = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7fff), nan);
                _mm256_storeu_si256(to.as_mut_ptr().cast(), canonical);
            }
        }
        halves
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
    pub(super) fn f16_from_f32_avx512(a: &Lanes) -> Lanes {
        let mut halves = [0; 32];
        for (from, to) in a.chunks_exact(16).zip(halves.chunks_exact_mut(16)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let x = _mm512_loadu_ps(from.as_ptr().cast());
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                let bits = _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x));
                let canonical = _mm512_mask_blend_epi32(nan, bits, _mm512_set1_epi32(0x7fff));
                _mm512_storeu_si512(to.as_mut_ptr().cast(), canonical);
            }
        }
        halves
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn f32_from_f16_avx2(a: &Lanes) -> Lanes {
        let mut wide = [0; 32];
        let canonical = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff));
        for (from, to) in a.chunks_exact(8).zip(wide.chunks_exact_mut(8)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let words = _mm256_loadu_si256(from.as_ptr().cast());
                let low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
                let packed = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(low, low));
                let x = _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
                let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
                _mm256_storeu_ps(to.as_mut_ptr().cast(), _mm256_blendv_ps(x, canonical, nan));
            }
        }
        wide
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
    pub(super) fn f32_from_f16_avx512(a: &Lanes) -> Lanes {
        let mut wide = [0; 32];
        let canonical = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fff_ffff));
        for (from, to) in a.chunks_exact(16).zip(wide.chunks_exact_mut(16)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let words = _mm512_loadu_si512(from.as_ptr().cast());
                let x = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words));
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                _mm512_storeu_ps(
                    to.as_mut_ptr().cast(),
                    _mm512_mask_blend_ps(nan, x, canonical),
                );
            }
        }
        wide
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    pub(super) fn widen_avx2(pairs: &Lanes) -> [f32; 64] {
        let mut wide = [0f32; 64];
        for (from, to) in pairs.chunks_exact(4).zip(wide.chunks_exact_mut(8)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let halves = _mm_loadu_si128(from.as_ptr().cast());
                _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
            }
        }
        wide
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    pub(super) fn narrow_avx2(values: &[f32; 64]) -> Lanes {
        let mut pairs = [0u32; 32];
        for (from, to) in values.chunks_exact(8).zip(pairs.chunks_exact_mut(4)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let x = _mm256_loadu_ps(from.as_ptr());
                let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                let nan = _mm_packs_epi32(
                    _mm256_castsi256_si128(nan),
                    _mm256_extracti128_si256::<1>(nan),
                );
                let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                let canonical = _mm_blendv_epi8(halves, _mm_set1_epi16(0x7fff), nan);
                _mm_storeu_si128(to.as_mut_ptr().cast(), canonical);
            }
        }
        pairs
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
    #[inline]
    pub(super) fn widen_avx512(pairs: &Lanes) -> [f32; 64] {
        let mut wide = [0f32; 64];
        for (from, to) in pairs.chunks_exact(8).zip(wide.chunks_exact_mut(16)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let halves = _mm256_loadu_si256(from.as_ptr().cast());
                _mm512_storeu_ps(to.as_mut_ptr(), _mm512_cvtph_ps(halves));
            }
        }
        wide
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
    #[inline]
    pub(super) fn narrow_avx512(values: &[f32; 64]) -> Lanes {
        let mut pairs = [0u32; 32];
        for (from, to) in values.chunks_exact(16).zip(pairs.chunks_exact_mut(8)) {
            // SAFETY: each chunk is exactly one vector long.
            unsafe {
                let x = _mm512_loadu_ps(from.as_ptr());
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                let canonical = _mm256_mask_blend_epi16(nan, halves, _mm256_set1_epi16(0x7fff));
                _mm256_storeu_si256(to.as_mut_ptr().cast(), canonical);
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::convert::{Cvt, float_to_float, pair_from_f32, pair_to_pair};
    use super::super::halves::{Half, HalfMode, both};
    use super::*;
    use proptest::prelude::*;

    const RN: HalfMode = HalfMode {
        ftz: false,
        sat: false,
        relu: false,
    };

    fn register() -> impl Strategy<Value = Lanes> {
        let special = prop::sample::select(vec![
            0u32,
            0x8000_0000,
            0x7f80_0000,
            0x7fc0_0001,
            0x0001_8001,
            0x7c00_fc00,
            0x7e01_3c00,
            1,
            0x0080_0000,
        ]);
        let lane = prop_oneof![4 => any::<u32>(), 1 => special];
        prop::collection::vec(lane, 32).prop_map(|v| v.try_into().expect("32 lanes"))
    }

    fn check<const N: usize>(
        args: [&Lanes; N],
        got: Lanes,
        one: impl Fn([u32; N]) -> u32,
    ) -> Result<(), TestCaseError> {
        for lane in 0..32 {
            let operands = args.map(|a| a[lane]);
            prop_assert_eq!(got[lane], one(operands), "operands {:x?}", operands);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_warp_gets_what_each_lane_would(a in register(), b in register(), c in register()) {
            let cvt = Cvt::default();
            check([&a, &b], f16x2_from_f32(&a, &b), |[a, b]| pair_from_f32(Format::F16, a, b, cvt))?;
            check([&a, &b], bf16x2_from_f32(&a, &b), |[a, b]| pair_from_f32(Format::BF16, a, b, cvt))?;
            check([&a], f32_from_f16(&a), |[a]| float_to_float(Format::F16, Format::F32, (a & 0xffff).into(), cvt) as u32)?;
            check([&a], f32_from_bf16(&a), |[a]| float_to_float(Format::BF16, Format::F32, (a & 0xffff).into(), cvt) as u32)?;
            check([&a], f16x2_from_e5m2x2(&a), |[a]| pair_to_pair(Format::E5M2, Format::F16, a & 0xffff, cvt))?;
            check([&a, &b], add_f16x2(&a, &b), |p| both(p, |[a, b]| Half::F16.add(a, b, RN)))?;
            check([&a, &b], mul_f16x2(&a, &b), |p| both(p, |[a, b]| Half::F16.mul(a, b, RN)))?;
            check([&a, &b, &c], fma_f16x2(&a, &b, &c), |p| both(p, |[a, b, c]| Half::F16.fma(a, b, c, RN)))?;
        }
    }

    #[test]
    fn the_portable_halves_are_those_of_the_vector_path() {
        for base in (0..0x1_0000u32).step_by(32) {
            let register: Lanes =
                std::array::from_fn(|i| (base + i as u32) | ((base ^ 0x5555) << 16));
            let best = mul_f16x2(&register, &[0x3c00_3c00; 32]);
            assert_eq!(best, narrow(&widen(&register)));
        }
    }

    #[test]
    fn every_e4m3_pair_widens_right() {
        for base in (0..0x1_0000u32).step_by(32) {
            let register: Lanes = std::array::from_fn(|i| base + i as u32);
            let got = f16x2_from_e4m3x2(&register);
            for (lane, &pair) in register.iter().enumerate() {
                assert_eq!(
                    got[lane],
                    pair_to_pair(Format::E4M3, Format::F16, pair, Cvt::default()),
                    "{pair:#x}"
                );
            }
        }
    }
}
