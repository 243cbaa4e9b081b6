//! Judges two accesses of the same bytes of shared or tensor memory: what each did, and which
//! hazard they are.

use super::Sighting;
use super::clock::Clock;
use super::finding::Hazard;
use super::ledger::Ledger;
use super::shadow::{Actor, Met, Trace};
use super::words::{Side, Waiting};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::Act;
use crate::exec::origin::Origin;

/// A recorded access as one side of a finding.
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
                branch: old.branch,
                work: 0,
            };
            Some(Side::new(Agent::Thread, act, from))
        }
        Actor::Work(work) => {
            let work = ledger.works.get(work)?;
            Some(Side::new(work.performer(), act, work.from))
        }
    }
}

/// The hazard of two conflicting accesses.
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
    let (there_later, begun) = order_of(ledger, &old, &here);
    let waiting = match (there_later, wrote) {
        (false, true) => waiting(ledger, &old, &here),
        _ => Waiting::default(),
    };
    let (later, earlier) = match there_later {
        true => (there, here),
        false => (here, there),
    };
    Some(Sighting {
        begun,
        waiting,
        ..Sighting::two(hazard, later, earlier)
    })
}

/// Which warp, if any, waited for a copy that is not complete for the accessing warp.
fn waiting(ledger: &Ledger, old: &Trace, here: &Side) -> Waiting {
    let Actor::Work(work) = old.actor else {
        return Waiting::Nobody;
    };
    let known = ledger.knowledge(ledger.actor(here.from));
    let warps = ledger.strands.of_cta(here.from.cta);
    let mut others = warps.map(|warp| &ledger.warps[warp as usize].known.own.generic);
    match () {
        () if known.is_some_and(|known| refills(ledger, work, &known.own.generic)) => {
            Waiting::Before
        }
        () if others.any(|clock| ledger.over(clock, old, true, here.from.cta)) => Waiting::Another,
        () => Waiting::Nobody,
    }
}

/// Whether a copy is not the first for its barrier, and all before it were waited for.
fn refills(ledger: &Ledger, work: u32, known: &Clock) -> bool {
    let awaited = ledger.works.get(work).and_then(|work| work.awaited);
    awaited.is_some_and(|(at, issued)| {
        let barrier = ledger.barriers.get(&(at.cta, at.offset));
        let seen = barrier.map_or(0, |barrier| barrier.seat.known_over(known).into());
        issued > 0 && seen >= issued
    })
}

/// Whether the recorded access came later, since works reach memory some time after they were
/// issued; and whether the later one knew that the earlier had begun.
fn order_of(ledger: &Ledger, old: &Trace, here: &Side) -> (bool, bool) {
    let Some(work) = ledger.works.get(here.from.work as u32) else {
        let known = &ledger.warps[ledger.strand(here.from) as usize].known;
        let begun = match old.actor {
            Actor::Work(other) => (ledger.works.get(other)).is_some_and(|other| {
                ledger.knows_issue(&known.own.generic, other)
                    || ledger.issued_together(other, here.from)
            }),
            Actor::Warp(_) => false,
        };
        return (false, begun);
    };
    match old.actor {
        Actor::Work(other) => {
            let known = &work.known.own.generic;
            let begun = (ledger.works.get(other)).is_some_and(|o| ledger.knows_issue(known, o));
            (u64::from(other) > here.from.work, begun)
        }
        Actor::Warp(warp) if warp == ledger.strand(work.from) => {
            (old.step > work.known.own.generic.at(warp), true)
        }
        Actor::Warp(strand) => match ledger.move_of(old, strand) {
            Some(moved) => {
                let warp = ledger.strands.owner(strand);
                let known = &ledger.warps[warp as usize].known;
                match work.known.own.generic.at(warp) >= moved.step {
                    true => (false, true),
                    false if u64::from(moved.after) < here.from.work => (false, false),
                    false => (true, ledger.knows_issue(&known.own.generic, work)),
                }
            }
            // The order is unknown: a missing wait is more likely than a missing barrier before,
            // unless earlier waits were there.
            None => {
                let warp = ledger.strands.owner(strand);
                let known = &ledger.warps[warp as usize].known.own.generic;
                let waits = refills(ledger, here.from.work as u32, known);
                (here.act.writes() && !waits, false)
            }
        },
    }
}
