//! Shuffles and votes of whole warps that name themselves by constants.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::code_asm::*;

use super::lanes::{Constants, Kind, Table, Writer, active, half, predicate};
use crate::op::operand::Register;
use crate::op::{Inst, Op, Pc, Program, R32, Unit};

/// Those of a program, in which a warp may come to some instructions from elsewhere than the one
/// before.
pub(super) fn constants(program: &Program, merges: &BTreeSet<Pc>) -> Constants {
    let fixed: BTreeMap<R32, u32> = program.consts32.iter().copied().collect();
    // What registers were last given, on the way here.
    let mut given: BTreeMap<R32, u32> = BTreeMap::new();
    let mut all = Constants::new();
    for (pc, inst) in (0..).zip(&program.insts) {
        if merges.contains(&pc) {
            given.clear();
        }
        let value = |r: R32| fixed.get(&r).or_else(|| given.get(&r)).copied();
        if let Op::Shfl { b, c, mask, .. } = inst.op {
            let known = |r| Some(((pc, r), value(r)?));
            all.extend([b, c, mask].into_iter().filter_map(known));
        }
        if let Op::Ballot { mask, .. } = inst.op {
            all.extend(value(mask).map(|value| ((pc, mask), value)));
        }
        let moved = match inst.op {
            Op::Mov32 { d, a } if inst.guard.pred.is_none() => value(a).map(|value| (d, value)),
            _ => None,
        };
        inst.op
            .registers(&program.slot_pool, &mut |role, register| {
                if let Register::W32(r) = register
                    && role.writes()
                {
                    given.remove(&r);
                }
            });
        given.extend(moved);
        // Others write registers later, or run other code in between.
        let plain = inst.op.unit().computes()
            || matches!(inst.op.unit(), Unit::Memory | Unit::Exchange)
            || matches!(inst.op, Op::Bra { .. } | Op::Bar { .. } | Op::Exit);
        if !plain {
            given.clear();
        }
    }
    all
}

impl Writer<'_> {
    /// Does an exchange of all lanes and is done; goes on otherwise.
    pub(super) fn exchange(
        &mut self,
        pc: Pc,
        inst: &Inst,
        done: CodeLabel,
    ) -> Result<(), IcedError> {
        let constant = |r: R32| self.constants.get(&(pc, r)).copied();
        let members = match inst.op {
            Op::Shfl { mask, .. } | Op::Ballot { mask, .. } => constant(mask),
            _ => None,
        };
        let whole = self.kind == Kind::Whole && inst.guard.pred.is_none();
        if !whole || members != Some(u32::MAX) {
            return Ok(());
        }
        let mut otherwise = self.asm.create_label();
        match inst.op {
            Op::Shfl {
                mode,
                d,
                p,
                a,
                b,
                c,
                ..
            } => {
                let (Some(b), Some(c)) = (constant(b), constant(c)) else {
                    return Ok(());
                };
                self.asm.cmp(active(), -1)?;
                self.asm.jne(otherwise)?;
                let sources: [_; 32] =
                    std::array::from_fn(|lane| mode.source_among_all(lane as u32, b, c));
                self.permute(d, a, sources.map(|(source, _)| source))?;
                if let Some(p) = p {
                    let within = (0..).zip(sources).filter(|(_, (_, within))| *within);
                    let within = within.fold(0, |all, (lane, _)| all | 1u32 << lane);
                    self.asm.mov(predicate(p), within as i32)?;
                }
            }
            Op::Ballot { d, p, negate, .. } => {
                let asm = &mut self.asm;
                asm.cmp(active(), -1)?;
                asm.jne(otherwise)?;
                asm.mov(eax, predicate(p))?;
                if negate {
                    asm.not(eax)?;
                }
                asm.vpbroadcastd(zmm16, eax)?;
                asm.vmovdqa32(half(d, 0), zmm16)?;
                asm.vmovdqa32(half(d, 1), zmm16)?;
            }
            _ => return Ok(()),
        }
        self.asm.jmp(done)?;
        self.asm.set_label(&mut otherwise)?;
        self.asm.zero_bytes()
    }

    /// Each lane of a register from one of another.
    fn permute(&mut self, d: R32, a: R32, sources: [u32; 32]) -> Result<(), IcedError> {
        let known = self.tables.iter().find(|table| table.lanes == sources);
        let label = match known {
            Some(table) => table.label,
            None => {
                let label = self.asm.create_label();
                let lanes = sources;
                self.tables.push(Table { label, lanes });
                label
            }
        };
        let asm = &mut self.asm;
        asm.vmovdqa32(zmm16, half(a, 0))?;
        asm.vmovdqa32(zmm17, half(a, 1))?;
        asm.lea(rax, qword_ptr(label))?;
        asm.vmovdqu32(zmm18, zmmword_ptr(rax))?;
        asm.vmovdqu32(zmm19, zmmword_ptr(rax + 64))?;
        asm.vpermi2d(zmm18, zmm16, zmm17)?;
        asm.vpermi2d(zmm19, zmm16, zmm17)?;
        asm.vmovdqa32(half(d, 0), zmm18)?;
        asm.vmovdqa32(half(d, 1), zmm19)
    }

    /// Writes the lanes that code refers to, behind it.
    pub(super) fn write_tables(&mut self) -> Result<(), IcedError> {
        for mut table in std::mem::take(&mut self.tables) {
            self.asm.set_label(&mut table.label)?;
            // As much at once as the assembler takes.
            for words in table.lanes.chunks(4) {
                self.asm.dd(words)?;
            }
        }
        Ok(())
    }
}
