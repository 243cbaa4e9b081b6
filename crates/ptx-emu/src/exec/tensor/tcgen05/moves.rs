//! `tcgen05.ld`, `tcgen05.st` and the waits for them.

use super::ctas::whole_warp;
use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::adversary::Delivery;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::V32;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::Signal;
use crate::exec::listen::visit::Act;
use crate::exec::storage::tmem::rectangle::{Loaded, Rectangle, Stored};
use crate::exec::storage::tmem::{POISON, split};
use crate::exec::warp::Warp;
use crate::fault::Place;
use crate::op::{R32, Slot, TmemMove, pool};
use crate::tensor::tcgen05::COLUMNS;

impl Cluster<'_> {
    /// What a warp moves, which must be its own and allocated.
    fn rectangle(&self, w: &Warp, mask: u32, op: &TmemMove) -> Checked<Rectangle> {
        let what = if op.store { "tcgen05.st" } else { "tcgen05.ld" };
        whole_warp(w, mask, what)?;
        let addresses = self.addresses(w, op.at);
        if addresses.iter().any(|a| *a != addresses[0]) {
            return Err(illegal(format!(
                "{what}: its address differs between the lanes of the warp"
            )));
        }
        let (lane, column) = split(addresses[0] as u32);
        let quarter = w.index % 4;
        if lane / 32 != quarter {
            return Err(illegal(format!(
                "{what} of lane {lane}: warp {} reaches lanes {} to {} only (warp number modulo 4)",
                w.index,
                32 * quarter,
                32 * quarter + 31
            )));
        }
        let begins = match op.shape.tall() {
            32 => lane % 32 == 0,
            _ => lane % 16 == 0,
        };
        if !begins {
            return Err(illegal(format!(
                "{what} of lane {lane}, which is not a multiple of {}",
                op.shape.tall()
            )));
        }
        let rectangle = Rectangle {
            shape: op.shape,
            split: op.split,
            packed: op.packed,
            lane,
            column,
        };
        let tmem = &self.ctas[w.cta as usize].tmem;
        for reach in rectangle.reaches() {
            let columns = reach.columns;
            if columns.end > COLUMNS as u32 || !tmem.holds(&columns) {
                return Err(illegal(format!(
                    "{what} of columns {} to {} of tensor memory, which are not all allocated",
                    columns.start,
                    columns.end - 1
                )));
            }
        }
        Ok(rectangle)
    }

    /// Whether what a load or store meets is still being worked on, or was never written.
    fn meets_work(&mut self, w: &Warp, from: &Rectangle) -> bool {
        for reach in from.reaches() {
            let busy = self.at_work(w.cta as usize, &reach.columns, reach.lanes);
            if let Some(issued) = busy {
                let line = Place::of(self.env.program, issued.from.pc, [0; 3], 0, 0).line();
                let what = format!(
                    "tensor memory read before {} issued at {line} was done: wait for its \
                     tcgen05.commit",
                    issued.name()
                );
                self.note_early(w, what);
                return true;
            }
            let unwritten = self.ctas[w.cta as usize].tmem.unwritten(&reach);
            if let Some(column) = unwritten {
                let what = format!(
                    "column {column} of tensor memory read, which was never written (or a \
                     tcgen05.st without its wait::st)"
                );
                self.note_early(w, what);
                return false;
            }
        }
        false
    }

    fn pass_move(&mut self, w: &Warp, mask: u32, tile: &Rectangle, act: Act) {
        if self.ear.is_none() {
            return;
        }
        for reach in tile.reaches() {
            let who = (Agent::Thread, w.origin(mask));
            self.pass_tensor(who, w.cta as usize, &reach, act);
        }
    }

    pub(super) fn tmem_load(&mut self, w: &mut Warp, mask: u32, op: &TmemMove) -> Checked<Flow> {
        let from = self.rectangle(w, mask, op)?;
        self.pass_move(w, mask, &from, Act::Read);
        let registers = usize::from(op.regs.len);
        let values = match self.meets_work(w, &from) {
            true => Some(vec![V32([POISON; 32]); registers].into_boxed_slice()),
            false if self.adversary.delivery == Delivery::Latest && !self.env.scoreboard => None,
            false => Some(from.load(&self.ctas[w.cta as usize].tmem.words, registers)),
        };
        if let (true, Some(values)) = (self.env.scoreboard, &values) {
            let slots = pool(self.env.program, op.regs);
            for (slot, value) in slots.iter().zip(values) {
                if let Slot::W32(r) = slot {
                    w.put(mask, *r, value.0);
                }
            }
            return Ok(Flow::Next);
        }
        let pc = w.pc;
        w.wgmma.defer_load(Loaded { pc, from, values });
        self.env.lock_loaded(w, pc);
        Ok(Flow::Next)
    }

    pub(super) fn tmem_store(&mut self, w: &mut Warp, mask: u32, op: &TmemMove) -> Checked<Flow> {
        let to = self.rectangle(w, mask, op)?;
        self.pass_move(w, mask, &to, Act::Write);
        let slots = pool(self.env.program, op.regs);
        let value = |slot: &Slot| match slot {
            Slot::W32(r) => V32(*w.get(*r)),
            _ => V32([0; 32]),
        };
        let values: Box<[V32]> = slots.iter().map(value).collect();
        let tmem = &mut self.ctas[w.cta as usize].tmem;
        match self.adversary.delivery {
            // Until it is waited for, nobody can tell what is there.
            Delivery::Latest => {
                to.store(&mut tmem.words, &vec![V32([POISON; 32]); values.len()]);
                to.reaches()
                    .iter()
                    .for_each(|reach| tmem.mark(reach, false));
                w.stored.push(Stored { to, values });
            }
            _ => {
                to.store(&mut tmem.words, &values);
                to.reaches().iter().for_each(|reach| tmem.mark(reach, true));
            }
        }
        self.progress += 1;
        Ok(Flow::Next)
    }

    pub(super) fn tmem_wait(&mut self, w: &mut Warp, mask: u32, store: bool) -> Checked<Flow> {
        let what = if store {
            "tcgen05.wait::st"
        } else {
            "tcgen05.wait::ld"
        };
        whole_warp(w, mask, what)?;
        self.signal(w.origin(mask), Signal::TmemWait { store });
        let program = self.env.program;
        let tmem = &mut self.ctas[w.cta as usize].tmem;
        if store {
            for Stored { to, values } in std::mem::take(&mut w.stored) {
                to.store(&mut tmem.words, &values);
                to.reaches().iter().for_each(|reach| tmem.mark(reach, true));
            }
            return Ok(Flow::Next);
        }
        let words = &tmem.words;
        w.retire_loads(|loaded, registers| {
            let crate::op::Op::TmemMove(op) = &program.insts[loaded.pc as usize].op else {
                return;
            };
            for (j, slot) in pool(program, op.regs).iter().enumerate() {
                if let Slot::W32(R32(r)) = slot {
                    registers[*r as usize] = match &loaded.values {
                        Some(values) => values[j],
                        None => loaded.from.register(words, j),
                    };
                }
            }
        });
        Ok(Flow::Next)
    }
}
