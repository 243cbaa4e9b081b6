//! The interpreter: one instruction after another for one warp.
//!
//! The loop is compiled for the plain machine and for AVX2, with everything marked
//! `inline(always)` inside it. AVX-512 takes the loop for AVX2: over the ten kernels of
//! `benches/mix.rs` a copy of its own was no faster (median 18.2 against 19.1 million warp
//! instructions a second). All levels compute the same.

use super::cluster::{Cluster, Flow};
use super::copy::CpAsync;
use super::warp::{State, Wait, Warp, each};
use super::{bits, convert, exchange, float, frames, integer, sync};
use crate::fault::FaultKind;
use crate::numeric::simd::Level;
use crate::op::{BoolOp, ICount, IUn, Inst, Op, PrmtMode, R32, Slot, Space, W};

type Checked<T> = Result<T, Box<FaultKind>>;

impl Cluster<'_> {
    /// Runs a warp for at most `quantum` instructions; how many it was.
    pub(super) fn interpret(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        match self.env.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a level is only chosen when the machine has its features, and those of the
            // weaker ones.
            Level::Avx2 | Level::Avx512 => unsafe { self.interpret_avx2(w, quantum) },
            _ => self.interpret_loop(w, quantum),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    fn interpret_avx2(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        self.interpret_loop(w, quantum)
    }

    #[inline(always)]
    fn interpret_loop(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        let env = self.env;
        let insts = &env.program.insts[..];
        let mut steps = 0;
        while steps < quantum {
            steps += 1;
            let pc = w.pc as usize;
            let Some(inst) = insts.get(pc) else {
                return Err(sync::illegal("control ran past the end of the program"));
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
            match self.execute(w, mask, inst)? {
                Flow::Next => w.advance(),
                Flow::Jumped => {
                    if matches!(w.state, State::Done) {
                        break;
                    }
                }
                Flow::Again(wait) => {
                    w.state = State::Waiting(wait);
                    w.counts[env.classes[pc] as usize] -= 1;
                    break;
                }
                Flow::After(wait) => {
                    w.advance();
                    w.state = State::Waiting(wait);
                    break;
                }
            }
        }
        Ok(steps)
    }

    /// One instruction for the lanes of `mask` (at least one) that is not plain.
    #[inline(always)]
    fn execute(&mut self, w: &mut Warp, mask: u32, inst: &Inst) -> Checked<Flow> {
        match inst.op {
            Op::Shfl { .. } | Op::VotePred { .. } | Op::Ballot { .. } => {
                self.execute_exchange(w, mask, inst)
            }
            Op::Atom(ref atom) => self.atom(w, mask, atom),
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
            } => self.load(w, mask, (space, order), (width, ext), d, addr),
            Op::St {
                space,
                order,
                width,
                s,
                addr,
            } => self.store(w, mask, (space, order), width, s, addr),
            _ => self.execute_rare(w, mask, inst),
        }
    }

    /// Everything that is not in the inner loops of kernels.
    #[inline(never)]
    fn execute_rare(&mut self, w: &mut Warp, mask: u32, inst: &Inst) -> Checked<Flow> {
        let op = &inst.op;
        if let Op::Bin32 { op, d, a, b, .. } = *op {
            integer::bin16(w, mask, op, d, a, b);
            return Ok(Flow::Next);
        }
        if let Op::MadLo32 { d, a, b, c, .. } = *op {
            w.map3(mask, d, [a, b, c], |x, y, z| {
                x.wrapping_mul(y).wrapping_add(z) & 0xffff
            });
            return Ok(Flow::Next);
        }
        if exchange::members(op).is_some() {
            return self.execute_exchange(w, mask, inst);
        }
        let done = bits::video(w, mask, op)
            || bits::rare(w, mask, op)
            || float::rare(w, mask, op)
            || convert::rare(w, mask, op, self.env.program)
            || exchange::active(w, mask, op)
            || exchange::cluster_address(w, mask, op)
            || exchange::address_space(w, mask, op);
        if done {
            return Ok(Flow::Next);
        }
        match op {
            Op::Brx { .. } | Op::Call { .. } | Op::CallIndirect { .. } | Op::Ret | Op::Exit => {
                self.control(w, mask, op)
            }
            Op::SaveFrame { frame } => {
                let per_lane = self.env.program.local_bytes;
                frames::save(w, mask, &self.env.program.frames[*frame as usize], per_lane)?;
                Ok(Flow::Next)
            }
            Op::RestoreFrame { frame } => {
                let per_lane = self.env.program.local_bytes;
                frames::restore(w, mask, &self.env.program.frames[*frame as usize], per_lane);
                Ok(Flow::Next)
            }
            Op::Trap | Op::Brkpt | Op::AssertFail { .. } | Op::Printf { .. } => {
                self.report(w, mask, op)
            }
            _ => self.execute_system(w, mask, op),
        }
    }

    /// What lanes tell each other, once those named have come.
    #[inline(never)]
    fn execute_exchange(&mut self, w: &mut Warp, mask: u32, inst: &Inst) -> Checked<Flow> {
        let mut mask = mask;
        if let Some(members) = exchange::members(&inst.op)
            && mask == w.active
        {
            let named = w.get(members)[mask.trailing_zeros() as usize];
            if named & w.live & !w.active != 0 && w.gather() {
                return Ok(Flow::Jumped);
            }
            mask = w.active;
        }
        match exchange::exchange(w, mask, &inst.op) {
            true => Ok(Flow::Next),
            // Only `bar.warp.sync` exchanges nothing.
            false => self.execute_system(w, mask, &inst.op),
        }
    }

    fn control(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        match op {
            Op::Call { target } => w.call(mask, *target),
            Op::Ret => w.ret(mask),
            Op::Exit => w.exit(mask),
            Op::Brx {
                index,
                targets,
                reconverge,
            } => {
                let index = *w.get(*index);
                let mut paths: Vec<(u32, u32)> = Vec::new();
                for lane in super::access::lanes(mask) {
                    let Some(&target) = targets.get(index[lane] as usize) else {
                        let reason = format!(
                            "brx.idx {} is past its table of {}",
                            index[lane],
                            targets.len()
                        );
                        return Err(sync::illegal(reason));
                    };
                    add_lane(&mut paths, target, lane);
                }
                if mask != w.active {
                    paths.push((w.pc + 1, w.active & !mask));
                }
                go(w, &paths, *reconverge);
            }
            Op::CallIndirect {
                target, targets, ..
            } => {
                let at = *w.get64(*target);
                let mut paths: Vec<(u32, u32)> = Vec::new();
                for lane in super::access::lanes(mask) {
                    let Some(&(_, entry)) =
                        targets.iter().find(|(address, _)| *address == at[lane])
                    else {
                        return Err(sync::illegal(format!(
                            "indirect call to {:#x}, which is no function of its prototype",
                            at[lane]
                        )));
                    };
                    add_lane(&mut paths, entry, lane);
                }
                w.call_each(&paths);
            }
            _ => {}
        }
        Ok(Flow::Jumped)
    }

    fn report(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        let lane = mask.trailing_zeros() as usize;
        match *op {
            Op::Trap => Err(Box::new(FaultKind::Trap)),
            Op::Brkpt => Err(Box::new(FaultKind::Breakpoint)),
            Op::AssertFail {
                message,
                file,
                line,
                function,
            } => Err(Box::new(FaultKind::Assert {
                message: self.text(w, lane, w.get64(message)[lane]),
                file: self.text(w, lane, w.get64(file)[lane]),
                line: w.get(line)[lane],
                function: self.text(w, lane, w.get64(function)[lane]),
            })),
            Op::Printf { d, format, args } => {
                self.print(w, mask, d, format, args)?;
                Ok(Flow::Next)
            }
            _ => Ok(Flow::Next),
        }
    }

    /// A zero-terminated string of the device, at most 256 bytes.
    pub(super) fn text(&mut self, w: &mut Warp, lane: usize, address: u64) -> String {
        let mut bytes = Vec::new();
        for i in 0..256 {
            match self.read_block::<1>(w, lane, crate::op::Space::Generic, address.wrapping_add(i))
            {
                Ok([0]) | Err(_) => break,
                Ok([byte]) => bytes.push(byte),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Synchronisation, copies, tensor cores.
    fn execute_system(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        match *op {
            Op::Atom(ref atom) => self.atom(w, mask, atom),
            Op::Bar {
                kind, id, threads, ..
            } => self.bar(w, mask, kind, id, threads),
            Op::ClusterArrive { .. } => {
                self.cluster_arrive(w, mask);
                Ok(Flow::Next)
            }
            Op::ClusterWait => self.cluster_wait(w),
            Op::Mbar(ref mbar) => self.mbar(w, mask, mbar),
            Op::CpAsync {
                dst,
                src,
                bytes,
                src_bytes,
                ignore,
            } => {
                let op = CpAsync {
                    dst,
                    src,
                    bytes,
                    src_bytes,
                    ignore,
                };
                self.cp_async(w, mask, &op)
            }
            Op::CpAsyncCommit => {
                w.copies.commit();
                Ok(Flow::Next)
            }
            Op::CpAsyncWait { n, all } => Ok(self.cp_async_wait(w, n, all)),
            Op::CpAsyncMbarArrive { noinc, addr, .. } => self.cp_async_arrive(w, mask, noinc, addr),
            Op::Bulk(ref bulk) => self.bulk(w, mask, bulk),
            Op::Tensor(ref tensor) => self.tensor(w, mask, tensor),
            Op::BulkCommit => {
                w.bulk.commit();
                Ok(Flow::Next)
            }
            Op::BulkWait { n, read } => Ok(self.bulk_wait(w, n, read)),
            Op::TensormapReplace {
                field,
                space,
                addr,
                value,
            } => self.tensormap_replace(w, mask, field, space, addr, value),
            Op::TensormapCp {
                dst, src, bytes, ..
            } => self.tensormap_cp(w, mask, dst, src, bytes),
            Op::StAsync {
                width,
                s,
                addr,
                mbar,
            } => {
                let slots = convert::pool(self.env.program, s);
                self.remote(w, mask, (addr, mbar), (slots, usize::from(width)), None)
            }
            Op::RedAsync {
                op,
                ty,
                b,
                addr,
                mbar,
            } => {
                let each = super::atomic::width(ty) as usize;
                self.remote(w, mask, (addr, mbar), (&[b], each), Some((op, ty)))
            }
            Op::Wgmma(ref wgmma) => self.wgmma(w, mask, wgmma),
            Op::WgmmaCommit => {
                self.wgmma_commit(w);
                Ok(Flow::Next)
            }
            Op::WgmmaWait { n } => Ok(self.wgmma_wait(w, n)),
            Op::Mma(ref mma) => self.mma(w, mask, mma),
            Op::Wmma(ref wmma) => self.wmma(w, mask, wmma),
            Op::WmmaMove(ref wmma) => self.wmma_move(w, mask, wmma),
            Op::MatrixMove(ref matrix) => self.matrix_move(w, mask, matrix),
            Op::Movmatrix { d, a } => self.movmatrix(w, mask, d, a),
            Op::Setmaxnreg { inc, count } => self.setmaxnreg(w, inc, count),
            Op::Nanosleep { nanos } => {
                let nanos = w.get(nanos)[mask.trailing_zeros() as usize];
                let until = self.clocks.now() + u64::from(nanos).min(100_000) + 1;
                Ok(Flow::After(Wait::Sleep { until }))
            }
            Op::ReadClock32 { clock, d } => {
                let v = self.clocks.read(clock) as u32;
                w.put(mask, d, [v; 32]);
                Ok(Flow::Next)
            }
            Op::ReadClock64 { clock, d } => {
                let v = self.clocks.read(clock);
                w.put64(mask, d, [v; 32]);
                Ok(Flow::Next)
            }
            // An opaque policy: hints change nothing here.
            Op::CreatePolicy { d } => {
                w.put64(mask, d, [0x14f0_0000_0000_0000; 32]);
                Ok(Flow::Next)
            }
            Op::Prefetch { .. } | Op::PrefetchTensormap { .. } | Op::Nop => Ok(Flow::Next),
            // Warps run in lockstep and shared memory is coherent: ordering needs no action.
            Op::WarpSync { .. } | Op::Fence { .. } | Op::WgmmaFence => Ok(Flow::Next),
            // Launches are serialised, so what a dependent waits for is always complete.
            Op::GridDep { .. } => Ok(Flow::Next),
            ref other => Err(sync::illegal(format!("no executor for {other:?}"))),
        }
    }
}

/// An instruction of the inner loops that only computes, for the lanes of `mask` (at least one);
/// false if it is another.
#[inline(always)]
fn plain(w: &mut Warp, mask: u32, inst: &Inst) -> bool {
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
        Op::SetpF32 { cmp, ftz, d, a, b } => float::setp_f32(w, mask, cmp, ftz, d, [a, b]),
        Op::SetpI64 {
            cmp,
            signed,
            d,
            a,
            b,
        } => float::setp_i64(w, mask, cmp, signed, d, [a, b]),
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
        } => float::setp_i32(w, mask, cmp, signed, d, a, b),
        Op::PLogic {
            op,
            d,
            a,
            na,
            b,
            nb,
        } => {
            let x = if na { !w.pred(a) } else { w.pred(a) };
            let y = if nb { !w.pred(b) } else { w.pred(b) };
            let v = match op {
                BoolOp::And => x & y,
                BoolOp::Or => x | y,
                BoolOp::Xor => x ^ y,
            };
            w.put_pred(mask, d, v);
        }
        Op::PMov { d, a, negate } => {
            let v = if negate { !w.pred(a) } else { w.pred(a) };
            w.put_pred(mask, d, v);
        }
        Op::PConst { d, value } => w.put_pred(mask, d, if value { u32::MAX } else { 0 }),
        Op::Selp32 { d, a, b, p } => {
            let (x, y, p) = (w.get(a), w.get(b), w.pred(p));
            let v = each(
                #[inline(always)]
                |i| if p & (1 << i) != 0 { x[i] } else { y[i] },
            );
            w.put(mask, d, v);
        }
        Op::Selp64 { d, a, b, p } => {
            let (x, y, p) = (w.get64(a), w.get64(b), w.pred(p));
            let v = each(
                #[inline(always)]
                |i| if p & (1 << i) != 0 { x[i] } else { y[i] },
            );
            w.put64(mask, d, v);
        }
        Op::Mov32 { d, a } => {
            if !w.wgmma.is_idle() && w.wgmma.is_locked(a) && mask == w.live {
                w.wgmma.defer_copy(a, d);
            } else {
                let v = *w.get(a);
                w.put(mask, d, v);
            }
        }
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
            put_slot(
                w,
                mask,
                lo,
                each(|i| {
                    let x = a[i];
                    x as u32
                }),
            );
            put_slot(
                w,
                mask,
                hi,
                each(|i| {
                    let x = a[i];
                    (x >> 32) as u32
                }),
            );
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
            put_slot(
                w,
                mask,
                lo,
                each(|i| {
                    let x = a[i];
                    x & 0xffff
                }),
            );
            put_slot(
                w,
                mask,
                hi,
                each(|i| {
                    let x = a[i];
                    x >> 16
                }),
            );
        }
        Op::WgmmaFence | Op::Fence { .. } => {}
        _ => return false,
    }
    true
}

#[inline(always)]
fn put_slot(w: &mut Warp, mask: u32, slot: Slot, v: [u32; 32]) {
    if let Slot::W32(R32(d)) = slot {
        w.put(mask, R32(d), v);
    }
}

fn add_lane(paths: &mut Vec<(u32, u32)>, target: u32, lane: usize) {
    match paths.iter_mut().find(|(pc, _)| *pc == target) {
        Some((_, mask)) => *mask |= 1 << lane,
        None => paths.push((target, 1 << lane)),
    }
}

fn go(w: &mut Warp, paths: &[(u32, u32)], reconverge: u32) {
    match paths {
        &[(target, _)] => {
            w.pc = target;
            w.join_if_there();
        }
        _ => w.diverge(paths, reconverge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_goes_to_its_own_target() {
        let mut paths = Vec::new();
        for (lane, target) in [7, 9, 7, 9].into_iter().enumerate() {
            add_lane(&mut paths, target, lane);
        }
        assert_eq!(paths, [(7, 0b0101), (9, 0b1010)]);
    }
}
