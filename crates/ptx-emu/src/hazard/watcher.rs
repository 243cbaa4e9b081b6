//! Listens to one cluster.

use std::collections::HashMap;

use super::clock::Knowledge;
use super::finding::{Hazard, Spot};
use super::global;
use super::ledger::{Ledger, by_async_proxy};
use super::shadow::{Actor, Met, Shadow, Trace};
use super::strands::Groups;
use super::words::{self, Side};
use super::{Detector, Sighting};
use crate::exec::copy::{Origin, SharedAt};
use crate::exec::door::{Act, Agent, Bytes, Ear, Room, Visit};
use crate::exec::signal::{Signal, Step};
use crate::op::{Fence, FenceOrder, FencedBytes, Op, Order, Proxies, Scope};

/// The ear of one cluster.
pub(super) struct Watcher<'d> {
    detector: &'d Detector<'d>,
    ledger: Ledger,
    shared: Vec<Shadow>,
    /// What was left at places of shared memory that tell others something.
    places: HashMap<(u32, u64), Knowledge>,
}

/// How far an access reaches that tells others something: 0 for ordinary ones.
fn strength(order: Order) -> u8 {
    match order {
        Order::Weak => 0,
        Order::Volatile => 4,
        Order::Relaxed(scope)
        | Order::Acquire(scope)
        | Order::Release(scope)
        | Order::AcqRel(scope)
        | Order::Mmio(scope) => match scope {
            Scope::Cta => 1,
            Scope::Cluster => 2,
            Scope::Gpu => 3,
            Scope::Sys => 4,
        },
    }
}

fn releases(order: Order) -> bool {
    matches!(order, Order::Release(_) | Order::AcqRel(_))
}

fn acquires(order: Order) -> bool {
    matches!(order, Order::Acquire(_) | Order::AcqRel(_))
}

/// Pieces of some bytes, with the lane each is of.
fn pieces(visit: &Visit<'_>, mut see: impl FnMut(u64, u64, u8)) {
    match visit.bytes {
        Bytes::Piece { first, len } => {
            see(first, len, visit.from.lanes.trailing_zeros() as u8 & 31);
        }
        Bytes::Lanes { at, each, .. } => {
            let mut lanes = visit.from.lanes;
            while lanes != 0 {
                let lane = lanes.trailing_zeros();
                lanes &= lanes - 1;
                see(at[lane as usize].into(), each.into(), lane as u8);
            }
        }
        Bytes::Tile { matrix, rows } => {
            for chunk in matrix.chunks(rows) {
                see(chunk.into(), 16, 0);
            }
        }
    }
}

/// The words of a piece, with the bytes of each.
fn each_word(first: u64, len: u64, mut see: impl FnMut(u64, u8)) {
    let end = first + len;
    let mut word = first / 4;
    while word * 4 < end {
        let from = first.saturating_sub(word * 4).min(4);
        let to = (end - word * 4).min(4);
        see(word, ((1u16 << to) - (1 << from)) as u8);
        word += 1;
    }
}

impl<'d> Watcher<'d> {
    pub(super) fn new(detector: &'d Detector<'d>, cluster: u64) -> Self {
        let mut shared = Vec::new();
        shared.resize_with(detector.ctas_per_cluster as usize, Shadow::default);
        Self {
            detector,
            ledger: Ledger::new(cluster, detector.strands()),
            shared,
            places: HashMap::new(),
        }
    }

    fn report(&self, sighting: Sighting) {
        self.detector.report(self.ledger.cluster, sighting);
    }

