//! Where the instructions of a program stand to each other, for those who follow warps.

use crate::exec::alu::exchange;
use crate::op::{Inst, NO_RECONVERGENCE, Op, Pc, Program, Space, Unit};

/// What is known of a program before it runs.
pub(crate) struct Plan {
    /// Whether an instruction begins a basic block.
    pub(crate) leaders: Vec<bool>,
    /// Instructions from each on that follow one another whatever happens and do nothing a trace
    /// tells apart, the branch at their end included.
    straight: Vec<u32>,
    /// The same for warps whose lanes are on several paths: they may leave before an exchange.
    parted: Vec<u32>,
    /// Those behind an instruction that is to be looked at, which may follow it in one go.
    behind: Vec<u32>,
}

impl Plan {
    pub(crate) fn of(program: &Program) -> Self {
        let leaders = leaders(program);
        let straight = stretches(program, &leaders, |_| false);
        let parted = stretches(program, &leaders, |op| exchange::members(op).is_some());
        let follows = |(pc, inst): (usize, &Inst)| match inst.op {
            // What they tell would be overwritten.
            Op::Mbar(_) | Op::Atom(_) => 0,
            _ if leaders.get(pc + 1).is_none_or(|leads| *leads) => 0,
            _ => straight[pc + 1],
        };
        let behind = program.insts.iter().enumerate().map(follows).collect();
        Self {
            leaders,
            straight,
            parted,
            behind,
        }
    }

    /// How many instructions follow one that is looked at, whatever it does.
    pub(crate) fn behind(&self, pc: Pc) -> u32 {
        self.behind.get(pc as usize).copied().unwrap_or(0)
    }

    /// How many instructions can be taken in one go; none if the first is to be looked at.
    pub(crate) fn straight(&self, pc: Pc, whole: bool) -> u32 {
        let table = if whole { &self.straight } else { &self.parted };
        table.get(pc as usize).copied().unwrap_or(0)
    }
}

fn stretches(program: &Program, leaders: &[bool], apart: impl Fn(&Op) -> bool) -> Vec<u32> {
    let mut out = vec![0; program.insts.len()];
    let mut behind = 0;
    for (pc, inst) in program.insts.iter().enumerate().rev() {
        let next_leads = leaders.get(pc + 1).is_none_or(|leads| *leads);
        out[pc] = match stands_apart(&inst.op) || apart(&inst.op) {
            true => 0,
            false if next_leads => 1,
            false => behind + 1,
        };
        behind = out[pc];
    }
    out
}

fn leaders(program: &Program) -> Vec<bool> {
    let mut leaders = vec![false; program.insts.len()];
    let mut lead = |pc: Pc| {
        if let Some(leads) = leaders.get_mut(pc as usize)
            && pc != NO_RECONVERGENCE
        {
            *leads = true;
        }
    };
    lead(0);
    for (inst, pc) in program.insts.iter().zip(0..) {
        match &inst.op {
            Op::Bra {
                target, reconverge, ..
            } => [*target, *reconverge].into_iter().for_each(&mut lead),
            Op::Brx {
                targets,
                reconverge,
                ..
            } => targets.iter().chain([reconverge]).for_each(|pc| lead(*pc)),
            Op::Call { target } => lead(*target),
            Op::CallIndirect {
                targets,
                reconverge,
                ..
            } => {
                targets.iter().for_each(|(_, pc)| lead(*pc));
                lead(*reconverge);
            }
            _ => {}
        }
        if inst.op.unit() == Unit::Branch {
            lead(pc + 1);
        }
    }
    leaders
}

/// Whether an instruction may be a deed of its own.
fn stands_apart(op: &Op) -> bool {
    match op.unit() {
        Unit::Memory => match op {
            Op::Ld { space, .. } | Op::St { space, .. } => {
                !matches!(space, Space::Local | Space::Param | Space::Const)
            }
            _ => true,
        },
        Unit::Barrier | Unit::Copy | Unit::Matrix | Unit::Warp | Unit::TensorMemory => true,
        Unit::Hint => matches!(op, Op::GridDep { .. } | Op::PrefetchTensormap { .. }),
        Unit::Exchange | Unit::Branch | Unit::Frame | Unit::Report => false,
        unit => !unit.computes(),
    }
}
