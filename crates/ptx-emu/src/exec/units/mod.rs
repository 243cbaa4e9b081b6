//! Instructions outside the inner loops of kernels, by the unit that the instruction table names.

#[cfg(target_arch = "x86_64")]
mod compiled;
pub(crate) mod interp;
mod plain;
pub(crate) mod print;

use super::checked::{Checked, illegal};
use super::cluster::{Cluster, Flow};
use super::lanes::lanes;
use super::warp::{Wait, Warp};
use crate::exec::alu::{bits, compare, convert, exchange, float, integer};
use crate::exec::copies::lane::CpAsync;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::Signal;
use crate::exec::warp::frames;
use crate::fault::FaultKind;
use crate::op::{
    Clock, Fence, FenceOrder, FencedBytes, Inst, Op, Program, Proxies, Unit, misrouted, pool,
};

/// The opaque value of every cache policy: hints change nothing here.
const POLICY: u64 = 0x14f0_0000_0000_0000;

impl Cluster<'_> {
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

    /// Everything that is not in the inner loops of kernels.
    #[inline(never)]
    pub(super) fn execute_rare(&mut self, w: &mut Warp, mask: u32, inst: &Inst) -> Checked<Flow> {
        let op = &inst.op;
        match op.unit() {
            Unit::Integer
            | Unit::Bits
            | Unit::Float
            | Unit::Compare
            | Unit::Convert
            | Unit::Address => compute_rare(w, mask, op, self.env.program),
            Unit::Frame => self.frame(w, mask, op)?,
            Unit::Exchange => return self.execute_exchange(w, mask, inst),
            Unit::Branch => return self.control(w, mask, op),
            Unit::Report => return self.report(w, mask, op),
            Unit::Warp => return self.warp_state(w, mask, op),
            Unit::Barrier => return self.barrier(w, mask, op),
            Unit::Copy => return self.copy(w, mask, op),
            Unit::Matrix => return self.matrix(w, mask, op),
            Unit::TensorMemory => return self.tensor_memory(w, mask, op),
            Unit::Hint => self.hint(w, mask, op),
            Unit::Plain | Unit::Memory => misrouted(op),
        }
        Ok(Flow::Next)
    }

    /// What lanes tell each other, once those named have come.
    #[inline(never)]
    pub(super) fn execute_exchange(
        &mut self,
        w: &mut Warp,
        mask: u32,
        inst: &Inst,
    ) -> Checked<Flow> {
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
        if self.meets_elsewhere(w, mask, &inst.op)? {
            return Ok(Flow::Next);
        }
        if self.ear.is_some() {
            self.tell_of_absent(w, mask, &inst.op);
        }
        if let Op::WarpSync { mask: members } = inst.op {
            let members = *w.get(members);
            for lanes in exchange::parties(members, mask) {
                let named = members[lanes.trailing_zeros() as usize];
                self.signal(w.origin(lanes), Signal::Warp { named });
            }
        }
        exchange::exchange(w, mask, &inst.op);
        Ok(Flow::Next)
    }

    fn frame(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<()> {
        let per_lane = self.env.program.local_bytes;
        let frames = &self.env.program.frames;
        match *op {
            Op::SaveFrame { frame } => frames::save(w, mask, &frames[frame as usize], per_lane)?,
            Op::RestoreFrame { frame } => {
                frames::restore(w, mask, &frames[frame as usize], per_lane);
            }
            ref other => misrouted(other),
        }
        Ok(())
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
                for lane in lanes(mask) {
                    let Some(&target) = targets.get(index[lane] as usize) else {
                        let reason = format!(
                            "brx.idx {} is past its table of {}",
                            index[lane],
                            targets.len()
                        );
                        return Err(illegal(reason));
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
                for lane in lanes(mask) {
                    let Some(&(_, entry)) =
                        targets.iter().find(|(address, _)| *address == at[lane])
                    else {
                        return Err(illegal(format!(
                            "indirect call to {:#x}, which is no function of its prototype",
                            at[lane]
                        )));
                    };
                    add_lane(&mut paths, entry, lane);
                }
                w.call_each(&paths);
            }
            Op::Bra {
                target, reconverge, ..
            } => w.branch(mask, *target, *reconverge),
            other => misrouted(other),
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
            ref other => misrouted(other),
        }
    }

    fn read_clock(&mut self, w: &mut Warp, clock: Clock) -> u64 {
        let instructions = w.counts.iter().sum();
        self.clocks.read(clock, &mut w.clock, instructions)
    }

    /// What a warp asks of the machine for itself.
    fn warp_state(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        match *op {
            Op::Setmaxnreg { inc, count } => return self.setmaxnreg(w, inc, count),
            Op::Nanosleep { nanos } => {
                let nanos = w.get(nanos)[mask.trailing_zeros() as usize];
                w.slept += u64::from(nanos);
                let until = self.clocks.now() + u64::from(nanos).min(100_000) + 1;
                return Ok(Flow::After(Wait::Sleep { until }));
            }
            Op::Activemask { d } => w.put(mask, d, [mask; 32]),
            Op::ReadClock32 { clock, d } => {
                let v = self.read_clock(w, clock) as u32;
                w.put(mask, d, [v; 32]);
            }
            Op::ReadClock64 { clock, d } => {
                let v = self.read_clock(w, clock);
                w.put64(mask, d, [v; 32]);
            }
            Op::CreatePolicy { d } => w.put64(mask, d, [POLICY; 32]),
            ref other => misrouted(other),
        }
        Ok(Flow::Next)
    }

    fn barrier(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        match *op {
            Op::Bar {
                kind, id, threads, ..
            } => self.bar(w, mask, kind, id, threads),
            Op::ClusterArrive { order } => {
                self.cluster_arrive(w, mask, order);
                Ok(Flow::Next)
            }
            Op::Fence { fence, map } => {
                self.signal(w.origin(mask), Signal::Fence(fence));
                if let Some(map) = map {
                    self.acquire_maps(w, mask, map);
                }
                Ok(Flow::Next)
            }
            Op::ClusterWait => self.cluster_wait(w),
            Op::Mbar(ref mbar) => self.mbar(w, mask, mbar),
            ref other => misrouted(other),
        }
    }

    fn copy(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        match *op {
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
                self.commit(w, mask, Agent::LaneCopy, w.copies.current);
                w.copies.commit();
                Ok(Flow::Next)
            }
            Op::CpAsyncWait { n, all } => Ok(self.cp_async_wait(w, n, all)),
            Op::CpAsyncMbarArrive { noinc, addr, .. } => self.cp_async_arrive(w, mask, noinc, addr),
            Op::Bulk(ref bulk) => self.bulk(w, mask, bulk),
            Op::Tensor(ref tensor) => self.tensor(w, mask, tensor),
            Op::BulkCommit => {
                self.commit(w, mask, Agent::BulkCopy, w.bulk.current);
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
                scope,
                dst,
                src,
                bytes,
            } => {
                self.tensormap_cp(w, mask, dst, src, bytes)?;
                let release = Fence {
                    order: FenceOrder::Release,
                    scope: Some(scope),
                    between: Proxies::GenericTensormap,
                    over: FencedBytes::All,
                };
                self.signal(w.origin(mask), Signal::Fence(release));
                Ok(Flow::Next)
            }
            Op::TryCancel {
                multicast,
                dst,
                mbar,
            } => self.try_cancel(w, mask, multicast, dst, mbar),
            Op::Texture(ref read) => self.texture(w, mask, read),
            Op::Surface(ref moved) => self.surface(w, mask, moved),
            Op::StBulk { bytes, addr } => self.store_zeros(w, mask, bytes, addr),
            Op::StAsync {
                width,
                s,
                addr,
                mbar,
            } => {
                let slots = pool(self.env.program, s);
                self.remote(w, mask, (addr, mbar), (slots, usize::from(width)), None)
            }
            Op::RedAsync {
                op,
                ty,
                b,
                addr,
                mbar,
            } => {
                let each = ty.bytes() as usize;
                self.remote(w, mask, (addr, mbar), (&[b], each), Some((op, ty)))
            }
            ref other => misrouted(other),
        }
    }

    fn matrix(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        match *op {
            Op::Wgmma(ref wgmma) => self.wgmma(w, mask, wgmma),
            Op::WgmmaFence => {
                self.signal(w.origin(mask), Signal::WgmmaFence);
                Ok(Flow::Next)
            }
            Op::WgmmaCommit => {
                self.wgmma_commit(w, mask);
                Ok(Flow::Next)
            }
            Op::WgmmaWait { n } => Ok(self.wgmma_wait(w, n)),
            Op::Mma(ref mma) => self.mma(w, mask, mma),
            Op::Wmma(ref wmma) => self.wmma(w, mask, wmma),
            Op::WmmaMove(ref wmma) => self.wmma_move(w, mask, wmma),
            Op::MatrixMove(ref matrix) => self.matrix_move(w, mask, matrix),
            Op::Movmatrix { d, a } => self.movmatrix(w, mask, d, a),
            ref other => misrouted(other),
        }
    }
}

