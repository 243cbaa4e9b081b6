//! Comparisons, and choices by them.

use super::float::{f, ff, half_kind};
use crate::exec::lanes::each;
use crate::exec::warp::Warp;
use crate::numeric::halves::Half;
use crate::op::{Cmp, FTest, Op, P, R32, R64, W, misrouted};

/// A comparison of two numbers per lane, from the lanes where the first is less, where both are
/// equal, and where one is not a number.
#[inline(always)]
fn decide(cmp: Cmp, less: u32, equal: u32, nan: u32) -> u32 {
    match cmp {
        Cmp::Eq => equal,
        Cmp::Ne => !equal & !nan,
        Cmp::Lt => less,
        Cmp::Le => less | equal,
        Cmp::Gt => !(less | equal | nan),
        Cmp::Ge => !(less | nan),
        Cmp::Equ => equal | nan,
        Cmp::Neu => !equal,
        Cmp::Ltu => less | nan,
        Cmp::Leu => less | equal | nan,
        Cmp::Gtu => !(less | equal),
        Cmp::Geu => !less,
        Cmp::Num => !nan,
        Cmp::Nan => nan,
    }
}

/// The lanes that pass a test.
#[inline(always)]
fn which(test: impl Fn(usize) -> bool) -> u32 {
    let mut bits = 0;
    for i in 0..32 {
        bits |= u32::from(test(i)) << i;
    }
    bits
}

#[inline(always)]
pub(crate) fn setp_f32(w: &mut Warp, mask: u32, cmp: Cmp, ftz: bool, d: P, ab: [R32; 2]) {
    let flush = |r: R32| {
        let r = w.get(r);
        match ftz {
            true => each(
                #[inline(always)]
                |i| ff(r[i]),
            ),
            false => each(
                #[inline(always)]
                |i| f(r[i]),
            ),
        }
    };
    let (x, y) = (flush(ab[0]), flush(ab[1]));
    let less = which(
        #[inline(always)]
        |i| x[i] < y[i],
    );
    let equal = which(
        #[inline(always)]
        |i| x[i] == y[i],
    );
    let nan = which(
        #[inline(always)]
        |i| x[i].is_nan() | y[i].is_nan(),
    );
    w.put_pred(mask, d, decide(cmp, less, equal, nan));
}

#[inline(always)]
pub(crate) fn setp_i64(w: &mut Warp, mask: u32, cmp: Cmp, signed: bool, d: P, ab: [R64; 2]) {
    let (x, y) = (w.get64(ab[0]), w.get64(ab[1]));
    let flip = if signed { 1 << 63 } else { 0 };
    let less = which(
        #[inline(always)]
        |i| x[i] ^ flip < y[i] ^ flip,
    );
    let equal = which(
        #[inline(always)]
        |i| x[i] == y[i],
    );
    w.put_pred(mask, d, decide(cmp, less, equal, 0));
}

#[inline(always)]
fn compare<T: PartialOrd>(cmp: Cmp, a: T, b: T, nan: bool) -> bool {
    match cmp {
        Cmp::Eq => a == b,
        Cmp::Ne => a != b && !nan,
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
        Cmp::Equ => nan || a == b,
        Cmp::Neu => nan || a != b,
        Cmp::Ltu => nan || a < b,
        Cmp::Leu => nan || a <= b,
        Cmp::Gtu => nan || a > b,
        Cmp::Geu => nan || a >= b,
        Cmp::Num => !nan,
        Cmp::Nan => nan,
    }
}

#[inline(always)]
pub(crate) fn setp_i32(w: &mut Warp, mask: u32, cmp: Cmp, signed: bool, d: P, a: R32, b: R32) {
    let s = |x: u32| x as i32;
    match (cmp, signed) {
        (Cmp::Eq | Cmp::Equ, _) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x == y,
        ),
        (Cmp::Ne | Cmp::Neu, _) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x != y,
        ),
        (Cmp::Lt | Cmp::Ltu, true) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| s(x) < s(y),
        ),
        (Cmp::Le | Cmp::Leu, true) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| s(x) <= s(y),
        ),
        (Cmp::Gt | Cmp::Gtu, true) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| s(x) > s(y),
        ),
        (Cmp::Ge | Cmp::Geu, true) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| s(x) >= s(y),
        ),
        (Cmp::Lt | Cmp::Ltu, false) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x < y,
        ),
        (Cmp::Le | Cmp::Leu, false) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x <= y,
        ),
        (Cmp::Gt | Cmp::Gtu, false) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x > y,
        ),
        (Cmp::Ge | Cmp::Geu, false) => w.test2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| x >= y,
        ),
        (Cmp::Num, _) => w.put_pred(mask, d, u32::MAX),
        (Cmp::Nan, _) => w.put_pred(mask, d, 0),
    }
}

