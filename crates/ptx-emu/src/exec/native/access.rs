//! Loads and stores of words without a call.
//!
//! What `memory::words` does when all lanes of a warp lie in one place, or one behind the other:
//! it counts and marks the same. Other lanes are for [`super::apart`]. Whatever else an access is,
//! code finds out before it has done anything, and calls the function.

use std::mem::offset_of;

use iced_x86::code_asm::*;

use super::Arguments;
use super::constants::Constant;
use super::lanes::{HALVES, Kind, Lanes, QUARTERS, Row, Writer, active, constant_part, half, wide};
use crate::counters::Counters;
use crate::exec::storage::region::Site;
use crate::memory::STRIDE;
use crate::op::{Addr, Base, Inst, Op, Order, Pc, Program, R64, SHARED_BASE, Slot, Space, pool};

/// What an access of words reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordAccess {
    /// Shared memory of the CTA, rather than global memory.
    pub(crate) shared: bool,
    /// Words of a lane, in registers of their own or in a 64-bit one.
    pub(crate) each: usize,
}

impl WordAccess {
    /// Those of an instruction, if it is a usual load or store.
    pub(crate) fn of(program: &Program, op: &Op) -> Option<Self> {
        let (space, order, width, list, addr) = match *op {
            Op::Ld {
                space,
                order,
                width,
                d,
                addr,
                ..
            } => (space, order, width, d, addr),
            Op::St {
                space,
                order,
                width,
                s,
                addr,
            } => (space, order, width, s, addr),
            _ => return None,
        };
        let shared = match (space, addr.base) {
            (Space::Shared, Base::R32(_) | Base::R64(_) | Base::Abs) => true,
            (Space::Global | Space::Const | Space::Generic, Base::R64(_)) => false,
            _ => return None,
        };
        let slots = pool(program, list);
        let narrow = slots.iter().all(|slot| matches!(slot, Slot::W32(_)));
        let wide = matches!(slots, [Slot::W64(_)]);
        let each = match (width, slots.len()) {
            (4, each @ (1 | 2 | 4)) if narrow => each,
            (8, 1) if wide => 2,
            _ => return None,
        };
        (order == Order::Weak).then_some(Self { shared, each })
    }
}

/// An access that code can do itself.
pub(super) struct Plain<'p> {
    pub(super) words: WordAccess,
    pub(super) addr: Addr,
    pub(super) slots: &'p [Slot],
    pub(super) writes: bool,
    /// The row that it is in.
    pub(super) row: Option<Row>,
    /// Where the code goes on if the lanes lie apart.
    apart: CodeLabel,
    /// Where it goes on to the function.
    pub(super) otherwise: CodeLabel,
    pub(super) done: CodeLabel,
}

/// How all lanes lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// In one place.
    Same,
    /// One behind the other.
    Run,
}

impl Plain<'_> {
    /// Bytes of a lane.
    pub(super) fn each(&self) -> i32 {
        4 * self.words.each as i32
    }

    /// Where it says how far shared memory may be accessed, which sectors were, and how many bytes.
    pub(super) fn shared_fields(&self) -> (usize, usize, usize) {
        match self.writes {
            true => (
                offset_of!(Arguments, written_end),
                offset_of!(Arguments, touched_written),
                offset_of!(Counters, shared_written),
            ),
            false => (
                offset_of!(Arguments, read_end),
                offset_of!(Arguments, touched_read),
                offset_of!(Counters, shared_read),
            ),
        }
    }

    /// Bytes from the first to the last.
    fn extent(&self, lie: Lie) -> i32 {
        match lie {
            Lie::Same => self.each(),
            Lie::Run => 32 * self.each(),
        }
    }

    /// Whether lanes one behind the other are vectors one behind the other.
    fn runs(&self) -> bool {
        self.slots.len() == 1
    }
}

/// A field of [`Arguments`], to which r8 points.
pub(super) fn call(field: usize) -> AsmMemoryOperand {
    qword_ptr(r8 + field as i32)
}

/// Where the address of the first lane is.
fn first_lane(base: Base) -> AsmMemoryOperand {
    match base {
        Base::R32(r) => half(r, 0),
        Base::R64(r) => wide(r, 0),
        Base::Abs | Base::Global(_) => r12.into(),
    }
}

/// The fields of a [`Site`], to the first of which r9 points.
pub(super) fn of_site(site: usize) -> impl Fn(usize) -> AsmMemoryOperand {
    move |field| qword_ptr(r9 + (site * size_of::<Site>() + field) as i32)
}