/// What only computes, outside the inner loops.
fn compute_rare(w: &mut Warp, mask: u32, op: &Op, program: &Program) {
    match op.unit() {
        Unit::Integer => integer::rare(w, mask, op),
        Unit::Bits => bits::rare(w, mask, op),
        Unit::Float => float::rare(w, mask, op),
        Unit::Compare => compare::rare(w, mask, op),
        Unit::Convert => convert::rare(w, mask, op, program),
        Unit::Address => exchange::address(w, mask, op),
        _ => misrouted(op),
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

    /// The files of a unit's executor.
    fn files(unit: Unit) -> &'static [&'static str] {
        match unit {
            Unit::Plain => &["units/plain.rs"],
            Unit::Memory => &["units/mod.rs"],
            Unit::Integer => &["alu/integer.rs"],
            Unit::Bits => &["alu/bits.rs", "alu/carry.rs"],
            Unit::Float => &["alu/float.rs"],
            Unit::Compare => &["alu/compare.rs"],
            Unit::Convert => &["alu/convert.rs"],
            Unit::Address | Unit::Exchange => &["alu/exchange.rs"],
            Unit::Branch | Unit::Frame | Unit::Report | Unit::Warp => &["units/mod.rs"],
            Unit::Barrier | Unit::Copy | Unit::Matrix => &["units/mod.rs"],
            Unit::TensorMemory => &["tensor/tcgen05/mod.rs"],
            Unit::Hint => &["sync/signalling.rs"],
        }
    }

    #[test]
    fn every_instruction_is_known_to_its_unit() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/exec");
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect("a source file");
        for &(name, unit) in crate::op::ROWS {
            let text: String = files(unit).iter().copied().map(read).collect();
            let word = format!("Op::{name}");
            let known = text.match_indices(&word).any(|(at, _)| {
                let next = text[at + word.len()..].chars().next();
                next.is_some_and(|c| !c.is_alphanumeric())
            });
            assert!(known || unit == Unit::Hint, "{name} is sent to {unit:?}");
        }
    }
}
