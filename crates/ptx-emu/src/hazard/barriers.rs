//! Barriers of the CTA and the cluster, and mbarriers.

use super::Sighting;
use std::sync::Arc;

use super::finding::{Hazard, Spot};
use super::ledger::Ledger;
use super::pieces::pieces;
use super::telling::{acquires, releases};
use super::watcher::Watcher;
use super::words::Side;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::{Absent, Step, Stuck};
use crate::exec::listen::visit::{Act, Visit};
use crate::exec::origin::{Origin, SharedAt};
use crate::op::{Fence, FenceOrder, FencedBytes, MbarOp, Op, Order, Proxies, Scope};

impl Watcher<'_> {
    /// A barrier of the CTA or of the cluster.
    pub(super) fn meets(&mut self, from: Origin, id: Option<u32>, over: u64, step: Step) {
        let warp = self.ledger.strand(from);
        if matches!(step, Step::Pass { .. }) {
            self.ledger.lanes_meet(from);
            if let Some(id) = id {
                self.lives[from.cta as usize].waiting.remove(&id);
            }
        }
        let Ledger {
            warps, named, all, ..
        } = &mut self.ledger;
        let reach = if id.is_some() { 1 } else { 2 };
        let meeting = match id {
            Some(id) => named.entry((from.cta, id)).or_default(),
            None => all,
        };
        let w = &mut warps[warp as usize];
        match step {
            Step::Arrive { order, .. } if releases(order) => meeting.arrive(over, &w.known),
            Step::Arrive { .. } => meeting.arrive(over, &w.told_relaxed(reach)),
            Step::Pass { order, .. } if acquires(order) => {
                Arc::make_mut(&mut w.known).join(meeting.passed(over));
            }
            Step::Pass { .. } => w.hears(meeting.passed(over)),
            _ => {}
        }
        self.ledger.step(warp);
    }

    pub(super) fn mbarrier(&mut self, from: Origin, at: SharedAt, over: u64, step: Step) {
        let key = (at.cta, at.offset);
        let warp = self.ledger.strand(from);
        match step {
            Step::Init { .. } => {
                self.ends(from, at);
                self.still_valid(Side::new(Agent::Thread, Act::Write, from), at);
                self.ledger.init(from, at);
                return;
            }
            Step::Inval => {
                self.ends(from, at);
                self.ledger.end(key);
                return;
            }
            _ => {}
        }
        self.initialised(from, at);
        let now = self.ledger.warps[warp as usize].step;
        let Some(barrier) = self.ledger.barriers.get_mut(&key) else {
            return;
        };
        if from.work == 0 {
            barrier.users.insert(warp, (now, from));
        }
        match step {
            Step::Expect { .. } => barrier.expecting = Some(from),
            Step::Arrive { .. } if from.work == 0 => barrier.comes(over, Some((warp, now))),
            Step::Arrive { .. } | Step::Complete { .. } => barrier.comes(over, None),
            _ => {}
        }
        let phase = barrier.seat.phase(over + 1);
        self.while_barrier_lives(from, at, phase);
        match step {
            Step::Complete { .. } if from.work != 0 => self.completes(from, at, over),
            Step::Arrive { order, .. } if from.work != 0 => {
                self.settled(from, at, over);
                let work = from.work as u32;
                self.ledger.arrives(work, key, over, releases(order));
            }
            Step::Arrive { order, .. } => {
                self.settled(from, at, over);
                let op = self.detector.op(from.pc);
                let commits = matches!(op, Some(Op::TmemCommit { .. }));
                let done = commits.then(|| self.ledger.done(warp));
                let reach = if at.cta == from.cta { 1 } else { 2 };
                let Ledger {
                    warps, barriers, ..
                } = &mut self.ledger;
                let w = &warps[warp as usize];
                if let Some(barrier) = barriers.get_mut(&key) {
                    match releases(order) {
                        true => barrier.meeting.arrive(over, &w.known),
                        false => barrier.meeting.arrive(over, &w.told_relaxed(reach)),
                    }
                    if let Some(done) = &done {
                        barrier.meeting.tells_all(done);
                    }
                }
                self.ledger.step(warp);
            }
            Step::Pass { order, parity } => self.passes(from, at, over, (order, parity)),
            Step::Excess { expected } => {
                let detail = format!("it was initialised for {expected}");
                self.at_barrier(Hazard::BarrierCount, from, at, detail);
            }
            _ => {}
        }
    }

    /// Reports a hazard at a barrier, with the place where it was initialised; or, for bytes, where
    /// they were expected.
    fn at_barrier(&self, hazard: Hazard, from: Origin, at: SharedAt, detail: String) {
        let agent = self.ledger.agent_of(from);
        let act = match agent {
            Agent::Thread | Agent::TensorCore => Act::Update,
            _ => Act::Write,
        };
        let here = Side::new(agent, act, from);
        let barrier = self.ledger.barriers.get(&(at.cta, at.offset));
        let there = barrier.map(|barrier| match (hazard, barrier.expecting) {
            (Hazard::ExpectTx, Some(at)) => Side::new(Agent::Thread, Act::Update, at),
            _ => Side::new(Agent::Thread, Act::Write, barrier.made_at),
        });
        let sighting = Sighting {
            there,
            ..Sighting::one(hazard, here)
        };
        let spot = self.detector.shared_spot(at.cta, at.offset);
        self.report(sighting.at(Spot { detail, ..spot }));
    }

    /// The user of a barrier must know that it was initialised; in strict mode a fence must have
    /// made that visible to copies, tensor cores and other CTAs.
    fn initialised(&self, from: Origin, at: SharedAt) {
        let Some(barrier) = self.ledger.barriers.get(&(at.cta, at.offset)) else {
            return;
        };
        let known = self.ledger.knowledge(self.ledger.actor(from));
        let (made, turn) = barrier.seat.made();
        let unaware =
            known.is_some_and(|known| !known.hearsay && known.own.generic.at(made) < turn);
        let maker = self.ledger.strand(barrier.made_at);
        let own = from.work == 0 && self.ledger.strand(from) == maker;
        let away = from.work != 0 || from.cta != barrier.made_at.cta;
        let unfenced = self.detector.strict && away && !barrier.fenced;
        if !own && (unaware || unfenced) {
            let detail = match unaware {
                true => "",
                false => "no fence.mbarrier_init",
            };
            self.at_barrier(Hazard::BarrierInit, from, at, detail.to_owned());
        }
    }

    /// A fence that makes initialised barriers visible to all.
    pub(super) fn tell_of_barriers(&mut self, warp: u32, fence: Fence) {
        let wide = fence.scope.is_none_or(|scope| scope != Scope::Cta);
        let tells = match fence.between {
            Proxies::GenericAsync => fence.over != FencedBytes::Global,
            Proxies::Generic => wide && fence.order != FenceOrder::Acquire,
            Proxies::Alias | Proxies::GenericTensormap => false,
        };
        if !tells {
            return;
        }
        let Ledger {
            warps, barriers, ..
        } = &mut self.ledger;
        let w = &mut warps[warp as usize];
        for key in std::mem::take(&mut w.unfenced) {
            if let Some(barrier) = barriers.get_mut(&key) {
                barrier.fenced = true;
                let (made, turn) = barrier.seat.made();
                w.announced.own.generic.raise(made, turn);
            }
        }
    }

    /// In strict mode, an arriving thread must know that the phase before is complete: otherwise
    /// its arrival may have been counted there.
    fn settled(&self, from: Origin, at: SharedAt, over: u64) {
        if !self.detector.strict {
            return;
        }
        let Some(barrier) = self.ledger.barriers.get(&(at.cta, at.offset)) else {
            return;
        };
        let known = self.ledger.knowledge(self.ledger.actor(from));
        let Some(clock) = known.map(|known| &known.own.generic) else {
            return;
        };
        let known = barrier.seat.known_over(clock);
        let implied = || {
            let mut others = self.ledger.barriers.values();
            others.any(|other| u64::from(other.implies(clock, barrier.seat)) >= over)
        };
        if u64::from(known) < over && !implied() {
            let detail = format!("an arrival in phase {over}, by a thread that knew of {known}");
            self.at_barrier(Hazard::BarrierCount, from, at, detail);
        }
    }

    /// A copy signals a barrier.
    fn completes(&mut self, from: Origin, at: SharedAt, over: u64) {
        let work = from.work as u32;
        let Some(barrier) = self.ledger.barriers.get(&(at.cta, at.offset)) else {
            return;
        };
        let phase = barrier.seat.phase(over + 1);
        self.ledger.signals(work, phase);
        if self.detector.strict {
            self.ledger.sends(work, at, over);
        }
        let awaited = self.ledger.works.get(work).and_then(|work| work.awaited);
        if let Some((barrier, issued)) = awaited
            && barrier == at
            && issued != over
        {
            let detail = format!("issued in phase {issued}, signalled in phase {over}");
            self.at_barrier(Hazard::ExpectTx, from, at, detail);
        }
    }

    /// A wait at an mbarrier succeeds.
    fn passes(&mut self, from: Origin, at: SharedAt, over: u64, (order, parity): (Order, bool)) {
        self.ledger.lanes_meet(from);
        let warp = self.ledger.strand(from);
        let key = (at.cta, at.offset);
        let Some(barrier) = self.ledger.barriers.get(&key) else {
            return;
        };
        let known = &self.ledger.warps[warp as usize].known;
        let before = barrier.known_over(&known.own.generic, over);
        if parity && over >= before + 2 && !known.hearsay {
            let detail = format!("phase {over} is over, and {before} when it last looked");
            self.at_barrier(Hazard::ParityLap, from, at, detail);
        }
        self.ledger.learn(warp, key, over, acquires(order));
    }

    /// A barrier is initialised again or invalidated: it must not be in use.
    fn ends(&self, from: Origin, at: SharedAt) {
        let Some(old) = self.ledger.barriers.get(&(at.cta, at.offset)) else {
            return;
        };
        let warp = self.ledger.strand(from);
        let known = &self.ledger.warps[warp as usize].known;
        let own = &known.own;
        // A wait that has succeeded is complete, whatever is released after it; an arrival may
        // still be in flight.
        let behind = |user: u32, step: u32, at: Origin| {
            own.generic.at(user) >= step || (own.ran.at(user) >= step && self.waits(at))
        };
        let users = old.users.iter().filter(|_| !known.hearsay);
        let using = users
            .filter(|(user, (step, at))| **user != warp && !behind(**user, *step, *at))
            .min_by_key(|(user, _)| **user);
        if let Some((_, (_, user))) = using {
            let here = Side::new(Agent::Thread, Act::Write, from);
            let there = Side::new(Agent::Thread, Act::Read, *user);
            let sighting = Sighting::two(Hazard::BarrierInUse, here, there);
            self.report(sighting.at(self.detector.shared_spot(at.cta, at.offset)));
        }
    }

    fn waits(&self, at: Origin) -> bool {
        let op = match self.detector.op(at.pc) {
            Some(Op::Mbar(mbar)) => mbar.op,
            _ => return false,
        };
        matches!(op, MbarOp::TestWait { .. } | MbarOp::TryWait { .. })
    }

    /// Bytes of a barrier are a barrier until `mbarrier.inval`: writing anything else there, or
    /// initialising it again, is undefined in PTX.
    fn still_valid(&self, here: Side, at: SharedAt) {
        if let Some(old) = self.ledger.barriers.get(&(at.cta, at.offset)) {
            let there = Side::new(Agent::Thread, Act::Write, old.made_at);
            let sighting = Sighting::two(Hazard::BarrierInUse, here, there);
            self.report(sighting.at(self.detector.shared_spot(at.cta, at.offset)));
        }
    }

    /// A write to shared memory, perhaps to bytes of a barrier.
    pub(super) fn over_barriers(&self, visit: &Visit<'_>, cta: u32) {
        if !visit.act.writes() || self.ledger.barriers.is_empty() {
            return;
        }
        let here = Side::new(visit.agent, visit.act, visit.from);
        pieces(visit, |first, len, _| match len {
            // A lane's piece: few words, looked up one by one.
            ..=32 => {
                for word in first / 8..(first + len).div_ceil(8) {
                    let offset = word as u32 * 8;
                    self.still_valid(here, SharedAt { cta, offset });
                }
            }
            _ => {
                let met = |(of, offset): &&(u32, u32)| {
                    *of == cta && (first..first + len).contains(&u64::from(*offset))
                };
                for (_, offset) in self.ledger.barriers.keys().filter(met) {
                    let offset = *offset;
                    self.still_valid(here, SharedAt { cta, offset });
                }
            }
        });
    }

    /// A barrier for whole warps.
    pub(super) fn whole_warp(&self, from: Origin, id: u32, count: u32) {
        let op = self.detector.op(from.pc);
        let aligned = matches!(op, Some(Op::Bar { aligned: true, .. }));
        if aligned && count < 32 {
            let here = Side::new(Agent::Thread, Act::Read, from);
            let detail = format!("lanes {:#010x} are missing", !from.lanes);
            let sighting = Sighting::one(Hazard::PartialWarp, here);
            self.report(sighting.at(named(id, detail)));
        }
    }

    /// In strict mode, a barrier for all threads of a CTA must be reached by all of them, including
    /// those that have ended.
    pub(super) fn whole_block(&mut self, from: Origin, id: u32) {
        let op = self.detector.op(from.pc);
        let everybody = matches!(op, Some(Op::Bar { threads: None, .. }));
        if !self.detector.strict || !everybody {
            return;
        }
        let life = &mut self.lives[from.cta as usize];
        life.waiting.insert(id, from);
        let ended = life.over;
        if ended > 0 {
            self.ended_before(from, id, ended);
        }
    }

    /// Warps have ended that a barrier for all threads waits for.
    pub(super) fn ended_before(&self, from: Origin, id: u32, ended: u32) {
        let here = Side::new(Agent::Thread, Act::Read, from);
        let all = self.ledger.strands.warps_per_cta;
        let detail = format!("{ended} of {all} warps have ended and do not come");
        let sighting = Sighting::one(Hazard::BarrierCount, here);
        self.report(sighting.at(named(id, detail)));
    }

    /// A warp-wide instruction needs lanes that do not execute it.
    pub(super) fn absent(&self, from: Origin, absent: Absent) {
        let detail = match absent {
            Absent::Unnamed { lanes } => {
                format!("lanes {lanes:#010x} execute it, and their mask does not name them")
            }
            Absent::Away { lanes } => {
                format!("lanes {lanes:#010x} are named by the mask and do not come")
            }
            Absent::Read { lanes } => {
                format!(
                    "lanes {lanes:#010x} read from others that have ended, are not named or do not exist"
                )
            }
        };
        let here = Side::new(Agent::Thread, Act::Read, from);
        let spot = Spot {
            space: "warp",
            detail,
            ..Spot::default()
        };
        self.report(Sighting::one(Hazard::PartialWarp, here).at(spot));
    }

    /// A product adds to registers that were never written.
    pub(super) fn unset(&self, from: Origin, registers: u32, of: u32) {
        let here = Side::new(Agent::TensorCore, Act::Read, from);
        let spot = Spot {
            space: "register",
            detail: format!("{registers} of the {of} accumulators"),
            ..Spot::default()
        };
        self.report(Sighting::one(Hazard::UninitialisedRegister, here).at(spot));
    }

    /// A deadlock: this warp waits for an event that will never come.
    pub(super) fn stuck(&self, from: Origin, on: Stuck) {
        let here = Side::new(Agent::Thread, Act::Read, from);
        match on {
            Stuck::Mbarrier {
                at,
                bytes,
                arrivals: 0,
                ..
            } => {
                let detail = match bytes > 0 {
                    true => format!("{bytes} bytes were expected that never came"),
                    false => format!("{} bytes came that were not expected", -bytes),
                };
                self.at_barrier(Hazard::ExpectTx, from, at, detail);
            }
            Stuck::Mbarrier {
                at,
                arrivals,
                expected,
                ..
            } => {
                let detail = format!("{arrivals} of {expected} arrivals are missing");
                self.at_barrier(Hazard::BarrierCount, from, at, detail);
            }
            Stuck::Bar {
                id,
                arrived,
                expected,
            } => {
                let detail = format!("{arrived} of {expected} threads have come");
                let sighting = Sighting::one(Hazard::BarrierCount, here);
                self.report(sighting.at(named(id, detail)));
            }
            Stuck::Registers { count, free } => {
                let spot = Spot {
                    space: "register",
                    detail: format!("setmaxnreg.inc to {count} of every thread, {free} are free"),
                    ..Spot::default()
                };
                // Warps that already have their registers, from another instruction.
                let others = self.ledger.rationed.values();
                let mut others =
                    others.filter(|other| other.cta == from.cta && other.pc != from.pc);
                let sighting = Sighting {
                    there: (others.next()).map(|at| Side::new(Agent::Thread, Act::Update, *at)),
                    ..Sighting::one(Hazard::RegisterBudget, here)
                };
                self.report(sighting.at(spot));
            }
        }
    }
}

/// A barrier of the CTA.
fn named(id: u32, detail: String) -> Spot {
    Spot {
        space: "barrier",
        name: id.to_string(),
        detail,
        ..Spot::default()
    }
}
