//! Bit fields, counting, dot products and the integer forms outside the inner loops of kernels.

use super::carry::carry;
use super::integer::{lop3, prmt, sext16, shl32};
use crate::exec::lanes::each;
use crate::exec::warp::Warp;
use crate::op::{I16x2, ICount, IUn, Op, PrmtMode, Slot, Video, W};

fn prmt_mode(mode: PrmtMode, a: u32, b: u32, c: u32) -> u32 {
    let n = c & 3;
    let selector = match mode {
        PrmtMode::Index => return prmt(a, b, c),
        PrmtMode::F4e => [0x3210, 0x4321, 0x5432, 0x6543][n as usize],
        PrmtMode::B4e => [0x5670, 0x6701, 0x7012, 0x0123][n as usize],
        PrmtMode::Rc8 => [0x0000, 0x1111, 0x2222, 0x3333][n as usize],
        PrmtMode::Ecl => [0x3210, 0x3211, 0x3222, 0x3333][n as usize],
        PrmtMode::Ecr => [0x0000, 0x1110, 0x2210, 0x3210][n as usize],
        PrmtMode::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232][n as usize],
    };
    prmt(a, b, selector)
}

/// Position and length of a bit field: the 32-bit instructions look at eight bits of each, the
/// 64-bit ones (sequences of others on the hardware) at all.
fn extent(width: u32, pos: u32, len: u32) -> (u32, u32) {
    match width {
        32 => (pos & 0xff, len & 0xff),
        _ => (pos, len),
    }
}

fn bfe(value: u64, width: u32, signed: bool, pos: u32, len: u32) -> u64 {
    let (pos, len) = extent(width, pos, len);
    if len == 0 {
        return 0;
    }
    let bit = |i: u32| value >> i.min(width - 1) & 1;
    let fill = match signed && bit(pos.saturating_add(len - 1)) == 1 {
        true => u64::MAX,
        false => 0,
    };
    let body = if pos >= width { 0 } else { value >> pos };
    let kept = len.min(width.saturating_sub(pos));
    let mask = if kept >= 64 {
        u64::MAX
    } else {
        (1u64 << kept) - 1
    };
    (body & mask) | (fill & !mask)
}

fn bfi(field: u64, base: u64, width: u32, pos: u32, len: u32) -> u64 {
    let (pos, len) = extent(width, pos, len);
    if pos >= width || len == 0 {
        return base;
    }
    let len = len.min(width - pos);
    let mask = (if len >= 64 {
        u64::MAX
    } else {
        (1u64 << len) - 1
    }) << pos;
    (base & !mask) | (field << pos & mask)
}

fn bfind(value: u64, width: u32, signed: bool, shift: bool) -> u32 {
    let top = 1u64 << (width - 1);
    let value = match signed && value & top != 0 {
        true => !value & (top | (top - 1)),
        false => value,
    };
    match value {
        0 => u32::MAX,
        _ if shift => width - 1 - (63 - value.leading_zeros()),
        _ => 63 - value.leading_zeros(),
    }
}

fn count(op: ICount, value: u64, width: u32) -> u32 {
    match op {
        ICount::Popc => value.count_ones(),
        ICount::Clz => value.leading_zeros() - (64 - width),
        ICount::BfindS => bfind(value, width, true, false),
        ICount::BfindU => bfind(value, width, false, false),
        ICount::BfindShiftS => bfind(value, width, true, true),
        ICount::BfindShiftU => bfind(value, width, false, true),
    }
}

fn un(op: IUn, x: u64, width: u32) -> u64 {
    let mask = u64::MAX >> (64 - width);
    let signed = ((x << (64 - width)) as i64) >> (64 - width);
    let out = match op {
        IUn::Not => !x,
        IUn::Neg => x.wrapping_neg(),
        IUn::Abs => signed.wrapping_abs() as u64,
        IUn::Cnot => u64::from(x & mask == 0),
        IUn::Brev => x.reverse_bits() >> (64 - width),
    };
    out & mask
}

