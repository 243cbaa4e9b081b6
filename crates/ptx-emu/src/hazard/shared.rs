//! Checks accesses of shared memory.

use super::Sighting;
use super::finding::{Hazard, Spot};
use super::judge::{judge, side_of};
use super::ledger::by_async_proxy;
use super::pieces::{Part, parts};
use super::shadow::{Actor, Trace};
use super::telling::strength;
use super::watcher::{Remembered, Watcher};
use super::words::Side;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Act, Bytes, Visit};

impl Watcher<'_> {
    pub(super) fn hear_shared(&mut self, visit: &Visit<'_>, cta: u32) {
        let Self {
            detector,
            ledger,
            memory,
            doubtful,
            ..
        } = self;
        let shadow = match memory {
            Remembered::Users(shared, _) => &mut shared[cta as usize],
            Remembered::Filled(_) => return self.glance_at_shared(visit, cta),
        };
        let actor = ledger.actor(visit.from);
        let Some(known) = ledger.knowledge(actor) else {
            return;
        };
        let step = match actor {
            Actor::Warp(warp) => ledger.warps[warp as usize].step,
            Actor::Work(_) => 0,
        };
        let strong = strength(visit.order);
        let proxied = by_async_proxy(visit.agent);
        let neighbours = ledger.strands.of_cta(visit.from.cta);
        // The scope that two accesses need to synchronise: within a CTA, or within the cluster.
        let near = |old: &Trace| match old.actor {
            Actor::Warp(warp) if neighbours.contains(&warp) => 1,
            _ => 2,
        };
        let over = |old: &Trace, write: bool| {
            // Synchronising accesses do not race if their scopes include each other.
            if old.strength > 0 && strong > 0 {
                return old.strength.min(strong) >= near(old);
            }
            if old.actor == actor {
                return !ledger.lanes_apart(old, visit.from);
            }
            let clock = match proxied && write && ledger.wrote_as_thread(old.actor) {
                true => &known.own.proxied[0],
                false => &known.own.generic,
            };
            ledger.over(clock, old, write, cta)
        };
        let new = Trace {
            actor,
            step,
            pc: visit.from.pc,
            branch: visit.from.branch,
            lane: 0,
            bytes: 0,
            strength: strong,
        };
        let mut caller = shadow.call(visit.act, new, over);
        parts(visit, |part| match part {
            Part::Words(words, lanes) => {
                shadow.touch(&mut caller, words.start as u32..words.end as u32, lanes);
            }
            Part::Bytes(word, bytes, lane) => {
                shadow.touch_part(&mut caller, word as u32, bytes, lane);
            }
        });
        let (met, lost, kept) = (caller.met, caller.lost, caller.kept);
        let here = Side::new(visit.agent, visit.act, visit.from);
        let place = |word: u32| detector.shared_spot(cta, word * 4);
        if let Some((met, word)) = met {
            let sighting = judge(ledger, met, here, |old, wrote| match () {
                () if old.strength > 0 && strong > 0 => Hazard::Scope,
                () if old.actor == actor => Hazard::Race,
                () if ledger.over(&known.own.generic, old, wrote, cta) => Hazard::ProxyFence,
                () => Hazard::Race,
            });
            let told = |s: &Sighting| {
                let doubtful = s.hazard == Hazard::UninitialisedShared;
                !doubtful || detector.doubts(visit.agent, visit.from.pc)
            };
            if let Some(sighting) = sighting.filter(told) {
                let sighting = sighting.at(place(word));
                // Threads that write the same value do no harm, if only by luck.
                let by_thread = |side: &Side| side.agent == Agent::Thread && side.act == Act::Write;
                let alike = by_thread(&here) && sighting.there.as_ref().is_some_and(by_thread);
                match alike && !detector.strict {
                    true => *doubtful = Some(Box::new(sighting)),
                    false => detector.report(ledger.cluster, sighting),
                }
            }
        }
        if let (Some((old, word)), false, Agent::BulkCopy, Act::Write) =
            (lost, kept, visit.agent, visit.act)
            && let Some(there) = side_of(ledger, &old, true)
        {
            let sighting = Sighting::two(Hazard::Overwritten, here, there);
            detector.report(ledger.cluster, sighting.at(place(word)));
        }
    }

    /// In strict mode, a tile must begin where its swizzle's pattern does, or as its descriptor
    /// says.
    pub(super) fn aligned_tile(&self, visit: &Visit<'_>, cta: u32) {
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
}
