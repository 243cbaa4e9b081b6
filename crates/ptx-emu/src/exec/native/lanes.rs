//! The lanes an instruction is for, and how registers are read and written for them.

use std::collections::BTreeMap;
use std::mem::offset_of;

use iced_x86::code_asm::*;

use super::constants::Constant;
use super::kept::Kept;
use super::{Helpers, Subnormals};
use crate::exec::warp::Warp;
use crate::op::operand::Register;
use crate::op::{Guard, Inst, Op, P, Pc, Program, R32, R64};

/// Whether a template was written; the assembler's mistakes are the writer's own.
pub(super) type Emitted = Result<bool, IcedError>;

/// Registers that exchanges read, and that are the same constant in all lanes then: by instruction.
pub(super) type Constants = BTreeMap<(Pc, R32), u32>;

/// Loads of shared memory whose addresses differ by constants from those of the first of them.
pub(super) type Groups = BTreeMap<Pc, Grouped>;

/// A group by its first load, and how far all of them are from the addresses in their register, at
/// least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grouped {
    pub(super) first: Pc,
    pub(super) reach: (i32, i32),
    /// Where code keeps what it found out of it.
    pub(super) place: usize,
}

/// Loads of global memory by the rows of four words that they are in.
pub(super) type Rows = BTreeMap<Pc, Row>;

/// The row that a load is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// The load that takes it.
    pub(super) first: Pc,
    /// How far it is from the address in the register.
    pub(super) offset: i32,
    /// Where code keeps its words.
    pub(super) place: usize,
}

/// Lanes of a register that code refers to: their place, and what they are.
pub(super) struct Table {
    pub(super) label: CodeLabel,
    pub(super) lanes: [u32; 32],
}

/// Lanes that an instruction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lanes {
    /// All; those that have exited too, as the interpreter does.
    All,
    /// Those of k1, k5, k2 and k6, eight each; eax has them as one word, as the instruction was
    /// guarded.
    Some,
}

/// Warps that code is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Some of whose live lanes are on another path.
    Parted,
    /// All of whose live lanes are active.
    Whole,
    /// Either, one instruction at a time: for the end of a turn, which may come after any.
    Stepped,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Parted, Self::Whole, Self::Stepped];
}

/// Writes instructions for warps of one kind.
pub(super) struct Writer<'a> {
    pub(super) asm: CodeAssembler,
    pub(super) program: &'a Program,
    pub(super) helpers: &'a Helpers,
    pub(super) kind: Kind,
    /// Lanes of the instruction that is being written.
    pub(super) lanes: Lanes,
    /// The guard whose lanes k1, k5, k2 and k6 have, if any: neighbours often share it.
    pub(super) held: Option<Guard>,
    /// What the processor is set to between instructions.
    pub(super) subnormals: Subnormals,
    pub(super) constants: Constants,
    pub(super) groups: Groups,
    pub(super) rows: Rows,
    /// What finds out how the lanes of a group lie, by its first load.
    pub(super) finders: BTreeMap<Pc, CodeLabel>,
    pub(super) tables: Vec<Table>,
    pub(super) kept: Kept,
}

/// The quarters of a warp: eight lanes each.
pub(super) const QUARTERS: [i32; 4] = [0, 1, 2, 3];

/// Its halves: sixteen lanes each.
pub(super) const HALVES: [i32; 2] = [0, 1];

pub(super) fn warp(field: usize) -> AsmMemoryOperand {
    rbx + field as i32
}

pub(super) fn active() -> AsmMemoryOperand {
    dword_ptr(warp(offset_of!(Warp, active)))
}

pub(super) fn predicate(p: P) -> AsmMemoryOperand {
    dword_ptr(r14 + 4 * i32::from(p.0))
}

/// Half of a 32-bit register: sixteen lanes.
pub(super) fn half(r: R32, half: i32) -> AsmMemoryOperand {
    zmmword_ptr(r12 + (r.0 as i32 * 128 + half * 64))
}

/// A quarter of a 32-bit register: eight lanes.
pub(super) fn quarter(r: R32, quarter: i32) -> AsmMemoryOperand {
    ymmword_ptr(r12 + (r.0 as i32 * 128 + quarter * 32))
}

/// A quarter of a 64-bit register: eight lanes.
pub(super) fn wide(r: R64, quarter: i32) -> AsmMemoryOperand {
    zmmword_ptr(r13 + (r.0 as i32 * 256 + quarter * 64))
}

