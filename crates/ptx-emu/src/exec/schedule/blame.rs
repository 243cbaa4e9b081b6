//! Faults in words: which warp, at which line, and what it waited for.

use crate::exec::cluster::Cluster;
use crate::exec::listen::signal::{Signal, Stuck};
use crate::exec::origin::Origin;
use crate::exec::warp::{State, Wait, WaitPhase};
use crate::fault::{Fault, FaultKind, Place, Wait as WaitReport};

impl Cluster<'_> {
    pub(super) fn deadlock(&mut self) -> Box<Fault> {
        let stuck = self.all_stuck();
        for (from, wait) in &stuck {
            if let Some(on) = self.stuck(from.cta as usize, wait) {
                self.signal(*from, Signal::Stuck(on));
            }
        }
        let mut ranked: Vec<(u32, WaitReport)> = Vec::new();
        for (from, wait) in &stuck {
            let cta = self.ctas[from.cta as usize].id;
            let place = Place::of(self.env.program, from.pc, cta, from.warp, from.lanes);
            let on = self.describe(&stuck, from.cta as usize, wait);
            ranked.push((
                self.remoteness(&stuck, *from, wait),
                WaitReport { place, on },
            ));
        }
        ranked.sort_by_key(|(remoteness, _)| *remoteness);
        let waits: Vec<WaitReport> = ranked.into_iter().map(|(_, wait)| wait).collect();
        let place = waits.first().map(|w| w.place.clone()).unwrap_or_default();
        Box::new(Fault {
            kind: FaultKind::Deadlock { waits },
            place,
            seed: self.env.seed,
            early: self.early.as_deref().cloned(),
            printed: Vec::new(),
        })
    }

    /// Every warp that waits, and for what.
    fn all_stuck(&self) -> Vec<(Origin, Wait)> {
        let mut stuck = Vec::new();
        for w in self.ctas.iter().flat_map(|cta| &cta.warps) {
            // Most waits have moved on to the next instruction.
            let (wait, pc) = match &w.state {
                State::Waiting(wait) => (*wait, w.stopped.pc),
                State::Ready => match self.suspended_on(w) {
                    Some(wait) => (wait, w.pc),
                    None => continue,
                },
                State::Done => continue,
            };
            let from = w.origin(w.active);
            stuck.push((Origin { pc, ..from }, wait));
        }
        stuck
    }

    /// How far from the cause of a deadlock a wait seems: who waits where others are stuck that
    /// came there before, or would be needed by nobody, is a victim.
    fn remoteness(&self, stuck: &[(Origin, Wait)], from: Origin, wait: &Wait) -> u32 {
        let barrier_of = |wait: &Wait| match *wait {
            Wait::Mbar { at, .. } => self.ctas[at.cta as usize].mbarriers.peek(at.offset),
            _ => None,
        };
        let own = self.helper(from);
        let mut others = stuck.iter().filter(|(other, _)| self.helper(*other) != own);
        let all = others
            .clone()
            .fold(0, |all, (other, _)| all | self.helper(*other));
        let mut issuers = self.ctas.iter().filter_map(|cta| cta.tmem.issuer());
        let issues = issuers.any(|issuer| self.helper(issuer) == own);
        let needed = others.any(|(_, wait)| {
            let helpers = barrier_of(wait).map(|barrier| barrier.helpers);
            helpers.is_some_and(|helpers| helpers & own != 0 || (helpers == 0 && issues))
        });
        let barrier = barrier_of(wait);
        let alone = barrier.is_some_and(|barrier| barrier.helpers & all == 0);
        let begun = barrier.is_some_and(|barrier| barrier.begun());
        match (begun, alone, needed) {
            (true, true, _) => 0,
            (_, true, true) => 1,
            (true, _, _) => 2,
            (_, _, true) => 3,
            _ => 4,
        }
    }

    fn stuck(&self, cta: usize, wait: &Wait) -> Option<Stuck> {
        match *wait {
            Wait::Mbar { at, .. } => {
                let barrier = self.ctas[at.cta as usize].mbarriers.peek(at.offset)?;
                Some(Stuck::Mbarrier {
                    at,
                    arrivals: barrier.pending,
                    expected: barrier.expected,
                    bytes: barrier.tx,
                })
            }
            Wait::Bar { id, .. } => {
                let bar = &self.ctas[cta].named[id as usize];
                Some(Stuck::Bar {
                    id,
                    arrived: bar.arrived,
                    expected: self.bar_expected(cta, bar),
                })
            }
            Wait::Registers { count } => Some(Stuck::Registers {
                count,
                free: (self.ctas[cta].free_registers.unwrap_or(0) / 32) as u32,
            }),
            _ => None,
        }
    }

    /// What a wait is for and what it lacks, in words.
    fn describe(&self, stuck: &[(Origin, Wait)], cta: usize, wait: &Wait) -> String {
        match *wait {
            Wait::Bar { id, .. } => {
                let bar = &self.ctas[cta].named[id as usize];
                let expected = self.bar_expected(cta, bar);
                format!(
                    "bar.sync {id}: {} of {expected} threads have arrived",
                    bar.arrived
                )
            }
            Wait::Mbar { at, phase } => {
                let (owner, address) = (at.cta, at.offset);
                let barrier = self.ctas[owner as usize].mbarriers.peek(address);
                let wanted = match phase {
                    WaitPhase::Number(n) => format!("phase {n}"),
                    WaitPhase::Parity(p) => format!("parity {p}"),
                };
                let state = barrier.map_or("not initialised".to_owned(), |b| {
                    let line = Place::of(self.env.program, b.creator, [0; 3], 0, 0).line();
                    format!(
                        "phase {} has {} (initialised at {line})",
                        b.phase,
                        b.missing()
                    )
                });
                let fresh =
                    barrier.is_some_and(|b| b.phase == 0 && b.pending == i64::from(b.expected));
                let product = self.ctas[owner as usize].tmem.uncommitted(address);
                // An issuer that is held up elsewhere may have meant to commit later.
                let held = |issuer: &Origin| {
                    stuck.iter().any(|(other, on)| {
                        let same = (other.cta, other.warp) == (issuer.cta, issuer.warp);
                        same && !matches!(on, Wait::Mbar { at: there, .. } if *there == at)
                    })
                };
                let product = product.filter(|issuer| fresh && !held(issuer));
                let uncommitted = product.map_or(String::new(), |issuer| {
                    let line = Place::of(self.env.program, issuer.pc, [0; 3], 0, 0).line();
                    format!("; no tcgen05.commit names it (the last tcgen05.mma is at {line})")
                });
                let remote = match owner as usize == cta {
                    true => String::new(),
                    false => format!(" of CTA rank {owner}"),
                };
                format!(
                    "mbarrier {address:#x}{}{remote}, {wanted}: {state}{uncommitted}",
                    self.symbol_near(address)
                )
            }
            Wait::Cluster { .. } => {
                let all: usize = self
                    .warps()
                    .filter(|w| !matches!(w.state, State::Done))
                    .count();
                format!(
                    "barrier.cluster: {} of {} threads have arrived",
                    self.barrier.arrived,
                    all * 32
                )
            }
            Wait::Sleep { .. } => "nanosleep".to_owned(),
            Wait::Copies { .. } => "cp.async.wait_group".to_owned(),
            Wait::Bulk { .. } => "cp.async.bulk.wait_group".to_owned(),
            Wait::Wgmma { .. } => {
                "wgmma.wait_group: other warps of the warpgroup have not issued it".to_owned()
            }
            Wait::Columns { columns } => self.columns_wanted(cta, columns),
            Wait::PeerColumns { .. } => {
                "tcgen05.dealloc of cta_group::2: the other CTA of the pair has not come".to_owned()
            }
            Wait::Communication => "a global access ordered between CTAs".to_owned(),
            Wait::Registers { count } => {
                let free = self.ctas[cta].free_registers.unwrap_or(0) / 32;
                format!(
                    "setmaxnreg.inc {count}: only {free} registers per thread of one warp are free"
                )
            }
        }
    }

    /// A fault where a warp last asked for what other CTAs write: it has its answer by now, and
    /// stands behind it.
    pub(super) fn polling_fault(&self, kind: FaultKind) -> Box<Fault> {
        let Origin {
            cta,
            warp,
            lanes,
            pc,
            ..
        } = self.polled.unwrap_or_default();
        self.fault(kind, cta as usize, warp as usize, pc, lanes)
    }
}