#[inline(never)]
fn setp_i16(w: &mut Warp, mask: u32, cmp: Cmp, signed: bool, d: P, a: R32, b: R32) {
    w.test2(mask, d, a, b, |x, y| match signed {
        true => compare(cmp, x as i16, y as i16, false),
        false => compare(cmp, x as u16, y as u16, false),
    });
}

fn test32(test: FTest, x: u32) -> bool {
    let x = f(x);
    match test {
        FTest::Finite => x.is_finite(),
        FTest::Infinite => x.is_infinite(),
        FTest::Number => !x.is_nan(),
        FTest::NotANumber => x.is_nan(),
        // Zero counts as normal on the hardware.
        FTest::Normal => x.is_normal() || x == 0.0,
        FTest::Subnormal => x.is_subnormal(),
    }
}

fn test64(test: FTest, x: u64) -> bool {
    let x = f64::from_bits(x);
    match test {
        FTest::Finite => x.is_finite(),
        FTest::Infinite => x.is_infinite(),
        FTest::Number => !x.is_nan(),
        FTest::NotANumber => x.is_nan(),
        // Zero counts as normal on the hardware.
        FTest::Normal => x.is_normal() || x == 0.0,
        FTest::Subnormal => x.is_subnormal(),
    }
}

/// Comparisons and selections outside the interpreter's own arms.
#[inline(never)]
pub(crate) fn rare(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
        Op::Testp32 { test, d, a } => w.test2(mask, d, a, a, |x, _| test32(test, x)),
        Op::Testp64 { test, d, a } => w.test2_64(mask, d, a, a, |x, _| test64(test, x)),
        Op::SetpI32 {
            w: W::B16,
            cmp,
            signed,
            d,
            a,
            b,
        } => setp_i16(w, mask, cmp, signed, d, a, b),
        Op::SetpI32 {
            cmp,
            signed,
            d,
            a,
            b,
            ..
        } => setp_i32(w, mask, cmp, signed, d, a, b),
        Op::SetpF64 { cmp, d, a, b } => w.test2_64(mask, d, a, b, |x, y| {
            let (x, y) = (f64::from_bits(x), f64::from_bits(y));
            compare(cmp, x, y, x.is_nan() || y.is_nan())
        }),
        Op::SetpH {
            fmt,
            cmp,
            ftz,
            d,
            q,
            a,
            b,
        } => {
            let (kind, _) = half_kind(fmt);
            let tiny = |x: f32| ftz && kind == Half::F16 && x.abs() < 6.103_515_6e-5;
            let wide = |x: u32| {
                let x = kind.widen(x as u16);
                if tiny(x) { 0.0 } else { x }
            };
            let test = |x: u32, y: u32| {
                let (x, y) = (wide(x), wide(y));
                compare(cmp, x, y, x.is_nan() || y.is_nan())
            };
            let (x, y) = (*w.get(a), *w.get(b));
            w.test2(mask, d, a, b, test);
            if let Some(q) = q {
                let high = (0..32).fold(0, |m, i| m | u32::from(test(x[i] >> 16, y[i] >> 16)) << i);
                w.put_pred(mask, q, high);
            }
        }
        Op::Slct32 { d, a, b, c, float } => w.map3(mask, d, [a, b, c], |x, y, z| {
            if chooses_first(z, float) { x } else { y }
        }),
        Op::Slct64 { d, a, b, c, float } => {
            let (x, y, z) = (w.get64(a), w.get64(b), w.get(c));
            let v = each(|i| {
                if chooses_first(z[i], float) {
                    x[i]
                } else {
                    y[i]
                }
            });
            w.put64(mask, d, v);
        }
        ref other => misrouted(other),
    }
}

fn chooses_first(c: u32, float: bool) -> bool {
    match float {
        true => f(c) >= 0.0,
        false => c as i32 >= 0,
    }
}