    fn hear_shared(&mut self, visit: &Visit<'_>, cta: u32) {
        let Self {
            detector,
            ledger,
            shared,
            ..
        } = self;
        let actor = ledger.actor(visit.from);
        let Some(known) = ledger.knowledge(actor).cloned() else {
            return;
        };
        let step = match actor {
            Actor::Warp(warp) => ledger.warps[warp as usize].step,
            Actor::Work(_) => 0,
        };
        let (writes, strong) = (visit.act.writes(), strength(visit.order));
        let proxied = by_async_proxy(visit.agent);
        let over = |old: &Trace, write: bool| {
            // Those that tell each other something do not race.
            if old.strength > 0 && strong > 0 {
                return true;
            }
            if old.actor == actor {
                return true;
            }
            match old.actor {
                Actor::Warp(warp) if proxied && write => known.own.proxied[0].at(warp) >= old.step,
                _ => ledger.over(&known, old, write, cta),
            }
        };
        let shadow = &mut shared[cta as usize];
        let mut met: Option<(Met, u64)> = None;
        let (mut lost, mut kept) = (None, false);
        pieces(visit, |first, len, lane| {
            each_word(first, len, |word, bytes| {
                let new = Trace {
                    actor,
                    step,
                    pc: visit.from.pc,
                    lane: if writes { lane } else { 0 },
                    bytes,
                    strength: strong,
                };
                let word = word as u32;
                let what = if writes {
                    let written = shadow.write(word, new, &over);
                    match written.lost {
                        Some(old) => lost = Some((old, word)),
                        None => kept = true,
                    }
                    written.met
                } else {
                    shadow.read(word, new, &over)
                };
                if met.is_none() {
                    met = what.map(|what| (what, u64::from(word) * 4));
                }
            });
        });
        let here = Side::new(visit.agent, visit.act, visit.from);
        let place = |address: u64| detector.shared_spot(cta, address as u32);
        if let Some((met, address)) = met {
            let sighting = judge_shared(ledger, &known, met, here, cta);
            if let Some(sighting) = sighting.filter(|s| detector.reports(s.hazard, visit.agent)) {
                self.report(sighting.at(place(address)));
            }
        }
        if let (Some((old, word)), false, Agent::BulkCopy, Act::Write) =
            (lost, kept, visit.agent, visit.act)
            && let Some(there) = side_of(&self.ledger, &old, true)
        {
            let sighting = Sighting::two(Hazard::Overwritten, here, there);
            self.report(sighting.at(place(u64::from(word) * 4)));
        }
    }

    fn hear_global(&mut self, visit: &Visit<'_>, region: usize) {
        self.within_tensors(visit, region);
        if visit.agent == Agent::MapFetch || visit.agent == Agent::Host {
            return;
        }
        let Some((strand, number)) = self.ledger.global_ticket(self.ledger.actor(visit.from))
        else {
            // A load that is known by a barrier's phase: only what it meets is of interest.
            self.touch_global(visit, region, (u32::MAX, 0), false);
            return;
        };
        let kept = visit.from.work == 0;
        self.touch_global(visit, region, (strand, number), kept);
    }

    /// Whether an access keeps within the tensors of its allocation.
    fn within_tensors(&self, visit: &Visit<'_>, region: usize) {
        let tensors = &self.detector.tensors;
        if tensors.contain(region, visit.bytes) {
            return;
        }
        let (mut first, mut lanes) = (None, 0);
        pieces(visit, |at, len, lane| {
            if let Some(outside) = tensors.outside(region, at, len) {
                first.get_or_insert(outside);
                lanes |= 1 << lane;
            }
        });
        let Some(first) = first else { return };
        let from = Origin {
            lanes: visit.from.lanes & lanes,
            ..visit.from
        };
        let here = Side::new(visit.agent, visit.act, from);
        let sighting = Sighting::one(Hazard::OutsideTensor, here);
        self.report(sighting.at(self.detector.global_spot(region, first)));
    }

    fn touch_global(
        &mut self,
        visit: &Visit<'_>,
        region: usize,
        (strand, number): (u32, u32),
        kept: bool,
    ) {
        let ledger = &self.ledger;
        let own = ledger.cluster;
        let Some(known) = ledger.knowledge(ledger.actor(visit.from)).cloned() else {
            return;
        };
        let (writes, strong) = (visit.act.writes(), strength(visit.order));
        let proxied = by_async_proxy(visit.agent);
        let reductions = |old: &global::Trace| {
            visit.act == Act::Update && visit.agent != Agent::Thread && old.strength > 0
        };
        let over = |old: &global::Trace, write: bool| {
            if old.strength > 0 && strong > 0 || reductions(old) {
                return true;
            }
            if (old.cluster, old.strand) == (own, strand) {
                return true;
            }
            let Some(view) = known.of(own, old.cluster) else {
                return false;
            };
            let clock = match proxied && write && old.generic {
                true => &view.proxied[1],
                false => &view.generic,
            };
            clock.at(old.strand) >= old.number
        };
        let mut new = global::Trace {
            cluster: own,
            strand,
            number,
            pc: visit.from.pc,
            cta: visit.from.cta,
            warp: visit.from.warp,
            lane: 0,
            bytes: 0,
            // Reductions of copies tell nobody anything, but do not race with each other.
            strength: match (visit.act, visit.agent) {
                (Act::Update, Agent::BulkCopy | Agent::LaneCopy) => 3,
                _ => strong,
            },
            agent: words::number(visit.agent),
            generic: !proxied,
        };
        let launch = self.ledger.strands.launch_before();
        let after = self.detector.after.as_ref();
        let after = after.filter(|_| known.own.generic.at(launch) == 0);
        let (mut met, mut early) = (None, None);
        let mut memory = self.detector.global();
        memory.seen.insert(visit.from.pc);
        pieces(visit, |first, len, lane| {
            each_word(first, len, |word, bytes| {
                (new.lane, new.bytes) = (lane, bytes);
                let at = (region, word);
                let what = memory.touch(at, new, writes, kept && visit.act != Act::Update, over);
                if met.is_none() {
                    met = what.map(|what| (what, word * 4));
                }
                if let (Some(wake), None) = (after, &early) {
                    let old = wake.meets(at, bytes, writes);
                    early = old.map(|old| (old, word * 4));
                }
            });
        });
        drop(memory);
        if let Some((before, address)) = early {
            let here = Side::new(visit.agent, visit.act, visit.from);
            let sighting = Sighting {
                before: Some(before),
                ..Sighting::one(Hazard::DependentLaunch, here)
            };
            self.report(sighting.at(self.detector.global_spot(region, address)));
        }
        let Some((met, address)) = met else { return };
        let here = Side::new(visit.agent, visit.act, visit.from);
        let old = met.old;
        let there = Side {
            agent: words::agent(old.agent),
            act: if met.wrote { Act::Write } else { Act::Read },
            from: Origin {
                cta: old.cta,
                warp: old.warp,
                lanes: 1 << old.lane,
                pc: old.pc,
                work: 0,
            },
            cluster: Some(old.cluster),
        };
        let known_otherwise = known
            .of(own, old.cluster)
            .is_some_and(|view| view.generic.at(old.strand) >= old.number);
        let hazard = match known_otherwise {
            true => Hazard::ProxyFence,
            false => Hazard::Race,
        };
        let sighting = Sighting::two(hazard, here, there);
        self.report(sighting.at(self.detector.global_spot(region, address)));
    }

