//! Listens to one cluster.

use std::cell::Cell;
use std::collections::HashMap;

use super::clock::Knowledge;
use super::finding::{Hazard, Spot};
use super::global;
use super::global::Narrow;
use super::ledger::{Fenced, Ledger, by_async_proxy};
use super::shadow::{Actor, Met, Shadow, Trace};
use super::strands::Groups;
use super::words::{self, Side};
use super::{Detector, Sighting};
use crate::exec::copy::Origin;
use crate::exec::door::{Act, Agent, Bytes, Ear, Room, Visit};
use crate::exec::signal::{Signal, Step};
use crate::op::{Fence, FenceOrder, FencedBytes, Op, Order, Proxies, Scope};

/// The ear of one cluster.
pub(super) struct Watcher<'d> {
    pub(super) detector: &'d Detector<'d>,
    pub(super) ledger: Ledger,
    shared: Vec<Shadow>,
    pub(super) tensor: Vec<Shadow>,
    /// What was left at places of shared memory that tell others something.
    places: HashMap<(u32, u64), (Knowledge, Option<Narrow>)>,
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
        Bytes::Columns { .. } => {}
    }
}

/// The first byte of an access.
fn words_at(visit: &Visit<'_>) -> u64 {
    let mut first = None;
    pieces(visit, |at, _, _| {
        first.get_or_insert(at);
    });
    first.unwrap_or(0)
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
        let shadows = || {
            let mut all = Vec::new();
            all.resize_with(detector.ctas_per_cluster as usize, Shadow::default);
            all
        };
        Self {
            detector,
            ledger: Ledger::new(cluster, detector.strands()),
            shared: shadows(),
            tensor: shadows(),
            places: HashMap::new(),
        }
    }

    pub(super) fn report(&self, sighting: Sighting) {
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
        // How far two must reach to meet: within a CTA, or within the cluster.
        let near = |old: &Trace| match old.actor {
            Actor::Warp(warp) if ledger.strands.place(warp).0 == visit.from.cta => 1,
            _ => 2,
        };
        let judged = |old: &Trace, write: bool| {
            // Those that tell each other something do not race, if they reach each other.
            if old.strength > 0 && strong > 0 {
                return old.strength.min(strong) >= near(old);
            }
            if old.actor == actor {
                return true;
            }
            match old.actor {
                Actor::Warp(warp) if proxied && write => known.own.proxied[0].at(warp) >= old.step,
                _ => ledger.over(&known.own.generic, old, write, cta),
            }
        };
        let over = asked_once(judged);
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
            let sighting = judge(ledger, met, here, |old, wrote| match () {
                () if old.strength > 0 && strong > 0 => Hazard::Scope,
                () if ledger.over(&known.own.generic, old, wrote, cta) => Hazard::ProxyFence,
                () => Hazard::Race,
            });
            if let Some(sighting) = sighting.filter(|s| detector.reports(s.hazard, visit.agent)) {
                detector.report(ledger.cluster, sighting.at(place(address)));
            }
        }
        if let (Some((old, word)), false, Agent::BulkCopy, Act::Write) =
            (lost, kept, visit.agent, visit.act)
            && let Some(there) = side_of(ledger, &old, true)
        {
            let sighting = Sighting::two(Hazard::Overwritten, here, there);
            detector.report(ledger.cluster, sighting.at(place(u64::from(word) * 4)));
        }
    }

    /// Strictly, a tile begins where its swizzle's pattern does, or its descriptor says where.
    fn aligned_tile(&self, visit: &Visit<'_>, cta: u32) {
        let Bytes::Tile { matrix, .. } = visit.bytes else {
            return;
        };
        let rows = matrix.swizzle.span() / 16 - 1;
        if self.detector.strict && (matrix.start >> 7 ^ matrix.base_offset) & rows != 0 {
            let here = Side::new(visit.agent, visit.act, visit.from);
            let detail = format!(
                "the pattern repeats every {} bytes; base offset {}",
                128 * (rows + 1),
                matrix.base_offset
            );
            let spot = self.detector.shared_spot(cta, matrix.start);
            let sighting = Sighting::one(Hazard::MisalignedAtom, here);
            self.report(sighting.at(Spot { detail, ..spot }));
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
        let near = |old: &global::Trace| match () {
            () if u64::from(old.cluster) != own => 3,
            () if u32::from(old.cta) != visit.from.cta => 2,
            () => 1,
        };
        let gaps = self.detector.gaps;
        let over = |old: &global::Trace, write: bool| {
            if gaps && u64::from(old.cluster) != own {
                return true;
            }
            if old.strength > 0 && strong > 0 {
                return old.strength.min(strong) >= near(old);
            }
            if reductions(old) {
                return true;
            }
            if (u64::from(old.cluster), old.strand) == (own, strand) {
                return true;
            }
            let Some(view) = known.of(own, old.cluster.into()) else {
                return false;
            };
            let clock = match proxied && write && old.generic {
                true => &view.proxied[1],
                false => &view.generic,
            };
            clock.at(old.strand) >= old.number
        };
        let mut new = global::Trace {
            cluster: own as u32,
            strand,
            number,
            pc: visit.from.pc,
            cta: visit.from.cta as u8,
            warp: visit.from.warp as u8,
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
                cta: old.cta.into(),
                warp: old.warp.into(),
                lanes: 1 << old.lane,
                pc: old.pc,
                work: 0,
            },
            cluster: Some(old.cluster.into()),
        };
        let known_otherwise = known
            .of(own, old.cluster.into())
            .is_some_and(|view| view.generic.at(old.strand) >= old.number);
        let hazard = match known_otherwise {
            _ if old.strength > 0 && strong > 0 => Hazard::Scope,
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
                None => {}
            }
        }
        let mut learnt = Knowledge::default();
        let mut short = None;
        let mut meets = |left: Option<&Narrow>| {
            let away = |left: &&Narrow| match () {
                () if left.cluster != own => left.reach < 3,
                () => left.at.cta != visit.from.cta && left.reach < 2,
            };
            short = short.or(left.filter(away).copied());
        };
        match visit.room {
            Room::Shared { cta } => {
                for word in words {
                    let (left, by) = self.places.entry((cta, word)).or_default();
                    learnt.join(left);
                    meets(by.as_ref());
                    if let Some(known) = &leaves {
                        left.join(known);
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
                        memory.leave((region, word), own, known, narrow);
                    }
                }
            }
            Room::Tensor { .. } => {}
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
            Proxies::Generic | Proxies::Alias | Proxies::GenericTensormap => {}
        }
    }
}

