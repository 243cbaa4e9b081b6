//! `cp.async.bulk.tensor`: boxes of a tensor, and the maps that describe it.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::jobs::{Job, Latency, TensorJob};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::Signal;
use crate::exec::listen::visit::Act;
use crate::exec::memory::access::Access;
use crate::exec::memory::pieces::{act_of, merge};
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::draft::Pieced;
use crate::exec::storage::tmem::layouts::Layout;
use crate::exec::storage::window::{Window, window_of};
use crate::exec::warp::Warp;
use crate::fault::FaultKind;
use crate::op::{Addr, AtomOp, BulkDir, MapField, Num, Slot, Space, TensorCopy, TensorMode, pool};
use crate::tensor::tensormap::{MAP_ALIGN, MAP_BYTES, MapElement, Rows, TensorMap, TensorMapError};

/// The rows a copy moves.
pub(crate) fn rows_of<'m>(
    map: &'m TensorMap,
    mode: TensorMode,
    coords: &[i32],
    offsets: &[u16],
) -> Result<Rows<'m>, TensorMapError> {
    match mode {
        TensorMode::Rows4 => map.picked_rows(coords),
        TensorMode::Tile | TensorMode::Im2col => map.rows_at(coords, offsets),
    }
}

/// The map a copy goes by.
pub(crate) fn map_of(
    bytes: &[u8; MAP_BYTES],
    mode: TensorMode,
) -> Result<TensorMap, TensorMapError> {
    let map = TensorMap::decode(bytes)?;
    match mode {
        TensorMode::Rows4 => map.of_four_rows(),
        TensorMode::Tile | TensorMode::Im2col => Ok(map),
    }
}

fn map_error(error: impl std::fmt::Display) -> Box<FaultKind> {
    illegal(error.to_string())
}

/// The type a reduction takes the elements of a map for, if there is one.
fn reduction(op: AtomOp, element: MapElement) -> Checked<(AtomOp, Num)> {
    use AtomOp::{Add, And, Cas, Dec, Exch, Inc, Max, Min, Or, Xor};
    let ty = match element {
        MapElement::U32 => Num::U32,
        MapElement::S32 => Num::S32,
        MapElement::U64 => Num::U64,
        MapElement::S64 => Num::S64,
        MapElement::F16 => Num::F16,
        MapElement::Bf16 => Num::Bf16,
        MapElement::F64 => Num::F64,
        MapElement::F32 | MapElement::F32Ftz | MapElement::Tf32 | MapElement::Tf32Ftz => Num::F32,
        other => {
            return Err(illegal(format!(
                "tensor reductions of {other:?} do not exist"
            )));
        }
    };
    let exists = match op {
        Add => true,
        Min | Max => !matches!(ty, Num::F32 | Num::F64),
        Inc | Dec => ty == Num::U32,
        And | Or | Xor => ty.is_integer(),
        Exch | Cas => false,
    };
    match exists {
        true => Ok((op, ty)),
        false => Err(illegal(format!(
            "there is no bulk reduction {op:?} on {ty:?}"
        ))),
    }
}

/// The shared ranges a box at `to` fills: one, or the swizzled chunks of rows that are padded.
fn pieces(map: &TensorMap, to: SharedAt) -> Vec<(SharedAt, u32)> {
    if map.row_pitch() == map.row_bytes() {
        return vec![(to, map.box_bytes())];
    }
    let chunk = |row: u32, chunk: u32| SharedAt {
        offset: map
            .swizzle()
            .apply(to.offset + row * map.row_pitch() + chunk * 16),
        ..to
    };
    (0..map.row_count())
        .flat_map(|row| (0..map.row_bytes() / 16).map(move |i| (row, i)))
        .map(|(row, i)| (chunk(row, i), 16))
        .collect()
}

/// The barrier that hears of each destination: in the same CTA, or, with `.cta_group::2`, in the
/// CTA of its pair that is as even or odd as the barrier's.
fn signal_pairs(
    targets: &mut [(SharedAt, SharedAt)],
    barrier: SharedAt,
    op: &TensorCopy,
) -> Checked<()> {
    for (to, signal) in targets {
        if op.pair {
            signal.cta = (to.cta & !1) | (barrier.cta & 1);
        }
        let elsewhere = op.multicast.is_none() && signal.cta != barrier.cta;
        if elsewhere || (!op.pair && to.cta != signal.cta) {
            return Err(illegal(format!(
                "the data go to CTA {} of the cluster and the mbarrier lies in CTA {}: it must be \
                 the same CTA, or with .cta_group::2 one of the same pair",
                to.cta, barrier.cta
            )));
        }
    }
    Ok(())
}