fn pairs(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let low = f(a as u16, b as u16);
    let high = f((a >> 16) as u16, (b >> 16) as u16);
    u32::from(high) << 16 | u32::from(low)
}

fn bin16x2(op: I16x2, a: u32, b: u32) -> u32 {
    let signed = |f: fn(i16, i16) -> i16| pairs(a, b, |x, y| f(x as i16, y as i16) as u16);
    match op {
        I16x2::Add => pairs(a, b, u16::wrapping_add),
        I16x2::MinU => pairs(a, b, u16::min),
        I16x2::MaxU => pairs(a, b, u16::max),
        I16x2::MinS => signed(i16::min),
        I16x2::MaxS => signed(i16::max),
        I16x2::MinSRelu => signed(|x, y| x.min(y).max(0)),
        I16x2::MaxSRelu => signed(|x, y| x.max(y).max(0)),
    }
}

fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base as i64;
    if !(0..32).contains(&base) {
        return u32::MAX;
    }
    let set = |i: &i64| mask >> i & 1 == 1;
    let found = match offset {
        0 => set(&base).then_some(base),
        n if n > 0 => (base..32).filter(set).nth(n as usize - 1),
        n => (0..=base)
            .rev()
            .filter(set)
            .nth(n.unsigned_abs() as usize - 1),
    };
    found.map_or(u32::MAX, |i| i as u32)
}

fn byte(x: u32, i: u32, signed: bool) -> i32 {
    let b = (x >> (8 * i)) as u8;
    if signed {
        i32::from(b as i8)
    } else {
        i32::from(b)
    }
}

fn half(x: u32, i: u32, signed: bool) -> i32 {
    let h = (x >> (16 * i)) as u16;
    if signed {
        i32::from(h as i16)
    } else {
        i32::from(h)
    }
}

fn szext(x: u32, n: u32, signed: bool, clamp: bool) -> u32 {
    let n = if clamp { n.min(32) } else { n & 31 };
    match n {
        0 => 0,
        32 => x,
        _ if signed => ((x << (32 - n)) as i32 >> (32 - n)) as u32,
        _ => x & ((1 << n) - 1),
    }
}

fn bmsk(pos: u32, len: u32, clamp: bool) -> u32 {
    let (pos, len) = match clamp {
        true => (pos.min(32), len.min(32)),
        false => (pos & 31, len & 31),
    };
    let ones = if len == 32 { u32::MAX } else { (1 << len) - 1 };
    shl32(ones, pos)
}

fn mad24(x: u32, y: u32, signed: bool) -> i64 {
    match signed {
        true => i64::from((x << 8) as i32 >> 8) * i64::from((y << 8) as i32 >> 8),
        false => (u64::from(x & 0xff_ffff) * u64::from(y & 0xff_ffff)) as i64,
    }
}

/// Video instructions.
fn video(w: &mut Warp, mask: u32, op: &Video) {
    let [a, b, c] = [op.a, op.b, op.c].map(|r| *w.get(r));
    let results = std::array::from_fn(|i| crate::numeric::video::video(op, a[i], b[i], c[i]));
    w.put(mask, op.d, results);
}

/// The integer instructions that are not in the inner loops of kernels.
#[inline(never)]
pub(crate) fn rare(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
        Op::Bin16x2 { op, d, a, b } => w.map2(mask, d, a, b, |x, y| bin16x2(op, x, y)),
        Op::Un32 { w: width, op, d, a } => {
            let bits = if width == W::B16 { 16 } else { 32 };
            w.map1(mask, d, a, |x| un(op, u64::from(x), bits) as u32);
        }
        Op::Un64 { op, d, a } => w.map1_64(mask, d, a, |x| un(op, x, 64)),
        Op::Count32 { op, d, a } => w.map1(mask, d, a, |x| count(op, u64::from(x), 32)),
        Op::Count64 { op, d, a } => {
            let x = w.get64(a);
            let v = each(|i| count(op, x[i], 64));
            w.put(mask, d, v);
        }
        Op::Video(ref op) => video(w, mask, op),
        _ => products(w, mask, op),
    }
}

