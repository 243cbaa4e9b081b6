//! `cp.async.bulk`, `st.async` and `red.async`.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::jobs::{ByteSource, Job, Latency};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::Act;
use crate::exec::memory::access::Access;
use crate::exec::origin::SharedAt;
use crate::exec::warp::{Wait, Warp};
use crate::fault::FaultKind;
use crate::op::{Addr, AtomOp, BulkCopy, BulkDir, Num, R32, R64, Slot};

impl Cluster<'_> {
    /// CTAs a copy goes to: the multicast mask, or the destination's own.
    pub(crate) fn targets(
        &self,
        w: &Warp,
        lane: usize,
        multicast: Option<R32>,
        to: SharedAt,
        barrier: SharedAt,
    ) -> Checked<Vec<(SharedAt, SharedAt)>> {
        let Some(mask) = multicast else {
            return Ok(vec![(to, barrier)]);
        };
        let mask = w.get(mask)[lane] & 0xffff;
        let ranks = self.ctas.len() as u32;
        if mask == 0 || mask >> ranks != 0 {
            return Err(illegal(format!(
                "multicast mask {mask:#x} does not fit a cluster of {ranks}"
            )));
        }
        let place = |at: SharedAt, cta: u32| SharedAt { cta, ..at };
        let ranks = (0..ranks).filter(|r| mask >> r & 1 == 1);
        Ok(ranks.map(|r| (place(to, r), place(barrier, r))).collect())
    }

    /// `cp.async.bulk`
    pub(crate) fn bulk(&mut self, w: &mut Warp, mask: u32, op: &BulkCopy) -> Checked<Flow> {
        for lane in lanes(mask) {
            self.bulk_lane(w, lane, op)?;
        }
        Ok(Flow::Next)
    }

    fn bulk_lane(&mut self, w: &mut Warp, lane: usize, op: &BulkCopy) -> Checked<()> {
        let bytes = w.get(op.bytes)[lane];
        if !bytes.is_multiple_of(16) {
            return Err(illegal(format!(
                "cp.async.bulk of {bytes} bytes: the size must be a multiple of 16"
            )));
        }
        self.counters.bulk_copies += 1;
        let len = u64::from(bytes);
        match op.dir {
            BulkDir::Prefetch => {
                let address = self.address(w, op.src, lane);
                self.find_region(address, Access::weak(len, false))
            }
            BulkDir::GlobalToShared | BulkDir::SharedToCluster => {
                let to = self.shared_operand(w, op.dst, lane, len, true)?;
                let from = match op.dir {
                    BulkDir::GlobalToShared => ByteSource::Global(self.address(w, op.src, lane)),
                    _ => {
                        let at = self.shared_operand(w, op.src, lane, len, false)?;
                        ByteSource::Shared(self.source(at, bytes))
                    }
                };
                if let ByteSource::Global(address) = from {
                    aligned(address)?;
                    self.find_region(address, Access::weak(len, false))?;
                }
                aligned(to.offset.into())?;
                let barrier = match op.mbar {
                    Some(addr) => self.barrier_at(w, addr, lane)?,
                    None => {
                        return Err(illegal(
                            "cp.async.bulk into shared memory needs an mbarrier",
                        ));
                    }
                };
                let targets = self.targets(w, lane, op.multicast, to, barrier)?;
                let reduce = op.reduce;
                if reduce.is_none() {
                    for (to, _) in &targets {
                        self.in_flight(*to, bytes, w.pc);
                    }
                }
                let job = Job::ToShared {
                    from,
                    bytes,
                    targets,
                    reduce,
                };
                self.schedule(w, 1 << lane, Latency::LOAD, job);
                Ok(())
            }
            BulkDir::SharedToGlobal => {
                let at = self.shared_operand(w, op.src, lane, len, false)?;
                let to = self.address(w, op.dst, lane);
                aligned(to)?;
                aligned(at.offset.into())?;
                self.find_region(to, Access::weak(len, true))?;
                let mask = op.byte_mask.map_or(u16::MAX, |r| w.get(r)[lane] as u16);
                let group = w.bulk.add();
                let reduce = op.reduce;
                let job = Job::ToGlobal {
                    from: self.source(at, bytes),
                    to,
                    group,
                    reduce,
                    mask,
                };
                self.schedule(w, 1 << lane, Latency::STORE, job);
                Ok(())
            }
        }
    }

    pub(crate) fn bulk_wait(&mut self, w: &Warp, n: u32, read: bool) -> Flow {
        let below = w.bulk.current.saturating_sub(u64::from(n));
        let over = w.bulk.done_below(below, read);
        self.pass_or_wait(w.origin(w.active), over, Wait::Bulk { below, read })
    }

    /// `st.bulk`
    pub(crate) fn store_zeros(
        &mut self,
        w: &mut Warp,
        mask: u32,
        bytes: R64,
        addr: Addr,
    ) -> Checked<Flow> {
        for lane in lanes(mask) {
            let len = w.get64(bytes)[lane];
            let at = self.shared_operand(w, addr, lane, len, true)?;
            if !len.is_multiple_of(8) || !at.offset.is_multiple_of(8) || at.cta != w.cta {
                return Err(illegal(format!(
                    "st.bulk of {len} bytes at {:#x}: both must be multiples of 8, in the CTA's \
                     own shared memory",
                    at.offset
                )));
            }
            let who = (Agent::Thread, w.origin(1 << lane));
            self.pass_shared_piece(who, at, len, Act::Write);
            self.shared_at(at, len as usize).fill(0);
        }
        self.progress += 1;
        Ok(Flow::Next)
    }

    /// `st.async` and `red.async`
    pub(crate) fn remote(
        &mut self,
        w: &mut Warp,
        mask: u32,
        (addr, mbar): (Addr, Addr),
        (slots, each): (&[Slot], usize),
        reduce: Option<(AtomOp, Num)>,
    ) -> Checked<Flow> {
        for lane in lanes(mask) {
            let mut data = Vec::with_capacity(slots.len() * each);
            for &slot in slots {
                data.extend_from_slice(&w.lane(slot, lane).to_le_bytes()[..each]);
            }
            let to = self.shared_operand(w, addr, lane, data.len() as u64, true)?;
            let barrier = self.barrier_at(w, mbar, lane)?;
            let job = Job::Remote {
                to,
                barrier,
                data,
                reduce,
            };
            self.schedule(w, 1 << lane, Latency::REMOTE, job);
        }
        Ok(Flow::Next)
    }
}

fn aligned(address: u64) -> Checked<()> {
    match address % 16 {
        0 => Ok(()),
        _ => Err(Box::new(FaultKind::Misaligned {
            space: "bulk copy",
            address,
            align: 16,
        })),
    }
}
