//! `tcgen05`: tensor memory and the tensor cores that work on it.
//!
//! `alloc` and its like act at once. Products, copies and shifts join the queue of their CTA (of a
//! pair: of its even CTA) and are performed in the order they were issued, some time until a
//! `commit` behind them is waited for; they read shared and tensor memory at that moment. Loads
//! and stores are their warp's own: what was loaded is not there before `wait::ld`, what was stored
//! not before `wait::st`.

mod allocate;
mod deeds;
mod issue;
mod layouts;
mod moves;
mod multiprocessors;
mod perform;
mod tmem;

use super::cluster::{Cluster, Flow};
use super::sync::illegal;
use super::units::misrouted;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::op::{CtaGroup, Op, R32};

pub(crate) use layouts::Layout;
pub(crate) use moves::{Loaded, Stored};
pub(crate) use multiprocessors::Multiprocessors;
pub(crate) use tmem::Tmem;

type Checked<T> = Result<T, Box<FaultKind>>;

impl Cluster<'_> {
    /// Whatever is named `tcgen05`.
    pub(super) fn tensor_memory(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
        match *op {
            Op::TmemAlloc {
                group,
                dst,
                columns,
                ..
            } => self.tmem_alloc(w, mask, group, dst, columns),
            Op::TmemDealloc { group, at, columns } => {
                self.tmem_dealloc(w, mask, group, (at, columns))
            }
            Op::TmemRelinquish { group } => self.tmem_relinquish(w, mask, group),
            Op::TmemMma(ref mma) => self.tmem_mma(w, mask, mma),
            Op::TmemCopy(ref copy) => self.tmem_copy(w, mask, copy),
            Op::TmemShift { group, at } => self.tmem_shift(w, mask, group, at),
            Op::TmemCommit {
                group,
                barrier,
                multicast,
                ..
            } => self.tmem_commit(w, mask, group, (barrier, multicast)),
            Op::TmemMove(ref tile) => match tile.store {
                true => self.tmem_store(w, mask, tile),
                false => self.tmem_load(w, mask, tile),
            },
            Op::TmemWait { store } => self.tmem_wait(w, mask, store),
            ref other => misrouted(other),
        }
    }

    /// The CTAs an instruction works in, the even one of a pair first.
    fn tmem_group(&mut self, w: &Warp, group: CtaGroup, what: &str) -> Checked<Ctas> {
        let own = w.cta as usize;
        let known = *self.ctas[own].tmem.group.get_or_insert(group);
        if known != group {
            return Err(illegal(format!(
                "{what} of cta_group::{} in a CTA that has used cta_group::{}: all tcgen05 \
                 instructions of a kernel have the same",
                group.ctas(),
                known.ctas()
            )));
        }
        if group == CtaGroup::One {
            return Ok(Ctas {
                first: own,
                count: 1,
            });
        }
        if self.ctas.len() % 2 == 1 {
            return Err(illegal(format!(
                "{what} of cta_group::2 in a cluster of {}: it needs pairs of CTAs",
                self.ctas.len()
            )));
        }
        Ok(Ctas {
            first: own & !1,
            count: 2,
        })
    }
}

/// One CTA of the cluster, or a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ctas {
    first: usize,
    count: usize,
}

impl Ctas {
    fn all(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    /// The other one of a pair.
    fn peer(self, own: usize) -> Option<usize> {
        self.all().find(|&cta| cta != own)
    }
}

/// An instruction for all lanes of a warp together.
fn whole_warp(w: &Warp, mask: u32, what: &str) -> Checked<()> {
    match mask == w.live && mask == u32::MAX {
        true => Ok(()),
        false => Err(illegal(format!(
            "{what} needs all 32 lanes of the warp: it was executed by a diverged warp"
        ))),
    }
}

/// A value that all lanes must agree on.
fn uniform(w: &Warp, r: R32, what: &str) -> Checked<u32> {
    let values = w.get(r);
    match values.iter().all(|v| *v == values[0]) {
        true => Ok(values[0]),
        false => Err(illegal(format!(
            "{what} differs between the lanes of the warp"
        ))),
    }
}
