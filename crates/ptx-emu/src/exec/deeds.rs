//! What an instruction is about to do, as a trace tells it.
//!
//! Operands are looked at before the instruction is executed, and nothing is changed. What will be
//! refused when it is executed is left out.

use super::access::{Place, lanes, place_of};
use super::cluster::Cluster;
use super::convert::pool;
use super::copy::SharedAt;
use super::door::Agent;
use super::mbarrier::token_phase;
use super::record::Asked;
use super::tensor_copy::{map_of, rows_of};
use super::warp::Warp;
use crate::memory::SECTOR;
use crate::op::{
    Addr, BarKind, BulkCopy, BulkDir, CLUSTER_RANK_SHIFT, Fence, MatrixMove, Mbar, MbarOp, Num, Op,
    Phase, Product, Proxies, R32, Scope, Space, TensorCopy, WgmmaA, WmmaMove, rank_of,
};
use crate::tensor::tensormap::MAP_BYTES;
use crate::trace::{BarrierAt, Deed, GlobalBytes, Way};

/// How lanes reach memory.
#[derive(Clone, Copy)]
struct Touch {
    /// Bytes of each lane.
    each: u32,
    writes: bool,
    atomic: bool,
}

impl From<SharedAt> for BarrierAt {
    fn from(at: SharedAt) -> Self {
        let (rank, address) = (at.cta, at.offset);
        Self { rank, address }
    }
}