/// The side a remembered access was on.
pub(super) fn side_of(ledger: &Ledger, old: &Trace, wrote: bool) -> Option<Side> {
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
            let work = ledger.works.get(work)?;
            let agent = work.agent.unwrap_or(Agent::BulkCopy);
            Some(Side::new(agent, act, work.from))
        }
    }
}

/// An answer that is the same for neighbours, which mostly were written together.
pub(super) fn asked_once(judged: impl Fn(&Trace, bool) -> bool) -> impl Fn(&Trace, bool) -> bool {
    let last: Cell<Option<(Trace, bool, bool)>> = Cell::new(None);
    move |old, write| match last.get() {
        Some((same, wrote, answer)) if same == *old && wrote == write => answer,
        _ => {
            let answer = judged(old, write);
            last.set(Some((*old, write, answer)));
            answer
        }
    }
}

/// What two accesses that met amount to.
pub(super) fn judge(
    ledger: &Ledger,
    met: Met,
    here: Side,
    kind: impl FnOnce(&Trace, bool) -> Hazard,
) -> Option<Sighting> {
    let (old, wrote) = match met {
        Met::Nothing => return Some(Sighting::one(Hazard::UninitialisedShared, here)),
        Met::Write(old) => (old, true),
        Met::Read(old) => (old, false),
    };
    let there = side_of(ledger, &old, wrote)?;
    let hazard = kind(&old, wrote);
    Some(match there_came_later(ledger, &old, &here) {
        true => Sighting::two(hazard, there, here),
        false => Sighting::two(hazard, here, there),
    })
}

/// Works reach memory some time after they were issued: what they meet may have come later.
fn there_came_later(ledger: &Ledger, old: &Trace, here: &Side) -> bool {
    let Some(work) = ledger.works.get(here.from.work as u32) else {
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
            Room::Shared { cta } => {
                self.aligned_tile(visit, cta);
                self.hear_shared(visit, cta);
            }
            Room::Global { region } => self.hear_global(visit, region),
            Room::Tensor { cta } => self.hear_tensor(visit, cta),
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
            Signal::Warp | Signal::WgmmaFence | Signal::TmemFence { after: false } => {}
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