impl Cluster<'_> {
    /// `cp.async.bulk.tensor` for each lane that executes it.
    pub(crate) fn tensor(&mut self, w: &mut Warp, mask: u32, op: &TensorCopy) -> Checked<Flow> {
        for lane in lanes(mask) {
            self.tensor_lane(w, lane, op)?;
        }
        Ok(Flow::Next)
    }

    fn tensor_lane(&mut self, w: &mut Warp, lane: usize, op: &TensorCopy) -> Checked<()> {
        let address = self.address(w, op.map, lane);
        if !address.is_multiple_of(MAP_ALIGN) {
            return Err(Box::new(FaultKind::Misaligned {
                space: "tensor map",
                address,
                align: MAP_ALIGN,
            }));
        }
        if matches!(window_of(address), Window::Local | Window::Shared) {
            return Err(illegal(
                "the tensor map lies in local or shared memory, where no copy finds it; one that is \
                 a parameter is declared `const __grid_constant__ CUtensorMap`"
                    .to_owned(),
            ));
        }
        let bytes =
            self.read_block::<MAP_BYTES>(Agent::MapFetch, w, lane, Space::Generic, address)?;
        let map = map_of(&bytes, op.mode).map_err(map_error)?;
        let program = self.env.program;
        let coords: Vec<i32> = pool(program, op.coords)
            .iter()
            .map(|&s| w.lane(s, lane) as i32)
            .collect();
        let offsets: Vec<u16> = pool(program, op.extra)
            .iter()
            .map(|&s| w.lane(s, lane) as u16)
            .collect();
        rows_of(&map, op.mode, &coords, &offsets).map_err(map_error)?;
        self.counters.bulk_copies += 1;
        if op.dir == BulkDir::Prefetch {
            return Ok(());
        }
        if op.dir == BulkDir::SharedToGlobal {
            // Rows that are picked may lie outside, where nothing is stored.
            let checked = match op.mode {
                TensorMode::Rows4 => &coords[..1],
                TensorMode::Tile | TensorMode::Im2col => &coords[..],
            };
            map.check_store(checked).map_err(map_error)?;
        }
        let len = map.shared_bytes();
        let write = op.dir == BulkDir::GlobalToShared;
        let shared = self.shared_operand(w, op.shared, lane, u64::from(len), write)?;
        if !shared.offset.is_multiple_of(128) {
            return Err(Box::new(FaultKind::Misaligned {
                space: "shared (tensor copy)",
                address: shared.offset.into(),
                align: 128,
            }));
        }
        let mut job = TensorJob {
            map,
            mode: op.mode,
            coords,
            offsets,
            targets: Vec::new(),
            source: None,
            reduce: None,
        };
        if write {
            let Some(mbar) = op.mbar else {
                return Err(illegal(
                    "cp.async.bulk.tensor into shared memory needs an mbarrier",
                ));
            };
            let barrier = self.barrier_at(w, mbar, lane)?;
            job.targets = self.targets(w, lane, op.multicast, shared, barrier)?;
            signal_pairs(&mut job.targets, barrier, op)?;
            for (to, _) in &job.targets {
                for (piece, bytes) in pieces(&job.map, *to) {
                    self.in_flight(piece, bytes, w.pc);
                }
            }
            self.schedule(w, 1 << lane, Latency::LOAD, Job::Tensor(Box::new(job)));
        } else {
            job.reduce = match op.reduce {
                Some(op) => Some(reduction(op, job.map.element())?),
                None => None,
            };
            job.source = Some((self.source(shared, len), w.bulk.add()));
            self.schedule(w, 1 << lane, Latency::STORE, Job::Tensor(Box::new(job)));
        }
        Ok(())
    }

    /// Moves the bytes of a tensor copy that is due.
    pub(super) fn finish_tensor(&mut self, from: Origin, mut job: TensorJob) -> Checked<()> {
        let rows = rows_of(&job.map, job.mode, &job.coords, &job.offsets).map_err(map_error)?;
        let write = job.source.is_some();
        let who = (Agent::BulkCopy, from);
        let act = match write {
            false => Act::Read,
            true => act_of(job.reduce),
        };
        for inside in rows.clone().filter_map(|row| row.inside) {
            let bytes = u64::from(inside.len);
            let region = self.pass_global_piece(who, inside.global, bytes, act)?;
            let offset = inside.global - region.base;
            match write {
                true => self.drafts.mark(&region, offset, bytes as usize),
                false => {
                    let first = offset as usize;
                    region.bytes.fetch(first..first + bytes as usize);
                }
            }
        }
        let memory = self.env.memory;
        let vanished = |()| illegal("a tensor copy left its allocation");
        if let Some((source, group)) = &mut job.source {
            let read_now = self.take_source(source, from);
            let (shared, at) = source.swizzled();
            let (drafts, mut pieced) = (&mut self.drafts, Pieced::new());
            let resolve = |address, bytes| {
                // SAFETY: pages and pieces stay until the box is stored.
                let found = unsafe { drafts.range(memory, address, bytes, true, &mut pieced) };
                found.ok_or(())
            };
            // SAFETY: the ranges are the cluster's to write, or it is alone.
            let done = unsafe {
                let merge = |to: &mut [u8], bytes: &[u8]| merge(to, bytes, job.reduce);
                job.map.store(rows, shared, at, resolve, merge)
            };
            done.map_err(vanished)?;
            self.drafts.put_back(memory, pieced);
            self.finish_bulk(from, *group, read_now);
            return Ok(());
        }
        for (to, barrier) in &job.targets {
            for (piece, bytes) in pieces(&job.map, *to) {
                self.landed(piece, bytes, from.pc);
                self.pass_shared_piece(who, piece, u64::from(bytes), Act::Write);
            }
            let cta = &mut self.ctas[to.cta as usize];
            cta.tmem.layouts.lay(
                to.offset..to.offset + job.map.shared_bytes(),
                Layout {
                    swizzle: job.map.swizzle(),
                    pc: from.pc,
                },
            );
            let shared = &mut cta.shared[..];
            let (drafts, mut pieced) = (&mut self.drafts, Pieced::new());
            let resolve = |address, bytes| {
                // SAFETY: as above.
                let found = unsafe { drafts.range(memory, address, bytes, false, &mut pieced) };
                found.ok_or(())
            };
            // SAFETY: nobody writes memory while a wave runs.
            unsafe { job.map.load(rows.clone(), shared, to.offset, resolve) }.map_err(vanished)?;
            self.complete_tx(from, *barrier, job.map.box_bytes())?;
        }
        Ok(())
    }

    /// `fence.proxy.tensormap::generic.acquire`: each lane names its map.
    pub(crate) fn acquire_maps(&mut self, w: &Warp, mask: u32, map: Addr) {
        let mut known = None;
        for lane in lanes(mask) {
            let map = self.address(w, map, lane);
            if known.replace(map) != Some(map) {
                self.signal(w.origin(1 << lane), Signal::MapAcquire { map });
            }
        }
    }

    /// `tensormap.replace`
    pub(crate) fn tensormap_replace(
        &mut self,
        w: &mut Warp,
        mask: u32,
        which: MapField,
        space: Space,
        addr: Addr,
        value: Slot,
    ) -> Checked<Flow> {
        for lane in lanes(mask) {
            let address = self.address(w, addr, lane);
            let mut bytes =
                self.read_block::<MAP_BYTES>(Agent::MapEdit, w, lane, space, address)?;
            TensorMap::replace(&mut bytes, which, w.lane(value, lane)).map_err(map_error)?;
            self.write_map(w.origin(1 << lane), space, address, &bytes)?;
        }
        Ok(Flow::Next)
    }

    /// `tensormap.cp_fenceproxy`: a map edited in shared memory goes to global memory.
    pub(crate) fn tensormap_cp(
        &mut self,
        w: &mut Warp,
        mask: u32,
        dst: Addr,
        src: Addr,
        bytes: u32,
    ) -> Checked<Flow> {
        if bytes as usize != MAP_BYTES {
            return Err(illegal(format!(
                "tensormap.cp_fenceproxy copies {MAP_BYTES} bytes, not {bytes}"
            )));
        }
        let lane = mask.trailing_zeros() as usize;
        let (from, to) = (self.address(w, src, lane), self.address(w, dst, lane));
        let map = self.read_block::<MAP_BYTES>(Agent::MapEdit, w, lane, Space::Shared, from)?;
        self.write_map(w.origin(1 << lane), Space::Global, to, &map)?;
        Ok(Flow::Next)
    }

    fn write_map(
        &mut self,
        from: Origin,
        space: Space,
        address: u64,
        bytes: &[u8; MAP_BYTES],
    ) -> Checked<()> {
        let shared = match space {
            Space::Generic => window_of(address) == Window::Shared,
            other => matches!(other, Space::Shared | Space::SharedCluster),
        };
        if !shared {
            return self.write_global((Agent::MapEdit, from), address, bytes);
        }
        let access = Access::weak(MAP_BYTES as u64, true);
        let (cta, offset) = self.shared_target(from.cta, address as u32, access)?;
        let place = SharedAt { cta, offset };
        self.pass_shared_piece((Agent::MapEdit, from), place, MAP_BYTES as u64, Act::Write);
        self.shared_at(place, MAP_BYTES).copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_maps_reduce_bitwise_and_bytes_do_not() {
        assert!(reduction(AtomOp::And, MapElement::U32).is_ok());
        assert!(reduction(AtomOp::Add, MapElement::F16).is_ok());
        assert!(reduction(AtomOp::Add, MapElement::U8).is_err());
        assert!(reduction(AtomOp::Cas, MapElement::U32).is_err());
    }
}