/// Products, sums of them, and sums of differences.
fn products(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
        Op::MadHi32 {
            w: width,
            signed,
            sat,
            d,
            a,
            b,
            c,
        } => {
            let hi = |x: u32, y: u32| match (width, signed) {
                (W::B16, true) => sext16(x).wrapping_mul(sext16(y)) >> 16,
                (W::B16, false) => ((x & 0xffff).wrapping_mul(y & 0xffff) >> 16) as i32,
                (W::B32, true) => ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as i32,
                (W::B32, false) => ((u64::from(x) * u64::from(y)) >> 32) as i32,
            };
            let keep = if width == W::B16 { 0xffff } else { u32::MAX };
            w.map3(mask, d, [a, b, c], |x, y, z| match sat {
                true => hi(x, y).saturating_add(z as i32) as u32,
                false => (hi(x, y) as u32).wrapping_add(z) & keep,
            });
        }
        Op::MadLo64 { d, a, b, c } => {
            w.map3_64(mask, d, [a, b, c], |x, y, z| {
                x.wrapping_mul(y).wrapping_add(z)
            });
        }
        Op::MadHi64 { signed, d, a, b, c } => w.map3_64(mask, d, [a, b, c], |x, y, z| {
            let hi = match signed {
                true => ((i128::from(x as i64) * i128::from(y as i64)) >> 64) as u64,
                false => ((u128::from(x) * u128::from(y)) >> 64) as u64,
            };
            hi.wrapping_add(z)
        }),
        Op::MulWide16 { signed, d, a, b } => w.map2(mask, d, a, b, |x, y| match signed {
            true => sext16(x).wrapping_mul(sext16(y)) as u32,
            false => (x & 0xffff).wrapping_mul(y & 0xffff),
        }),
        Op::MadWide16 { signed, d, a, b, c } => {
            w.map3(mask, d, [a, b, c], |x, y, z| match signed {
                true => (sext16(x).wrapping_mul(sext16(y)) as u32).wrapping_add(z),
                false => (x & 0xffff).wrapping_mul(y & 0xffff).wrapping_add(z),
            })
        }
        Op::Mad24 {
            signed,
            hi,
            sat,
            d,
            a,
            b,
            c,
        } => w.map3(mask, d, [a, b, c], |x, y, z| {
            let product = mad24(x, y, signed);
            let part = if hi {
                (product >> 16) as u32
            } else {
                product as u32
            };
            match sat {
                true => (part as i32).saturating_add(z as i32) as u32,
                false => part.wrapping_add(z),
            }
        }),
        Op::Sad32 {
            w: width,
            signed,
            d,
            a,
            b,
            c,
        } => {
            let f = |x: u32, y: u32| match (width, signed) {
                (W::B16, true) => sext16(x).abs_diff(sext16(y)),
                (W::B32, true) => (x as i32).abs_diff(y as i32),
                (_, false) => x.abs_diff(y),
            };
            let keep = if width == W::B16 { 0xffff } else { u32::MAX };
            w.map3(mask, d, [a, b, c], |x, y, z| f(x, y).wrapping_add(z) & keep);
        }
        Op::Sad64 { signed, d, a, b, c } => w.map3_64(mask, d, [a, b, c], |x, y, z| {
            let diff = if signed {
                (x as i64).abs_diff(y as i64)
            } else {
                x.abs_diff(y)
            };
            diff.wrapping_add(z)
        }),
        Op::Dp4a {
            a_signed,
            b_signed,
            d,
            a,
            b,
            c,
        } => w.map3(mask, d, [a, b, c], |x, y, z| {
            let dot = (0..4)
                .map(|i| byte(x, i, a_signed) * byte(y, i, b_signed))
                .sum::<i32>();
            z.wrapping_add(dot as u32)
        }),
        Op::Dp2a {
            a_signed,
            b_signed,
            hi,
            d,
            a,
            b,
            c,
        } => w.map3(mask, d, [a, b, c], |x, y, z| {
            let first = if hi { 2 } else { 0 };
            let dot = (0..2)
                .map(|i| half(x, i, a_signed) * byte(y, first + i, b_signed))
                .fold(0i32, i32::wrapping_add);
            z.wrapping_add(dot as u32)
        }),
        _ => fields(w, mask, op),
    }
}

