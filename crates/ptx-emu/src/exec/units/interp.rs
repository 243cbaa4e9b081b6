//! The interpreter: one instruction after another for one warp.
//!
//! The loop is compiled for the plain machine and for AVX2, with everything marked
//! `inline(always)` inside it. AVX-512 takes the loop for AVX2: over the ten kernels of
//! `benches/mix.rs` a copy of its own was no faster (median 18.2 against 19.1 million warp
//! instructions a second). All levels compute the same.

use crate::exec::alu::{compare, convert, exchange, float, integer};
use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::each;
use crate::exec::warp::{State, Warp};
#[cfg(target_arch = "x86_64")]
use crate::numeric::simd::Level;
use crate::op::{BoolOp, ICount, IUn, Inst, Op, PrmtMode, R32, Slot, Space, W};

impl Cluster<'_> {
    /// Runs a warp for at most `quantum` instructions; how many it was.
    pub(crate) fn interpret(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        match self.env.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a level is only chosen when the machine has its features, and those of the
            // weaker ones.
            Level::Avx2 | Level::Avx512 => unsafe { self.interpret_avx2(w, quantum) },
            _ => self.interpret_loop::<false>(w, quantum),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    fn interpret_avx2(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        self.interpret_loop::<true>(w, quantum)
    }

    #[inline(always)]
    fn interpret_loop<const QUICK: bool>(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        let env = self.env;
        // One number, not two: registers are scarce here.
        let mut left = quantum;
        while left > 0 {
            #[cfg(target_arch = "x86_64")]
            if QUICK
                && let Some(code) = self.code
                && let Some(entry) = code.entry(w.pc, w.active == w.live)
                && w.wgmma.is_idle()
            {
                let before = left;
                left = self.run_code(code, entry, w, left);
                if let Some((mask, came)) = self.stopped.take() {
                    match self.go_on(w, mask, came?) {
                        true => continue,
                        false => break,
                    }
                }
                if matches!(w.state, State::Done) {
                    break;
                }
                if left != before {
                    continue;
                }
            }
            left -= 1;
            let pc = w.pc as usize;
            // Looked up anew each time: kept, it would take the register of `w`, which every
            // instruction uses.
            let Some(inst) = env.program.insts.get(pc) else {
                return Err(illegal("control ran past the end of the program"));
            };
            w.counts[env.classes[pc] as usize] += 1;
            let mask = match inst.guard.pred {
                None => w.active,
                Some(p) if inst.guard.negate => w.active & !w.pred(p),
                Some(p) => w.active & w.pred(p),
            };
            if let Op::Bra {
                target, reconverge, ..
            } = inst.op
            {
                w.branch(mask, target, reconverge);
                continue;
            }
            if mask == 0 {
                w.advance();
                continue;
            }
            if !w.wgmma.is_idle() && env.readers[pc] {
                self.guard_accumulators(w, mask, inst);
            }
            if plain(w, mask, inst) {
                w.advance();
                continue;
            }
            let came = self.execute::<QUICK>(w, mask, inst)?;
            if !self.go_on(w, mask, came) {
                break;
            }
        }
        Ok(quantum - left)
    }

    /// Moves a warp on by what its instruction came to; whether it can run on.
    #[inline(always)]
    fn go_on(&mut self, w: &mut Warp, mask: u32, came: Flow) -> bool {
        match came {
            Flow::Next => {
                w.advance();
                true
            }
            Flow::Jumped => !matches!(w.state, State::Done),
            Flow::Again(wait) => {
                w.stopped = w.origin(mask);
                w.state = State::Waiting(wait);
                w.counts[self.env.classes[w.pc as usize] as usize] -= 1;
                false
            }
            Flow::After(wait) => {
                w.stopped = w.origin(mask);
                w.advance();
                w.state = State::Waiting(wait);
                false
            }
        }
    }

    /// One instruction for the lanes of `mask` (at least one) that is not plain.
    #[inline(always)]
    fn execute<const QUICK: bool>(
        &mut self,
        w: &mut Warp,
        mask: u32,
        inst: &Inst,
    ) -> Checked<Flow> {
        match inst.op {
            Op::Shfl { .. } | Op::VotePred { .. } | Op::Ballot { .. } => {
                self.execute_exchange(w, mask, inst)
            }
            Op::Atom(ref atom) => self.atom::<QUICK>(w, mask, atom),
            Op::Wgmma(ref wgmma) => self.wgmma(w, mask, wgmma),
            Op::Mbar(ref mbar) => self.mbar(w, mask, mbar),
            Op::MatrixMove(ref matrix) => self.matrix_move(w, mask, matrix),
            Op::Mma(ref mma) => self.mma(w, mask, mma),
            Op::Bar {
                kind, id, threads, ..
            } => self.bar(w, mask, kind, id, threads),
            Op::Ld {
                space,
                order,
                width,
                ext,
                d,
                addr,
            } => self.load::<QUICK>(w, mask, (space, order), (width, ext), d, addr),
            Op::St {
                space,
                order,
                width,
                s,
                addr,
            } => self.store::<QUICK>(w, mask, (space, order), width, s, addr),
            _ => self.execute_rare(w, mask, inst),
        }
    }
}

/// An instruction of the inner loops that only computes, for the lanes of `mask` (at least one);
/// false if it is another.
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