impl Cluster<'_> {
    /// The deeds of an instruction for the lanes of `mask` (at least one); of a wait on mbarriers
    /// what it asks, because they have yet to answer.
    pub(super) fn deeds(
        &mut self,
        w: &mut Warp,
        mask: u32,
        op: &Op,
        out: &mut Vec<Deed>,
        asked: &mut Vec<Asked>,
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

    fn access_deeds(&self, w: &Warp, mask: u32, op: &Op, out: &mut Vec<Deed>) {
        let (space, addr, each) = match op {
            Op::Ld {
                space,
                width,
                d: list,
                addr,
                ..
            }
            | Op::St {
                space,
                width,
                s: list,
                addr,
                ..
            } => (*space, *addr, u32::from(*width) * u32::from(list.len)),
            Op::Atom(atom) => {
                let vector = match atom.ty {
                    Num::B128 => 1,
                    _ => u32::from(atom.b.len).max(1),
                };
                (atom.space, atom.addr, atom.ty.bytes() as u32 * vector)
            }
            _ => return,
        };
        let touch = Touch {
            each,
            writes: !matches!(op, Op::Ld { .. }),
            atomic: matches!(op, Op::Atom(_)),
        };
        let at = self.addresses(w, addr);
        match self.leads_to(space, at[mask.trailing_zeros() as usize]) {
            Some(Place::Global) => out.extend(self.global_deed(mask, &at, touch)),
            Some(Place::Shared) => {
                let at = std::array::from_fn(|i| at[i] as u32 & masked(mask, i));
                match at.iter().fold(0, |bits: u32, a| bits | a) >> CLUSTER_RANK_SHIFT {
                    0 => out.push(own_deed(mask, &at, touch)),
                    _ => shared_deeds(w, mask, &at, touch, out),
                }
            }
            _ => {}
        }
    }

    /// Where an address of a space lies, unless nobody asks for time there.
    fn leads_to(&self, space: Space, address: u64) -> Option<Place> {
        match space {
            Space::Global => Some(Place::Global),
            Space::Shared | Space::SharedCluster => Some(Place::Shared),
            Space::Generic => Some(place_of(address)),
            Space::Local | Space::Const | Space::Param => None,
        }
    }

    fn global_deed(&self, mask: u32, at: &[u64; 32], touch: Touch) -> Option<Deed> {
        let Touch {
            each,
            writes,
            atomic,
        } = touch;
        // One behind the other, or all in one place, as most are.
        let step = at[1].wrapping_sub(at[0]);
        let mut differs = 0;
        for (i, a) in at.iter().enumerate() {
            differs |= a.wrapping_sub(at[0]) ^ step.wrapping_mul(i as u64);
        }
        if differs == 0 && mask == u32::MAX && (step == 0 || step == each.into()) {
            let mut bytes = self.global_piece(at[0], 31 * step + u64::from(each))?;
            bytes.bytes = 32 * each;
            return Some(Deed::Global {
                at: bytes,
                writes,
                atomic,
            });
        }
        let mut sorted = [0; 32];
        let mut count = 0;
        for lane in lanes(mask) {
            sorted[count] = at[lane];
            count += 1;
        }
        let (first, sorted) = (sorted[0], &mut sorted[..count]);
        Some(Deed::Global {
            at: self.global_bytes(first, sorted, each.into())?,
            writes,
            atomic,
        })
    }

    /// Pieces of `each` bytes, in any order, of which one is in the allocation of `first`.
    fn global_bytes(&self, first: u64, at: &mut [u64], each: u64) -> Option<GlobalBytes> {
        if !at.is_sorted() {
            at.sort_unstable();
        }
        let mut bytes = self.global_piece(first, 0)?;
        let base = self.env.memory.regions()[bytes.region as usize].base;
        bytes.first = at.iter().find(|&&a| a >= base).map_or(0, |a| a - base);
        let mut next = 0;
        for &a in &*at {
            count_sectors(&mut bytes, &mut next, a, each);
        }
        Some(bytes)
    }

    /// One piece.
    fn global_piece(&self, address: u64, len: u64) -> Option<GlobalBytes> {
        let memory = self.env.memory;
        let region = memory.find(address)?;
        let mut bytes = GlobalBytes {
            region: region as u32,
            first: address - memory.regions()[region].base,
            bytes: 0,
            sectors: 0,
        };
        count_sectors(&mut bytes, &mut 0, address, len);
        Some(bytes)
    }

    fn lane_copy_bytes(
        &self,
        w: &Warp,
        mask: u32,
        src: Addr,
        valid: impl Fn(usize) -> u32,
    ) -> GlobalBytes {
        let at = self.addresses(w, src);
        let reading: Vec<usize> = lanes(mask).filter(|&lane| valid(lane) > 0).collect();
        let mut sorted: Vec<u64> = reading.iter().map(|&lane| at[lane]).collect();
        let nothing = GlobalBytes {
            region: 0,
            first: 0,
            bytes: 0,
            sectors: 0,
        };
        // A piece lies within its sector, however little of it is read.
        let found = sorted.first().copied();
        let found = found.and_then(|first| self.global_bytes(first, &mut sorted, 1));
        GlobalBytes {
            bytes: reading.into_iter().map(valid).sum(),
            ..found.unwrap_or(nothing)
        }
    }

    /// `ldmatrix` and `stmatrix`
    fn matrix_deed(&self, w: &Warp, op: &MatrixMove) -> Deed {
        let count = op.tile.rows() as u32 * u32::from(op.count);
        let rows = u32::MAX >> (32 - count);
        let at = self.addresses(w, op.addr).map(|a| a as u32);
        Deed::Shared {
            wavefronts: passes(rows, &at, 16),
            bytes: 16 * count,
            writes: op.store,
            atomic: false,
        }
    }

    /// `wmma.load` and `wmma.store`
    fn wmma_deeds(&self, w: &Warp, op: &WmmaMove, out: &mut Vec<Deed>) {
        let fragment = op.fragment;
        let stride = op.stride.map(|r| w.get(r)[0]);
        let base = self.addresses(w, op.addr);
        let each = u64::from(fragment.bits).div_ceil(8);
        let mut at = Vec::new();
        for register in 0..fragment.registers() {
            for e in 0..fragment.per_register() {
                at.extend((0..32).map(|lane| {
                    let place = fragment.element(register, lane, e);
                    let elements = fragment.offset(place, op.by_column, stride);
                    base[lane as usize].wrapping_add(elements * u64::from(fragment.bits) / 8)
                }));
            }
        }
        // Lanes that hold the same element, and elements of one byte, move it once.
        at.sort_unstable();
        at.dedup();
        let bytes = at.len() as u32 * each as u32;
        let writes = op.store;
        let atomic = false;
        match self.leads_to(op.space, base[0]) {
            Some(Place::Global) => {
                let deed = |at| Deed::Global { at, writes, atomic };
                out.extend(self.global_bytes(base[0], &mut at, each).map(deed));
            }
            Some(Place::Shared) => out.push(Deed::Shared {
                wavefronts: bytes.div_ceil(128),
                bytes,
                writes,
                atomic,
            }),
            _ => {}
        }
    }

    /// `st.async` and `red.async`, together for lanes that go the same way.
    fn remote_deeds(
        &self,
        w: &Warp,
        mask: u32,
        (addr, mbar): (Addr, Addr),
        each: u32,
        out: &mut Vec<Deed>,
    ) {
        for lane in lanes(mask) {
            let to = self.shared_operand(w, addr, lane, each.into(), true);
            let barrier = self.barrier_at(w, mbar, lane);
            let (Ok(to), Ok(barrier)) = (to, barrier) else {
                continue;
            };
            let known = out.iter_mut().find_map(|deed| match deed {
                Deed::Remote {
                    rank,
                    bytes,
                    barrier: of,
                    ..
                } if (*rank, *of) == (to.cta, Some(barrier.into())) => Some(bytes),
                _ => None,
            });
            match known {
                Some(bytes) => *bytes += each,
                None => out.push(Deed::Remote {
                    rank: to.cta,
                    bytes: each,
                    writes: true,
                    barrier: Some(barrier.into()),
                }),
            }
        }
    }

    /// The answers to `try_cancel` come as those of another CTA's stores do.
    fn cancel_deeds(
        &self,
        w: &Warp,
        mask: u32,
        multicast: bool,
        (dst, mbar): (Addr, Addr),
        out: &mut Vec<Deed>,
    ) {
        let bytes = super::cancel::ANSWER;
        for lane in lanes(mask) {
            let to = self.shared_operand(w, dst, lane, bytes.into(), true);
            let barrier = self.barrier_at(w, mbar, lane);
            let (Ok(to), Ok(barrier)) = (to, barrier) else {
                continue;
            };
            let ranks = match multicast {
                true => 0..self.ctas.len() as u32,
                false => to.cta..to.cta + 1,
            };
            out.extend(ranks.map(|rank| {
                Deed::Remote {
                    rank,
                    bytes,
                    writes: true,
                    barrier: Some(
                        SharedAt {
                            cta: rank,
                            ..barrier
                        }
                        .into(),
                    ),
                }
            }));
        }
    }

    fn bulk_deed(&self, w: &Warp, lane: usize, op: &BulkCopy) -> Option<Deed> {
        let len = w.get(op.bytes)[lane];
        let shared = |addr| self.shared_operand(w, addr, lane, len.into(), true).ok();
        let global = |addr| self.global_piece(self.address(w, addr, lane), len.into());
        let barrier = |addr: Option<Addr>| {
            let at = self.barrier_at(w, addr?, lane).ok()?;
            Some(BarrierAt::from(at))
        };
        let (way, at, bytes) = match op.dir {
            BulkDir::GlobalToShared => (Way::Load, Some(global(op.src)?), len),
            BulkDir::SharedToGlobal => (Way::Store, Some(global(op.dst)?), len),
            BulkDir::SharedToCluster => (Way::Exchange, None, len),
            BulkDir::Prefetch => (Way::Prefetch, Some(global(op.src)?), 0),
        };
        let to = match way {
            Way::Load | Way::Exchange => receivers(w, lane, op.multicast, shared(op.dst)?),
            Way::Store | Way::Prefetch => 0,
        };
        Some(Deed::Bulk {
            way,
            at,
            rows: u32::from(at.is_some()),
            bytes,
            to,
            barrier: barrier(op.mbar),
            pair: false,
        })
    }

    fn tensor_deed(&mut self, w: &mut Warp, lane: usize, op: &TensorCopy) -> Option<Deed> {
        let address = self.address(w, op.map, lane);
        let map = self.read_block::<MAP_BYTES>(Agent::MapFetch, w, lane, Space::Generic, address);
        let map = map_of(&map.ok()?, op.mode).ok()?;
        let program = self.env.program;
        let coords = pool(program, op.coords).iter();
        let coords: Vec<i32> = coords.map(|&s| w.lane(s, lane) as i32).collect();
        let offsets = pool(program, op.extra).iter();
        let offsets: Vec<u16> = offsets.map(|&s| w.lane(s, lane) as u16).collect();
        let mut at: Option<GlobalBytes> = None;
        let (mut rows, mut next) = (0, 0);
        for row in rows_of(&map, op.mode, &coords, &offsets)
            .ok()?
            .filter_map(|row| row.inside)
        {
            rows += 1;
            let all = match &mut at {
                Some(all) => all,
                None => at.insert(self.global_piece(row.global, 0)?),
            };
            let base = self.env.memory.regions()[all.region as usize].base;
            all.first = all.first.min(row.global.saturating_sub(base));
            count_sectors(all, &mut next, row.global, row.len.into());
        }
        let shared = self.shared_operand(w, op.shared, lane, map.shared_bytes().into(), true);
        let barrier = op.mbar.and_then(|mbar| self.barrier_at(w, mbar, lane).ok());
        let (way, bytes, to) = match op.dir {
            BulkDir::Prefetch => (Way::Prefetch, 0, 0),
            BulkDir::SharedToGlobal => (Way::Store, map.box_bytes(), 0),
            BulkDir::GlobalToShared | BulkDir::SharedToCluster => {
                let to = receivers(w, lane, op.multicast, shared.ok()?);
                (Way::Load, map.box_bytes(), to)
            }
        };
        Some(Deed::Bulk {
            way,
            at,
            rows,
            bytes,
            to,
            barrier: barrier.map(BarrierAt::from),
            pair: op.pair,
        })
    }

    /// A deed for every barrier that lanes name, with the lanes that do.
    fn per_barrier(
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

    fn mbar_deeds(
        &self,
        w: &Warp,
        mask: u32,
        mbar: &Mbar,
        out: &mut Vec<Deed>,
        asked: &mut Vec<Asked>,
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
            let same = |asked: &&mut Asked| (asked.barrier, asked.parity) == (barrier, parity);
            match asked.iter_mut().find(same) {
                Some(asked) => asked.lanes |= 1 << lane,
                None => asked.push(Asked {
                    barrier,
                    parity,
                    lanes: 1 << lane,
                }),
            }
        }
    }
}

