//! The lifetime of shared memory: from the first instruction of its CTA to the last one of all its
//! warps. Other CTAs of the cluster may use it only in between: they must know that the CTA has
//! begun, and before it ends it must know that they are done. Asynchronous copies and products that
//! use it must be done by then too, whichever CTA issued them.

use std::collections::BTreeMap;

use super::Sighting;
use super::clock::{Clock, Knowledge, View};
use super::finding::Hazard;
use super::ledger::Ledger;
use super::pieces::words_at;
use super::shadow::Trace;
use super::watcher::Watcher;
use super::words::Side;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Act, Visit};
use crate::exec::origin::{Origin, SharedAt};

/// The lifetime of a CTA.
#[derive(Debug, Default)]
pub(super) struct Life {
    /// Warps of other CTAs that used its memory, by instruction and by barrier, if it was one; the
    /// last use of each.
    guests: BTreeMap<(u32, u32, Option<u32>), Guest>,
    /// Warps that have ended, and their knowledge then.
    pub(super) over: u32,
    known: Knowledge,
    /// Where the last of them ended.
    ended: Option<Origin>,
    /// In strict mode: the warps that wait for all threads of the CTA, by barrier.
    pub(super) waiting: BTreeMap<u32, Origin>,
}

/// A use by another CTA.
#[derive(Debug, Clone, Copy)]
struct Guest {
    side: Side,
    step: u32,
    at: u32,
    /// Other proofs of its completion: the phase of its barrier, or its place in the queue of the
    /// tensor core, which executes one commit after the other.
    tickets: [Option<(u32, u32)>; 2],
}

impl Guest {
    /// Whether the use is known to be complete. Its writes need not be visible.
    fn gone(&self, warp: u32, known: &View) -> bool {
        let reached = |(strand, number): (u32, u32)| known.generic.at(strand) >= number;
        let ran = |clock: &Clock| clock.at(warp) >= self.step;
        ran(&known.ran) || ran(&known.generic) || self.tickets.into_iter().flatten().any(reached)
    }
}

impl Watcher<'_> {
    /// An access of a CTA's shared memory.
    #[inline]
    pub(super) fn while_it_lives(&mut self, visit: &Visit<'_>, cta: u32) {
        if cta == visit.from.cta && self.lives[cta as usize].ended.is_none() {
            return;
        }
        let at = SharedAt {
            cta,
            offset: words_at(visit) as u32,
        };
        self.calls_on(Side::new(visit.agent, visit.act, visit.from), at, None);
    }

    /// An arrival or wait at a barrier of a CTA, in the phase of this number.
    pub(super) fn while_barrier_lives(&mut self, from: Origin, at: SharedAt, phase: (u32, u32)) {
        if at.cta == from.cta && self.lives[at.cta as usize].ended.is_none() {
            return;
        }
        let here = Side::new(self.ledger.agent_of(from), Act::Update, from);
        self.calls_on(here, at, Some(phase));
    }

    fn calls_on(&mut self, here: Side, at: SharedAt, phase: Option<(u32, u32)>) {
        let Self { ledger, lives, .. } = self;
        let life = &mut lives[at.cta as usize];
        let spot = |watcher: &Self| watcher.detector.shared_spot(at.cta, at.offset);
        if let Some(end) = life.ended {
            if self.outlives_by_right(&here, at.cta) {
                return;
            }
            let there = Side::new(Agent::Thread, Act::End, end);
            let sighting = Sighting::two(Hazard::Lifetime, here, there);
            return self.report(sighting.at(spot(self)));
        }
        let Some(known) = ledger.knowledge(ledger.actor(here.from)) else {
            return;
        };
        let mut warps = ledger.strands.of_cta(at.cta);
        let begun = known.hearsay || warps.any(|warp| known.own.ran.at(warp) > 0);
        let warp = ledger.strand(here.from);
        // A work's accesses are complete with the work, except for its arrivals.
        if here.from.work == 0 || phase.is_some() {
            let barrier = phase.map(|_| at.offset);
            let work = ledger.works.get(here.from.work as u32);
            let place = work.and_then(|work| work.place);
            let guest = Guest {
                side: here,
                step: match here.from.work {
                    0 => ledger.warps[warp as usize].step,
                    _ => u32::MAX,
                },
                at: at.offset,
                tickets: [phase, place],
            };
            life.guests.insert((warp, here.from.pc, barrier), guest);
        }
        if !begun {
            let first = Origin {
                cta: at.cta,
                lanes: u32::MAX,
                ..Origin::default()
            };
            let there = Side::new(Agent::Thread, Act::Begin, first);
            let sighting = Sighting::two(Hazard::Lifetime, here, there);
            self.report(sighting.at(spot(self)));
        }
    }

    /// Whether it is a store by the CTA that still reads its shared memory: hardware allows it, and
    /// CUTLASS's epilogue for a B200 relies on that. Strict mode requires a wait.
    fn outlives_by_right(&self, side: &Side, cta: u32) -> bool {
        let work = self.ledger.works.get(side.from.work as u32);
        let store =
            work.is_some_and(|work| work.agent == Some(Agent::BulkCopy) && work.is_grouped());
        let own = side.from.cta == cta && !side.act.writes();
        store && own && !self.detector.strict
    }

    /// A warp ends; with the last warp of its CTA shared memory is gone.
    pub(super) fn exits(&mut self, from: Origin, over: u64) {
        let Self { ledger, lives, .. } = self;
        let warp = ledger.strand(from);
        let Ledger { warps, all, .. } = ledger;
        let w = &warps[warp as usize];
        if ledger.strands.has_neighbours() {
            // A warp that has ended counts as arrived at the barrier of the cluster.
            all.arrive(over, &w.told_relaxed(2));
        }
        let life = &mut lives[from.cta as usize];
        life.known.join(&w.known);
        life.known.join(&w.heard);
        life.over += 1;
        let over = life.over;
        if over == ledger.strands.warps_per_cta {
            life.ended = Some(from);
            self.outlived(from);
        }
        for (id, waiting) in &self.lives[from.cta as usize].waiting {
            self.ended_before(*waiting, *id, over);
        }
    }

    /// Reports uses of a CTA's shared memory that may not be complete when it ends.
    fn outlived(&self, end: Origin) {
        let life = &self.lives[end.cta as usize];
        if life.known.hearsay {
            return;
        }
        let there = Side::new(Agent::Thread, Act::End, end);
        let report = |side: Side, at: u32| {
            let sighting = Sighting::two(Hazard::Lifetime, side, there);
            self.report(sighting.at(self.detector.shared_spot(end.cta, at)));
        };
        for ((warp, ..), guest) in &life.guests {
            if !guest.gone(*warp, &life.known.own) {
                report(guest.side, guest.at);
            }
        }
        for (number, work) in self.ledger.works.all() {
            let old = Trace::of_work(number);
            for (act, uses) in [Act::Read, Act::Write].into_iter().zip(work.uses) {
                // The copies of a thread's own lanes end with it.
                let own = work.agent == Some(Agent::LaneCopy) && work.from.cta == end.cta;
                let used = uses >> end.cta & 1 == 1 && !own;
                let clock = &life.known.own.generic;
                if used && !self.ledger.over(clock, &old, act.writes(), end.cta) {
                    let from = Origin {
                        work: number.into(),
                        ..work.from
                    };
                    let side = Side::new(self.ledger.agent_of(from), act, from);
                    if !self.outlives_by_right(&side, end.cta) {
                        report(side, work.at);
                    }
                }
            }
        }
    }
}