    /// Accesses that tell others something, or are told.
    fn tells(&mut self, visit: &Visit<'_>) {
        let own = self.ledger.cluster;
        let warp = self.ledger.strand(visit.from);
        let mut words = Vec::new();
        pieces(visit, |first, _, _| words.push(first / 4));
        words.sort_unstable();
        words.dedup();
        let order = visit.order;
        let w = &self.ledger.warps[warp as usize];
        let leaves = match visit.act.writes() {
            true if releases(order) => Some(w.known.clone()),
            true => w.fenced.clone(),
            false => None,
        };
        let mut learnt = Knowledge::default();
        match visit.room {
            Room::Shared { cta } => {
                for word in words {
                    let left = self.places.entry((cta, word)).or_default();
                    learnt.join(left);
                    if let Some(known) = &leaves {
                        left.join(known);
                    }
                }
            }
            Room::Global { region } => {
                let mut memory = self.detector.global();
                for word in words {
                    if let Some(left) = memory.left((region, word)) {
                        learnt.learn(own, left);
                    }
                    if let Some(known) = &leaves {
                        memory.leave((region, word), own, known);
                    }
                }
            }
        }
        let reads = visit.act != Act::Write;
        if reads && acquires(order) {
            self.ledger.teach(warp, |known| known.join(&learnt));
            return;
        }
        if reads {
            self.ledger.warps[warp as usize].heard.join(&learnt);
        }
        self.ledger.step(warp);
    }

