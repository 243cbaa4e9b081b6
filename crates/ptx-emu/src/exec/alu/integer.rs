//! Integer arithmetic and logic.
//!
//! Functions marked `inline(always)` are the inner loops of kernels: they are compiled into each
//! vector level of the interpreter. The rest is called.

use crate::exec::lanes::each;
use crate::exec::warp::Warp;
use crate::op::{IBin, Op, R32, R64, misrouted};

pub(super) fn sext16(x: u32) -> i32 {
    i32::from(x as i16)
}

/// Shift left, zero from the width on.
#[inline(always)]
pub(super) fn shl32(x: u32, n: u32) -> u32 {
    if n > 31 { 0 } else { x << (n & 31) }
}

#[inline(always)]
fn shr32(x: u32, n: u32) -> u32 {
    if n > 31 { 0 } else { x >> (n & 31) }
}

#[inline(always)]
fn sar32(x: u32, n: u32) -> u32 {
    ((x as i32) >> n.min(31)) as u32
}

/// 32-bit binary operations.
#[inline(always)]
pub(crate) fn bin32(w: &mut Warp, mask: u32, op: IBin, d: R32, a: R32, b: R32) {
    match op {
        IBin::Add => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x.wrapping_add(y),
        ),
        IBin::Sub => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x.wrapping_sub(y),
        ),
        IBin::MulLo => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x.wrapping_mul(y),
        ),
        IBin::And => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x & y,
        ),
        IBin::Or => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x | y,
        ),
        IBin::Xor => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x ^ y,
        ),
        IBin::Shl => w.map2(mask, d, a, b, shl32),
        IBin::ShrU => w.map2(mask, d, a, b, shr32),
        IBin::ShrS => w.map2(mask, d, a, b, sar32),
        IBin::MinS => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| (x as i32).min(y as i32) as u32,
        ),
        IBin::MaxS => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| (x as i32).max(y as i32) as u32,
        ),
        IBin::MinU => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x.min(y),
        ),
        IBin::MaxU => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x.max(y),
        ),
        _ => bin32_rare(w, mask, op, d, a, b),
    }
}

#[inline(never)]
fn bin32_rare(w: &mut Warp, mask: u32, op: IBin, d: R32, a: R32, b: R32) {
    w.map2(mask, d, a, b, |x, y| scalar32(op, x, y));
}

/// One lane of a 32-bit operation.
fn scalar32(op: IBin, x: u32, y: u32) -> u32 {
    let (sx, sy) = (x as i32, y as i32);
    let mul24 = |signed: bool| match signed {
        true => i64::from(sx << 8 >> 8) * i64::from(sy << 8 >> 8),
        false => (u64::from(x & 0xff_ffff) * u64::from(y & 0xff_ffff)) as i64,
    };
    match op {
        IBin::Add => x.wrapping_add(y),
        IBin::Sub => x.wrapping_sub(y),
        IBin::AddSat => sx.saturating_add(sy) as u32,
        IBin::SubSat => sx.saturating_sub(sy) as u32,
        IBin::MulLo => x.wrapping_mul(y),
        IBin::MulHiS => ((i64::from(sx) * i64::from(sy)) >> 32) as u32,
        IBin::MulHiU => ((u64::from(x) * u64::from(y)) >> 32) as u32,
        IBin::DivS if sy == 0 => u32::MAX,
        IBin::DivS => sx.wrapping_div(sy) as u32,
        IBin::DivU => x.checked_div(y).unwrap_or(u32::MAX),
        IBin::RemS if sy == 0 => x,
        IBin::RemS => sx.wrapping_rem(sy) as u32,
        IBin::RemU => x.checked_rem(y).unwrap_or(x),
        IBin::MinS => sx.min(sy) as u32,
        IBin::MaxS => sx.max(sy) as u32,
        IBin::MinU => x.min(y),
        IBin::MaxU => x.max(y),
        IBin::MinSRelu => sx.min(sy).max(0) as u32,
        IBin::MaxSRelu => sx.max(sy).max(0) as u32,
        IBin::And => x & y,
        IBin::Or => x | y,
        IBin::Xor => x ^ y,
        IBin::Shl => shl32(x, y),
        IBin::ShrU => shr32(x, y),
        IBin::ShrS => sar32(x, y),
        IBin::Mul24LoS => mul24(true) as u32,
        IBin::Mul24LoU => mul24(false) as u32,
        IBin::Mul24HiS => (mul24(true) >> 16) as u32,
        IBin::Mul24HiU => (mul24(false) >> 16) as u32,
    }
}