/// Adds a piece's bytes, and its sectors from `next` on if it follows others.
fn count_sectors(bytes: &mut GlobalBytes, next: &mut u64, address: u64, len: u64) {
    if len == 0 {
        return;
    }
    let (first, end) = (address / SECTOR, (address + len - 1) / SECTOR + 1);
    // A piece may lie before the last.
    let new = if first + 1 == *next { first + 1 } else { first };
    bytes.sectors += (end - new) as u32;
    bytes.bytes += len as u32;
    *next = end;
}

/// CTAs a copy goes to, by bit of rank.
pub(super) fn receivers(w: &Warp, lane: usize, multicast: Option<R32>, to: SharedAt) -> u32 {
    multicast.map_or(1 << to.cta, |mask| w.get(mask)[lane] & 0xffff)
}

/// All ones for a lane of the mask.
fn masked(mask: u32, lane: usize) -> u32 {
    0u32.wrapping_sub(mask >> lane & 1)
}

/// Passes a shared access takes without conflicts: as many lanes each as fill 128 bytes. One
/// address for all is one pass.
fn passes(mask: u32, at: &[u32; 32], each: u32) -> u32 {
    if each <= 4 {
        return 1;
    }
    let first = at[mask.trailing_zeros() as usize & 31];
    let mut differs = 0;
    for (i, a) in at.iter().enumerate() {
        differs |= (a ^ first) & masked(mask, i);
    }
    if differs == 0 {
        return 1;
    }
    let per_pass = (128 / each).max(1);
    let all = u32::MAX >> (32 - per_pass);
    let starts = (0..32).step_by(per_pass as usize);
    starts.filter(|start| mask & all << start != 0).count() as u32
}

