//! Instructions of the inner loops that only compute.

use crate::exec::alu::{compare, convert, exchange, float, integer};
use crate::exec::lanes::each;
use crate::exec::warp::Warp;
use crate::op::{BoolOp, ICount, IUn, Inst, Op, PrmtMode, R32, Slot, Space, W};

/// Executes one for the lanes of `mask` (at least one); false if it is another.
#[inline(always)]
pub(super) fn plain(w: &mut Warp, mask: u32, inst: &Inst) -> bool {
    match inst.op {
        Op::Bin32 {
            w: W::B32,
            op,
            d,
            a,
            b,
        } => integer::bin32(w, mask, op, d, a, b),
        Op::Bin64 { op, d, a, b } => integer::bin64(w, mask, op, d, a, b),
        Op::Shift64 { op, d, a, b } => integer::shift64_op(w, mask, op, d, a, b),
        Op::MadLo32 {
            w: W::B32,
            d,
            a,
            b,
            c,
        } => w.map3(
            mask,
            d,
            [a, b, c],
            #[inline(always)]
            |x, y, z| x.wrapping_mul(y).wrapping_add(z),
        ),
        Op::MulWide32 { signed, d, a, b } => integer::mad_wide(w, mask, signed, d, a, b, None),
        Op::MadWide32 { signed, d, a, b, c } => {
            integer::mad_wide(w, mask, signed, d, a, b, Some(c))
        }
        Op::Lop3 { lut, d, a, b, c } => integer::lop3_op(w, mask, lut, d, [a, b, c]),
        Op::Prmt {
            mode: PrmtMode::Index,
            d,
            a,
            b,
            c,
        } => w.map3(mask, d, [a, b, c], integer::prmt),
        Op::F32Bin { op, m, d, a, b } => float::bin32(w, mask, op, m, d, a, b),
        Op::F32Fma { m, d, a, b, c } => float::fma32(w, mask, m, d, [a, b, c]),
        Op::F32Un { op, m, d, a } => float::un32_op(w, mask, op, m, d, a),
        Op::SetpF32 { cmp, ftz, d, a, b } => compare::setp_f32(w, mask, cmp, ftz, d, [a, b]),
        Op::SetpI64 {
            cmp,
            signed,
            d,
            a,
            b,
        } => compare::setp_i64(w, mask, cmp, signed, d, [a, b]),
        Op::Cvt { from, to, m, d, a } => return convert::quick(w, mask, from, to, m, d, a),
        Op::Count32 {
            op: ICount::Popc,
            d,
            a,
        } => w.map1(mask, d, a, u32::count_ones),
        Op::Un32 {
            w: W::B32,
            op: IUn::Not,
            d,
            a,
        } => w.map1(
            mask,
            d,
            a,
            #[inline(always)]
            |x| !x,
        ),
        Op::Cvta {
            space: Space::Global | Space::Const,
            d,
            a,
            ..
        } => {
            let v = *w.get64(a);
            w.put64(mask, d, v);
        }
        Op::HBin {
            fmt,
            op,
            m,
            d,
            a,
            b,
        } => float::half_bin(w, mask, fmt, op, m, [d, a, b]),
        Op::HFma { fmt, m, d, a, b, c } => float::half_fma(w, mask, fmt, m, d, [a, b, c]),
        Op::SetpI32 {
            w: W::B32,
            cmp,
            signed,
            d,
            a,
            b,
        } => compare::setp_i32(w, mask, cmp, signed, d, a, b),
        Op::PLogic {
            op,
            d,
            a,
            na,
            b,
            nb,
        } => {
            let v = logic(op, negated_if(na, w.pred(a)), negated_if(nb, w.pred(b)));
            w.put_pred(mask, d, v);
        }
        Op::PMov { d, a, negate } => w.put_pred(mask, d, negated_if(negate, w.pred(a))),
        Op::PConst { d, value } => w.put_pred(mask, d, if value { u32::MAX } else { 0 }),
        Op::Selp32 { d, a, b, p } => {
            let v = selected(w.pred(p), w.get(a), w.get(b));
            w.put(mask, d, v);
        }
        Op::Selp64 { d, a, b, p } => {
            let v = selected(w.pred(p), w.get64(a), w.get64(b));
            w.put64(mask, d, v);
        }
        Op::Mov32 { d, a } => copy(w, mask, d, a),
        Op::Mov64 { d, a } => {
            let v = *w.get64(a);
            w.put64(mask, d, v);
        }
        Op::Pack64 { d, lo, hi } => {
            let (lo, hi) = (w.get(lo), w.get(hi));
            let v = each(
                #[inline(always)]
                |i| u64::from(hi[i]) << 32 | u64::from(lo[i]),
            );
            w.put64(mask, d, v);
        }
        Op::Unpack64 { lo, hi, a } => {
            let a = *w.get64(a);
            put_slot(w, mask, lo, each(|i| a[i] as u32));
            put_slot(w, mask, hi, each(|i| (a[i] >> 32) as u32));
        }
        Op::Pack32 { d, lo, hi } => w.map2(
            mask,
            d,
            lo,
            hi,
            #[inline(always)]
            |lo, hi| hi << 16 | (lo & 0xffff),
        ),
        Op::Unpack32 { lo, hi, a } => {
            let a = *w.get(a);
            put_slot(w, mask, lo, each(|i| a[i] & 0xffff));
            put_slot(w, mask, hi, each(|i| a[i] >> 16));
        }
        Op::Shfl { .. } => return exchange::quick_shuffle(w, mask, &inst.op),
        _ => return false,
    }
    true
}

/// Copies a register; while a wgmma still writes it, when that ends.
#[inline(always)]
fn copy(w: &mut Warp, mask: u32, d: R32, a: R32) {
    if !w.wgmma.is_idle() && w.wgmma.is_locked(a) && mask == w.live {
        w.wgmma.defer_copy(a, d);
    } else {
        let v = *w.get(a);
        w.put(mask, d, v);
    }
}

#[inline(always)]
fn logic(op: BoolOp, x: u32, y: u32) -> u32 {
    match op {
        BoolOp::And => x & y,
        BoolOp::Or => x | y,
        BoolOp::Xor => x ^ y,
    }
}

#[inline(always)]
fn negated_if(negate: bool, lanes: u32) -> u32 {
    if negate { !lanes } else { lanes }
}

/// The lanes of `p` from `x`, the others from `y`.
#[inline(always)]
fn selected<T: Copy + Default>(p: u32, x: &[T; 32], y: &[T; 32]) -> [T; 32] {
    each(
        #[inline(always)]
        |i| if p & (1 << i) != 0 { x[i] } else { y[i] },
    )
}

#[inline(always)]
fn put_slot(w: &mut Warp, mask: u32, slot: Slot, v: [u32; 32]) {
    if let Slot::W32(R32(d)) = slot {
        w.put(mask, R32(d), v);
    }
}
