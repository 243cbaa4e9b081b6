//! Float and half arithmetic, comparisons and selects.

use crate::exec::lanes::each;
use crate::exec::warp::Warp;
use crate::numeric::arith::{self, Extremum, canonical_f32, flush_f32};
use crate::numeric::halves::{Half, HalfMode, both};
use crate::numeric::{FloatMode, Rounding, approx, lanes};
use crate::op::{FBin, FMods, FUn, HFmt, Num, Op, R32, Round, misrouted};
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
pub(crate) fn f(x: u32) -> f32 {
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
pub(super) fn ff(x: u32) -> f32 {
    f(flush_f32(x))
}

#[inline(always)]
pub(crate) fn bin32(w: &mut Warp, mask: u32, op: FBin, m: FMods, d: R32, a: R32, b: R32) {
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
pub(crate) fn fma32(w: &mut Warp, mask: u32, m: FMods, d: R32, abc: [R32; 3]) {
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
pub(crate) fn un32_op(w: &mut Warp, mask: u32, op: FUn, m: FMods, d: R32, a: R32) {
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
        FUn::Rcp => arith::rcp_f64(x, rounding(m.round)),
        FUn::Ex2Approx | FUn::Lg2Approx | FUn::SinApprox | FUn::CosApprox | FUn::TanhApprox => {
            unreachable!("{op:?} of f64 is refused")
        }
    }
}

pub(super) fn half_kind(fmt: HFmt) -> (Half, bool) {
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
pub(crate) fn half_bin(
    w: &mut Warp,
    mask: u32,
    fmt: HFmt,
    op: FBin,
    m: FMods,
    [d, a, b]: [R32; 3],
) {
    // Above a single half there are zeros, which these keep.
    if matches!(fmt, HFmt::F16 | HFmt::F16x2) && plain(m) {
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
pub(crate) fn half_fma(w: &mut Warp, mask: u32, fmt: HFmt, m: FMods, d: R32, [a, b, c]: [R32; 3]) {
    if matches!(fmt, HFmt::F16 | HFmt::F16x2) && plain(m) {
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
        FUn::Ex2Approx => approx::ex2_half(kind, x),
        other => unreachable!("{other:?} of halves is refused"),
    }
}

fn packed_f32(x: u64, y: u64, z: u64, op: impl Fn(u32, u32, u32) -> u32) -> u64 {
    let low = op(x as u32, y as u32, z as u32);
    let high = op((x >> 32) as u32, (y >> 32) as u32, (z >> 32) as u32);
    u64::from(high) << 32 | u64::from(low)
}

/// Float instructions outside the inner loops. False if `op` is none.
#[inline(never)]
pub(crate) fn rare(w: &mut Warp, mask: u32, op: &Op) {
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
        ref other => misrouted(other),
    }
}
