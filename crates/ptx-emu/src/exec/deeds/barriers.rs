//! What is done to mbarriers, and asked of them.

use crate::exec::cluster::Cluster;
use crate::exec::lanes::lanes;
use crate::exec::origin::SharedAt;
use crate::exec::storage::mbarrier::token_phase;
use crate::exec::trace::recorder::BarrierWait;
use crate::exec::warp::Warp;
use crate::op::{Addr, Mbar, MbarOp, Phase, R32};
use crate::trace::{BarrierAt, Deed};

impl From<SharedAt> for BarrierAt {
    fn from(at: SharedAt) -> Self {
        let (rank, address) = (at.cta, at.offset);
        Self { rank, address }
    }
}

impl Cluster<'_> {
    /// A deed for every barrier that lanes name, with the lanes that do.
    pub(super) fn per_barrier(
        &self,
        w: &Warp,
        mask: u32,
        addr: Addr,
        out: &mut Vec<Deed>,
        deed: impl Fn(BarrierAt, u32) -> Deed,
    ) {
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let target = |lane: usize| self.barrier_at(w, addr, lane).ok();
            let at = target(lane);
            let same = |set: u32, lane: usize| set | u32::from(target(lane) == at) << lane;
            let together = lanes(rest).fold(0, same);
            rest &= !together;
            if let Some(at) = at {
                out.push(deed(at.into(), together));
            }
        }
    }

    pub(super) fn mbar_deeds(
        &self,
        w: &Warp,
        mask: u32,
        mbar: &Mbar,
        out: &mut Vec<Deed>,
        asked: &mut Vec<BarrierWait>,
    ) {
        let sum = |r: R32, mask: u32| lanes(mask).map(|lane| w.get(r)[lane]).sum::<u32>();
        let phase = match mbar.op {
            MbarOp::TestWait { phase, .. } | MbarOp::TryWait { phase, .. } => phase,
            MbarOp::Init { count } => {
                return self.per_barrier(w, mask, mbar.addr, out, |barrier, lanes| Deed::Init {
                    barrier,
                    count: w.get(count)[31 - lanes.leading_zeros() as usize],
                });
            }
            MbarOp::Arrive {
                expect_tx, count, ..
            } => {
                return self.per_barrier(w, mask, mbar.addr, out, |barrier, lanes| Deed::Arrive {
                    barrier,
                    arrivals: count.map_or(lanes.count_ones(), |r| sum(r, lanes)),
                    expects: expect_tx.map_or(0, |r| sum(r, lanes)),
                });
            }
            MbarOp::ExpectTx { bytes } => {
                return self.per_barrier(w, mask, mbar.addr, out, |barrier, lanes| Deed::Arrive {
                    barrier,
                    arrivals: 0,
                    expects: sum(bytes, lanes),
                });
            }
            // As if bytes had come from somewhere.
            MbarOp::CompleteTx { bytes } => {
                return self.per_barrier(w, mask, mbar.addr, out, |barrier, lanes| Deed::Remote {
                    rank: barrier.rank,
                    bytes: sum(bytes, lanes),
                    writes: true,
                    barrier: Some(barrier),
                });
            }
            MbarOp::Inval | MbarOp::PendingCount { .. } => return,
        };
        for lane in lanes(mask) {
            let Ok(at) = self.barrier_at(w, mbar.addr, lane) else {
                continue;
            };
            let barrier = BarrierAt::from(at);
            let parity = match phase {
                Phase::State(r) => token_phase(w.get64(r)[lane]) as u32 & 1,
                Phase::Parity(r) => w.get(r)[lane] & 1,
            };
            let same =
                |asked: &&mut BarrierWait| (asked.barrier, asked.parity) == (barrier, parity);
            match asked.iter_mut().find(same) {
                Some(asked) => asked.lanes |= 1 << lane,
                None => asked.push(BarrierWait {
                    barrier,
                    parity,
                    lanes: 1 << lane,
                }),
            }
        }
    }
}