/// Instructions on the bits of a word.
fn fields(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
        Op::Lop3Pred {
            lut,
            or,
            d,
            p,
            q,
            a,
            b,
            c,
        } => {
            let (x, y, z) = (w.get(a), w.get(b), w.get(c));
            let v: [u32; 32] = each(|i| lop3(lut, x[i], y[i], z[i]));
            let set = (0..32).fold(0, |m, i| m | u32::from(v[i] != 0) << i);
            let other = w.pred(q);
            if let Slot::W32(d) = d {
                w.put(mask, d, v);
            }
            w.put_pred(mask, p, if or { set | other } else { set & other });
        }
        Op::Prmt { mode, d, a, b, c } => {
            w.map3(mask, d, [a, b, c], |x, y, z| prmt_mode(mode, x, y, z))
        }
        Op::Bfe32 { signed, d, a, b, c } => {
            w.map3(mask, d, [a, b, c], |x, p, n| {
                bfe(u64::from(x), 32, signed, p, n) as u32
            });
        }
        Op::Bfe64 { signed, d, a, b, c } => {
            let (x, p, n) = (w.get64(a), w.get(b), w.get(c));
            let v = each(|i| bfe(x[i], 64, signed, p[i], n[i]));
            w.put64(mask, d, v);
        }
        Op::Bfi32 { d, a, e, b, c } => {
            let (f, base, p, n) = (w.get(a), w.get(e), w.get(b), w.get(c));
            let v = each(|i| bfi(f[i].into(), base[i].into(), 32, p[i], n[i]) as u32);
            w.put(mask, d, v);
        }
        Op::Bfi64 { d, a, e, b, c } => {
            let (f, base, p, n) = (w.get64(a), w.get64(e), w.get(b), w.get(c));
            let v = each(|i| bfi(f[i], base[i], 64, p[i], n[i]));
            w.put64(mask, d, v);
        }
        Op::Bmsk { clamp, d, a, b } => w.map2(mask, d, a, b, |p, n| bmsk(p, n, clamp)),
        Op::Szext {
            signed,
            clamp,
            d,
            a,
            b,
        } => w.map2(mask, d, a, b, |x, n| szext(x, n, signed, clamp)),
        Op::Shf {
            left,
            wrap,
            d,
            a,
            b,
            c,
        } => w.map3(mask, d, [a, b, c], |lo, hi, n| {
            let n = if wrap { n & 31 } else { n.min(32) };
            let pair = u64::from(hi) << 32 | u64::from(lo);
            if left {
                (pair << n >> 32) as u32
            } else {
                (pair >> n) as u32
            }
        }),
        Op::Fns {
            d,
            mask: m,
            base,
            offset,
        } => {
            w.map3(mask, d, [m, base, offset], |m, b, o| fns(m, b, o as i32));
        }
        _ => carry(w, mask, op),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_follow_the_ptx_pseudocode() {
        assert_eq!(bfe(0x0000_0f00, 32, true, 8, 4) as u32, u32::MAX);
        assert_eq!(bfe(0x8000_0000, 32, true, 40, 4) as u32, u32::MAX);
        assert_eq!(bfe(0x1234_5678, 32, false, 8, 8), 0x56);
        assert_eq!(bfi(0xff, 0, 32, 28, 8), 0xf000_0000);
        assert_eq!(bfi(0, u64::MAX, 64, 5, 259), 0x1f);
        assert_eq!(bfe(100, 64, false, 0, 259), 100);
        assert_eq!(bfind(0, 32, false, false), u32::MAX);
        assert_eq!(bfind(0xffff_fff0, 32, true, false), 3);
        assert_eq!(prmt(0x3322_1180, 0x7766_5544, 0x7408), 0x7744_80ff);
        assert_eq!(fns(0b1010_0110, 0, 3), 5);
    }
}