/// The 16-bit forms of what is plain at 32 bits.
pub(crate) fn rare(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
        Op::Bin32 { op, d, a, b, .. } => bin16(w, mask, op, d, a, b),
        Op::MadLo32 { d, a, b, c, .. } => w.map3(mask, d, [a, b, c], |x, y, z| {
            x.wrapping_mul(y).wrapping_add(z) & 0xffff
        }),
        ref other => misrouted(other),
    }
}

/// 16-bit operations: operands extended by the operation's sign, result cut to 16 bits.
#[inline(never)]
fn bin16(w: &mut Warp, mask: u32, op: IBin, d: R32, a: R32, b: R32) {
    let f = |x: u32, y: u32| match op {
        IBin::DivS | IBin::RemS if y as u16 == 0 => scalar32(op, sext16(x) as u32, 0),
        IBin::DivS | IBin::RemS | IBin::MinS | IBin::MaxS | IBin::MinSRelu | IBin::MaxSRelu => {
            scalar32(op, sext16(x) as u32, sext16(y) as u32)
        }
        IBin::MulHiS => (sext16(x).wrapping_mul(sext16(y)) >> 16) as u32,
        IBin::MulHiU => (x & 0xffff).wrapping_mul(y & 0xffff) >> 16,
        IBin::AddSat => (sext16(x) + sext16(y)).clamp(-0x8000, 0x7fff) as u32,
        IBin::SubSat => (sext16(x) - sext16(y)).clamp(-0x8000, 0x7fff) as u32,
        // The amount is a full 32-bit value and clamps at 16.
        IBin::ShrS => (sext16(x) >> y.min(15)) as u32,
        _ => scalar32(op, x & 0xffff, y),
    };
    w.map2(mask, d, a, b, |x, y| f(x, y) & 0xffff);
}

/// 64-bit binary operations.
#[inline(always)]
pub(crate) fn bin64(w: &mut Warp, mask: u32, op: IBin, d: R64, a: R64, b: R64) {
    match op {
        IBin::Add => w.map2_64(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x.wrapping_add(y),
        ),
        IBin::Sub => w.map2_64(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x.wrapping_sub(y),
        ),
        IBin::And => w.map2_64(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x & y,
        ),
        IBin::Or => w.map2_64(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x | y,
        ),
        IBin::Xor => w.map2_64(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x ^ y,
        ),
        _ => bin64_rare(w, mask, op, d, a, b),
    }
}

#[inline(never)]
fn bin64_rare(w: &mut Warp, mask: u32, op: IBin, d: R64, a: R64, b: R64) {
    w.map2_64(mask, d, a, b, |x, y| {
        let (sx, sy) = (x as i64, y as i64);
        match op {
            IBin::MulLo => x.wrapping_mul(y),
            IBin::MulHiS => ((i128::from(sx) * i128::from(sy)) >> 64) as u64,
            IBin::MulHiU => ((u128::from(x) * u128::from(y)) >> 64) as u64,
            IBin::DivS if sy == 0 => u64::MAX,
            IBin::DivS => sx.wrapping_div(sy) as u64,
            IBin::DivU => x.checked_div(y).unwrap_or(u64::MAX),
            IBin::RemS if sy == 0 => x,
            IBin::RemS => sx.wrapping_rem(sy) as u64,
            IBin::RemU => x.checked_rem(y).unwrap_or(x),
            IBin::MinS => sx.min(sy) as u64,
            IBin::MaxS => sx.max(sy) as u64,
            IBin::MinU => x.min(y),
            IBin::MaxU => x.max(y),
            IBin::AddSat => sx.saturating_add(sy) as u64,
            IBin::SubSat => sx.saturating_sub(sy) as u64,
            IBin::Shl => shift64(IBin::Shl, x, y.min(64) as u32),
            IBin::ShrU => shift64(IBin::ShrU, x, y.min(64) as u32),
            IBin::ShrS => shift64(IBin::ShrS, x, y.min(64) as u32),
            _ => u64::from(scalar32(op, x as u32, y as u32)),
        }
    });
}

#[inline(always)]
fn shift64(op: IBin, x: u64, n: u32) -> u64 {
    match op {
        IBin::Shl => {
            if n > 63 {
                0
            } else {
                x << (n & 63)
            }
        }
        IBin::ShrS => ((x as i64) >> n.min(63)) as u64,
        _ => {
            if n > 63 {
                0
            } else {
                x >> (n & 63)
            }
        }
    }
}

