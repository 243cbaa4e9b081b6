//! Loads of words whose lanes lie apart, and which lie in one row of four words for each lane.
//!
//! A thread that goes through a part of an array by itself has many: an unrolled loop loads its
//! words by one register and several constants. The first of them reads 16 bytes for each lane and
//! keeps their words in [`Arguments::rows`]; the others take them from there, unless the warp has
//! entered the code again or its lanes have parted or met in between. Nothing that might write comes
//! between the first and the last.

use std::collections::BTreeSet;
use std::mem::offset_of;

use iced_x86::code_asm::*;

use super::access::{Plain, WordAccess, call};
use super::lanes::{HALVES, Lanes, Row, Rows, Writer};
use super::{Arguments, FOUND, ROWS};
use crate::counters::Counters;
use crate::op::operand::Register;
use crate::op::{Base, Inst, Op, Pc, Program, R64, Unit};

/// Bytes of a row, and of a word.
const ROW: i32 = 16;
const WORD: i32 = 4;

/// The register and the constant of a load of a word of global memory.
fn load(program: &Program, inst: &Inst) -> Option<(R64, i32)> {
    let Op::Ld { addr, .. } = inst.op else {
        return None;
    };
    let words = WordAccess::of(program, &inst.op)?;
    let alone = inst.guard.pred.is_some() || words.shared || words.each != 1;
    match (alone, addr.base) {
        (false, Base::R64(r)) => Some((r, i32::try_from(addr.offset).ok()?)),
        _ => None,
    }
}

/// Whether a row with a load of this program is still good behind an instruction.
fn keeps(inst: &Inst) -> bool {
    matches!(inst.op, Op::Ld { .. })
        || inst.op.unit().computes()
        || inst.op.unit() == Unit::Exchange
}

/// The loads of a row that may get more.
struct Open {
    register: R64,
    members: Vec<(Pc, i32)>,
}

impl Open {
    /// Whether a word is in one row with the others.
    fn takes(&self, register: R64, offset: i32) -> bool {
        let offsets = || self.members.iter().map(|(_, other)| *other);
        self.register == register
            && offsets().all(|other| offset.abs_diff(other) < ROW as u32)
            && offsets().all(|other| (offset - other) % WORD == 0)
    }

    fn close(self, rows: &mut Rows, place: &mut usize) {
        let least = self.members.iter().map(|(_, offset)| *offset).min();
        if let (Some(least), [(first, _), _, ..]) = (least, &self.members[..]) {
            let row = Row {
                first: *first,
                offset: least,
                place: *place % ROWS,
            };
            *place += 1;
            rows.extend(self.members.iter().map(|(pc, _)| (*pc, row)));
        }
    }
}

/// Those of a program, in which a warp may come to some instructions from elsewhere than the one
/// before.
pub(super) fn rows(program: &Program, merges: &BTreeSet<Pc>) -> Rows {
    let (mut rows, mut place) = (Rows::new(), 0);
    let mut open: Vec<Open> = Vec::new();
    let mut close = |open: Open| open.close(&mut rows, &mut place);
    for (pc, inst) in (0..).zip(&program.insts) {
        if merges.contains(&pc) {
            open.drain(..).for_each(&mut close);
        }
        if let Some((register, offset)) = load(program, inst) {
            match open.iter_mut().find(|row| row.takes(register, offset)) {
                Some(row) => row.members.push((pc, offset)),
                None => open.push(Open {
                    register,
                    members: vec![(pc, offset)],
                }),
            }
        }
        let mut written = BTreeSet::new();
        inst.op
            .registers(&program.slot_pool, &mut |role, register| {
                if let (true, Register::W64(r)) = (role.writes(), register) {
                    written.insert(r);
                }
            });
        let over = |row: &mut Open| !keeps(inst) || written.contains(&row.register);
        open.extract_if(.., over).for_each(&mut close);
    }
    open.into_iter().for_each(close);
    rows
}

/// Where it says which row's words are kept.
fn found(row: Row) -> AsmMemoryOperand {
    dword_ptr(r8 + (offset_of!(Arguments, found) + 4 * (FOUND + row.place)) as i32)
}

/// Where half of a word of each lane is kept.
fn kept_word(row: Row, word: i32, half: i32) -> AsmMemoryOperand {
    let rows = (offset_of!(Arguments, rows) + 512 * row.place) as i32;
    zmmword_ptr(r8 + (rows + 128 * word + 64 * half))
}

impl Plain<'_> {
    /// Which word of a row it loads.
    fn word(&self, row: Row) -> i32 {
        (self.addr.offset as i32 - row.offset) / WORD
    }
}

impl Writer<'_> {
    /// Takes a word that the first load of the row has kept, and is done; goes on otherwise. Unless
    /// the warp is whole, eax has its active lanes.
    pub(super) fn take_kept_word(
        &mut self,
        pc: Pc,
        plain: &Plain<'_>,
        row: Row,
    ) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        if pc == row.first {
            return asm.mov(found(row), 0);
        }
        let mut otherwise = asm.create_label();
        asm.cmp(found(row), row.first as i32 + 1)?;
        asm.jne(otherwise)?;
        asm.mov(edi, 32 * WORD)?;
        if self.lanes == Lanes::Some {
            self.split_lanes(eax)?;
            self.asm.popcnt(edi, eax)?;
            self.asm.shl(edi, 2)?;
        }
        self.count_row()?;
        for h in HALVES {
            self.asm
                .vmovdqa32(zmm16, kept_word(row, plain.word(row), h))?;
            self.put_slot(plain.slots[0], h, zmm16)?;
        }
        self.asm.jmp(plain.done)?;
        self.asm.set_label(&mut otherwise)?;
        self.asm.zero_bytes()
    }

    /// Counts the bytes of edi as read.
    fn count_row(&mut self) -> Result<(), IcedError> {
        let counted = offset_of!(Counters, global_read) as i32;
        self.asm.mov(rdx, call(offset_of!(Arguments, counters)))?;
        self.asm.add(qword_ptr(rdx + counted), rdi)
    }

    /// Takes the rows of the lanes of eax, which k1, k5, k2 and k6 have too, and is done; goes on
    /// with the same lanes if one of them is not all in the allocation.
    pub(super) fn take_rows(
        &mut self,
        plain: &Plain<'_>,
        row: Row,
        (r, site): (R64, usize),
    ) -> Result<(), IcedError> {
        let mut narrow = self.asm.create_label();
        self.places_within(r, site, (row.offset, ROW), plain.turn(), narrow)?;
        self.asm.popcnt(edi, eax)?;
        self.asm.shl(edi, plain.turn())?;
        self.count_row()?;
        self.put_aside(plain)?;
        for h in HALVES {
            self.sixteen_rows(plain, h)?;
            for (word, v) in (0..).zip([zmm20, zmm21, zmm22, zmm23]) {
                self.asm.vmovdqa32(kept_word(row, word, h), v)?;
                if word == plain.word(row) {
                    self.put_slot(plain.slots[0], h, v)?;
                }
            }
        }
        self.asm.mov(found(row), row.first as i32 + 1)?;
        self.asm.jmp(plain.done)?;
        self.asm.set_label(&mut narrow)?;
        self.asm.zero_bytes()
    }
}
