//! Faults in words: which warp, at which line, and what it waited for.

use super::cluster::Cluster;
use super::copy::Origin;
use super::signal::{Signal, Stuck};
use super::warp::{State, Wait, WaitPhase, Warp};
use crate::fault::{Fault, FaultKind, Place, Wait as WaitReport};

impl Cluster<'_> {
    pub(super) fn deadlock(&mut self) -> Box<Fault> {
        self.tell_stuck();
        let mut waits = Vec::new();
        for (c, cta) in self.ctas.iter().enumerate() {
            for w in &cta.warps {
                let on = match &w.state {
                    State::Waiting(wait) => self.describe(c, wait),
                    State::Ready => match self.suspended_on(w) {
                        Some(wait) => self.describe(c, &wait),
                        None => continue,
                    },
                    State::Done => continue,
                };
                // Most waits have moved on to the next instruction.
                let pc = match w.state {
                    State::Waiting(_) => w.stopped.pc,
                    State::Ready | State::Done => w.pc,
                };
                let place = Place::of(self.env.program, pc, cta.id, w.index, w.active);
                waits.push(WaitReport { place, on });
            }
        }
        let place = waits.first().map(|w| w.place.clone()).unwrap_or_default();
        Box::new(Fault {
            kind: FaultKind::Deadlock { waits },
            place,
            seed: self.env.seed,
            early: self.early.as_deref().cloned(),
            printed: Vec::new(),
        })
    }

    /// Tells whoever listens what each warp waits for.
    fn tell_stuck(&mut self) {
        if self.ear.is_none() {
            return;
        }
        let mut stuck = Vec::new();
        for (c, cta) in self.ctas.iter().enumerate() {
            for w in &cta.warps {
                let (wait, pc) = match &w.state {
                    State::Waiting(wait) => (*wait, w.stopped.pc),
                    State::Ready => match self.suspended_on(w) {
                        Some(wait) => (wait, w.pc),
                        None => continue,
                    },
                    State::Done => continue,
                };
                if let Some(on) = self.stuck(c, &wait) {
                    stuck.push((
                        Origin {
                            pc,
                            ..w.origin(w.active)
                        },
                        on,
                    ));
                }
            }
        }
        for (from, on) in stuck {
            self.signal(from, Signal::Stuck(on));
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
    fn describe(&self, cta: usize, wait: &Wait) -> String {
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
                        "in phase {} with {} (initialised at {line})",
                        b.phase,
                        b.missing()
                    )
                });
                let fresh =
                    barrier.is_some_and(|b| b.phase == 0 && b.pending == i64::from(b.expected));
                let products = self.ctas[owner as usize].tmem.uncommitted(address);
                let uncommitted = products.filter(|_| fresh).map_or(String::new(), |pc| {
                    let line = Place::of(self.env.program, pc, [0; 3], 0, 0).line();
                    format!("; no tcgen05.commit names it (the last tcgen05.mma is at {line})")
                });
                let remote = match owner as usize == cta {
                    true => String::new(),
                    false => format!(" of CTA rank {owner}"),
                };
                format!(
                    "mbarrier {address:#x}{}{remote}, waiting for {wanted}: {state}{uncommitted}",
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

    /// ` (name+offset)` of the shared variable an address lies in, or nothing.
    pub(super) fn symbol_near(&self, address: u32) -> String {
        let after = |v: &&crate::op::SharedVar| v.address <= address;
        let found = self
            .env
            .program
            .shared
            .iter()
            .filter(after)
            .max_by_key(|v| v.address);
        match found {
            Some(v) if v.size == 0 || address < v.address + v.size => {
                format!(" ({}+{})", v.name, address - v.address)
            }
            _ => String::new(),
        }
    }

    pub(super) fn fault(
        &self,
        kind: FaultKind,
        cta: usize,
        warp: usize,
        pc: u32,
        lanes: u32,
    ) -> Box<Fault> {
        let id = self.ctas[cta].id;
        Box::new(Fault {
            kind,
            place: Place::of(self.env.program, pc, id, warp as u32, lanes),
            seed: self.env.seed,
            early: self.early.as_deref().cloned(),
            printed: Vec::new(),
        })
    }

    /// A fault at the first warp that waits for other CTAs.
    pub(super) fn polling_fault(&self, kind: FaultKind) -> Box<Fault> {
        let polls = |w: &&Warp| self.talks(&w.state);
        for (c, cta) in self.ctas.iter().enumerate() {
            if let Some(w) = cta.warps.iter().map(Box::as_ref).find(polls) {
                return self.fault(kind, c, w.index as usize, w.pc, w.active);
            }
        }
        self.fault(kind, 0, 0, 0, 0)
    }
}