    fn fence(&mut self, from: Origin, fence: Fence) {
        let warp = self.ledger.strand(from);
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
                if fence.order != FenceOrder::Acquire {
                    let w = &mut self.ledger.warps[warp as usize];
                    w.fenced = Some(w.known.clone());
                    self.ledger.step(warp);
                }
            }
            Proxies::Generic | Proxies::Alias | Proxies::GenericTensormap => {}
        }
    }

    /// A barrier of the CTA or of the cluster.
    fn meets(&mut self, from: Origin, id: Option<u32>, over: u64, step: Step) {
        let warp = self.ledger.strand(from);
        let known = self.ledger.warps[warp as usize].known.clone();
        let meeting = match id {
            Some(id) => self.ledger.named.entry((from.cta, id)).or_default(),
            None => &mut self.ledger.all,
        };
        match step {
            Step::Arrive { order, .. } => {
                if releases(order) {
                    meeting.arrive(over, &known);
                }
                self.ledger.step(warp);
            }
            Step::Pass { order } if acquires(order) => {
                let learnt = meeting.passed(over).clone();
                self.ledger.teach(warp, |known| known.join(&learnt));
            }
            _ => {}
        }
    }

    fn mbarrier(&mut self, from: Origin, at: SharedAt, over: u64, step: Step) {
        let key = (at.cta, at.offset);
        let warp = self.ledger.strand(from);
        match step {
            Step::Init { .. } => {
                self.ends(from, at);
                self.ledger.init(from, at);
                return;
            }
            Step::Inval => {
                self.ends(from, at);
                self.ledger.barriers.remove(&key);
                return;
            }
            _ => {}
        }
        let Some(barrier) = self.ledger.barriers.get(&key) else {
            return;
        };
        let (strand, maker, made_at) = (barrier.strand, barrier.maker, barrier.made_at);
        let known = self.ledger.knowledge(self.ledger.actor(from)).cloned();
        let unaware = known.is_some_and(|known| known.own.generic.at(maker.0) < maker.1);
        if unaware && !(from.work == 0 && warp == maker.0) {
            let here = Side::new(Agent::Thread, Act::Read, from);
            let there = Side::new(Agent::Thread, Act::Write, made_at);
            let sighting = Sighting::two(Hazard::BarrierInit, here, there);
            self.report(sighting.at(self.detector.shared_spot(at.cta, at.offset)));
        }
        if from.work == 0 {
            let now = self.ledger.warps[warp as usize].step;
            if let Some(barrier) = self.ledger.barriers.get_mut(&key) {
                barrier.users.insert(warp, (now, from));
            }
        }
        match step {
            Step::Complete { .. } if from.work != 0 => self.completes(from, at, (strand, over)),
            Step::Arrive { order, .. } if from.work != 0 => {
                // `cp.async.mbarrier.arrive`, carried out by the last copy, or `tcgen05.commit`.
                self.ledger.follows(from, strand, over);
                let work = self.ledger.works.get(&(from.work as u32));
                let known = work.map(|work| work.known.clone());
                if let (Some(known), Some(barrier)) = (known, self.ledger.barriers.get_mut(&key))
                    && releases(order)
                {
                    barrier.meeting.arrive(over, &known);
                }
            }
            Step::Arrive { order, .. } => {
                let known = self.ledger.warps[warp as usize].known.clone();
                if let Some(barrier) = self.ledger.barriers.get_mut(&key) {
                    match releases(order) {
                        true => barrier.meeting.arrive(over, &known),
                        false => barrier.meeting.arrive(over, &Knowledge::default()),
                    }
                }
                self.ledger.step(warp);
            }
            Step::Pass { order } => self.passes(from, at, over, order),
            _ => {}
        }
    }

    /// A copy signals a barrier.
    fn completes(&mut self, from: Origin, at: SharedAt, (strand, over): (u32, u64)) {
        let work = from.work as u32;
        self.ledger.signals(work, strand, over);
        let awaited = self.ledger.works.get(&work).and_then(|work| work.awaited);
        if let Some((barrier, issued)) = awaited
            && barrier == at
            && issued != over
        {
            let here = Side::new(Agent::BulkCopy, Act::Write, from);
            let place = self.detector.shared_spot(at.cta, at.offset);
            let detail = format!("issued in phase {issued}, signalled in phase {over}");
            self.report(Sighting::one(Hazard::ExpectTx, here).at(Spot { detail, ..place }));
        }
    }

    /// A wait at an mbarrier goes through.
    fn passes(&mut self, from: Origin, at: SharedAt, over: u64, order: Order) {
        let warp = self.ledger.strand(from);
        let before = &self.ledger.warps[warp as usize].known.own.generic;
        let Some(barrier) = self.ledger.barriers.get_mut(&(at.cta, at.offset)) else {
            return;
        };
        let strand = barrier.strand;
        let known_before = before.at(strand);
        let learnt = barrier.meeting.passed(over).clone();
        if over as u32 >= known_before + 2 && self.detector.strict {
            let here = Side::new(Agent::Thread, Act::Read, from);
            let place = self.detector.shared_spot(at.cta, at.offset);
            let detail = format!("phase {over} after phase {known_before}");
            self.report(Sighting::one(Hazard::ParityLap, here).at(Spot { detail, ..place }));
        }
        if acquires(order) {
            self.ledger.teach(warp, |known| {
                known.join(&learnt);
                known.own.generic.raise(strand, over as u32);
            });
        }
    }

    /// A barrier is initialised anew or invalidated: nobody may still use it.
    fn ends(&self, from: Origin, at: SharedAt) {
        let Some(old) = self.ledger.barriers.get(&(at.cta, at.offset)) else {
            return;
        };
        let warp = self.ledger.strand(from);
        let known = &self.ledger.warps[warp as usize].known.own.generic;
        let users = old.users.iter();
        let using = users
            .filter(|(user, (step, _))| **user != warp && known.at(**user) < *step)
            .min_by_key(|(user, _)| **user);
        if let Some((_, (_, user))) = using {
            let here = Side::new(Agent::Thread, Act::Write, from);
            let there = Side::new(Agent::Thread, Act::Read, *user);
            let sighting = Sighting::two(Hazard::BarrierInUse, here, there);
            self.report(sighting.at(self.detector.shared_spot(at.cta, at.offset)));
        }
    }

    /// A barrier that asks for whole warps.
    fn whole_warp(&self, from: Origin, id: u32, count: u32) {
        let inst = self.detector.program.insts.get(from.pc as usize);
        let aligned = inst.is_some_and(|inst| matches!(inst.op, Op::Bar { aligned: true, .. }));
        if aligned && count < 32 {
            let here = Side::new(Agent::Thread, Act::Read, from);
            let spot = Spot {
                space: "barrier",
                name: id.to_string(),
                detail: format!("lanes {:#010x} are missing", !from.lanes),
                ..Spot::default()
            };
            self.report(Sighting::one(Hazard::PartialWarp, here).at(spot));
        }
    }
}

