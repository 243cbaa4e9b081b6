//! Float and half arithmetic, comparisons and selects.

use super::units::misrouted;
use super::warp::{Warp, each};
use crate::numeric::arith::{self, Extremum, canonical_f32, flush_f32};
use crate::numeric::halves::{Half, HalfMode, both};
use crate::numeric::{FloatMode, Rounding, approx, lanes};
use crate::op::{Cmp, FBin, FMods, FTest, FUn, HFmt, Num, Op, R32, Round, W};
use crate::tensor::tensormap::OUT_OF_BOUNDS;

/// The same rounding in the numeric crate's terms.
pub(super) fn rounding(round: Round) -> Rounding {
    match round {
        Round::Near => Rounding::NearestEven,
        Round::Zero => Rounding::Zero,
        Round::Down => Rounding::Down,
        Round::Up => Rounding::Up,
        Round::NearAway => Rounding::NearestAway,
    }
}

fn mode(m: FMods) -> FloatMode {
    FloatMode {
        rounding: rounding(m.round),
        ftz: m.ftz,
        sat: m.sat,
    }
}

fn half_mode(m: FMods) -> HalfMode {
    HalfMode {
        ftz: m.ftz,
        sat: m.sat,
        relu: m.relu,
    }
}

/// Round to nearest without flushing or clamping: what compilers emit by default.
#[inline(always)]
fn plain(m: FMods) -> bool {
    m.round == Round::Near && !m.ftz && !m.sat && !m.relu && !m.oob
}

#[inline(always)]
fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

/// Round to nearest with subnormals flushed: what compilers emit with fast math.
#[inline(always)]
fn flushing(m: FMods) -> bool {
    m.round == Round::Near && m.ftz && !m.sat && !m.relu && !m.oob
}

/// A flushed result per lane, or None if one of them needs a closer look: the smallest normal
/// number may have been a smaller one rounded up (see [`arith`]), which is flushed too.
#[inline(always)]
fn flushed(result: impl Fn(usize) -> f32) -> Option<[u32; 32]> {
    const SMALLEST_NORMAL: u32 = 0x0080_0000;
    let v = each(
        #[inline(always)]
        |i| canonical_f32(result(i)),
    );
    let mut doubtful = false;
    for x in &v {
        doubtful |= x & 0x7fff_ffff == SMALLEST_NORMAL;
    }
    (!doubtful).then(|| {
        each(
            #[inline(always)]
            |i| flush_f32(v[i]),
        )
    })
}

/// An operand without subnormals.
#[inline(always)]
fn ff(x: u32) -> f32 {
    f(flush_f32(x))
}

#[inline(always)]
pub(super) fn bin32(w: &mut Warp, mask: u32, op: FBin, m: FMods, d: R32, a: R32, b: R32) {
    macro_rules! arithmetic {
        ($op:tt) => {{
            let (x, y) = (w.get(a), w.get(b));
            let v = match m.ftz {
                false => Some(each(
                    #[inline(always)]
                    |i| canonical_f32(f(x[i]) $op f(y[i])),
                )),
                true => flushed(
                    #[inline(always)]
                    |i| ff(x[i]) $op ff(y[i]),
                ),
            };
            match v {
                Some(v) => w.put(mask, d, v),
                None => bin32_rare(w, mask, op, m, d, a, b),
            }
        }};
    }
    match op {
        FBin::Add if plain(m) || flushing(m) => arithmetic!(+),
        FBin::Sub if plain(m) || flushing(m) => arithmetic!(-),
        FBin::Mul if plain(m) || flushing(m) => arithmetic!(*),
        FBin::Div if plain(m) || flushing(m) => arithmetic!(/),
        FBin::DivApprox if m.ftz => w.map2(
            mask,
            d,
            a,
            b,
            #[inline(always)]
            |x, y| approx::div_approx_f32(x, y, true),
        ),
        FBin::Min | FBin::Max => {
            let max = op == FBin::Max;
            let (x, y) = (w.get(a), w.get(b));
            let v = match m.ftz {
                true => each(
                    #[inline(always)]
                    |i| arith::nearer_f32(max, flush_f32(x[i]), flush_f32(y[i])),
                ),
                false => each(
                    #[inline(always)]
                    |i| arith::nearer_f32(max, x[i], y[i]),
                ),
            };
            w.put(mask, d, v);
        }
        _ => bin32_rare(w, mask, op, m, d, a, b),
    }
}

