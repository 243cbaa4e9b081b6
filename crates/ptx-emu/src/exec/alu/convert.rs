//! Conversions, packing and moves between register files.

use super::float::rounding;
use crate::exec::lanes::each;
use crate::exec::warp::Warp;
use crate::numeric::convert::{self, Cvt, Integer};
use crate::numeric::{Format, Rounding, lanes};
use crate::op::{CvtMods, Num, Op, Program, Round, Slot, misrouted, pool};

fn integer(num: Num) -> Option<Integer> {
    let (bits, signed) = match num {
        Num::U8 | Num::B8 => (8, false),
        Num::S8 => (8, true),
        Num::U16 | Num::B16 => (16, false),
        Num::S16 => (16, true),
        Num::U32 | Num::B32 => (32, false),
        Num::S32 => (32, true),
        Num::U64 | Num::B64 => (64, false),
        Num::S64 => (64, true),
        _ => return None,
    };
    Some(Integer { bits, signed })
}

/// The float format of a type, if it is one numeric describes.
pub(crate) fn format(num: Num) -> Option<Format> {
    Some(match num {
        Num::F16 | Num::F16x2 => Format::F16,
        Num::Bf16 | Num::Bf16x2 => Format::BF16,
        Num::Tf32 => Format::TF32,
        Num::F32 => Format::F32,
        Num::F64 => Format::F64,
        Num::E4m3 => Format::E4M3,
        Num::E5m2 => Format::E5M2,
        Num::E2m1 => Format::E2M1,
        Num::E2m3 => Format::E2M3,
        Num::E3m2 => Format::E3M2,
        _ => return None,
    })
}

fn modifiers(m: CvtMods) -> Cvt {
    Cvt {
        rounding: if m.integer {
            Rounding::NearestEven
        } else {
            rounding(m.round)
        },
        ftz: m.ftz,
        sat: m.sat,
        satfinite: m.satfinite,
        relu: m.relu,
    }
}

/// One lane of a scalar `cvt`; the caller cuts the result to its register.
fn scalar(from: Num, to: Num, m: CvtMods, x: u64) -> u64 {
    let cvt = modifiers(m);
    match (integer(from), integer(to), format(from), format(to)) {
        (Some(from), Some(to), ..) => convert::int_to_int(from, to, x, m.sat),
        (Some(from), _, _, Some(to)) => convert::int_to_float(from, to, x, cvt),
        (_, Some(to), Some(from), _) => {
            let bits = convert::float_to_int(from, to, x, rounding(m.round), m.ftz);
            // A narrow signed result fills its register by its own sign.
            to.decode(bits) as u64
        }
        (_, _, Some(from), Some(to)) if m.integer => {
            convert::round_to_integral(from, to, x, rounding(m.round), cvt)
        }
        (_, _, Some(from), Some(to)) => convert::float_to_float(from, to, x, cvt),
        _ => x,
    }
}

fn register_bits(num: Num) -> u64 {
    match num {
        Num::U8 | Num::S8 | Num::B8 | Num::U16 | Num::S16 | Num::B16 | Num::F16 | Num::Bf16 => {
            0xffff
        }
        _ => u64::MAX,
    }
}

/// Bits of a narrow integer result that its register keeps: `cvt.s8` into a 16-bit register is
/// sign-extended there, into a 32-bit one further.
fn cvt(w: &mut Warp, mask: u32, from: Num, to: Num, m: CvtMods, d: Slot, a: Slot) {
    if quick(w, mask, from, to, m, d, a) {
        return;
    }
    let keep = register_bits(to);
    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
        let v = scalar(from, to, m, w.lane(a, lane)) & keep;
        w.set_lane(d, lane, v);
    }
}

