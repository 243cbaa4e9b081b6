//! Watches the accesses of one cluster.

use super::clock::Knowledge;
use super::filled::Filled;
use super::ledger::Ledger;
use super::lifetime::Life;
use super::pieces::words_at;
use super::published::Narrow;
use super::shadow::Shadow;
use super::strands::Groups;
use super::{Detector, Sighting};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::{Signal, Step};
use crate::exec::listen::visit::{ClusterListener, Room, Visit};
use crate::exec::origin::{Origin, SharedAt};
use crate::mixed::MixedMap;
use crate::op::{Op, Order};

/// Watches one cluster.
pub(super) struct Watcher<'d> {
    pub(super) detector: &'d Detector<'d>,
    pub(super) ledger: Ledger,
    pub(super) memory: Remembered,
    /// Knowledge published at locations, for threads of the cluster.
    pub(super) places: MixedMap<(Room, u64), (Knowledge, Option<Narrow>)>,
    /// The CTAs of the cluster.
    pub(super) lives: Vec<Life>,
    /// Two conflicting writes, which do harm only if their values differ.
    pub(super) doubtful: Option<Box<Sighting>>,
    /// The last instruction, and those of its lanes that were seen.
    last: (u32, u32, u32, u32),
}

/// The recorded state of the memories of a cluster's CTAs.
pub(super) enum Remembered {
    /// The accesses of each word, of shared and of tensor memory.
    Users(Vec<Shadow>, Vec<Shadow>),
    /// Only whether it was written.
    Filled(Vec<Filled>),
}

impl<'d> Watcher<'d> {
    /// Records accesses of memory if `wanted`, else only barriers and written bytes.
    pub(super) fn new(detector: &'d Detector<'d>, cluster: u64, wanted: bool) -> Self {
        fn of_each<T: Default>(ctas: u32) -> Vec<T> {
            (0..ctas).map(|_| T::default()).collect()
        }
        let ctas = detector.ctas_per_cluster;
        Self {
            detector,
            ledger: Ledger::new(cluster, detector.strands()),
            memory: match wanted {
                true => Remembered::Users(of_each(ctas), of_each(ctas)),
                false => Remembered::Filled(of_each(ctas)),
            },
            places: MixedMap::default(),
            lives: of_each(ctas),
            doubtful: None,
            last: (0, 0, 0, 0),
        }
    }

    pub(super) fn report(&self, sighting: Sighting) {
        self.detector.report(self.ledger.cluster, sighting);
    }

    /// The last write changed a value.
    fn tell_doubtful(&mut self) {
        if let Some(sighting) = self.doubtful.take() {
            self.report(*sighting);
        }
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.tell_doubtful();
    }
}

impl ClusterListener for Watcher<'_> {
    fn wants_changes(&self) -> bool {
        self.doubtful.is_some()
    }

    fn unchanged(&mut self) {
        self.doubtful = None;
    }

    fn hear(&mut self, visit: &Visit<'_>) {
        // Lanes that access other CTAs come one by one; whether they change a value is reported
        // once.
        let from = &visit.from;
        let (cta, warp, pc, lanes) = self.last;
        match (cta, warp, pc) == (from.cta, from.warp, from.pc) && lanes & from.lanes == 0 {
            true => self.last.3 |= from.lanes,
            false => {
                self.tell_doubtful();
                self.last = (from.cta, from.warp, from.pc, from.lanes);
            }
        }
        if visit.from.work != 0 {
            let shared = match visit.room {
                Room::Shared { cta } => {
                    let offset = words_at(visit) as u32;
                    Some((visit.act.writes(), SharedAt { cta, offset }))
                }
                _ => None,
            };
            self.ledger
                .acts(visit.from.work as u32, visit.agent, shared);
        }
        match visit.room {
            Room::Shared { cta } => {
                self.while_it_lives(visit, cta);
                self.aligned_tile(visit, cta);
                self.over_barriers(visit, cta);
                self.hear_shared(visit, cta);
            }
            Room::Global { region } => {
                self.within_tensors(visit, region);
                self.hear_global(visit, region);
            }
            Room::Tensor { cta } => self.hear_tensor(visit, cta),
        }
        if visit.from.work == 0 && visit.order != Order::Weak {
            self.tells(visit);
        }
    }

    fn order(&mut self, from: Origin, signal: Signal) {
        self.tell_doubtful();
        match signal {
            Signal::Issue { work, by, signals } => {
                let wgmma = matches!(self.detector.op(from.pc), Some(Op::Wgmma(_)));
                let kind = match (by, signals) {
                    (Agent::TensorCore, _) if !wgmma => Some(Groups::Pipe),
                    (_, Some(_)) => None,
                    (Agent::LaneCopy, None) => Some(Groups::Lanes),
                    (Agent::TensorCore, None) => Some(Groups::Products),
                    (_, None) => Some(Groups::Bulk),
                };
                self.ledger.issue(from, work as u32, kind, signals);
            }
            Signal::Commit { agent, group } => self.ledger.commit(from, agent, group),
            Signal::Groups { agent, below, read } => {
                self.ledger.groups_over(from, agent, below, read);
            }
            Signal::Fence(fence) => self.fence(from, fence),
            Signal::MapAcquire { map } => {
                let warp = self.ledger.strand(from);
                self.ledger.teach(warp, |known| known.acquire_map(map));
            }
            Signal::Bar { id, over, step } => {
                if let Step::Arrive { count, .. } = step {
                    self.whole_warp(from, id, count);
                    self.whole_block(from, id);
                }
                self.meets(from, Some(id), over, step);
            }
            Signal::Cluster { over, step } => self.meets(from, None, over, step),
            Signal::Mbarrier { at, over, step } => self.mbarrier(from, at, over, step),
            Signal::Warp { named } if named & !from.branch.lanes != 0 => {
                self.ledger.lanes_meet(from);
            }
            Signal::Absent(absent) => self.absent(from, absent),
            Signal::Unset { registers, of } => self.unset(from, registers, of),
            // Lanes of one path go together.
            Signal::Warp { .. } | Signal::WgmmaFence | Signal::TmemFence { after: false } => {}
            Signal::TmemFence { after: true } => {
                let warp = self.ledger.strand(from);
                self.ledger.teach(warp, Knowledge::pass_tensor_fence);
            }
            Signal::TmemAlloc {
                cta,
                first,
                columns,
            } => self.allocates(cta, first, columns),
            Signal::TmemWait { store } => self.ledger.moved(from, store),
            Signal::Registers => {
                self.ledger.rationed.insert(self.ledger.strand(from), from);
            }
            Signal::Exit { over } => self.exits(from, over),
            Signal::Stuck(on) => self.stuck(from, on),
            Signal::LaunchBefore => {
                let (warp, launch) = (
                    self.ledger.strand(from),
                    self.ledger.strands.launch_before(),
                );
                self.ledger
                    .teach(warp, |known| known.own.generic.raise(launch, 1));
            }
        }
    }
}
