//! `cp.async`: copies of single lanes, in groups or signalled on an mbarrier.

use crate::exec::checked::Checked;
use crate::exec::cluster::jobs::{Job, LaneCopy, Latency};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::Step;
use crate::exec::listen::visit::Act;
use crate::exec::memory::access::Access;
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::bytes::POISON;
use crate::exec::warp::{DeferredArrive, Wait, Warp};
use crate::fault::FaultKind;
use crate::op::{Addr, Order, P, R32, Scope};

/// Operands of `cp.async`.
pub(crate) struct CpAsync {
    pub(crate) dst: Addr,
    pub(crate) src: Addr,
    pub(crate) bytes: u8,
    pub(crate) src_bytes: Option<R32>,
    pub(crate) ignore: Option<P>,
}

impl Cluster<'_> {
    /// `cp.async`
    pub(crate) fn cp_async(&mut self, w: &mut Warp, mask: u32, op: &CpAsync) -> Checked<Flow> {
        let sources = self.addresses(w, op.src);
        let mut items = Vec::with_capacity(mask.count_ones() as usize);
        for lane in lanes(mask) {
            let to = self.shared_operand(w, op.dst, lane, u64::from(op.bytes), true)?;
            let valid = match (op.src_bytes, op.ignore) {
                (_, Some(p)) if w.pred(p) >> lane & 1 == 1 => 0,
                (Some(r), _) => w.get(r)[lane].min(u32::from(op.bytes)) as u8,
                _ => op.bytes,
            };
            let align = u64::from(op.bytes);
            if !u64::from(to.offset).is_multiple_of(align)
                || (valid > 0 && !sources[lane].is_multiple_of(align))
            {
                return Err(Box::new(FaultKind::Misaligned {
                    space: "cp.async",
                    address: sources[lane],
                    align,
                }));
            }
            if valid > 0 {
                self.find_region(sources[lane], Access::weak(valid.into(), false))?;
            }
            let (at, len) = (to.offset as usize, usize::from(op.bytes));
            self.ctas[to.cta as usize].shared[at..at + len].fill(POISON);
            items.push(LaneCopy {
                to,
                from: sources[lane],
                bytes: op.bytes,
                valid,
            });
        }
        let group = w.copies.add();
        let seq = self.schedule(w, mask, Latency::LANES, Job::Lanes { group, items });
        w.copy_seqs.push(seq);
        Ok(Flow::Next)
    }

    pub(super) fn finish_lanes(
        &mut self,
        from: Origin,
        group: u64,
        items: &[LaneCopy],
    ) -> Checked<()> {
        for item in items {
            let who = (Agent::LaneCopy, from);
            self.pass_shared_piece(who, item.to, u64::from(item.bytes), Act::Write);
            let mut data = [0; 16];
            if item.valid > 0 {
                self.read_global(who, item.from, &mut data[..usize::from(item.valid)])?;
            }
            let at = item.to.offset as usize;
            let bytes = usize::from(item.bytes);
            self.ctas[item.to.cta as usize].shared[at..at + bytes].copy_from_slice(&data[..bytes]);
        }
        let w = &mut self.ctas[from.cta as usize].warps[from.warp as usize];
        w.copies.completed(group);
        w.copy_seqs.retain(|s| *s != from.work);
        let oldest = w.copy_seqs.iter().copied().min().unwrap_or(u64::MAX);
        let (due, later) = std::mem::take(&mut w.deferred)
            .into_iter()
            .partition(|d| d.after < oldest);
        w.deferred = later;
        let due: Vec<DeferredArrive> = due;
        for at in due.into_iter().flat_map(|d| d.targets) {
            self.arrive_once(from, at)?;
        }
        Ok(())
    }

    /// The arrival of a thread whose copies are complete.
    fn arrive_once(&mut self, from: Origin, at: SharedAt) -> Checked<()> {
        let order = Order::Release(Scope::Cta);
        self.at_mbarrier(from, at, Step::Arrive { count: 1, order }, |b| {
            b.pending -= 1
        })
    }

    /// `cp.async.wait_group` / `wait_all`
    pub(crate) fn cp_async_wait(&mut self, w: &mut Warp, n: u32, all: bool) -> Flow {
        if all {
            w.copies.commit();
        }
        let below = w.copies.current.saturating_sub(u64::from(n));
        let over = w.copies.done_below(below, false);
        self.pass_or_wait(w.origin(w.active), over, Wait::Copies { below })
    }

    /// `cp.async.mbarrier.arrive`: arrives when all earlier copies of the thread are complete.
    pub(crate) fn cp_async_arrive(
        &mut self,
        w: &mut Warp,
        mask: u32,
        noinc: bool,
        addr: Addr,
    ) -> Checked<Flow> {
        let mut targets = Vec::new();
        for lane in lanes(mask) {
            let at = self.barrier_at(w, addr, lane)?;
            if !noinc {
                let cta = &mut self.ctas[at.cta as usize];
                cta.mbarriers.update(&mut cta.shared, at.offset, |b| {
                    b.pending += 1;
                    Ok(())
                })?;
            }
            targets.push(at);
        }
        self.progress += 1;
        match w.copy_seqs.iter().copied().max() {
            Some(after) => w.deferred.push(DeferredArrive { after, targets }),
            None => {
                for at in targets {
                    self.arrive_once(w.origin(mask), at)?;
                }
            }
        }
        Ok(Flow::Next)
    }
}