/// The conversions of inner loops and address arithmetic, a warp at a time.
#[inline(always)]
pub(crate) fn quick(
    w: &mut Warp,
    mask: u32,
    from: Num,
    to: Num,
    m: CvtMods,
    d: Slot,
    a: Slot,
) -> bool {
    if m.sat || m.ftz || m.relu || m.satfinite {
        return false;
    }
    let near = m.round == Round::Near && !m.integer;
    match (d, a) {
        (Slot::W64(d), Slot::W32(a)) => {
            let x = w.get(a);
            let v: [u64; 32] = match (from, to) {
                (Num::U32 | Num::B32, Num::U64 | Num::S64 | Num::B64) => each(|i| x[i].into()),
                (Num::S32, Num::U64 | Num::S64 | Num::B64) => {
                    each(|i| i64::from(x[i] as i32) as u64)
                }
                (Num::U16 | Num::B16, Num::U64 | Num::S64) => each(|i| (x[i] & 0xffff).into()),
                _ => return false,
            };
            w.put64(mask, d, v);
        }
        (Slot::W32(d), Slot::W64(a)) => {
            let x = w.get64(a);
            let keep = match to {
                Num::U32 | Num::S32 | Num::B32 => u32::MAX,
                Num::U16 | Num::S16 | Num::B16 => 0xffff,
                Num::U8 => 0xff,
                _ => return false,
            };
            if !matches!(from, Num::U64 | Num::S64 | Num::B64) {
                return false;
            }
            let v = each(|i| x[i] as u32 & keep);
            w.put(mask, d, v);
        }
        (Slot::W32(d), Slot::W32(a)) => {
            let x = w.get(a);
            let v = match (from, to) {
                (Num::U32 | Num::S32, Num::U16 | Num::S16) => each(|i| {
                    let x = x[i];
                    x & 0xffff
                }),
                (Num::U32 | Num::S32 | Num::U16 | Num::S16, Num::U8) => each(|i| {
                    let x = x[i];
                    x & 0xff
                }),
                (Num::U16, Num::U32 | Num::S32 | Num::U16) => each(|i| {
                    let x = x[i];
                    x & 0xffff
                }),
                (Num::U8, Num::U32 | Num::S32 | Num::U16 | Num::S16) => each(|i| {
                    let x = x[i];
                    x & 0xff
                }),
                (Num::S16, Num::S32 | Num::U32) => each(|i| {
                    let x = x[i];
                    i32::from(x as i16) as u32
                }),
                (Num::U32 | Num::S32, Num::U32 | Num::S32) => *x,
                (Num::F16, Num::F32) => lanes::f32_from_f16(x),
                (Num::Bf16, Num::F32) => lanes::f32_from_bf16(x),
                (Num::F32, Num::F16) if near => lanes::f16_from_f32(x),
                (Num::F32, Num::Bf16) if near => lanes::bf16_from_f32(x),
                (Num::S32, Num::F32) if near => each(|i| {
                    let x = x[i];
                    (x as i32 as f32).to_bits()
                }),
                (Num::U32, Num::F32) if near => each(|i| {
                    let x = x[i];
                    (x as f32).to_bits()
                }),
                _ => return false,
            };
            w.put(mask, d, v);
        }
        _ => return false,
    }
    true
}

/// `cvt.pack.sat`: a saturated into the upper part, b into the lower, above the bits of c.
fn pack_int(to: Num, from_signed: bool, a: u32, b: u32, c: Option<u32>) -> u32 {
    let (bits, low, high): (u32, i64, i64) = match to {
        Num::S16 => (16, -0x8000, 0x7fff),
        Num::U16 => (16, 0, 0xffff),
        Num::S8 => (8, -0x80, 0x7f),
        Num::U8 => (8, 0, 0xff),
        Num::S4 => (4, -8, 7),
        Num::S2 => (2, -2, 1),
        Num::U2 => (2, 0, 3),
        _ => (4, 0, 15),
    };
    let one = |x: u32| {
        let x = if from_signed {
            i64::from(x as i32)
        } else {
            i64::from(x)
        };
        x.clamp(low, high) as u32 & ((1 << bits) - 1)
    };
    let pair = one(a) << bits | one(b);
    match c {
        Some(c) => c << (2 * bits) | pair,
        None => pair,
    }
}

fn pack_f32(
    w: &mut Warp,
    mask: u32,
    to: Num,
    m: CvtMods,
    d: crate::op::R32,
    a: crate::op::R32,
    b: crate::op::R32,
) {
    let plain = m.round == Round::Near && !(m.ftz || m.sat || m.relu || m.satfinite);
    let quick = match to {
        Num::F16 | Num::F16x2 if plain => Some(lanes::f16x2_from_f32(w.get(a), w.get(b))),
        Num::Bf16 | Num::Bf16x2 if plain => Some(lanes::bf16x2_from_f32(w.get(a), w.get(b))),
        _ => None,
    };
    if let Some(v) = quick {
        return w.put(mask, d, v);
    }
    let cvt = modifiers(m);
    w.map2(mask, d, a, b, |hi, lo| match format(to) {
        Some(to) => convert::pair_from_f32(to, hi, lo, cvt),
        // Only ue8m0 has no format: it rounds magnitudes to powers of two.
        None => {
            let one = |x: u32| u32::from(convert::ue8m0_from_f32(x, cvt.rounding));
            one(hi) << 8 | one(lo)
        }
    });
}

