//! Which instructions can meet an accumulator of wgmma before it is waited for.

use std::collections::{BTreeMap, BTreeSet};

use crate::op::operand::{Register, Role};
use crate::op::{Inst, Op, Program, R32, Slot, pool};

/// 32-bit registers an instruction takes the values of. What it accumulates into it does not read:
/// the tensor core does, in its own time.
pub(crate) fn sources(program: &Program, op: &Op) -> Vec<R32> {
    let mut sources = Vec::new();
    op.registers(&program.slot_pool, &mut |role, register| {
        if let (Role::Read, Register::W32(r)) = (role, register) {
            sources.push(r);
        }
    });
    sources
}

/// Marks the instructions that read what a wgmma writes (or a copy of it).
pub(crate) fn readers(program: &Program) -> Vec<bool> {
    let mut written: BTreeSet<R32> = BTreeSet::new();
    for inst in &program.insts {
        inst.op
            .registers(&program.slot_pool, &mut |role, register| {
                if let (Role::Accumulate, Register::W32(r)) = (role, register) {
                    written.insert(r);
                }
            });
    }
    loop {
        let before = written.len();
        for inst in &program.insts {
            if let Op::Mov32 { d, a } = inst.op
                && written.contains(&a)
            {
                written.insert(d);
            }
        }
        if written.len() == before {
            break;
        }
    }
    let reads =
        |op: &Op| !written.is_empty() && sources(program, op).iter().any(|r| written.contains(r));
    program.insts.iter().map(|inst| reads(&inst.op)).collect()
}

/// The accumulators of each instruction as words of a slot set: (word, slots). Only wgmma and
/// `tcgen05.ld` have any.
pub(crate) type Accumulators = Vec<Box<[(u32, u64)]>>;

/// Finds them once per launch; instructions are issued far more often than there are any.
pub(super) fn all_accumulators(program: &Program) -> Accumulators {
    let of = |inst: &Inst| {
        let mut words: BTreeMap<u32, u64> = BTreeMap::new();
        let written = match &inst.op {
            Op::Wgmma(op) => Some(op.d),
            Op::TmemMove(tile) if !tile.store => Some(tile.regs),
            _ => None,
        };
        if let Some(list) = written {
            for slot in pool(program, list) {
                if let Slot::W32(r) = slot {
                    *words.entry(r.0 / 64).or_default() |= 1 << (r.0 % 64);
                }
            }
        }
        words.into_iter().collect()
    };
    program.insts.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_takes_an_accumulator_is_a_reader() {
        let registers: Vec<String> = (0..4).map(|i| format!("%f{i}")).collect();
        let d = registers.join(",");
        let text = format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n\
             .reg .f32 %f<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;\n\
             wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{d}}}, %rd0, %rd1, 1, 1, 1, 0, 0;\n\
             mov.b32 %r0, %f1; popc.b32 %r1, %r0; bfe.u32 %r1, %r2, %r0, %r3;\n\
             testp.finite.f32 %p, %f3; prefetch.global.L2 [%rd0]; add.u32 %r1, %r2, %r3;\n\
             wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{d}}}, %rd0, %rd1, 1, 1, 1, 0, 0;\n\
             ret; }}"
        );
        let module = crate::Module::load(&text).expect("it parses");
        let program = module.kernels.get("k").expect("it lowers");
        let expected = [false, true, true, true, true, false, false, false, false];
        assert_eq!(readers(program)[..9], expected);
    }
}
