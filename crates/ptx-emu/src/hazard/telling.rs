//! What threads tell each other: by accesses that are more than that, and by fences.

use std::sync::Arc;

use super::Sighting;
use super::clock::{Knowledge, Reach};
use super::finding::{Hazard, Spot};
use super::global::Narrow;
use super::ledger::Fenced;
use super::pieces::{pieces, words_at};
use super::watcher::{Remembered, Watcher};
use super::words::Side;
use crate::exec::copy::Origin;
use crate::exec::door::{Act, Agent, Room, Visit};
use crate::op::{Fence, FenceOrder, FencedBytes, Order, Proxies, Scope};

/// How far an access reaches that tells others something: 0 for ordinary ones.
pub(super) fn strength(order: Order) -> u8 {
    match order {
        Order::Weak => 0,
        Order::Volatile => 4,
        Order::Relaxed(scope)
        | Order::Acquire(scope)
        | Order::Release(scope)
        | Order::AcqRel(scope)
        | Order::Mmio(scope) => reach(scope),
    }
}

fn reach(scope: Scope) -> u8 {
    match scope {
        Scope::Cta => 1,
        Scope::Cluster => 2,
        Scope::Gpu => 3,
        Scope::Sys => 4,
    }
}

pub(super) fn releases(order: Order) -> bool {
    matches!(order, Order::Release(_) | Order::AcqRel(_))
}

pub(super) fn acquires(order: Order) -> bool {
    matches!(order, Order::Acquire(_) | Order::AcqRel(_))
}

impl Watcher<'_> {
    /// Accesses that tell others something, or are told.
    pub(super) fn tells(&mut self, visit: &Visit<'_>) {
        let own = self.ledger.cluster;
        let warp = self.ledger.strand(visit.from);
        let mut words = Vec::new();
        pieces(visit, |first, _, _| words.push(first / 4));
        words.sort_unstable();
        words.dedup();
        let order = visit.order;
        let w = &self.ledger.warps[warp as usize];
        let (mut leaves, mut narrow) = (None, None);
        if visit.act.writes() {
            match &w.fenced {
                _ if releases(order) => leaves = Some(w.known.clone()),
                Some(fenced) => {
                    leaves = Some(fenced.known.clone());
                    narrow = Some(Narrow {
                        cluster: own,
                        reach: fenced.reach,
                        at: fenced.at,
                    });
                }
                None if w.announced != Knowledge::default() => {
                    leaves = Some(Arc::new(w.announced.clone()));
                }
                None => {}
            }
            if let Some(shown) = w.known.shown() {
                Arc::make_mut(leaves.get_or_insert_default()).join(&shown);
            }
        }
        // Whoever sees it knows at least that this was executed; a release says so already.
        let told = leaves.is_some();
        if visit.act.writes() && self.ledger.strands.has_neighbours() && !releases(order) {
            let left = Arc::make_mut(leaves.get_or_insert_default());
            left.own.ran.join(&w.known.own.ran);
        }
        let mut learnt = Knowledge {
            hearsay: self.detector.gaps && matches!(visit.room, Room::Global { .. }),
            ..Knowledge::default()
        };
        // Who keeps no books of global memory is told nothing of other clusters.
        let glancing = matches!(self.memory, Remembered::Filled(_));
        let own_only = |room: Room| glancing || matches!(room, Room::Shared { .. });
        let mut short = None;
        let mut meets = |left: Option<&Narrow>| {
            let away = |left: &&Narrow| match () {
                () if left.cluster != own => left.reach < 3,
                () => left.at.cta != visit.from.cta && left.reach < 2,
            };
            short = short.or(left.filter(away).copied());
        };
        match visit.room {
            room @ (Room::Shared { .. } | Room::Global { .. }) if own_only(room) => {
                for word in words {
                    let (left, by) = self.places.entry((room, word)).or_default();
                    learnt.join(left);
                    meets(by.as_ref());
                    if let Some(known) = &leaves {
                        left.join(known);
                    }
                    if told {
                        *by = narrow;
                    }
                }
            }
            Room::Global { region } => {
                let mut memory = self.detector.global();
                for word in words {
                    if let Some((left, by)) = memory.left((region, word)) {
                        learnt.learn(own, left);
                        meets(by.as_ref());
                    }
                    if let Some(known) = &leaves {
                        memory.leave((region, word), own, known, told.then_some(narrow));
                    }
                }
            }
            _ => {}
        }
        if let (Some(short), true) = (short, visit.act != Act::Write) {
            let here = Side::new(visit.agent, visit.act, visit.from);
            let there = Side {
                cluster: Some(short.cluster),
                ..Side::new(Agent::Thread, Act::Write, short.at)
            };
            let spot = match (visit.room, words_at(visit)) {
                (Room::Shared { cta }, at) => self.detector.shared_spot(cta, at as u32),
                (Room::Global { region }, at) => self.detector.global_spot(region, at),
                (Room::Tensor { .. }, _) => Spot::default(),
            };
            self.report(Sighting::two(Hazard::Scope, here, there).at(spot));
        }
        let reads = visit.act != Act::Write;
        if reads {
            self.ledger.lanes_meet(visit.from);
        }
        if reads && acquires(order) {
            self.ledger.teach(warp, |known| known.join(&learnt));
            return;
        }
        if reads {
            if let Some(seen) = learnt.seen() {
                self.ledger.teach(warp, |known| known.join(&seen));
            }
            self.ledger.warps[warp as usize].hears(&learnt);
        }
        self.ledger.step(warp);
    }

    pub(super) fn fence(&mut self, from: Origin, fence: Fence) {
        let warp = self.ledger.strand(from);
        self.tell_of_barriers(warp, fence);
        match fence.between {
            Proxies::GenericAsync => {
                let (shared, global) = match fence.over {
                    FencedBytes::All => (true, true),
                    FencedBytes::Global => (false, true),
                    FencedBytes::SharedCta | FencedBytes::SharedCluster => (true, false),
                    FencedBytes::InitialisedBarriers => (false, false),
                };
                self.ledger
                    .teach(warp, |known| known.pass_proxy_fence(shared, global));
            }
            Proxies::Generic if fence.over != FencedBytes::InitialisedBarriers => {
                let w = &mut self.ledger.warps[warp as usize];
                if fence.order != FenceOrder::Release {
                    let heard = std::mem::take(&mut w.heard);
                    self.ledger.teach(warp, |known| known.join(&heard));
                }
                if fence.order == FenceOrder::Sc {
                    let far = match fence.scope {
                        Some(Scope::Cta | Scope::Cluster) => Reach::Near,
                        Some(Scope::Gpu | Scope::Sys) | None => Reach::Everywhere,
                    };
                    self.ledger
                        .teach(warp, |known| known.pass_consistent_fence(far));
                }
                if fence.order != FenceOrder::Acquire {
                    let w = &mut self.ledger.warps[warp as usize];
                    w.fenced = Some(Fenced {
                        known: w.known.clone(),
                        reach: fence.scope.map_or(4, reach),
                        at: from,
                    });
                    self.ledger.step(warp);
                }
            }
            Proxies::GenericTensormap if fence.order == FenceOrder::Release => {
                self.ledger.teach(warp, Knowledge::release_maps);
            }
            // What is acquired is one map's: `Signal::MapAcquire`.
            Proxies::Generic | Proxies::Alias | Proxies::GenericTensormap => {}
        }
    }
}
