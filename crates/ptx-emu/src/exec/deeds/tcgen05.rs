//! What `tcgen05` instructions are about to do, as a trace tells it.

use super::copies::receivers;
use crate::exec::cluster::Cluster;
use crate::exec::lanes::lanes;
use crate::exec::warp::Warp;
use crate::op::{Op, TmemA, TmemMma};
use crate::tensor::tcgen05::{Form, MoveLanes};
use crate::trace::{self, Deed};

/// Bytes of a chunk of a row of [`crate::tensor::tcgen05::CopyShape`].
const CHUNK: u32 = 16;

impl Cluster<'_> {
    /// The deeds of an instruction, each thread's apart where each issues its own.
    pub(super) fn tmem_deeds(&self, w: &Warp, mask: u32, op: &Op, out: &mut Vec<Deed>) {
        let first = mask.trailing_zeros() as usize;
        match *op {
            Op::TmemMma(ref mma) => {
                out.extend(lanes(mask).filter_map(|lane| product(w, lane, mma)));
            }
            Op::TmemCopy(ref copy) => out.extend(lanes(mask).map(|_| Deed::TmemCopy {
                bytes: copy.shape.rows() * copy.shape.chunks() * CHUNK,
                ctas: copy.group.ctas(),
            })),
            Op::TmemShift { group, .. } => {
                let ctas = group.ctas();
                out.extend(lanes(mask).map(|_| Deed::TmemShift { ctas }));
            }
            Op::TmemCommit {
                barrier, multicast, ..
            } => out.extend(lanes(mask).filter_map(|lane| {
                let at = self.barrier_at(w, barrier, lane).ok()?;
                Some(Deed::TmemCommit {
                    to: receivers(w, lane, multicast, at),
                    barrier: at.into(),
                })
            })),
            Op::TmemMove(ref tile) => {
                let halves = match tile.shape.lanes {
                    MoveLanes::L16x32x2 => 2,
                    _ => 1,
                };
                out.push(Deed::TmemMove {
                    columns: tile.shape.columns() * halves * if tile.packed { 2 } else { 1 },
                    lanes: tile.shape.tall(),
                    bits: tile.shape.bits(),
                    writes: tile.store,
                });
            }
            Op::TmemWait { store } => out.push(Deed::TmemWait { stores: store }),
            Op::TmemAlloc { group, columns, .. } => out.push(Deed::TmemAlloc {
                columns: w.get(columns)[first],
                ctas: group.ctas(),
            }),
            Op::TmemDealloc { group, columns, .. } => out.push(Deed::TmemFree {
                columns: w.get(columns)[first],
                ctas: group.ctas(),
            }),
            _ => {}
        }
    }
}

fn product(w: &Warp, lane: usize, op: &TmemMma) -> Option<Deed> {
    let vector = op.scales.map(|scales| scales.2);
    let machine = (op.group.ctas(), op.stationary, op.metadata.is_some());
    let form = Form::decode(op.kind, vector, machine, w.get(op.shape)[lane]).ok()?;
    Some(Deed::TmemMma {
        shape: [form.m, form.n, form.depth()],
        ctas: form.ctas,
        columns: form.columns(),
        a: match op.a {
            TmemA::Tmem(_) => trace::TmemA::Tmem,
            TmemA::Desc(_) if !op.stationary && op.collector.usage.takes() => trace::TmemA::Kept,
            TmemA::Desc(_) => trace::TmemA::Shared,
        },
    })
}
