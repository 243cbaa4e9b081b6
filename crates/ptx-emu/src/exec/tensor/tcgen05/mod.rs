//! `tcgen05`: tensor memory and the tensor cores that work on it.
//!
//! `alloc` and its like act at once. Products, copies and shifts join the queue of their CTA (of a
//! pair: of its even CTA) and are performed in the order they were issued, some time until a
//! `commit` behind them is waited for; they read shared and tensor memory at that moment. Loads
//! and stores are their warp's own: what was loaded is not there before `wait::ld`, what was stored
//! not before `wait::st`.

pub(crate) mod allocate;
pub(crate) mod ctas;
pub(crate) mod issue;
pub(crate) mod moves;
pub(crate) mod perform;

use crate::exec::checked::Checked;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::warp::Warp;
use crate::op::{Op, misrouted};

impl Cluster<'_> {
    /// Whatever is named `tcgen05`.
    pub(crate) fn tensor_memory(&mut self, w: &mut Warp, mask: u32, op: &Op) -> Checked<Flow> {
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
}
