//! The scheduler of a cluster: who runs, how long, and what wakes whom.
//!
//! A cluster is run by one host thread. Warps take turns; who runs, how long, and when copies
//! complete is drawn from the seed by the `Adversary`. A warp that cannot go on is parked with what
//! it waits for, so nothing spins, and "nobody can run and nothing is in flight" is a proof of
//! deadlock.

use crate::counters::Counters;
use crate::exec::checked::Checked;
use crate::exec::clock::Steps;
use crate::exec::cluster::adversary::Delivery;
use crate::exec::cluster::printed::Printed;
use crate::exec::cluster::{Cluster, Stalls, spares};
use crate::exec::listen::signal::Signal;
use crate::exec::storage::draft::Drafts;
use crate::exec::warp::{State, Wait, Warp};
use crate::fault::{EarlyRead, Fault, FaultKind};
use crate::op::BarKind;
use crate::trace::CtaTrace;

/// How a run of a cluster ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every thread has exited.
    Done,
    /// Some warps are at accesses that other CTAs may see.
    Parked,
}

/// What is left of a cluster that has ended.
pub(crate) struct Remains {
    /// Place in grid order.
    pub(crate) index: u64,
    pub(crate) counters: Counters,
    /// Instructions of its longest warp, and nanoseconds that it slept.
    pub(crate) longest_warp: u64,
    pub(crate) drafts: Drafts,
    pub(crate) early: Option<Box<EarlyRead>>,
    pub(crate) printed: Printed,
    pub(super) traces: Vec<CtaTrace>,
}

/// Instructions of a diverged warp, without progress of anybody and without all its lanes meeting,
/// after which it counts as spinning on itself, the first time and later ones; and its turns from
/// then on. Many turns must fit in, so that a warp it really waits for gets its own.
const SPIN_STEPS: u64 = 50_000;
const SPIN_AGAIN: u64 = 4_000;
const SPIN_TURN: u32 = 128;

/// A turn that lasts until the warp waits, unless it computes for very long.
const LONG_TURN: u32 = 4096;

/// Event time after which a parked warp gets its turn although others could still run.
const PARKED_STEPS: u64 = 100_000;

/// Event time between two looks at the wall clock, which cost as much as a short turn.
const LOOK_STEPS: u64 = 2_000;

/// Attempts at switching paths or timing out waits before a stall is a deadlock.
const STALL_LIMIT: u32 = 40;

/// Epochs a cluster lets pass in one go, at most.
const LONGEST_PAUSE: u64 = 4;