/// The side a remembered access was on.
fn side_of(ledger: &Ledger, old: &Trace, wrote: bool) -> Option<Side> {
    let act = if wrote { Act::Write } else { Act::Read };
    match old.actor {
        Actor::Warp(strand) => {
            let (cta, warp) = ledger.strands.place(strand);
            let from = Origin {
                cta,
                warp,
                lanes: if wrote { 1 << old.lane } else { 0 },
                pc: old.pc,
                work: 0,
            };
            Some(Side::new(Agent::Thread, act, from))
        }
        Actor::Work(work) => {
            let work = ledger.works.get(&work)?;
            let agent = work.agent.unwrap_or(Agent::BulkCopy);
            Some(Side::new(agent, act, work.from))
        }
    }
}

/// What two accesses of shared memory that met amount to.
fn judge_shared(
    ledger: &Ledger,
    known: &Knowledge,
    met: Met,
    here: Side,
    cta: u32,
) -> Option<Sighting> {
    let (old, wrote) = match met {
        Met::Nothing => return Some(Sighting::one(Hazard::UninitialisedShared, here)),
        Met::Write(old) => (old, true),
        Met::Read(old) => (old, false),
    };
    let there = side_of(ledger, &old, wrote)?;
    let hazard = match ledger.over(known, &old, wrote, cta) {
        true => Hazard::ProxyFence,
        false => Hazard::Race,
    };
    let late = there_came_later(ledger, &old, &here);
    Some(match late {
        true => Sighting::two(hazard, there, here),
        false => Sighting::two(hazard, here, there),
    })
}

/// Works reach memory some time after they were issued: what they meet may have come later.
fn there_came_later(ledger: &Ledger, old: &Trace, here: &Side) -> bool {
    let Some(work) = ledger.works.get(&(here.from.work as u32)) else {
        return false;
    };
    match old.actor {
        Actor::Work(other) => u64::from(other) > here.from.work,
        Actor::Warp(warp) if warp == ledger.strand(work.from) => {
            old.step > work.known.own.generic.at(warp)
        }
        // Nothing says which came first: more often a wait is missing than a barrier before.
        Actor::Warp(_) => here.act.writes(),
    }
}

impl Ear for Watcher<'_> {
    fn hear(&mut self, visit: &Visit<'_>) {
        if visit.from.work != 0 {
            let written = match visit.room {
                Room::Shared { cta } if visit.act.writes() => Some(cta),
                _ => None,
            };
            self.ledger
                .acts(visit.from.work as u32, visit.agent, written);
        }
        match visit.room {
            Room::Shared { cta } => self.hear_shared(visit, cta),
            Room::Global { region } => self.hear_global(visit, region),
        }
        if visit.from.work == 0 && visit.order != Order::Weak {
            self.tells(visit);
        }
    }

    fn order(&mut self, from: Origin, signal: Signal) {
        match signal {
            Signal::Issue { work, by, signals } => {
                let inst = self.detector.program.insts.get(from.pc as usize);
                let wgmma = inst.is_some_and(|inst| matches!(inst.op, Op::Wgmma(_)));
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
            Signal::Bar { id, over, step } => {
                if let Step::Arrive { count, .. } = step {
                    self.whole_warp(from, id, count);
                }
                self.meets(from, Some(id), over, step);
            }
            Signal::Cluster { over, step } => self.meets(from, None, over, step),
            Signal::Mbarrier { at, over, step } => self.mbarrier(from, at, over, step),
            // Lanes of a warp go together here; what they owe each other is not judged.
            Signal::Warp | Signal::WgmmaFence | Signal::TmemFence { .. } => {}
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
