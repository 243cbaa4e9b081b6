//! Extended-precision arithmetic through the carry flag.

use crate::exec::lanes::each;
use crate::exec::warp::Warp;
use crate::op::{Op, misrouted};

/// Extended-precision arithmetic through the carry flag.
pub(crate) fn carry(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
        Op::Carry32 {
            sub,
            carry_in,
            carry_out,
            d,
            a,
            b,
        } => {
            let (x, y) = (*w.get(a), *w.get(b));
            let (v, flags) = add_chain(w.carry, carry_in, sub, 32, |i| (x[i].into(), y[i].into()));
            w.put(mask, d, v.map(|x| x as u32));
            set_flags(w, mask, carry_out, flags);
        }
        Op::Carry64 {
            sub,
            carry_in,
            carry_out,
            d,
            a,
            b,
        } => {
            let (x, y) = (*w.get64(a), *w.get64(b));
            let (v, flags) = add_chain(w.carry, carry_in, sub, 64, |i| (x[i], y[i]));
            w.put64(mask, d, v);
            set_flags(w, mask, carry_out, flags);
        }
        Op::MadCarry32 {
            hi,
            signed,
            carry_in,
            carry_out,
            d,
            a,
            b,
            c,
        } => {
            let (x, y, z) = (*w.get(a), *w.get(b), *w.get(c));
            let part = |i: usize| {
                let product = match signed {
                    true => (i64::from(x[i] as i32) * i64::from(y[i] as i32)) as u64,
                    false => u64::from(x[i]) * u64::from(y[i]),
                };
                (
                    if hi {
                        product >> 32
                    } else {
                        product & 0xffff_ffff
                    },
                    z[i].into(),
                )
            };
            let (v, flags) = add_chain(w.carry, carry_in, false, 32, part);
            w.put(mask, d, v.map(|x| x as u32));
            set_flags(w, mask, carry_out, flags);
        }
        Op::MadCarry64 {
            hi,
            signed,
            carry_in,
            carry_out,
            d,
            a,
            b,
            c,
        } => {
            let (x, y, z) = (*w.get64(a), *w.get64(b), *w.get64(c));
            let part = |i: usize| {
                let product = match signed {
                    true => (i128::from(x[i] as i64) * i128::from(y[i] as i64)) as u128,
                    false => u128::from(x[i]) * u128::from(y[i]),
                };
                ((if hi { product >> 64 } else { product }) as u64, z[i])
            };
            let (v, flags) = add_chain(w.carry, carry_in, false, 64, part);
            w.put64(mask, d, v);
            set_flags(w, mask, carry_out, flags);
        }
        ref other => misrouted(other),
    }
}

fn set_flags(w: &mut Warp, mask: u32, wanted: bool, flags: u32) {
    if wanted {
        w.carry = (w.carry & !mask) | (flags & mask);
    }
}

/// a + b, or a - b as a + !b + 1, per lane, with the carry out of `bits`. A flag that is read stands
/// for that 1, so after a subtraction the flag says that nothing was borrowed.
fn add_chain(
    carry: u32,
    use_carry: bool,
    sub: bool,
    bits: u32,
    operands: impl Fn(usize) -> (u64, u64),
) -> ([u64; 32], u32) {
    let mut flags = 0;
    let keep = (1u128 << bits) - 1;
    let out = each(|i| {
        let (x, y) = operands(i);
        let y = if sub { !y } else { y };
        let one = match use_carry {
            true => carry >> i & 1 == 1,
            false => sub,
        };
        let sum = u128::from(x) + (u128::from(y) & keep) + u128::from(one);
        flags |= u32::from(sum >> bits & 1 == 1) << i;
        (sum & keep) as u64
    });
    (out, flags)
}
