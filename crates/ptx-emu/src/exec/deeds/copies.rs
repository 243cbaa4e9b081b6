//! Copies that go on by themselves: of lanes, in bulk, by tensor maps, to other CTAs.

use super::accesses::count_sectors;
use crate::exec::cluster::Cluster;
use crate::exec::cluster::jobs::ANSWER;
use crate::exec::copies::tensor::{map_of, rows_of};
use crate::exec::lanes::lanes;
use crate::exec::listen::agent::Agent;
use crate::exec::origin::SharedAt;
use crate::exec::warp::Warp;
use crate::op::{Addr, BulkCopy, BulkDir, R32, Space, TensorCopy, pool};
use crate::tensor::tensormap::MAP_BYTES;
use crate::trace::{BarrierAt, Deed, Direction, GlobalBytes};

impl Cluster<'_> {
    pub(super) fn lane_copy_bytes(
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
            lines: 0,
            blocks: 0,
        };
        // A piece lies within its sector, however little of it is read.
        let found = sorted.first().copied();
        let found = found.and_then(|first| self.global_bytes(first, &mut sorted, 1));
        GlobalBytes {
            bytes: reading.into_iter().map(valid).sum(),
            ..found.unwrap_or(nothing)
        }
    }

    /// `st.async` and `red.async`, together for lanes that go the same direction.
    pub(super) fn remote_deeds(
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
    pub(super) fn cancel_deeds(
        &self,
        w: &Warp,
        mask: u32,
        multicast: bool,
        (dst, mbar): (Addr, Addr),
        out: &mut Vec<Deed>,
    ) {
        let bytes = ANSWER;
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

    pub(super) fn bulk_deed(&self, w: &Warp, lane: usize, op: &BulkCopy) -> Option<Deed> {
        let len = w.get(op.bytes)[lane];
        let shared = |addr| self.shared_operand(w, addr, lane, len.into(), true).ok();
        let global = |addr| self.global_piece(self.address(w, addr, lane), len.into());
        let barrier = |addr: Option<Addr>| {
            let at = self.barrier_at(w, addr?, lane).ok()?;
            Some(BarrierAt::from(at))
        };
        let (direction, at, bytes) = match op.dir {
            BulkDir::GlobalToShared => (Direction::Load, Some(global(op.src)?), len),
            BulkDir::SharedToGlobal => (Direction::Store, Some(global(op.dst)?), len),
            BulkDir::SharedToCluster => (Direction::Exchange, None, len),
            BulkDir::Prefetch => (Direction::Prefetch, Some(global(op.src)?), 0),
        };
        let to = match direction {
            Direction::Load | Direction::Exchange => {
                receivers(w, lane, op.multicast, shared(op.dst)?)
            }
            Direction::Store | Direction::Prefetch => 0,
        };
        Some(Deed::Bulk {
            direction,
            at,
            rows: u32::from(at.is_some()),
            bytes,
            to,
            barrier: barrier(op.mbar),
            pair: false,
            map: None,
        })
    }

    pub(super) fn tensor_deed(
        &mut self,
        w: &mut Warp,
        lane: usize,
        op: &TensorCopy,
    ) -> Option<Deed> {
        let address = self.address(w, op.map, lane);
        let map = self.read_block::<MAP_BYTES>(Agent::MapFetch, w, lane, Space::Generic, address);
        let map = map_of(&map.ok()?, op.mode).ok()?;
        let program = self.env.program;
        let coords = pool(program, op.coords).iter();
        let coords: Vec<i32> = coords.map(|&s| w.lane(s, lane) as i32).collect();
        let offsets = pool(program, op.extra).iter();
        let offsets: Vec<u16> = offsets.map(|&s| w.lane(s, lane) as u16).collect();
        let rows = rows_of(&map, op.mode, &coords, &offsets).ok()?;
        let rows = rows.filter_map(|row| row.inside);
        let mut pieces: Vec<(u64, u64)> = rows.map(|row| (row.global, row.len.into())).collect();
        pieces.sort_unstable();
        let rows = pieces.len() as u32;
        let mut at: Option<GlobalBytes> = None;
        let mut next = 0;
        for (address, len) in pieces {
            let all = match &mut at {
                Some(all) => all,
                None => at.insert(self.global_piece(address, 0)?),
            };
            count_sectors(all, &mut next, address, len);
        }
        let shared = self.shared_operand(w, op.shared, lane, map.shared_bytes().into(), true);
        let barrier = op.mbar.and_then(|mbar| self.barrier_at(w, mbar, lane).ok());
        let (direction, bytes, to) = match op.dir {
            BulkDir::Prefetch => (Direction::Prefetch, 0, 0),
            BulkDir::SharedToGlobal => (Direction::Store, map.box_bytes(), 0),
            BulkDir::GlobalToShared | BulkDir::SharedToCluster => {
                let to = receivers(w, lane, op.multicast, shared.ok()?);
                (Direction::Load, map.box_bytes(), to)
            }
        };
        Some(Deed::Bulk {
            direction,
            at,
            rows,
            bytes,
            to,
            barrier: barrier.map(BarrierAt::from),
            pair: op.pair,
            map: Some(address),
        })
    }
}

/// CTAs a copy goes to, by bit of rank.
pub(super) fn receivers(w: &Warp, lane: usize, multicast: Option<R32>, to: SharedAt) -> u32 {
    multicast.map_or(1 << to.cta, |mask| w.get(mask)[lane] & 0xffff)
}