impl Cluster<'_> {
    /// Runs until every thread has exited or all that could run wait for other CTAs. What others
    /// may see of it can come long before the rest: it may pause after that, or not wait for its
    /// other warps before it.
    pub(crate) fn run(&mut self) -> Result<Outcome, Box<Fault>> {
        self.env.level.enforce();
        #[cfg(target_arch = "x86_64")]
        self.look_for_code(0);
        self.turns.parked_since = None;
        let talks = self.env.shared_grid;
        if talks && self.pauses() {
            return Ok(Outcome::Parked);
        }
        let hurries = talks && self.adversary.heads();
        loop {
            let ran = self.round()?;
            let parked = talks && (!self.ordered.is_empty() || self.turns.talking > 0);
            if ran {
                // The others may be spinning on what a parked warp is about to do.
                let since = *self.turns.parked_since.get_or_insert(self.clocks.now());
                match parked {
                    true if hurries || self.clocks.now() - since > PARKED_STEPS => {
                        return Ok(Outcome::Parked);
                    }
                    true => {}
                    false => self.turns.parked_since = None,
                }
                continue;
            }
            // What is in flight may land before or after what other CTAs see.
            if parked && self.adversary.heads() {
                return Ok(Outcome::Parked);
            }
            if self.hand_over()? || self.pass_time()? {
                continue;
            }
            if parked {
                return Ok(Outcome::Parked);
            }
            if self.warps().all(|w| matches!(w.state, State::Done)) {
                self.collect();
                return Ok(Outcome::Done);
            }
            self.unstall()?;
        }
    }

    /// Whether a warp stands before something that other CTAs may see.
    pub(super) fn talks(&self, state: &State) -> bool {
        match state {
            State::Waiting(Wait::Communication) => true,
            State::Waiting(Wait::Columns { .. }) => self.env.multiprocessors.is_some(),
            _ => false,
        }
    }

    /// Whether it lets an epoch pass, because others may be faster.
    fn pauses(&mut self) -> bool {
        self.turns.epochs += 1;
        if self.turns.resumes < self.turns.epochs
            && self.turns.epochs > 1
            && self.adversary.dawdles(self.turns.epochs)
        {
            self.turns.resumes = self.turns.epochs + self.adversary.draw(LONGEST_PAUSE);
        }
        self.turns.epochs <= self.turns.resumes
    }

    /// Gives warps that can run a turn, by priority; false if none could.
    fn round(&mut self) -> Result<bool, Box<Fault>> {
        let mut ran = false;
        let mut order = std::mem::take(&mut self.turns.order);
        if self.adversary.reorders() {
            self.adversary.reorder(&mut order);
        }
        let mut left = order.iter();
        while let Some((cta, warp)) = self.next_awake(&mut left) {
            if !self.wake(cta, warp)? {
                continue;
            }
            ran = true;
            let alone = self.is_alone();
            let w = &mut self.ctas[cta].warps[warp];
            let (quantum, events) = match w.spins {
                // It must soon be seen to, and lets no turn pass.
                true => (SPIN_TURN, u32::MAX),
                // It may wait for one that spins on itself.
                false if w.idle_steps > SPIN_AGAIN => (2 * SPIN_TURN, u32::MAX),
                false if w.pace.is_none() || alone => (LONG_TURN, u32::MAX),
                false => (LONG_TURN, self.adversary.turn(&mut w.pace)),
            };
            if events == 0 {
                continue;
            }
            if let Some(&(cta, warp)) = left.as_slice().first() {
                self.ctas[cta as usize].warps[warp as usize].prefetch();
            }
            let stopped = self.turn(cta, warp, quantum, events)?;
            self.deliver()?;
            // Whoever comes first may have been woken by this, and then goes first. But one that
            // could run on may be spinning, and lets all the others have their turn.
            if stopped && self.adversary.insists() {
                break;
            }
        }
        self.turns.order = order;
        Ok(ran)
    }

    /// The next of some warps that is not asleep. Most are, between one barrier and the next.
    #[inline(always)]
    fn next_awake(&self, left: &mut std::slice::Iter<'_, (u32, u32)>) -> Option<(usize, usize)> {
        if let [only] = &self.ctas[..] {
            let &(_, warp) = left.find(|(_, warp)| only.asleep >> warp & 1 == 0)?;
            return Some((0, warp as usize));
        }
        let awake = |(cta, warp): &&(u32, u32)| self.ctas[*cta as usize].asleep >> warp & 1 == 0;
        let &(cta, warp) = left.find(awake)?;
        Some((cta as usize, warp as usize))
    }

    /// Whether only one warp is awake, and nothing else happens before it waits or wakes another:
    /// where its turns end makes no difference until then.
    #[inline(always)]
    fn is_alone(&self) -> bool {
        let [only] = &self.ctas[..] else {
            return false;
        };
        only.awake().is_power_of_two()
            && self.events.is_empty()
            && self.turns.talking == 0
            && self.ordered.is_empty()
    }

    /// Runs one warp for at most `quantum` instructions, and as many observable ones as `events`;
    /// whether it cannot run on.
    fn turn(
        &mut self,
        cta: usize,
        warp: usize,
        quantum: u32,
        events: u32,
    ) -> Result<bool, Box<Fault>> {
        let spare = self.turns.spare.take().unwrap_or_else(spares::warp);
        let mut w = std::mem::replace(&mut self.ctas[cta].warps[warp], spare);
        w.events = events;
        let outcome = match self.recorder.take() {
            None => self.run_warp(&mut w, quantum),
            Some(mut recorder) => {
                let outcome = self.interpret_recorded(&mut recorder, &mut w, quantum);
                self.recorder = Some(recorder);
                outcome
            }
        };
        let (pc, active) = (w.pc, w.active);
        let own = &mut self.ctas[cta];
        let (done, asleep) = match w.state {
            State::Ready => (false, false),
            State::Done => (true, true),
            State::Waiting(Wait::Bar { id, generation, .. }) => {
                (false, own.named[id as usize].generation <= generation)
            }
            State::Waiting(_) => (false, false),
        };
        own.asleep |= u64::from(asleep) << warp;
        self.turns.talking += usize::from(self.talks(&w.state));
        if let Ok(steps) = &outcome {
            // A recorded cluster does not run as code.
            #[cfg(target_arch = "x86_64")]
            if self.recorder.is_none() {
                self.look_for_code(*steps);
            }
            self.clocks.execute(*steps);
            self.unspin(&mut w, u64::from(*steps));
        }
        let stopped = !matches!(w.state, State::Ready);
        self.turns.spare = Some(std::mem::replace(&mut self.ctas[cta].warps[warp], w));
        if let Err(kind) = outcome {
            return Err(self.fault(*kind, cta, warp, pc, active));
        }
        if done {
            self.end_warp(cta, warp)?;
        }
        match self.overdue() {
            Some(kind) if !done => Err(self.fault(kind, cta, warp, pc, active)),
            _ => Ok(stopped),
        }
    }

    /// A warp has ended, and with it perhaps its CTA.
    fn end_warp(&mut self, cta: usize, warp: usize) -> Result<(), Box<Fault>> {
        self.progress += 1;
        self.ctas[cta].running -= 1;
        let from = self.ctas[cta].warps[warp].origin(u32::MAX);
        let over = self.barrier.generation;
        self.signal(from, Signal::Exit { over });
        self.thread_exit(cta);
        if self.ctas[cta].running == 0 {
            self.retire_rest(cta)?;
            self.check_columns(cta)?;
        }
        Ok(())
    }

    /// As [`Cluster::interpret`], in the engine of the kernel.
    fn run_warp(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        #[cfg(target_arch = "x86_64")]
        if let Some(code) = self.code {
            return self.run_compiled(code, w, quantum);
        }
        self.interpret(w, quantum)
    }

    /// A limit the cluster has passed, the reproducible one first.
    fn overdue(&mut self) -> Option<FaultKind> {
        if self.clocks.steps() > self.env.step_limit {
            let Steps(limit) = self.env.step_limit;
            return Some(FaultKind::StepLimit { limit });
        }
        if self.clocks.now() < self.turns.next_look {
            return None;
        }
        self.turns.next_look = self.clocks.now() + LOOK_STEPS;
        let deadline = self.env.deadline.filter(|d| d.passed())?;
        let limit = deadline.limit;
        Some(FaultKind::TimeLimit { limit })
    }

    /// A diverged warp that runs long without anything happening may wait for its own lanes: lets
    /// those at the join, or on another path, go first. Lanes that part and meet in every turn of a
    /// long loop wait for nobody; set apart they would never meet again, and each would be run by
    /// itself.
    #[inline(always)]
    fn unspin(&mut self, w: &mut Warp, steps: u64) {
        let progress = self.progress;
        let met = std::mem::take(&mut w.met);
        if w.seen_progress != progress || met {
            w.seen_progress = progress;
            w.idle_steps = 0;
            return;
        }
        w.idle_steps += steps;
        let patience = if w.spins { SPIN_AGAIN } else { SPIN_STEPS };
        let ready = matches!(w.state, State::Ready);
        if ready && !w.stack.is_empty() && w.idle_steps > patience {
            w.idle_steps = 0;
            w.spins = w.switch_path() || w.release_join();
        }
    }

    /// Performs what the parked warps wait to do to global memory, in any order; whether that
    /// changed anything.
    pub(crate) fn communicate(&mut self) -> Result<bool, Box<Fault>> {
        // What is done here is seen at once by those whose turn comes next.
        let drafts = std::mem::replace(&mut self.drafts.on, false);
        let mut changed = self.release_columns() || !self.ordered.is_empty();
        for pending in std::mem::take(&mut self.ordered) {
            self.finish_ordered(pending)?;
        }
        for at in 0..self.turns.order.len() {
            let (cta, warp) = self.turns.order[at];
            let (cta, warp) = (cta as usize, warp as usize);
            if self.talks(&self.ctas[cta].warps[warp].state) {
                let w = &mut self.ctas[cta].warps[warp];
                w.state = State::Ready;
                w.granted = true;
                self.polled = Some(w.origin(w.active));
                if let Some(states) = &mut self.states {
                    states.push(w.state_hash(self.index));
                }
                self.ctas[cta].asleep &= !(1 << warp);
                self.turns.talking -= 1;
                let before = self.progress;
                self.turn(cta, warp, 1, 1)?;
                changed |= self.progress != before;
                self.ctas[cta].warps[warp].granted = false;
                self.progress += 1;
            }
        }
        self.drafts.on = drafts;
        Ok(changed)
    }

    /// Makes a waiting warp ready if what it waits for has come.
    #[inline(always)]
    fn wake(&mut self, cta: usize, warp: usize) -> Result<bool, Box<Fault>> {
        let own = &mut self.ctas[cta];
        let ready = match own.warps[warp].state {
            State::Ready => return Ok(true),
            State::Done => false,
            // What most wait for.
            State::Waiting(Wait::Bar {
                id,
                generation,
                kind: BarKind::Sync,
                ..
            }) if self.ear.is_none() => own.named[id as usize].generation > generation,
            State::Waiting(wait) => return self.wake_from(cta, warp, wait),
        };
        match ready {
            true => self.make_ready(cta, warp),
            false => own.asleep |= 1 << warp,
        }
        Ok(ready)
    }

    #[inline(always)]
    fn make_ready(&mut self, cta: usize, warp: usize) {
        let w = &mut self.ctas[cta].warps[warp];
        w.state = State::Ready;
        w.waits = w.waits.saturating_add(1);
        w.pace = self.adversary.pace(w.waits);
    }

    #[inline(never)]
    fn wake_from(&mut self, cta: usize, warp: usize, wait: Wait) -> Result<bool, Box<Fault>> {
        let w = &self.ctas[cta].warps[warp];
        let ready = match wait {
            Wait::Bar {
                id,
                generation,
                kind,
                mask,
            } => {
                let bar = self.ctas[cta].named[id as usize];
                let released = bar.generation > generation;
                if released {
                    self.finish_bar(cta, warp, kind, mask, bar);
                }
                released
            }
            Wait::Mbar { at, phase } => self.phase_done(at, phase),
            Wait::Cluster { generation } => self.barrier.generation >= generation,
            Wait::Sleep { until } => self.clocks.now() >= until,
            Wait::Copies { below } => w.copies.done_below(below, false),
            Wait::Bulk { below, read } => w.bulk.done_below(below, read),
            Wait::Wgmma { below } if self.adversary.delivery == Delivery::Latest => {
                !w.wgmma.pending_below(below)
            }
            Wait::Wgmma { below } => self.retire_wgmma(cta, warp, below)?,
            Wait::Columns { columns } => self.columns_free(cta, warp, columns),
            Wait::PeerColumns { first } => self.peer_freed(cta, first),
            Wait::Communication => false,
            Wait::Registers { count } => self.take_registers(cta, warp, count),
        };
        if ready {
            self.pass_wait(self.ctas[cta].warps[warp].stopped, wait);
            self.make_ready(cta, warp);
        } else if matches!(wait, Wait::Bar { .. } | Wait::Communication) {
            self.ctas[cta].asleep |= 1 << warp;
        }
        Ok(ready)
    }

    /// Nothing can run: lets other paths of diverged warps try, then times out suspended waits,
    /// and reports a deadlock when that has changed nothing.
    fn unstall(&mut self) -> Result<(), Box<Fault>> {
        if self.turns.stalls.seen != self.progress {
            self.turns.stalls = Stalls {
                seen: self.progress,
                count: 0,
            };
        }
        self.turns.stalls.count += 1;
        let time_out = self.turns.stalls.count.is_multiple_of(4);
        let mut moved = false;
        for w in self.ctas.iter_mut().flat_map(|cta| &mut cta.warps) {
            if !matches!(w.state, State::Waiting(Wait::Mbar { .. })) {
                continue;
            }
            if time_out {
                w.timed_out = true;
                w.state = State::Ready;
                moved = true;
            } else {
                moved |= w.switch_path();
            }
        }
        if self.turns.stalls.count > STALL_LIMIT || (!moved && time_out) {
            return Err(self.deadlock());
        }
        Ok(())
    }

    /// What is left of a cluster that has ended, until its results are taken. Registers and shared
    /// memory, which would be large for a whole wave, go to the next one.
    pub(crate) fn end(&mut self) -> Remains {
        crate::report::count_ended(self.ctas.len() as u64);
        self.settle();
        let traces = self.traces();
        self.ctas.drain(..).for_each(spares::leave);
        if let Some(warp) = self.turns.spare.take() {
            spares::leave_warp(warp);
        }
        spares::leave_layouts(std::mem::take(&mut self.layouts));
        #[cfg(target_arch = "x86_64")]
        {
            let sites = std::mem::take(&mut self.sites);
            spares::leave_sites(self.env.launch_id, self.drafts.generation, sites);
        }
        Remains {
            index: self.index,
            counters: self.counters,
            longest_warp: self.turns.longest_warp,
            drafts: std::mem::take(&mut self.drafts),
            early: self.early.take(),
            printed: std::mem::take(&mut self.printed),
            traces,
        }
    }

    /// Adds what the CTAs' shared memories saw to the counters, once they are done.
    fn settle(&mut self) {
        for (read, written) in self.ctas.iter().map(|cta| cta.touched.bytes()) {
            self.counters.shared_unique_read += read;
            self.counters.shared_unique_written += written;
        }
    }

    /// Adds what the warps counted for themselves.
    fn collect(&mut self) {
        for cta in &mut self.ctas {
            for w in &mut cta.warps {
                let length = w.counts.iter().sum::<u64>() + w.slept;
                self.turns.longest_warp = self.turns.longest_warp.max(length);
                for (sum, n) in self
                    .counters
                    .warp_instructions
                    .iter_mut()
                    .zip(&mut w.counts)
                {
                    *sum += std::mem::take(n);
                }
            }
        }
    }
}
