//! Halves of registers that the instructions of a run need not load again.
//!
//! Every result is still written to the warp's registers, which are therefore as the interpreter
//! would have them wherever code stops or calls a function.

use iced_x86::code_asm::*;

use crate::op::operand::Register;
use crate::op::{FBin, IBin, Inst, Op, Pc, Program, R32, W};

/// Vector registers that hold them. The two before these have constants.
const SLOTS: [AsmRegisterZmm; 14] = [
    zmm2, zmm3, zmm4, zmm5, zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15,
];

/// Instructions that are looked through for the next one that reads a register: what is read later
/// is seldom still held then.
const FAR: usize = 256;

/// What a vector register holds, and the next instruction that reads it.
#[derive(Debug, Clone, Copy)]
struct Held {
    register: R32,
    half: i32,
    next: Pc,
}

/// What is held while a run is written.
pub(super) struct Kept {
    /// Of each instruction the 32-bit registers it reads from here, and those it writes.
    read: Vec<Vec<R32>>,
    written: Vec<Vec<R32>>,
    slots: [Option<Held>; SLOTS.len()],
    /// Those that the instruction uses, a bit each.
    used: u16,
    pc: Pc,
    /// One past the last instruction of the run.
    end: Pc,
    /// Whether the instruction may add to what is held: all that come here execute it.
    adds: bool,
}

/// Whether an instruction takes its operands from here.
fn takes(op: &Op) -> bool {
    match op {
        Op::F32Bin { op, .. } => matches!(op, FBin::Add | FBin::Sub | FBin::Mul | FBin::Div),
        Op::Bin32 { w: W::B32, op, .. } => {
            !matches!(op, IBin::DivS | IBin::DivU | IBin::RemS | IBin::RemU)
        }
        Op::F32Fma { .. } | Op::F32Un { .. } | Op::SetpF32 { .. } | Op::Mov32 { .. } => true,
        Op::MadLo32 { .. } | Op::Lop3 { .. } | Op::SetpI32 { .. } => true,
        _ => false,
    }
}

impl Kept {
    pub(super) fn new(program: &Program) -> Self {
        let of = |inst: &Inst, writes: bool| {
            let mut all = Vec::new();
            inst.op
                .registers(&program.slot_pool, &mut |role, register| {
                    if let Register::W32(r) = register
                        && role.writes() == writes
                    {
                        all.push(r);
                    }
                });
            all
        };
        let reads = |inst: &Inst| match takes(&inst.op) {
            true => of(inst, false),
            false => Vec::new(),
        };
        Self {
            read: program.insts.iter().map(reads).collect(),
            written: program.insts.iter().map(|inst| of(inst, true)).collect(),
            slots: [None; SLOTS.len()],
            used: 0,
            pc: 0,
            end: 0,
            adds: false,
        }
    }

    /// A run begins, which ends before an instruction.
    pub(super) fn begin(&mut self, end: Pc) {
        self.end = end;
        self.forget();
    }

    /// An instruction begins.
    pub(super) fn step(&mut self, pc: Pc, adds: bool) {
        (self.pc, self.adds, self.used) = (pc, adds, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    /// All of it is lost, by a call.
    pub(super) fn forget(&mut self) {
        self.slots = [None; SLOTS.len()];
    }

    fn place(&self, register: R32, half: i32) -> Option<usize> {
        let is = |held: &Held| held.register == register && held.half == half;
        self.slots
            .iter()
            .position(|held| held.as_ref().is_some_and(is))
    }

    /// Half of a register gets another value.
    pub(super) fn drop(&mut self, register: R32, half: i32) {
        if let Some(place) = self.place(register, half) {
            self.slots[place] = None;
        }
    }

    /// Where half of a register is to be held that gets a value in all lanes.
    pub(super) fn renew(&mut self, register: R32, half: i32) -> Option<AsmRegisterZmm> {
        if self.next_reader(register).is_none() {
            self.drop(register, half);
            return None;
        }
        self.find(register, half)
            .or_else(|| self.take(register, half))
    }

    /// The next instruction that reads a register before it has another value.
    fn next_reader(&self, register: R32) -> Option<Pc> {
        for pc in (self.pc + 1..self.end).take(FAR) {
            if self.read[pc as usize].contains(&register) {
                return Some(pc);
            }
            if self.written[pc as usize].contains(&register) {
                return None;
            }
        }
        None
    }

    /// A vector register for what will be read again: one that is free, or that is read later.
    pub(super) fn take(&mut self, register: R32, half: i32) -> Option<AsmRegisterZmm> {
        let next = self.next_reader(register).filter(|_| self.adds)?;
        let free = |place: &usize| self.used >> place & 1 == 0;
        let until = |place: &usize| match self.slots[*place] {
            Some(held) if held.next > self.pc => held.next,
            _ => Pc::MAX,
        };
        let place = (0..SLOTS.len()).filter(free).max_by_key(until)?;
        if until(&place) <= next {
            return None;
        }
        self.slots[place] = Some(Held {
            register,
            half,
            next,
        });
        self.used |= 1 << place;
        Some(SLOTS[place])
    }

    /// Where half of a register is held for an instruction that reads it.
    pub(super) fn find(&mut self, register: R32, half: i32) -> Option<AsmRegisterZmm> {
        let place = self.place(register, half)?;
        let next = self.next_reader(register);
        // Without a later reader it is kept until the run ends.
        let next = next.unwrap_or(self.end);
        if let Some(held) = &mut self.slots[place] {
            held.next = next;
        }
        self.used |= 1 << place;
        Some(SLOTS[place])
    }
}