#[inline(always)]
pub(super) fn fma32(w: &mut Warp, mask: u32, m: FMods, d: R32, abc: [R32; 3]) {
    let (x, y, z) = (w.get(abc[0]), w.get(abc[1]), w.get(abc[2]));
    let v = if plain(m) {
        Some(each(
            #[inline(always)]
            |i| canonical_f32(f(x[i]).mul_add(f(y[i]), f(z[i]))),
        ))
    } else if flushing(m) {
        flushed(
            #[inline(always)]
            |i| ff(x[i]).mul_add(ff(y[i]), ff(z[i])),
        )
    } else {
        None
    };
    match v {
        Some(v) => w.put(mask, d, v),
        None => fma32_rare(w, mask, m, d, abc),
    }
}

/// One operand, where a whole warp at once pays.
#[inline(always)]
pub(super) fn un32_op(w: &mut Warp, mask: u32, op: FUn, m: FMods, d: R32, a: R32) {
    macro_rules! lanes {
        ($function:path) => {
            match m.ftz {
                true => w.map1(
                    mask,
                    d,
                    a,
                    #[inline(always)]
                    |x| $function(x, true),
                ),
                false => w.map1(
                    mask,
                    d,
                    a,
                    #[inline(always)]
                    |x| $function(x, false),
                ),
            }
        };
    }
    match op {
        FUn::Neg => lanes!(arith::neg_f32),
        FUn::Abs => lanes!(arith::abs_f32),
        FUn::SqrtApprox => lanes!(approx::sqrt_f32),
        FUn::RcpApprox => lanes!(approx::rcp_f32),
        FUn::RsqrtApprox => lanes!(approx::rsqrt_f32),
        FUn::Ex2Approx => lanes!(approx::ex2_f32),
        _ => un32_rare(w, mask, op, m, d, a),
    }
}