pub(super) fn constant(constant: Constant) -> AsmMemoryOperand {
    zmmword_ptr(rbp + constant.offset() as i32)
}

/// A vector of a constant that is several.
pub(super) fn constant_part(constant: Constant, part: usize) -> AsmMemoryOperand {
    zmmword_ptr(rbp + (constant.offset() + 64 * part) as i32)
}

/// A vector for the lanes of a half.
fn half_lanes(v: AsmRegisterZmm, half: i32) -> AsmRegisterZmm {
    [v.k1(), v.k2()][half as usize]
}

/// zmm31 for the lanes of a quarter.
fn quarter_lanes(quarter: i32) -> AsmRegisterZmm {
    [zmm31.k1(), zmm31.k5(), zmm31.k2(), zmm31.k6()][quarter as usize]
}

impl Writer<'_> {
    /// Finds the lanes of an instruction; jumps to the label if there are none.
    pub(super) fn find_lanes(&mut self, guard: Guard, none: CodeLabel) -> Result<(), IcedError> {
        self.load_lanes(guard, none)?;
        let asm = &mut self.asm;
        self.lanes = match (self.kind, guard.pred) {
            (Kind::Whole, None) => Lanes::All,
            _ if self.held == Some(guard) => Lanes::Some,
            (kind, _) => {
                if kind != Kind::Parted {
                    asm.mov(ecx, -1)?;
                    asm.cmp(eax, dword_ptr(warp(offset_of!(Warp, live))))?;
                    asm.cmovne(ecx, eax)?;
                }
                self.split_lanes(if kind == Kind::Parted { eax } else { ecx })?;
                self.held = Some(guard);
                Lanes::Some
            }
        };
        Ok(())
    }

    /// Puts lanes into k1, k5, k2 and k6, eight each.
    pub(super) fn split_lanes(&mut self, lanes: AsmRegister32) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.kmovd(k1, lanes)?;
        asm.kshiftrd(k5, k1, 8)?;
        asm.kshiftrd(k2, k1, 16)?;
        asm.kshiftrd(k6, k1, 24)
    }

    /// Forgets the lanes of a guard that an instruction changes.
    pub(super) fn let_go(&mut self, op: &Op) {
        let guard = self.held.and_then(|guard| guard.pred);
        op.registers(&self.program.slot_pool, &mut |role, register| {
            if role.writes() && guard.map(Register::Pred) == Some(register) {
                self.held = None;
            }
        });
    }

    /// Loads the lanes of an instruction into eax; writes nothing for one without a guard of a whole
    /// warp.
    pub(super) fn load_lanes(&mut self, guard: Guard, none: CodeLabel) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        match guard.pred {
            None if self.kind == Kind::Whole => {}
            None => asm.mov(eax, active())?,
            Some(p) => {
                asm.mov(eax, predicate(p))?;
                if guard.negate {
                    asm.not(eax)?;
                }
                asm.and(eax, active())?;
                asm.jz(none)?;
            }
        }
        Ok(())
    }

    /// Half of a register: where it is held, or where it was loaded to.
    pub(super) fn read(
        &mut self,
        r: R32,
        h: i32,
        otherwise: AsmRegisterZmm,
    ) -> Result<AsmRegisterZmm, IcedError> {
        if let Some(held) = self.kept.find(r, h) {
            return Ok(held);
        }
        let v = self.kept.take(r, h).unwrap_or(otherwise);
        self.asm.vmovdqa32(v, half(r, h))?;
        Ok(v)
    }

    /// Loads half of a register.
    pub(super) fn load(&mut self, v: AsmRegisterZmm, r: R32, h: i32) -> Result<(), IcedError> {
        let held = self.read(r, h, v)?;
        match held == v {
            true => Ok(()),
            false => self.asm.vmovdqa32(v, held),
        }
    }

    /// Writes half of a register from a vector.
    pub(super) fn put_half(&mut self, d: R32, h: i32, v: AsmRegisterZmm) -> Result<(), IcedError> {
        if self.lanes == Lanes::All {
            self.asm.vmovdqa32(half(d, h), v)?;
            return match self.kept.renew(d, h) {
                Some(held) if held != v => self.asm.vmovdqa32(held, v),
                _ => Ok(()),
            };
        }
        let all = match self.kept.find(d, h) {
            Some(held) => held,
            None => {
                let all = self.kept.take(d, h).unwrap_or(zmm31);
                self.asm.vmovdqa32(all, half(d, h))?;
                all
            }
        };
        self.asm.vmovdqa32(half_lanes(all, h), v)?;
        self.asm.vmovdqa32(half(d, h), all)
    }

    /// Where half of a register is best computed, once its operands are read: where it will be
    /// held, or zmm30.
    pub(super) fn result(&mut self, d: R32, h: i32) -> AsmRegisterZmm {
        match self.lanes {
            Lanes::All => self.kept.renew(d, h).unwrap_or(zmm30),
            Lanes::Some => zmm30,
        }
    }

    /// Writes a quarter of a 32-bit register.
    pub(super) fn put_quarter(
        &mut self,
        d: R32,
        q: i32,
        v: AsmRegisterYmm,
    ) -> Result<(), IcedError> {
        self.kept.drop(d, q / 2);
        let asm = &mut self.asm;
        if self.lanes == Lanes::All {
            return asm.vmovdqa32(quarter(d, q), v);
        }
        asm.vmovdqa32(ymm31, quarter(d, q))?;
        let lanes = [ymm31.k1(), ymm31.k5(), ymm31.k2(), ymm31.k6()];
        asm.vmovdqa32(lanes[q as usize], v)?;
        asm.vmovdqa32(quarter(d, q), ymm31)
    }

    /// Writes a quarter of a 64-bit register.
    pub(super) fn put_wide(&mut self, d: R64, q: i32, v: AsmRegisterZmm) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        if self.lanes == Lanes::All {
            return asm.vmovdqa64(wide(d, q), v);
        }
        asm.vmovdqa64(zmm31, wide(d, q))?;
        asm.vmovdqa64(quarter_lanes(q), v)?;
        asm.vmovdqa64(wide(d, q), zmm31)
    }

    /// Writes a predicate from edx, for the lanes of the instruction.
    pub(super) fn put_predicate(&mut self, d: P, guard: Guard) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        if self.kind == Kind::Whole && guard.pred.is_none() {
            asm.mov(eax, active())?;
        }
        asm.xor(edx, predicate(d))?;
        asm.and(edx, eax)?;
        asm.xor(predicate(d), edx)
    }

    /// Sets how subnormal numbers count, and puts it back behind `write`.
    pub(super) fn with_subnormals(
        &mut self,
        wanted: Subnormals,
        write: impl FnOnce(&mut Self) -> Emitted,
    ) -> Emitted {
        if wanted == self.subnormals {
            return write(self);
        }
        self.set_subnormals(wanted)?;
        let written = write(self)?;
        self.set_subnormals(self.subnormals)?;
        Ok(written)
    }

    pub(super) fn set_subnormals(&mut self, wanted: Subnormals) -> Result<(), IcedError> {
        let mode = match wanted {
            Subnormals::Kept => Constant::Kept,
            Subnormals::Flushed => Constant::Flushed,
        };
        self.asm.ldmxcsr(dword_ptr(rbp + mode.offset() as i32))
    }

    /// Calls the interpreter's own function for an instruction that computes; eax has the lanes,
    /// unless they are all of a whole warp.
    pub(super) fn compute(&mut self, inst: &Inst) -> Emitted {
        let whole = self.kind == Kind::Whole && inst.guard.pred.is_none();
        let (program, helper) = (std::ptr::from_ref(self.program), self.helpers.compute);
        // The function may change mask registers.
        self.held = None;
        self.kept.forget();
        self.with_subnormals(Subnormals::Kept, |writer| {
            let asm = &mut writer.asm;
            match whole {
                true => asm.mov(edx, active())?,
                false => asm.mov(edx, eax)?,
            }
            asm.mov(rdi, rbx)?;
            asm.mov(rsi, std::ptr::from_ref(inst) as u64)?;
            asm.mov(rcx, program as u64)?;
            asm.mov(rax, helper as u64)?;
            writer.call_function()?;
            Ok(true)
        })
    }

    /// Calls the function whose address is in rax.
    pub(super) fn call_function(&mut self) -> Result<(), IcedError> {
        // Other code would be slowed down by what is in the higher halves.
        self.asm.vzeroupper()?;
        self.asm.call(rax)?;
        self.load_constants()
    }

    /// Loads the constants that vector registers hold all the time.
    pub(super) fn load_constants(&mut self) -> Result<(), IcedError> {
        self.asm.vmovdqa32(zmm0, constant(Constant::Nan))?;
        self.asm.vmovdqa32(zmm1, constant(Constant::NanReplaced))
    }
}