fn pair(from: Num, to: Num, cvt: Cvt, x: u32) -> u32 {
    match (format(from), format(to)) {
        (Some(from), Some(to)) => convert::pair_to_pair(from, to, x, cvt),
        (None, _) => {
            let one = |x: u32| u32::from(convert::bf16_from_ue8m0(x as u8));
            one(x >> 8) << 16 | one(x)
        }
        (Some(from), None) => {
            let wide = |x: u32| {
                convert::float_to_float(from, Format::F32, x.into(), Cvt::default()) as u32
            };
            let one = |x: u32| u32::from(convert::ue8m0_from_f32(wide(x & 0xffff), cvt.rounding));
            one(x >> 16) << 8 | one(x)
        }
    }
}

fn cvt_pair(
    w: &mut Warp,
    mask: u32,
    from: Num,
    to: Num,
    m: CvtMods,
    d: crate::op::R32,
    a: crate::op::R32,
) {
    let quick = match (from, to) {
        _ if m.relu || m.sat => None,
        (Num::E4m3, Num::F16 | Num::F16x2) => Some(lanes::f16x2_from_e4m3x2(w.get(a))),
        (Num::E5m2, Num::F16 | Num::F16x2) => Some(lanes::f16x2_from_e5m2x2(w.get(a))),
        _ => None,
    };
    match quick {
        Some(v) => w.put(mask, d, v),
        None => {
            let cvt = modifiers(m);
            w.map1(mask, d, a, |x| pair(from, to, cvt, x));
        }
    }
}

/// Conversions and packings outside the interpreter's own arms.
#[inline(never)]
pub(crate) fn rare(w: &mut Warp, mask: u32, op: &Op, program: &Program) {
    let lanes = || (0..32).filter(move |lane| mask >> lane & 1 == 1);
    match *op {
        Op::Cvt { from, to, m, d, a } => cvt(w, mask, from, to, m, d, a),
        Op::CvtPack { to, m, d, a, b } => pack_f32(w, mask, to, m, d, a, b),
        Op::CvtPair { from, to, m, d, a } => cvt_pair(w, mask, from, to, m, d, a),
        Op::CvtScaled {
            from,
            to,
            m,
            d,
            a,
            b,
            scales,
        } => {
            let cvt = modifiers(m);
            w.map3(mask, d, [a, b.unwrap_or(a), scales], |x, y, scales| {
                if to != Num::S2f6 {
                    return convert::scaled_to_bf16(format(from), x, scales, cvt);
                }
                let (format, high, low) = match b {
                    Some(_) => (Format::F32, x, y),
                    None => (Format::BF16, x >> 16, x & 0xffff),
                };
                let one = |x: u32, scale: u32| {
                    u32::from(convert::to_s2f6(format, x.into(), scale as u8, m.relu))
                };
                one(high, scales >> 8) << 8 | one(low, scales)
            });
        }
        Op::CvtStochastic {
            to,
            m,
            d,
            from,
            random,
        } => {
            let cvt = modifiers(m);
            // What is lowered has a format.
            let Some(to) = format(to) else { misrouted(op) };
            for lane in lanes() {
                let singles = pool(program, from).iter().map(|&s| w.lane(s, lane) as u32);
                let singles: Vec<u32> = singles.collect();
                let bits = w.get(random)[lane];
                let value = convert::stochastic(to, &singles, bits, cvt);
                w.set_lane(Slot::W32(d), lane, value.into());
            }
        }
        Op::CvtPackInt {
            to,
            from_signed,
            d,
            a,
            b,
            c,
        } => {
            let third = c.unwrap_or(a);
            w.map3(mask, d, [a, b, third], |x, y, z| {
                pack_int(to, from_signed, x, y, c.map(|_| z))
            });
        }
        Op::PackN { d, bits, parts } => {
            let parts = pool(program, parts).to_vec();
            for lane in lanes() {
                let keep = u64::MAX >> (64 - u32::from(bits));
                let value = parts.iter().rev().fold(0u64, |value, &part| {
                    value.checked_shl(bits.into()).unwrap_or(0) | (w.lane(part, lane) & keep)
                });
                w.set_lane(d, lane, value);
            }
        }
        Op::UnpackN { a, bits, parts } => {
            for lane in lanes() {
                let value = w.lane(a, lane);
                let keep = u64::MAX >> (64 - u32::from(bits));
                for (i, &part) in pool(program, parts).iter().enumerate() {
                    let piece = value.checked_shr(u32::from(bits) * i as u32).unwrap_or(0);
                    w.set_lane(part, lane, piece & keep);
                }
            }
        }
        ref other => misrouted(other),
    }
}
