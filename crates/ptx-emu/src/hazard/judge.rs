//! Two accesses of shared or tensor memory that met: who was who, and what that amounts to.

use std::cell::Cell;

use super::Sighting;
use super::finding::Hazard;
use super::ledger::Ledger;
use super::shadow::{Actor, Met, Trace};
use super::words::Side;
use crate::exec::copy::Origin;
use crate::exec::door::{Act, Agent};

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