/// 64-bit shifts by a 32-bit amount.
#[inline(always)]
pub(crate) fn shift64_op(w: &mut Warp, mask: u32, op: IBin, d: R64, a: R64, b: R32) {
    let (x, n) = (w.get64(a), w.get(b));
    let v = match op {
        IBin::Shl => each(
            #[inline(always)]
            |i| shift64(IBin::Shl, x[i], n[i]),
        ),
        IBin::ShrS => each(
            #[inline(always)]
            |i| shift64(IBin::ShrS, x[i], n[i]),
        ),
        _ => each(
            #[inline(always)]
            |i| shift64(IBin::ShrU, x[i], n[i]),
        ),
    };
    w.put64(mask, d, v);
}

/// d = a·b (+ c), 32×32→64.
#[inline(always)]
pub(crate) fn mad_wide(
    w: &mut Warp,
    mask: u32,
    signed: bool,
    d: R64,
    a: R32,
    b: R32,
    c: Option<R64>,
) {
    let (x, y) = (w.get(a), w.get(b));
    let product: [u64; 32] = match signed {
        true => each(
            #[inline(always)]
            |i| (i64::from(x[i] as i32) * i64::from(y[i] as i32)) as u64,
        ),
        false => each(
            #[inline(always)]
            |i| u64::from(x[i]) * u64::from(y[i]),
        ),
    };
    let v = match c {
        None => product,
        Some(c) => {
            let c = w.get64(c);
            each(
                #[inline(always)]
                |i| product[i].wrapping_add(c[i]),
            )
        }
    };
    w.put64(mask, d, v);
}

/// Any function of three inputs, as a tree of multiplexers.
#[inline(always)]
pub(super) fn lop3(lut: u8, a: u32, b: u32, c: u32) -> u32 {
    // A function of c alone: bits `low` (c = 0) and `low + 1` (c = 1) of the table.
    #[inline(always)]
    fn pick(lut: u8, low: u8, c: u32) -> u32 {
        let zero = 0u32.wrapping_sub(u32::from(lut >> low & 1));
        let one = 0u32.wrapping_sub(u32::from(lut >> (low + 1) & 1));
        zero ^ (c & (zero ^ one))
    }
    #[inline(always)]
    fn mux(s: u32, one: u32, zero: u32) -> u32 {
        zero ^ (s & (one ^ zero))
    }
    let high = mux(b, pick(lut, 6, c), pick(lut, 4, c));
    let low = mux(b, pick(lut, 2, c), pick(lut, 0, c));
    mux(a, high, low)
}

/// `lop3` of whole registers: the tables of choices, sums and masked unions, which are most of
/// those that kernels use, in fewer steps than any table needs.
#[inline(always)]
pub(crate) fn lop3_op(w: &mut Warp, mask: u32, lut: u8, d: R32, s: [R32; 3]) {
    macro_rules! quick {
        ($f:expr) => {
            w.map3(
                mask,
                d,
                s,
                #[inline(always)]
                $f,
            )
        };
    }
    match lut {
        0xe4 => quick!(|a, b, c| b ^ (c & (a ^ b))),
        0xca => quick!(|a, b, c| c ^ (a & (b ^ c))),
        0x96 => quick!(|a, b, c| a ^ b ^ c),
        0xea => quick!(|a, b, c| a & b | c),
        0x6a => quick!(|a, b, c| a & b ^ c),
        _ => quick!(|a, b, c| lop3(lut, a, b, c)),
    }
}

/// `prmt` in its default mode.
#[inline(always)]
pub(crate) fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let mut out = 0;
    for i in 0..4 {
        let s = selector >> (4 * i) & 0xf;
        let word = if s & 4 != 0 { b } else { a };
        let byte = word >> (8 * (s & 3)) & 0xff;
        let sign = if byte & 0x80 != 0 { 0xff } else { 0 };
        out |= (if s & 8 != 0 { sign } else { byte }) << (8 * i);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lop3_table_matches_its_truth_table() {
        for lut in 0..=255u8 {
            let (a, b, c) = (0xf0f0_f0f0, 0xcccc_cccc, 0xaaaa_aaaa);
            let wanted = u32::from(lut) * 0x0101_0101;
            assert_eq!(lop3(lut, a, b, c), wanted);
            let mut w = Warp::new(4, 0, 0, 0, 0, u32::MAX);
            for (register, value) in w.r32.iter_mut().zip([a, b, c]) {
                register.0 = [value; 32];
            }
            lop3_op(&mut w, u32::MAX, lut, R32(3), [R32(0), R32(1), R32(2)]);
            assert_eq!(*w.get(R32(3)), [wanted; 32], "{lut:#x}");
        }
    }
}
