//! What an instruction is about to do, as a trace tells it.
//!
//! Operands are looked at before the instruction is executed, and nothing is changed. What will be
//! refused when it is executed is left out.

pub(crate) mod accesses;
pub(crate) mod barriers;
pub(crate) mod copies;
pub(crate) mod tcgen05;

use super::cluster::Cluster;
use super::lanes::lanes;
use super::warp::Warp;
use crate::exec::trace::recorder::BarrierWait;
use crate::op::{BarKind, Fence, Op, Product, Proxies, R32, Scope, WgmmaA};
use crate::trace::Deed;

impl Cluster<'_> {
    /// The deeds of an instruction for the lanes of `mask` (at least one); of a wait on mbarriers
    /// what it asks, because they have yet to answer.
    pub(super) fn deeds(
        &mut self,
        w: &mut Warp,
        mask: u32,
        op: &Op,
        out: &mut Vec<Deed>,
        asked: &mut Vec<BarrierWait>,
    ) {
        let first = mask.trailing_zeros() as usize;
        let one = |r: R32| w.get(r)[first];
        let deed = match op {
            Op::Ld { .. } | Op::St { .. } | Op::Atom(_) => {
                return self.access_deeds(w, mask, op, out);
            }
            Op::MatrixMove(matrix) => self.matrix_deed(w, matrix),
            Op::WmmaMove(wmma) => return self.wmma_deeds(w, wmma, out),
            Op::StAsync {
                width,
                s,
                addr,
                mbar,
            } => {
                let each = u32::from(*width) * u32::from(s.len);
                return self.remote_deeds(w, mask, (*addr, *mbar), each, out);
            }
            Op::TryCancel {
                multicast,
                dst,
                mbar,
            } => return self.cancel_deeds(w, mask, *multicast, (*dst, *mbar), out),
            Op::RedAsync { ty, addr, mbar, .. } => {
                let each = ty.bytes() as u32;
                return self.remote_deeds(w, mask, (*addr, *mbar), each, out);
            }
            Op::CpAsync {
                src,
                bytes,
                src_bytes,
                ignore,
                ..
            } => {
                let ignored = ignore.map_or(0, |p| w.pred(p));
                let valid = |lane: usize| match src_bytes {
                    _ if ignored >> lane & 1 == 1 => 0,
                    Some(r) => w.get(*r)[lane].min((*bytes).into()),
                    None => (*bytes).into(),
                };
                Deed::LaneCopy {
                    at: self.lane_copy_bytes(w, mask, *src, valid),
                }
            }
            Op::CpAsyncCommit => Deed::LaneCommit,
            Op::CpAsyncWait { n, all } => {
                if *all {
                    out.push(Deed::LaneCommit);
                }
                Deed::LaneWait(*n)
            }
            Op::CpAsyncMbarArrive { addr, noinc, .. } => {
                return self.per_barrier(w, mask, *addr, out, |barrier, lanes| Deed::LaneArrive {
                    barrier,
                    arrivals: u32::from(*noinc) * lanes.count_ones(),
                });
            }
            Op::Bulk(bulk) => {
                let deeds = lanes(mask).filter_map(|lane| self.bulk_deed(w, lane, bulk));
                return out.extend(deeds);
            }
            Op::Tensor(tensor) => {
                for lane in lanes(mask) {
                    out.extend(self.tensor_deed(w, lane, tensor));
                }
                return;
            }
            Op::PrefetchTensormap { addr } => {
                let maps = lanes(mask).map(|lane| self.address(w, *addr, lane));
                return out.extend(maps.map(|map| Deed::MapFetch { map }));
            }
            Op::BulkCommit => Deed::BulkCommit,
            Op::BulkWait { n, read } => Deed::BulkWait {
                groups: *n,
                read: *read,
            },
            Op::Bar {
                kind, id, threads, ..
            } => Deed::Barrier {
                id: one(*id),
                threads: threads.map_or(self.env.threads().next_multiple_of(32), one),
                waits: *kind != BarKind::Arrive,
            },
            Op::Mbar(mbar) => return self.mbar_deeds(w, mask, mbar, out, asked),
            Op::ClusterArrive { .. } => Deed::ClusterArrive,
            Op::ClusterWait => Deed::ClusterWait,
            Op::Wgmma(wgmma) => Deed::Wgmma {
                n: wgmma.n.into(),
                bits: wgmma.form.bits(),
                registers: matches!(wgmma.a, WgmmaA::Regs(_)),
                sparse: wgmma.sparse.is_some(),
            },
            Op::WgmmaFence => Deed::WgmmaFence,
            Op::WgmmaCommit => Deed::WgmmaCommit,
            Op::WgmmaWait { n } => Deed::WgmmaWait(*n),
            Op::Mma(mma) => {
                let (shape, bits) = match &mma.product {
                    Product::Dense(form) => (form.shape(), form.bits()),
                    Product::Sparse(sparse) => (sparse.shape(), sparse.bits()),
                    Product::Octets(_) => ([8, 8, 4], 16),
                    Product::Narrow(narrow) => {
                        let k = narrow.k() as u32;
                        ([16, 8, k], 256 / k)
                    }
                };
                Deed::Mma { shape, bits }
            }
            Op::Wmma(wmma) => Deed::Mma {
                shape: wmma.form.shape(),
                bits: wmma.form.bits(),
            },
            Op::TmemMma(_)
            | Op::TmemCopy(_)
            | Op::TmemShift { .. }
            | Op::TmemCommit { .. }
            | Op::TmemMove(_)
            | Op::TmemWait { .. }
            | Op::TmemAlloc { .. }
            | Op::TmemDealloc { .. } => return self.tmem_deeds(w, mask, op, out),
            Op::GridDep { wait: true } => Deed::AwaitLaunch,
            Op::GridDep { wait: false } => Deed::AllowLaunch,
            Op::Fence { fence, .. } => fence_deed(fence),
            Op::Setmaxnreg { count, .. } => Deed::Registers(*count),
            Op::Nanosleep { nanos } => Deed::Sleep(one(*nanos)),
            Op::ReadClock32 { .. } | Op::ReadClock64 { .. } => Deed::Stamp,
            _ => return,
        };
        out.push(deed);
    }
}

fn fence_deed(fence: &Fence) -> Deed {
    Deed::Fence {
        proxy: fence.between != Proxies::Generic,
        beyond_cta: fence.scope.is_some_and(|scope| scope != Scope::Cta),
    }
}