impl Writer<'_> {
    /// Does an access of words and is done; goes on otherwise, and at `skipped` if it is for no
    /// lanes.
    pub(super) fn access(
        &mut self,
        pc: Pc,
        inst: &Inst,
        (done, skipped): (CodeLabel, CodeLabel),
    ) -> Result<(), IcedError> {
        let (Op::Ld { d: list, addr, .. } | Op::St { s: list, addr, .. }) = inst.op else {
            return Ok(());
        };
        let words = WordAccess::of(self.program, &inst.op).filter(|_| self.kind != Kind::Stepped);
        let Some(words) = words.filter(|_| i32::try_from(addr.offset).is_ok()) else {
            return Ok(());
        };
        let mut plain = Plain {
            words,
            addr,
            slots: pool(self.program, list),
            writes: matches!(inst.op, Op::St { .. }),
            row: self.rows.get(&pc).copied(),
            apart: self.asm.create_label(),
            otherwise: self.asm.create_label(),
            done,
        };
        // Stores to global memory are kept by the function.
        if plain.writes && !words.shared {
            return Ok(());
        }
        if self.kind == Kind::Whole && inst.guard.pred.is_none() {
            self.asm.cmp(active(), -1)?;
            self.asm.jne(plain.otherwise)?;
            self.lanes = Lanes::All;
        } else {
            self.lanes = Lanes::Some;
            self.load_lanes(inst.guard, skipped)?;
        }
        self.asm.mov(r8, qword_ptr(rsp))?;
        if let Some(row) = plain.row {
            self.take_kept_word(pc, &plain, row)?;
        }
        if self.lanes == Lanes::All {
            match (words.shared, addr.base) {
                (true, base) => self.shared_access(&plain, base)?,
                (false, Base::R64(r)) => self.global_load(&plain, r, Site::number(pc))?,
                _ => {}
            }
            self.asm.set_label(&mut plain.apart)?;
            self.asm.mov(eax, -1)?;
        }
        self.lanes_apart(&plain, pc)?;
        self.asm.set_label(&mut plain.otherwise)?;
        self.asm.zero_bytes()
    }

    /// Loads the addresses of shared memory that a register has into zmm16 and zmm17.
    pub(super) fn shared_addresses(&mut self, base: Base) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        match base {
            Base::R32(r) => {
                asm.vmovdqa32(zmm16, half(r, 0))?;
                asm.vmovdqa32(zmm17, half(r, 1))?;
            }
            Base::R64(r) => {
                asm.vmovdqa64(zmm18, wide(r, 0))?;
                asm.vmovdqa64(zmm19, wide(r, 1))?;
                asm.vpmovqd(ymm16, zmm18)?;
                asm.vpmovqd(ymm19, zmm19)?;
                asm.vinserti64x4(zmm16, zmm16, ymm19, 1)?;
                asm.vmovdqa64(zmm18, wide(r, 2))?;
                asm.vmovdqa64(zmm19, wide(r, 3))?;
                asm.vpmovqd(ymm17, zmm18)?;
                asm.vpmovqd(ymm19, zmm19)?;
                asm.vinserti64x4(zmm17, zmm17, ymm19, 1)?;
            }
            _ => {
                asm.vpxord(zmm16, zmm16, zmm16)?;
                asm.vpxord(zmm17, zmm17, zmm17)?;
            }
        }
        Ok(())
    }

    fn shared_access(&mut self, plain: &Plain<'_>, base: Base) -> Result<(), IcedError> {
        if plain.writes && !plain.runs() {
            return Ok(());
        }
        if !matches!(base, Base::R32(_) | Base::R64(_)) {
            if !plain.writes {
                self.asm.mov(ecx, plain.addr.offset as i32)?;
                self.shared_lanes(plain, Lie::Same)?;
            }
            return Ok(());
        }
        self.by_lie(plain, base, &mut |writer, lie| {
            writer.asm.mov(ecx, dword_ptr(first_lane(base)))?;
            writer.asm.add(ecx, plain.addr.offset as i32)?;
            writer.shared_lanes(plain, lie)
        })
    }

    /// Has what is to be done written for each way lanes may lie, and code that finds out which it
    /// is; goes on where lanes lie apart if it is none.
    fn by_lie(
        &mut self,
        plain: &Plain<'_>,
        base: Base,
        each: &mut dyn FnMut(&mut Self, Lie) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let mut same = self.asm.create_label();
        if !plain.writes && plain.runs() {
            let (asm, first) = (&mut self.asm, first_lane(base));
            match base {
                Base::R32(_) => {
                    asm.mov(eax, dword_ptr(first))?;
                    asm.cmp(eax, dword_ptr(first + 4))?;
                }
                _ => {
                    asm.mov(rax, qword_ptr(first))?;
                    asm.cmp(rax, qword_ptr(first + 8))?;
                }
            }
            asm.je(same)?;
        }
        if plain.runs() {
            self.leave_unless(plain, base, Lie::Run)?;
            each(self, Lie::Run)?;
        }
        if !plain.writes {
            self.asm.set_label(&mut same)?;
            self.leave_unless(plain, base, Lie::Same)?;
            each(self, Lie::Same)?;
        }
        Ok(())
    }

    /// Goes on where lanes lie apart unless they lie like this.
    fn leave_unless(&mut self, plain: &Plain<'_>, base: Base, lie: Lie) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        if let Base::R32(r) = base {
            let steps = match plain.each() {
                4 => Constant::Fours,
                _ => Constant::Eights,
            };
            asm.vpbroadcastd(zmm20, dword_ptr(first_lane(base)))?;
            for (h, k) in HALVES.into_iter().zip([k1, k2]) {
                match lie {
                    Lie::Same => asm.vpcmpneqd(k, zmm20, half(r, h))?,
                    Lie::Run => {
                        asm.vpaddd(zmm21, zmm20, constant_part(steps, h as usize))?;
                        asm.vpcmpneqd(k, zmm21, half(r, h))?;
                    }
                }
            }
            asm.kortestw(k1, k2)?;
        } else if let Base::R64(r) = base {
            let steps = match plain.each() {
                4 => Constant::WideFours,
                _ => Constant::WideEights,
            };
            asm.vpbroadcastq(zmm20, qword_ptr(first_lane(base)))?;
            for (q, k) in QUARTERS.into_iter().zip([k1, k2, k3, k4]) {
                match lie {
                    Lie::Same => asm.vpcmpneqq(k, zmm20, wide(r, q))?,
                    Lie::Run => {
                        asm.vpaddq(zmm21, zmm20, constant_part(steps, q as usize))?;
                        asm.vpcmpneqq(k, zmm21, wide(r, q))?;
                    }
                }
            }
            asm.korw(k1, k1, k2)?;
            asm.korw(k3, k3, k4)?;
            asm.kortestw(k1, k3)?;
        }
        asm.jne(plain.apart)
    }

    /// Checks, marks, counts and moves what begins at ecx of shared memory.
    fn shared_lanes(&mut self, plain: &Plain<'_>, lie: Lie) -> Result<(), IcedError> {
        let (end, touched, counted) = plain.shared_fields();
        let asm = &mut self.asm;
        asm.cmp(ecx, SHARED_BASE as i32)?;
        asm.jb(plain.otherwise)?;
        asm.lea(rdx, qword_ptr(rcx + plain.extent(lie)))?;
        asm.cmp(rdx, call(end))?;
        asm.ja(plain.otherwise)?;
        asm.test(ecx, plain.each() - 1)?;
        asm.jne(plain.otherwise)?;
        let mut marked = asm.create_label();
        asm.cmp(call(touched), 0)?;
        asm.je(marked)?;
        self.sectors(plain, lie)?;
        let asm = &mut self.asm;
        asm.mov(rsi, call(touched))?;
        asm.or(qword_ptr(rsi + rdx * 8), rax)?;
        asm.set_label(&mut marked)?;
        asm.mov(rsi, call(offset_of!(Arguments, shared)))?;
        self.moved_lanes(plain, lie, counted)
    }

    /// The sectors of what begins at rcx: bits in rax of the word rdx of a set of them.
    fn sectors(&mut self, plain: &Plain<'_>, lie: Lie) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.mov(rdx, rcx)?;
        asm.shr(rdx, 5)?;
        match lie {
            Lie::Same => asm.mov(eax, 1)?,
            Lie::Run => {
                // One more if the first is not at the beginning of its sector.
                let sectors = plain.extent(lie) / 32;
                asm.mov(eax, edx)?;
                asm.and(eax, 63)?;
                asm.cmp(eax, 64 - (sectors + 1))?;
                asm.ja(plain.otherwise)?;
                asm.mov(eax, (1 << sectors) - 1)?;
                asm.mov(esi, (2 << sectors) - 1)?;
                asm.test(ecx, 31)?;
                asm.cmovne(eax, esi)?;
            }
        }
        asm.shlx(rax, rax, rdx)?;
        asm.shr(rdx, 6)
    }

    fn global_load(&mut self, plain: &Plain<'_>, r: R64, site: usize) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.mov(r9, call(offset_of!(Arguments, sites)))?;
        let site = of_site(site);
        asm.mov(rax, call(offset_of!(Arguments, generation)))?;
        asm.mov(rax, qword_ptr(rax))?;
        asm.cmp(rax, site(offset_of!(Site, generation)))?;
        asm.jne(plain.otherwise)?;
        let base = Base::R64(r);
        self.by_lie(plain, base, &mut |writer, lie| {
            writer.asm.mov(rcx, qword_ptr(first_lane(base)))?;
            writer.asm.add(rcx, plain.addr.offset as i32)?;
            writer.asm.sub(rcx, site(offset_of!(Site, base)))?;
            writer.global_lanes(plain, lie, &site)
        })
    }

    /// Checks, marks, counts and moves what begins at rcx of an allocation.
    fn global_lanes(
        &mut self,
        plain: &Plain<'_>,
        lie: Lie,
        site: &impl Fn(usize) -> AsmMemoryOperand,
    ) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.mov(rdx, site(offset_of!(Site, length)))?;
        asm.sub(rdx, plain.extent(lie))?;
        asm.jb(plain.otherwise)?;
        asm.cmp(rcx, rdx)?;
        asm.ja(plain.otherwise)?;
        asm.test(ecx, plain.each() - 1)?;
        asm.jne(plain.otherwise)?;
        let mut marked = asm.create_label();
        asm.cmp(site(offset_of!(Site, marked)), 0)?;
        asm.je(marked)?;
        self.sectors(plain, lie)?;
        let asm = &mut self.asm;
        asm.mov(rsi, site(offset_of!(Site, marked)))?;
        asm.lea(rsi, qword_ptr(rsi + rdx * 8))?;
        asm.mov(rdi, qword_ptr(rsi))?;
        asm.andn(rdi, rdi, rax)?;
        asm.je(marked)?;
        // Other cores mark the same sets.
        asm.lock().or(qword_ptr(rsi), rax)?;
        asm.mov(rdi, site(offset_of!(Site, strides)))?;
        asm.shr(rdx, STRIDE.trailing_zeros())?;
        asm.mov(byte_ptr(rdi + rdx), 1)?;
        asm.set_label(&mut marked)?;
        asm.mov(rsi, site(offset_of!(Site, host)))?;
        if lie == Lie::Run {
            // The next warp often loads as far from here as this one does from the last, and then
            // its neighbours.
            asm.lea(rdx, qword_ptr(rsi + rcx * 2))?;
            asm.sub(rdx, site(offset_of!(Site, last)))?;
            asm.mov(site(offset_of!(Site, last)), rcx)?;
            for line in -1..=plain.extent(lie) / 64 {
                asm.prefetcht0(byte_ptr(rdx + 64 * line))?;
            }
        }
        self.moved_lanes(plain, lie, offset_of!(Counters, global_read))
    }

    /// Counts and moves what begins at rcx of what rsi points to.
    fn moved_lanes(
        &mut self,
        plain: &Plain<'_>,
        lie: Lie,
        counted: usize,
    ) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.add(rsi, rcx)?;
        asm.mov(rax, call(offset_of!(Arguments, counters)))?;
        asm.add(qword_ptr(rax + counted as i32), 32 * plain.each())?;
        if plain.writes {
            asm.mov(rax, call(offset_of!(Arguments, progress)))?;
            asm.add(qword_ptr(rax), 1)?;
        }
        for (i, slot) in (0..).zip(plain.slots) {
            // The vectors of a register.
            let vectors = match *slot {
                Slot::W32(r) => vec![half(r, 0), half(r, 1)],
                Slot::W64(r) => QUARTERS.map(|q| wide(r, q)).to_vec(),
                _ => Vec::new(),
            };
            match (lie, slot) {
                (Lie::Same, Slot::W64(_)) => asm.vpbroadcastq(zmm16, qword_ptr(rsi))?,
                (Lie::Same, _) => asm.vpbroadcastd(zmm16, dword_ptr(rsi + 4 * i))?,
                (Lie::Run, _) => {}
            }
            for (part, register) in (0..).zip(vectors) {
                match (lie, plain.writes) {
                    (Lie::Same, _) => asm.vmovdqa32(register, zmm16)?,
                    (Lie::Run, false) => {
                        asm.vmovdqu32(zmm16, zmmword_ptr(rsi + 64 * part))?;
                        asm.vmovdqa32(register, zmm16)?;
                    }
                    (Lie::Run, true) => {
                        asm.vmovdqa32(zmm16, register)?;
                        asm.vmovdqu32(zmmword_ptr(rsi + 64 * part), zmm16)?;
                    }
                }
            }
        }
        asm.jmp(plain.done)
    }
}
