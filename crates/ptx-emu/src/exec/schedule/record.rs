//! Follows the warps of watched clusters and writes down what they do.
//!
//! The interpreter knows nothing of it: it is given as many instructions as follow one another
//! whatever happens, or a single one, which is looked at before and after. So nobody else pays,
//! and what is computed is what is computed without.

use crate::exec::checked::Checked;
use crate::exec::cluster::Cluster;
use crate::exec::lanes::lanes;
use crate::exec::trace::plan::Plan;
use crate::exec::trace::recorder::Recorder;
use crate::exec::trace::tape::{Question, Tape};
use crate::exec::warp::{Path, State, Wait, Warp};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::op::{MbarOp, Op, Order, Pc, Program, pool};
use crate::trace::{CtaTrace, Deed};

/// The lanes an instruction is for, as the interpreter finds them.
fn guarded(w: &Warp, inst: &crate::op::Inst) -> u32 {
    match inst.guard.pred {
        None => w.active,
        Some(p) if inst.guard.negate => w.active & !w.pred(p),
        Some(p) => w.active & w.pred(p),
    }
}

/// What a load or an atomic has found, all its lanes' values as one word.
fn found(program: &Program, w: &Warp, mask: u32, op: &Op) -> u64 {
    let slots = match op {
        Op::Ld { d, .. } => pool(program, *d),
        Op::Atom(atom) => pool(program, atom.d),
        _ => &[],
    };
    let mut found = DefaultHasher::new();
    for &slot in slots {
        lanes(mask).for_each(|lane| w.lane(slot, lane).hash(&mut found));
    }
    found.finish()
}

/// Whether lanes left `pc` to let others come to it first.
fn went_aside(w: &Warp, pc: Pc, lanes: u32) -> bool {
    let aside = |path: &Path| path.parked && path.pc == pc && path.mask & lanes != 0;
    w.stack.iter().any(aside)
}

impl Cluster<'_> {
    /// As [`Cluster::interpret`], written down.
    pub(super) fn interpret_recorded(
        &mut self,
        recorder: &mut Recorder,
        w: &mut Warp,
        quantum: u32,
    ) -> Checked<u32> {
        let Some(plan) = self.env.watched.as_ref().and_then(|w| w.plan.as_ref()) else {
            return self.interpret(w, quantum);
        };
        if recorder.overflowed() {
            return self.interpret(w, quantum);
        }
        let before = recorder.tape(w).len();
        let mut steps = 0;
        while steps < quantum && w.events > 0 && matches!(w.state, State::Ready) {
            let pc = w.pc;
            steps += match plan.straight(pc, w.active == w.live) {
                0 => self.interpret_deed(recorder, w, plan, quantum - steps)?,
                straight => {
                    let taken = self.interpret(w, straight.min(quantum - steps))?;
                    recorder.tape(w).run(pc, pc + taken);
                    taken
                }
            };
        }
        recorder.events = recorder.events + recorder.tape(w).len() - before;
        if recorder.overflowed() {
            recorder.tapes.clear();
        }
        Ok(steps)
    }

    /// An instruction that may be a deed, and what follows it whatever it does.
    fn interpret_deed(
        &mut self,
        recorder: &mut Recorder,
        w: &mut Warp,
        plan: &Plan,
        quantum: u32,
    ) -> Checked<u32> {
        let (pc, active) = (w.pc, w.active);
        let behind = if active == w.live { plan.behind(pc) } else { 0 };
        let program = self.env.program;
        let Some(inst) = program.insts.get(pc as usize) else {
            return self.interpret(w, 1);
        };
        let mask = guarded(w, inst);
        let Recorder { deeds, asked, .. } = recorder;
        deeds.clear();
        asked.clear();
        if mask != 0 {
            self.deeds(w, mask, &inst.op, deeds, asked);
        }
        let polled = self.polled(w, mask, &inst.op);
        let (conflicts, progress) = (self.counters.bank_conflicts, self.progress);
        // What was found is looked at before anything is made of it.
        let behind = if polled.is_some() { 0 } else { behind };
        let steps = self.interpret(w, quantum.min(1 + behind))?;
        let again = matches!(
            w.state,
            State::Waiting(Wait::Mbar { .. } | Wait::Communication | Wait::Columns { .. })
        );
        if again || (active != w.live && went_aside(w, pc, active)) {
            return Ok(steps);
        }
        let extra = (self.counters.bank_conflicts - conflicts) as u32;
        let tape = &mut recorder.tapes[w.cta as usize][w.index as usize];
        if let Op::Mbar(mbar) = &inst.op
            && let MbarOp::TestWait { d, .. } | MbarOp::TryWait { d, .. } = mbar.op
        {
            let passed = w.pred(d);
            for asked in asked.iter() {
                let (barrier, parity) = (asked.barrier, asked.parity);
                let question = Question::Phase { barrier, parity };
                match asked.lanes & passed {
                    0 => tape.ask(pc, question, 0),
                    _ => {
                        tape.answered(pc, question);
                        deeds.push(Deed::Await { barrier, parity });
                    }
                }
            }
        }
        if let Some(addresses) = polled {
            let question = Question::Bytes { addresses };
            match matches!(inst.op, Op::Ld { .. }) || self.progress == progress {
                true => tape.ask(pc, question, found(program, w, mask, &inst.op)),
                false => tape.succeeded(pc, question),
            }
        }
        if deeds.is_empty() {
            tape.run(pc, pc + 1);
        }
        for deed in deeds.iter_mut() {
            if let Deed::Shared {
                wavefronts,
                atomic: false,
                ..
            } = deed
            {
                *wavefronts += extra;
            }
            tape.did(pc, *deed);
        }
        if steps > 1 {
            tape.run(pc + 1, pc + steps);
        }
        Ok(steps)
    }

    /// What an instruction may be spinning on, all its lanes' addresses as one word: it loads what
    /// others write, or is atomic.
    fn polled(&self, w: &Warp, mask: u32, op: &Op) -> Option<u64> {
        let addr = match op {
            Op::Ld { order, addr, .. } if *order != Order::Weak => *addr,
            Op::Atom(atom) => atom.addr,
            _ => return None,
        };
        let mut asked = DefaultHasher::new();
        for lane in lanes(mask) {
            self.address(w, addr, lane).hash(&mut asked);
        }
        (mask != 0).then(|| asked.finish())
    }

    /// What its CTAs did, once they are done; nothing where that was too much.
    pub(super) fn traces(&mut self) -> Vec<CtaTrace> {
        let Some(recorder) = self.recorder.take() else {
            return Vec::new();
        };
        let [gx, gy, _] = self.env.grid.map(u64::from);
        let number = |id: [u32; 3]| {
            let [x, y, z] = id.map(u64::from);
            x + gx * (y + gy * z)
        };
        let ctas = self.ctas.iter().zip(0..).zip(recorder.tapes);
        ctas.map(|((cta, rank), tapes)| CtaTrace {
            cta: number(cta.id),
            cluster: self.index,
            rank,
            warps: tapes.into_iter().map(Tape::into_events).collect(),
        })
        .collect()
    }
}
