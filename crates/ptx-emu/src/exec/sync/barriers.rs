//! Barriers and mbarrier instructions.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::residency::registers_of_warp;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::listen::signal::{Signal, Step};
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::mbarrier::{Arrival, token_pending, token_phase};
use crate::exec::storage::named::NamedBarrier;
use crate::exec::warp::{Wait, WaitPhase, Warp};
use crate::op::{Addr, BarKind, Base, Mbar, MbarOp, Op, Order, P, Phase, R32, Scope, Slot};

/// Threads a warp stands for at a barrier: aligned warps count whole, whatever lanes have exited.
fn threads_of(w: &Warp, mask: u32) -> u32 {
    if mask == w.live {
        32
    } else {
        mask.count_ones()
    }
}

impl Cluster<'_> {
    pub(crate) fn bar_expected(&self, cta: usize, bar: &NamedBarrier) -> u32 {
        match bar.expected {
            0 => self.ctas[cta].running * 32,
            n => n,
        }
    }

    pub(crate) fn bar(
        &mut self,
        w: &mut Warp,
        mask: u32,
        kind: BarKind,
        id: R32,
        threads: Option<R32>,
    ) -> Checked<Flow> {
        let mut mask = mask;
        if mask == w.active && mask != w.live && kind != BarKind::Arrive {
            if w.gather() {
                return Ok(Flow::Jumped);
            }
            mask = w.active;
        }
        let lane = mask.trailing_zeros() as usize;
        let id = w.get(id)[lane];
        if id > 15 {
            return Err(illegal(format!("barrier {id}: a CTA has barriers 0 to 15")));
        }
        let count = threads.map_or(0, |r| w.get(r)[lane]);
        if threads.is_some() && (count == 0 || !count.is_multiple_of(32)) {
            return Err(illegal(format!(
                "barrier {id} for {count} threads: the count must be a multiple of 32"
            )));
        }
        let cta = w.cta as usize;
        let arriving = threads_of(w, mask);
        let votes = match kind {
            BarKind::RedPopc { p, negate, .. } | BarKind::RedPred { p, negate, .. } => {
                let p = if negate { !w.pred(p) } else { w.pred(p) };
                Some((p & mask).count_ones())
            }
            _ => None,
        };
        let own = &mut self.ctas[cta];
        own.awaited |= 1 << id;
        let bar = &mut own.named[id as usize];
        if bar.arrived > 0 && bar.expected != count {
            let reason = format!(
                "barrier {id} is used with {} and {count} threads at once (0 means all)",
                bar.expected
            );
            return Err(illegal(reason));
        }
        bar.expected = count;
        bar.arrived += arriving;
        if let Some(votes) = votes {
            bar.counted += votes;
            bar.voters += mask.count_ones();
        }
        let generation = bar.generation;
        self.progress += 1;
        let (over, count) = (generation, arriving);
        let order = Order::Release(Scope::Cta);
        let step = Step::Arrive { count, order };
        self.signal(w.origin(mask), Signal::Bar { id, over, step });
        // The running warp is out of its place and counts as running.
        self.complete_bar(cta, id as usize, 0)?;
        if matches!(kind, BarKind::Arrive) {
            let released = self.ctas[cta].named[id as usize].generation != generation;
            if released && w.pace.is_some() {
                // It may have been alone awake, and is not now: others may go first.
                w.events = 1;
            }
            return Ok(Flow::Next);
        }
        self.counters.barrier_waits += 1;
        Ok(Flow::After(Wait::Bar {
            id,
            generation,
            kind,
            mask,
        }))
    }

    /// Releases a barrier whose last thread has arrived (or exited).
    fn complete_bar(&mut self, cta: usize, id: usize, exited: u32) -> Checked<()> {
        let bar = self.ctas[cta].named[id];
        let expected = self.bar_expected(cta, &bar);
        if bar.arrived < expected {
            return Ok(());
        }
        if bar.arrived > expected && exited == 0 {
            return Err(illegal(format!(
                "barrier {id}: {} threads arrived where {expected} were expected",
                bar.arrived
            )));
        }
        let own = &mut self.ctas[cta];
        own.asleep = 0;
        own.awaited &= !(1 << id);
        own.named[id] = NamedBarrier {
            generation: bar.generation + 1,
            last_counted: bar.counted,
            last_voters: bar.voters,
            ..NamedBarrier::default()
        };
        Ok(())
    }

    /// Writes the result of a barrier reduction when its warp is released.
    pub(crate) fn finish_bar(
        &mut self,
        cta: usize,
        warp: usize,
        kind: BarKind,
        mask: u32,
        bar: NamedBarrier,
    ) {
        let w = &mut self.ctas[cta].warps[warp];
        match kind {
            BarKind::RedPopc { d, .. } => w.put(mask, d, [bar.last_counted; 32]),
            BarKind::RedPred { d, and, .. } => {
                let all = bar.last_counted == bar.last_voters;
                let result = if and { all } else { bar.last_counted > 0 };
                w.put_pred(mask, d, if result { u32::MAX } else { 0 });
            }
            _ => {}
        }
    }

    /// A warp has ended: barriers that waited for every thread may be complete now.
    pub(crate) fn thread_exit(&mut self, cta: usize) {
        for id in lanes(self.ctas[cta].awaited.into()) {
            // Exits only lower what is expected, so there is nothing to complain about.
            let _ = self.complete_bar(cta, id, 32);
        }
        self.complete_cluster_barrier();
    }

    pub(crate) fn cluster_arrive(&mut self, w: &mut Warp, mask: u32, order: Order) {
        let over = self.barrier.generation;
        w.cluster_arrived = over + 1;
        let count = threads_of(w, mask);
        self.barrier.arrived += count;
        let step = Step::Arrive { count, order };
        self.signal(w.origin(mask), Signal::Cluster { over, step });
        self.progress += 1;
        self.complete_cluster_barrier();
    }

    fn complete_cluster_barrier(&mut self) {
        let all = self.ctas.iter().map(|cta| cta.running * 32).sum();
        if self.barrier.arrived > 0 && self.barrier.arrived >= all {
            self.barrier.arrived = 0;
            self.barrier.generation += 1;
            self.progress += 1;
        }
    }

    pub(crate) fn cluster_wait(&mut self, w: &Warp) -> Checked<Flow> {
        if w.cluster_arrived == 0 {
            return Err(illegal("barrier.cluster.wait without an arrive before it"));
        }
        let generation = w.cluster_arrived;
        let over = self.barrier.generation >= generation;
        Ok(self.pass_or_wait(w.origin(w.active), over, Wait::Cluster { generation }))
    }

    /// The barrier an operand of a lane names.
    pub(crate) fn barrier_at(&self, w: &Warp, addr: Addr, lane: usize) -> Checked<SharedAt> {
        self.shared_operand(w, addr, lane, 8, true)
    }

    /// mbarrier instructions, lane by lane.
    pub(crate) fn mbar(&mut self, w: &mut Warp, mask: u32, mbar: &Mbar) -> Checked<Flow> {
        if let MbarOp::PendingCount { d, state } = mbar.op {
            let v = w.get64(state).map(token_pending);
            w.put(mask, d, v);
            return Ok(Flow::Next);
        }
        match mbar.op {
            MbarOp::TestWait { d, phase } => self.test_wait(w, mask, mbar, d, phase, false),
            MbarOp::TryWait { d, phase } => self.test_wait(w, mask, mbar, d, phase, true),
            _ => {
                self.progress += 1;
                for lane in lanes(mask) {
                    self.mbar_lane(w, mbar, lane)?;
                }
                Ok(Flow::Next)
            }
        }
    }

    fn mbar_lane(&mut self, w: &mut Warp, mbar: &Mbar, lane: usize) -> Checked<()> {
        let (at, from) = (self.barrier_at(w, mbar.addr, lane)?, w.origin(1 << lane));
        let tell = |over, step| Signal::Mbarrier { at, over, step };
        let cta = &mut self.ctas[at.cta as usize];
        let (set, shared) = (&mut cta.mbarriers, &mut cta.shared[..]);
        match mbar.op {
            MbarOp::Init { count } => {
                let count = w.get(count)[lane];
                set.init(shared, at.offset, count, w.pc)?;
                self.signal(from, tell(0, Step::Init { count }));
                Ok(())
            }
            MbarOp::Inval => {
                let over = set.get(shared, at.offset)?.phase;
                set.inval(shared, at.offset)?;
                self.signal(from, tell(over, Step::Inval));
                Ok(())
            }
            MbarOp::ExpectTx { bytes } => {
                let bytes = w.get(bytes)[lane];
                let step = Step::Expect { bytes };
                self.at_mbarrier(from, at, step, |b| b.tx += i64::from(bytes))
            }
            MbarOp::CompleteTx { bytes } => self.complete_tx(from, at, w.get(bytes)[lane]),
            MbarOp::Arrive {
                state,
                drop,
                no_complete,
                expect_tx,
                count,
            } => {
                let arrival = Arrival {
                    count: count.map_or(1, |r| w.get(r)[lane]),
                    expect_tx: expect_tx.map_or(0, |r| w.get(r)[lane]),
                    drop,
                    no_complete,
                };
                let now = set.get(shared, at.offset)?;
                if i64::from(arrival.count) > now.pending {
                    let (over, expected) = (now.phase, now.expected);
                    self.signal(from, tell(over, Step::Excess { expected }));
                }
                let by = self.helper(from);
                let cta = &mut self.ctas[at.cta as usize];
                let token = cta
                    .mbarriers
                    .arrive(&mut cta.shared, at.offset, arrival, by)?;
                let (over, count, order) = (token_phase(token), arrival.count, mbar.order);
                if expect_tx.is_some() {
                    let bytes = arrival.expect_tx;
                    self.signal(from, tell(over, Step::Expect { bytes }));
                }
                self.signal(from, tell(over, Step::Arrive { count, order }));
                if let Some(state) = state {
                    w.set_lane(Slot::W64(state), lane, token);
                }
                Ok(())
            }
            MbarOp::TestWait { .. } | MbarOp::TryWait { .. } | MbarOp::PendingCount { .. } => {
                Ok(())
            }
        }
    }

    /// Bytes have come that a barrier expects.
    pub(crate) fn complete_tx(&mut self, from: Origin, at: SharedAt, bytes: u32) -> Checked<()> {
        let step = Step::Complete { bytes };
        self.at_mbarrier(from, at, step, |b| b.tx -= i64::from(bytes))
    }

    /// Whether the phase that is waited for is over.
    pub(crate) fn phase_done(&self, at: SharedAt, phase: WaitPhase) -> bool {
        // A barrier that has vanished is reported by the instruction when it runs again.
        let barrier = self.ctas[at.cta as usize].mbarriers.peek(at.offset);
        barrier.is_none_or(|b| match phase {
            WaitPhase::Number(n) => b.phase > n,
            WaitPhase::Parity(p) => b.phase & 1 != u64::from(p & 1),
        })
    }

    /// The wait of a suspended `try_wait`, for reports.
    pub(crate) fn suspended_on(&self, w: &Warp) -> Option<Wait> {
        let Op::Mbar(mbar) = &self.env.program.insts.get(w.pc as usize)?.op else {
            return None;
        };
        let (MbarOp::TryWait { phase, .. } | MbarOp::TestWait { phase, .. }) = mbar.op else {
            return None;
        };
        let lane = w.active.trailing_zeros() as usize & 31;
        let at = self.barrier_at(w, mbar.addr, lane).ok()?;
        let phase = wanted(w, phase, lane);
        Some(Wait::Mbar { at, phase })
    }

    fn test_wait(
        &mut self,
        w: &mut Warp,
        mask: u32,
        mbar: &Mbar,
        d: P,
        phase: Phase,
        suspend: bool,
    ) -> Checked<Flow> {
        let mut done = 0;
        let mut blocked = None;
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            // Usually all lanes ask the same.
            let asking = rest & alike_addresses(w, mbar.addr, lane) & alike_phases(w, phase, lane);
            rest &= !asking;
            let at = self.barrier_at(w, mbar.addr, lane)?;
            let cta = &mut self.ctas[at.cta as usize];
            let completed = cta.mbarriers.get(&mut cta.shared, at.offset)?.phase;
            let phase = wanted(w, phase, lane);
            let (passed, over) = match phase {
                WaitPhase::Number(n) => (completed > n, n + 1),
                WaitPhase::Parity(p) => (completed & 1 != u64::from(p & 1), completed),
            };
            if passed {
                done |= asking;
                let order = mbar.order;
                let parity = matches!(phase, WaitPhase::Parity(_));
                let step = Step::Pass { order, parity };
                self.signal(w.origin(asking), Signal::Mbarrier { at, over, step });
            } else {
                blocked.get_or_insert(Wait::Mbar { at, phase });
            }
        }
        if let (Some(wait), 0, false) = (blocked, done, w.timed_out) {
            if !w.refused && (!suspend || self.adversary.refuses()) {
                // Code without a loop around its wait goes on as if it had waited.
                w.refused = true;
                w.put_pred(mask, d, 0);
                return Ok(Flow::Next);
            }
            self.counters.barrier_waits += 1;
            return Ok(Flow::Again(wait));
        }
        w.timed_out = false;
        w.refused = false;
        w.put_pred(mask, d, done);
        Ok(Flow::Next)
    }

    /// Registers for `setmaxnreg.inc`, from those that `.dec` gave back.
    pub(crate) fn take_registers(&mut self, cta: usize, warp: usize, count: u32) -> bool {
        let held = i64::from(self.ctas[cta].warps[warp].registers);
        let wanted = (i64::from(count) - held) * 32;
        let free = self.ctas[cta].free_registers.get_or_insert(0);
        let enough = *free >= wanted;
        if enough {
            *free -= wanted;
            self.ctas[cta].warps[warp].registers = count;
            self.progress += 1;
        }
        enough
    }

    /// `setmaxnreg`: warps give registers back to their CTA's pool and take them from it; the
    /// pool starts empty, since the kernel's own registers are all handed out.
    pub(crate) fn setmaxnreg(&mut self, w: &mut Warp, inc: bool, count: u32) -> Checked<Flow> {
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            return Err(illegal(format!(
                "setmaxnreg {count}: must be a multiple of 8 from 24 to 256"
            )));
        }
        let start = registers_of_warp(self.env.registers_per_thread()) / 32;
        self.signal(w.origin(w.active), Signal::Registers);
        let cta = &mut self.ctas[w.cta as usize];
        if w.registers == 0 {
            w.registers = start;
        }
        let held = i64::from(w.registers);
        let change = (i64::from(count) - held) * 32;
        if !inc {
            if change > 0 {
                return Err(illegal(format!(
                    "setmaxnreg.dec {count}: the warp has only {held} registers per thread"
                )));
            }
            *cta.free_registers.get_or_insert(0) -= change;
            w.registers = count;
            self.progress += 1;
            return Ok(Flow::Next);
        }
        Ok(Flow::After(Wait::Registers { count }))
    }
}

/// The lanes with the value of `lane`, itself among them.
fn alike<T: PartialEq>(values: &[T; 32], lane: usize) -> u32 {
    let same = values.iter().map(|value| u32::from(*value == values[lane]));
    same.zip(0..).fold(0, |bits, (same, i)| bits | same << i)
}

fn alike_addresses(w: &Warp, addr: Addr, lane: usize) -> u32 {
    match addr.base {
        Base::R32(r) => alike(w.get(r), lane),
        Base::R64(r) => alike(w.get64(r), lane),
        Base::Abs | Base::Global(_) => u32::MAX,
    }
}

fn alike_phases(w: &Warp, phase: Phase, lane: usize) -> u32 {
    match phase {
        Phase::State(r) => alike(w.get64(r), lane),
        Phase::Parity(r) => alike(w.get(r), lane),
    }
}

fn wanted(w: &Warp, phase: Phase, lane: usize) -> WaitPhase {
    match phase {
        Phase::State(r) => WaitPhase::Number(token_phase(w.get64(r)[lane])),
        Phase::Parity(r) => WaitPhase::Parity(w.get(r)[lane]),
    }
}
