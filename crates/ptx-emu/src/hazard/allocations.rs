//! Checks accesses of global memory: unordered accesses of the same bytes, and accesses outside the
//! tensors.

use super::Sighting;
use super::clock::Knowledge;
use super::finding::Hazard;
use super::global::{self, Reached};
use super::ledger::by_async_proxy;
use super::pieces::{Part, each_word, parts, pieces, words_at};
use super::shadow::{Lanes, WHOLE};
use super::telling::strength;
use super::watcher::{Remembered, Watcher};
use super::words::Side;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Act, Visit};
use crate::exec::origin::Origin;

impl Watcher<'_> {
    pub(super) fn hear_global(&mut self, visit: &Visit<'_>, region: usize) {
        let unknown = matches!(self.memory, Remembered::Filled(_));
        if unknown || visit.agent == Agent::Host {
            return;
        }
        if visit.agent == Agent::MapFetch {
            self.fetches_map(visit, region);
            return;
        }
        let Some((strand, number)) = self.ledger.global_ticket(self.ledger.actor(visit.from))
        else {
            // A load whose completion is known from a barrier's phase: only conflicts with earlier
            // accesses matter.
            self.touch_global(visit, region, (u32::MAX, 0), false);
            return;
        };
        let kept = visit.from.work == 0;
        self.touch_global(visit, region, (strand, number), kept);
    }

    /// A copy reads its tensor map: threads' writes to it must have been released by a proxy fence
    /// and acquired by another, for this map.
    fn fetches_map(&self, visit: &Visit<'_>, region: usize) {
        let ledger = &self.ledger;
        let own = ledger.cluster;
        let Some(known) = ledger.knowledge(ledger.actor(visit.from)) else {
            return;
        };
        let first = words_at(visit);
        let map = self.detector.global_address(region, first);
        let mut met = None;
        let memory = self.detector.global();
        pieces(visit, |first, len, _| {
            each_word(first, len, |word, bytes| {
                let Some((old, true)) = memory.last((region, word), bytes, false) else {
                    return;
                };
                let view = known.of(own, old.cluster.into());
                let elsewhere = known.hearsay && u64::from(old.cluster) != own;
                let over = view.is_some_and(|v| v.maps.at(map, old.strand) >= old.number);
                if met.is_none() && !elsewhere && !over {
                    met = Some((
                        old,
                        view.is_some_and(|v| v.generic.at(old.strand) >= old.number),
                    ));
                }
            });
        });
        drop(memory);
        let Some((old, ordered)) = met else { return };
        let here = Side::new(visit.agent, visit.act, visit.from);
        let hazard = if ordered {
            Hazard::ProxyFence
        } else {
            Hazard::Race
        };
        let sighting = Sighting::two(hazard, here, side_of(&old, true));
        self.report(sighting.at(self.detector.global_spot(region, first)));
    }

    /// Whether an access keeps within the tensors of its allocation.
    pub(super) fn within_tensors(&self, visit: &Visit<'_>, region: usize) {
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
        let Some(known) = ledger.knowledge(ledger.actor(visit.from)) else {
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
        let over = |old: &global::Trace, write: bool| {
            if known.hearsay && u64::from(old.cluster) != own {
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
        let new = global::Trace {
            cluster: own as u32,
            strand,
            number,
            pc: visit.from.pc,
            cta: visit.from.cta as u8,
            warp: visit.from.warp as u8,
            lane: 0,
            bytes: 0,
            // Reductions of copies pass no knowledge on, but do not race with each other.
            strength: match (visit.act, visit.agent) {
                (Act::Update, Agent::BulkCopy | Agent::LaneCopy) => 3,
                _ => strong,
            },
            agent: visit.agent,
            generic: !proxied,
        };
        let mut memory = self.detector.global();
        let kept = kept && visit.act != Act::Update;
        // Only what the two sides are can make an exception for one of another cluster.
        let plain = strong == 0 && (visit.act != Act::Update || visit.agent == Agent::Thread);
        let strangers = known.of_strangers().filter(|_| plain);
        let mut caller = memory.call(new, (writes, kept), (over, strangers));
        parts(visit, |part| {
            let (words, bytes, lanes) = match part {
                Part::Words(words, lanes) => (words, WHOLE, lanes),
                Part::Bytes(word, bytes, lane) => (word..word + 1, bytes, Lanes::one(lane)),
            };
            let reached = Reached {
                region,
                words,
                bytes,
                lanes,
            };
            memory.touch(&mut caller, reached);
        });
        let met = caller.met;
        drop(memory);
        self.not_before_launch(visit, region, known);
        let Some((met, word)) = met else { return };
        let here = Side::new(visit.agent, visit.act, visit.from);
        let old = met.old;
        let there = side_of(&old, met.wrote);
        let known_otherwise = known
            .of(own, old.cluster.into())
            .is_some_and(|view| view.generic.at(old.strand) >= old.number);
        let hazard = match known_otherwise {
            _ if old.strength > 0 && strong > 0 => Hazard::Scope,
            true => Hazard::ProxyFence,
            false => Hazard::Race,
        };
        let sighting = Sighting {
            begun: met.wrote && self.has_heard(visit.from, &old),
            ..Sighting::two(hazard, here, there)
        };
        self.report(sighting.at(self.detector.global_spot(region, word * 4)));
    }

    /// An access that conflicts with one of the launch before, without a wait for that launch.
    fn not_before_launch(&self, visit: &Visit<'_>, region: usize, known: &Knowledge) {
        let launch = self.ledger.strands.launch_before();
        let Some(wake) = &self.detector.after else {
            return;
        };
        if known.own.generic.at(launch) != 0 {
            return;
        }
        let mut early = None;
        pieces(visit, |first, len, _| {
            each_word(first, len, |word, bytes| {
                if early.is_none() {
                    let old = wake.meets((region, word), bytes, visit.act.writes());
                    early = old.map(|old| (old, word * 4));
                }
            });
        });
        let Some((before, address)) = early else {
            return;
        };
        let here = Side::new(visit.agent, visit.act, visit.from);
        let sighting = Sighting {
            before: Some(before),
            ..Sighting::one(Hazard::DependentLaunch, here)
        };
        self.report(sighting.at(self.detector.global_spot(region, address)));
    }

    /// Whether a warp of the CTA has read a value that was written after a fence of an access's
    /// writer: a fence of its own would have ordered the two.
    fn has_heard(&self, from: Origin, old: &global::Trace) -> bool {
        let ledger = &self.ledger;
        let mut warps = ledger.strands.of_cta(from.cta);
        warps.any(|warp| {
            let heard = &ledger.warps[warp as usize].heard;
            let view = heard.of(ledger.cluster, old.cluster.into());
            view.is_some_and(|view| view.generic.at(old.strand) >= old.number)
        })
    }
}

/// A recorded access as one side of a finding.
fn side_of(old: &global::Trace, wrote: bool) -> Side {
    Side {
        agent: old.agent,
        act: if wrote { Act::Write } else { Act::Read },
        from: Origin {
            cta: old.cta.into(),
            warp: old.warp.into(),
            lanes: 1 << old.lane,
            pc: old.pc,
            ..Origin::default()
        },
        cluster: Some(old.cluster.into()),
    }
}