#[inline(never)]
fn un32_rare(w: &mut Warp, mask: u32, op: FUn, m: FMods, d: R32, a: R32) {
    w.map1(mask, d, a, |x| un32(op, m, x));
}

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
pub(super) fn setp_f32(
    w: &mut Warp,
    mask: u32,
    cmp: Cmp,
    ftz: bool,
    d: crate::op::P,
    ab: [R32; 2],
) {
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
pub(super) fn setp_i64(
    w: &mut Warp,
    mask: u32,
    cmp: Cmp,
    signed: bool,
    d: crate::op::P,
    ab: [crate::op::R64; 2],
) {
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

#[inline(never)]
fn fma32_rare(w: &mut Warp, mask: u32, m: FMods, d: R32, abc: [R32; 3]) {
    let mode = mode(m);
    w.map3(mask, d, abc, |x, y, z| arith::fma_f32(x, y, z, mode));
}

fn extremum(op: FBin, ftz: bool) -> Extremum {
    use FBin::{MaxNan, MaxNanXorsignAbs, MaxXorsignAbs, MinNan, MinNanXorsignAbs, MinXorsignAbs};
    Extremum {
        max: matches!(op, FBin::Max | MaxNan | MaxXorsignAbs | MaxNanXorsignAbs),
        ftz,
        nan: matches!(op, MinNan | MaxNan | MinNanXorsignAbs | MaxNanXorsignAbs),
        xorsign_abs: matches!(
            op,
            MinXorsignAbs | MaxXorsignAbs | MinNanXorsignAbs | MaxNanXorsignAbs
        ),
    }
}

fn scalar32(op: FBin, m: FMods, x: u32, y: u32) -> u32 {
    let mode = mode(m);
    match op {
        FBin::Add => arith::add_f32(x, y, mode),
        FBin::Sub => arith::sub_f32(x, y, mode),
        FBin::Mul => arith::mul_f32(x, y, mode),
        FBin::Div => arith::div_f32(x, y, mode),
        FBin::DivFull => approx::div_full_f32(x, y, m.ftz),
        FBin::DivApprox => approx::div_approx_f32(x, y, m.ftz),
        FBin::Copysign => (y & 0x7fff_ffff) | (x & 0x8000_0000),
        _ => extremum(op, m.ftz).f32(x, y),
    }
}

#[inline(never)]
fn bin32_rare(w: &mut Warp, mask: u32, op: FBin, m: FMods, d: R32, a: R32, b: R32) {
    w.map2(mask, d, a, b, |x, y| scalar32(op, m, x, y));
}

fn scalar64(op: FBin, m: FMods, x: u64, y: u64) -> u64 {
    let rounding = rounding(m.round);
    match op {
        FBin::Add => arith::add_f64(x, y, rounding),
        FBin::Sub => arith::sub_f64(x, y, rounding),
        FBin::Mul => arith::mul_f64(x, y, rounding),
        FBin::Div | FBin::DivFull | FBin::DivApprox => arith::div_f64(x, y, rounding),
        FBin::Copysign => (y & (u64::MAX >> 1)) | (x & (1 << 63)),
        _ => extremum(op, false).f64(x, y),
    }
}

fn un32(op: FUn, m: FMods, x: u32) -> u32 {
    match op {
        FUn::Neg => arith::neg_f32(x, m.ftz),
        FUn::Abs => arith::abs_f32(x, m.ftz),
        FUn::Sqrt => arith::sqrt_f32(x, mode(m)),
        FUn::Rcp => arith::rcp_f32(x, mode(m)),
        FUn::SqrtApprox => approx::sqrt_f32(x, m.ftz),
        FUn::RcpApprox => approx::rcp_f32(x, m.ftz),
        FUn::RsqrtApprox => approx::rsqrt_f32(x, m.ftz),
        FUn::Ex2Approx => approx::ex2_f32(x, m.ftz),
        FUn::Lg2Approx => approx::lg2_f32(x, m.ftz),
        FUn::SinApprox => approx::sin_f32(x, m.ftz),
        FUn::CosApprox => approx::cos_f32(x, m.ftz),
        FUn::TanhApprox => approx::tanh_f32(x),
    }
}

fn un64(op: FUn, m: FMods, x: u64) -> u64 {
    match op {
        FUn::Neg => arith::neg_f64(x),
        FUn::Abs => arith::abs_f64(x),
        FUn::Sqrt | FUn::SqrtApprox => arith::sqrt_f64(x, rounding(m.round)),
        FUn::RcpApprox => approx::rcp_f64(x),
        FUn::RsqrtApprox if m.ftz => approx::rsqrt_f64(x),
        FUn::RsqrtApprox => approx::rsqrt_full_f64(x),
        _ => arith::rcp_f64(x, rounding(m.round)),
    }
}

fn half_kind(fmt: HFmt) -> (Half, bool) {
    match fmt {
        HFmt::F16 => (Half::F16, false),
        HFmt::F16x2 => (Half::F16, true),
        HFmt::Bf16 => (Half::Bf16, false),
        HFmt::Bf16x2 => (Half::Bf16, true),
    }
}

/// Applies `op` to the low half, or to both.
fn on_halves<const N: usize>(packed: bool, x: [u32; N], op: impl Fn([u16; N]) -> u16) -> u32 {
    match packed {
        true => both(x, op),
        false => u32::from(op(x.map(|x| x as u16))),
    }
}

/// Half arithmetic; packed f16 without modifiers is the inner loop of dequantisation.
#[inline(always)]
pub(super) fn half_bin(
    w: &mut Warp,
    mask: u32,
    fmt: HFmt,
    op: FBin,
    m: FMods,
    [d, a, b]: [R32; 3],
) {
    if fmt == HFmt::F16x2 && plain(m) {
        let (x, y) = (w.get(a), w.get(b));
        let v = match op {
            FBin::Add => Some(lanes::add_f16x2(x, y)),
            FBin::Sub => Some(lanes::sub_f16x2(x, y)),
            FBin::Mul => Some(lanes::mul_f16x2(x, y)),
            _ => None,
        };
        if let Some(v) = v {
            return w.put(mask, d, v);
        }
    }
    half_bin_rare(w, mask, fmt, op, m, [d, a, b]);
}

#[inline(never)]
fn half_bin_rare(w: &mut Warp, mask: u32, fmt: HFmt, op: FBin, m: FMods, [d, a, b]: [R32; 3]) {
    let (kind, packed) = half_kind(fmt);
    let mode = half_mode(m);
    w.map2(mask, d, a, b, |x, y| {
        on_halves(packed, [x, y], |[x, y]| match op {
            FBin::Add => kind.add(x, y, mode),
            FBin::Sub => kind.sub(x, y, mode),
            FBin::Mul => kind.mul(x, y, mode),
            FBin::Copysign => (y & 0x7fff) | (x & 0x8000),
            _ => kind.extremum(x, y, extremum(op, m.ftz)),
        })
    });
}

#[inline(always)]
pub(super) fn half_fma(w: &mut Warp, mask: u32, fmt: HFmt, m: FMods, d: R32, [a, b, c]: [R32; 3]) {
    if fmt == HFmt::F16x2 && plain(m) {
        let v = lanes::fma_f16x2(w.get(a), w.get(b), w.get(c));
        return w.put(mask, d, v);
    }
    half_fma_rare(w, mask, fmt, m, d, [a, b, c]);
}

#[inline(never)]
fn half_fma_rare(w: &mut Warp, mask: u32, fmt: HFmt, m: FMods, d: R32, [a, b, c]: [R32; 3]) {
    let (kind, packed) = half_kind(fmt);
    let mode = half_mode(m);
    w.map3(mask, d, [a, b, c], |x, y, z| {
        on_halves(packed, [x, y, z], |[x, y, z]| {
            match m.oob && (x == OUT_OF_BOUNDS || y == OUT_OF_BOUNDS) {
                true => 0,
                false => kind.fma(x, y, z, mode),
            }
        })
    });
}

fn half_un(kind: Half, op: FUn, m: FMods, x: u16) -> u16 {
    match op {
        FUn::Neg => kind.neg(x, m.ftz),
        FUn::Abs => kind.abs(x, m.ftz),
        FUn::TanhApprox => approx::tanh_half(kind, x),
        _ => approx::ex2_half(kind, x),
    }
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
pub(super) fn setp_i32(
    w: &mut Warp,
    mask: u32,
    cmp: Cmp,
    signed: bool,
    d: crate::op::P,
    a: R32,
    b: R32,
) {
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
fn setp_i16(w: &mut Warp, mask: u32, cmp: Cmp, signed: bool, d: crate::op::P, a: R32, b: R32) {
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

fn packed_f32(x: u64, y: u64, z: u64, op: impl Fn(u32, u32, u32) -> u32) -> u64 {
    let low = op(x as u32, y as u32, z as u32);
    let high = op((x >> 32) as u32, (y >> 32) as u32, (z >> 32) as u32);
    u64::from(high) << 32 | u64::from(low)
}

/// Float instructions outside the inner loops. False if `op` is none.
#[inline(never)]
pub(super) fn rare(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
        Op::F64Bin { op, m, d, a, b } => w.map2_64(mask, d, a, b, |x, y| scalar64(op, m, x, y)),
        Op::F64Fma { m, d, a, b, c } => {
            let rounding = rounding(m.round);
            w.map3_64(mask, d, [a, b, c], |x, y, z| {
                arith::fma_f64(x, y, z, rounding)
            });
        }
        Op::F64Un { op, m, d, a } => w.map1_64(mask, d, a, |x| un64(op, m, x)),
        Op::F32x2Bin { op, m, d, a, b } => w.map2_64(mask, d, a, b, |x, y| {
            packed_f32(x, y, 0, |x, y, _| scalar32(op, m, x, y))
        }),
        Op::F32x2Fma { m, d, a, b, c } => {
            let mode = mode(m);
            w.map3_64(mask, d, [a, b, c], |x, y, z| {
                packed_f32(x, y, z, |x, y, z| arith::fma_f32(x, y, z, mode))
            });
        }
        Op::HUn { fmt, op, m, d, a } => {
            let (kind, packed) = half_kind(fmt);
            w.map1(mask, d, a, |x| {
                on_halves(packed, [x], |[x]| half_un(kind, op, m, x))
            });
        }
        Op::FmaMixed {
            from,
            m,
            d,
            a,
            b,
            c,
        } => {
            let kind = if from == Num::Bf16 {
                Half::Bf16
            } else {
                Half::F16
            };
            let mode = mode(m);
            w.map3(mask, d, [a, b, c], |x, y, z| {
                let wide = |x: u32| kind.widen(x as u16).to_bits();
                arith::fma_f32(wide(x), wide(y), z, mode)
            });
        }
        Op::Testp32 { test, d, a } => w.test2(mask, d, a, a, |x, _| test32(test, x)),
        Op::Testp64 { test, d, a } => w.test2_64(mask, d, a, a, |x, _| test64(test, x)),
        _ => compare_rare(w, mask, op),
    }
}

fn compare_rare(w: &mut Warp, mask: u32, op: &Op) {
    match *op {
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