/// Lanes that are all in the CTA's own memory.
fn own_deed(mask: u32, at: &[u32; 32], touch: Touch) -> Deed {
    Deed::Shared {
        wavefronts: passes(mask, at, touch.each),
        bytes: touch.each * mask.count_ones(),
        writes: touch.writes,
        atomic: touch.atomic,
    }
}

/// Lanes in the CTA's own memory, and in each of the others'.
fn shared_deeds(w: &Warp, mask: u32, at: &[u32; 32], touch: Touch, out: &mut Vec<Deed>) {
    let rank = |lane: usize| rank_of(at[lane], w.cta);
    let mut rest = mask;
    while rest != 0 {
        let of = rank(rest.trailing_zeros() as usize);
        let together = lanes(rest).fold(0, |set, lane| set | u32::from(rank(lane) == of) << lane);
        rest &= !together;
        out.push(match of == w.cta {
            true => own_deed(together, at, touch),
            false => Deed::Remote {
                rank: of,
                bytes: touch.each * together.count_ones(),
                writes: touch.writes,
                barrier: None,
            },
        });
    }
}

fn fence_deed(fence: &Fence) -> Deed {
    Deed::Fence {
        proxy: fence.between != Proxies::Generic,
        beyond_cta: fence.scope.is_some_and(|scope| scope != Scope::Cta),
    }
}
