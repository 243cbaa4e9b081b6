//! How threads pass knowledge to each other: by synchronising accesses, and by fences.

use std::sync::Arc;

use super::Sighting;
use super::clock::{Knowledge, Reach};
use super::finding::{Hazard, Spot};
use super::pieces::{pieces, words_at};
use super::published::Narrow;
use super::warp::{Fenced, Spin};
use super::watcher::{Remembered, Watcher};
use super::words::Side;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Act, Room, Visit};
use crate::exec::origin::Origin;
use crate::op::{Fence, FenceOrder, FencedBytes, Order, Proxies, Scope};

/// The scope of a synchronising access: 0 for ordinary ones.
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
    /// Handles accesses that publish or receive knowledge.
    pub(super) fn tells(&mut self, visit: &Visit<'_>) {
        let own = self.ledger.cluster;
        let warp = self.ledger.strand(visit.from);
        if self.is_silent(visit, warp) {
            self.told(visit, warp, &Knowledge::default());
            self.remember(visit, warp, None);
            return;
        }
        let mut words = Vec::new();
        pieces(visit, |first, _, _| {
            // Usually it is the same for all lanes.
            if words.last() != Some(&(first / 4)) {
                words.push(first / 4);
            }
        });
        words.sort_unstable();
        words.dedup();
        let order = visit.order;
        let spin = self.spin(visit, &words);
        if spin.is_some() && self.ledger.warps[warp as usize].spun == spin {
            return;
        }
        let (leaves, narrow, told) = self.leaves(visit, warp, spin);
        let mut learnt = Knowledge {
            hearsay: self.detector.gaps && matches!(visit.room, Room::Global { .. }),
            ..Knowledge::default()
        };
        // A cluster without full checks receives no knowledge of other clusters.
        let glancing = matches!(self.memory, Remembered::Filled(_));
        let own_only = |room: Room| glancing || matches!(room, Room::Shared { .. });
        let (mut short, mut version) = (None, 0);
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
                    if let Some((left, by)) = self.places.get(&(room, word)) {
                        learnt.join(left);
                        meets(by.as_ref());
                    }
                    if let Some(known) = &leaves {
                        let (left, by) = self.places.entry((room, word)).or_default();
                        left.join(known);
                        if told {
                            *by = narrow;
                        }
                    }
                }
            }
            Room::Global { region } => {
                let mut memory = self.detector.global();
                let w = &mut self.ledger.warps[warp as usize];
                for word in words {
                    if let Some(left) = memory.published.left((region, word)) {
                        let heard = visit.act != Act::Write && !acquires(order);
                        if !heard || w.known.misses_seen(own, &left.views) {
                            learnt.learn(own, &left.views);
                        } else {
                            w.hears_at(own, &left.views);
                        }
                        meets(left.by.as_ref());
                    }
                    if let Some(known) = &leaves {
                        memory
                            .published
                            .leave((region, word), own, known, told.then_some(narrow));
                    }
                    version = memory.published.version((region, word));
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
        self.told(visit, warp, &learnt);
        let spin = spin.map(|spin| Spin { version, ..spin });
        self.remember(visit, warp, spin);
    }

    /// Records a synchronising access, to recognise its repetition.
    fn remember(&mut self, visit: &Visit<'_>, warp: u32, spin: Option<Spin>) {
        let w = &mut self.ledger.warps[warp as usize];
        if visit.act.writes() {
            w.left = spin.map(|spin| (spin.at, w.lessons));
        }
        let step = w.step;
        w.spun = spin.map(|spin| Spin { step, ..spin });
    }

    /// The knowledge that an access publishes, its fence, and whether it is more than executed
    /// steps.
    fn leaves(
        &self,
        visit: &Visit<'_>,
        warp: u32,
        spin: Option<Spin>,
    ) -> (Option<Arc<Knowledge>>, Option<Narrow>, bool) {
        let order = visit.order;
        let w = &self.ledger.warps[warp as usize];
        let (mut leaves, mut narrow) = (None, None);
        // Knowledge published there before is still there.
        let place = spin.map(|spin| (spin.at, w.lessons));
        let news = place.is_none() || w.left != place;
        if visit.act.writes() && news {
            match &w.fenced {
                _ if releases(order) => leaves = Some(w.known.clone()),
                Some(fenced) => {
                    leaves = Some(fenced.known.clone());
                    narrow = Some(Narrow {
                        cluster: self.ledger.cluster,
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
        // An observer knows at least that this was executed; a release includes that already.
        let told = leaves.is_some();
        if visit.act.writes() && self.ledger.strands.has_neighbours() && !releases(order) {
            let left = Arc::make_mut(leaves.get_or_insert_default());
            left.own.ran.join(&w.known.own.ran);
        }
        (leaves, narrow, told)
    }

    /// Whether an access of shared memory passes on no knowledge: none was published there, and the
    /// warp has none to publish.
    fn is_silent(&self, visit: &Visit<'_>, warp: u32) -> bool {
        let w = &self.ledger.warps[warp as usize];
        let leaves = || {
            releases(visit.order)
                || self.ledger.strands.has_neighbours()
                || w.fenced.is_some()
                || w.announced != Knowledge::default()
                || w.known.shown().is_some()
        };
        matches!(visit.room, Room::Shared { .. })
            && self.places.is_empty()
            && !(visit.act.writes() && leaves())
    }

    /// A warp receives knowledge from an access.
    fn told(&mut self, visit: &Visit<'_>, warp: u32, learnt: &Knowledge) {
        let reads = visit.act != Act::Write;
        if reads {
            self.ledger.lanes_meet(visit.from);
        }
        if reads && acquires(visit.order) {
            self.ledger.teach(warp, |known| known.join(learnt));
            return;
        }
        if reads {
            if let Some(seen) = learnt.seen() {
                self.ledger.teach(warp, |known| known.join(&seen));
            }
            self.ledger.warps[warp as usize].hears(learnt);
        }
        self.ledger.step(warp);
    }

    /// An access as it would be recorded, if its repetition could pass on nothing new: it is of one
    /// word and publishes nothing that its warp has done since its last fence.
    fn spin(&self, visit: &Visit<'_>, words: &[u64]) -> Option<Spin> {
        let (Room::Global { region }, &[word]) = (visit.room, words) else {
            return None;
        };
        let fresh = releases(visit.order)
            || visit.act.writes() && self.ledger.strands.has_neighbours()
            || matches!(self.memory, Remembered::Filled(_));
        let warp = self.ledger.strand(visit.from);
        (!fresh).then(|| Spin {
            at: (region, word),
            act: visit.act,
            order: visit.order,
            step: self.ledger.warps[warp as usize].step,
            version: self.detector.global().published.version((region, word)),
        })
    }

    pub(super) fn fence(&mut self, from: Origin, fence: Fence) {
        let warp = self.ledger.strand(from);
        self.ledger.warps[warp as usize].lessons += 1;
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
            // An acquire is for one map: `Signal::MapAcquire`.
            Proxies::Generic | Proxies::Alias | Proxies::GenericTensormap => {}
        }
    }
}
