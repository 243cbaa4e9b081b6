//! Loads of shared memory that follow each other with the same addresses but for a constant.
//!
//! An unrolled loop has many. The first of them finds out for all how the lanes of a whole warp lie
//! and whether all are in bounds; the others only ask whether it has just done so, and do it where
//! the turn before ended in between.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use iced_x86::code_asm::*;

use super::access::{WordAccess, call};
use super::constants::Constant;
use super::lanes::{Grouped, Groups, HALVES, Kind, QUARTERS, Writer, active, constant};
use super::lanes::{constant_part, half, wide};
use super::{Arguments, FOUND, ROWS};
use crate::counters::Counters;
use crate::op::operand::Register;
use crate::op::{Base, Inst, Op, Pc, Program, SHARED_BASE, Slot, Unit, pool};

/// How the lanes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// In one place.
    Same = 1,
    /// One behind the other.
    Run,
    /// Rows of four words: those of each half in one place.
    Halves,
    /// Those of both halves one behind the other, from the same place on.
    Rows,
}

/// A load that may belong to a group.
#[derive(Clone, Copy)]
struct Load {
    base: Base,
    offset: i32,
    each: usize,
}

impl Load {
    fn of(program: &Program, inst: &Inst) -> Option<Self> {
        let Op::Ld { addr, .. } = inst.op else {
            return None;
        };
        let words = WordAccess::of(program, &inst.op)?;
        let in_register = matches!(addr.base, Base::R32(_) | Base::R64(_));
        let alone = inst.guard.pred.is_some() || !words.shared || !in_register;
        // Nothing overflows when something small is added.
        let offset = i32::try_from(addr.offset).ok()?;
        (!alone && offset.unsigned_abs() < 1 << 24).then_some(Self {
            base: addr.base,
            offset,
            each: words.each,
        })
    }

    /// The register with the addresses.
    fn register(&self) -> Option<Register> {
        match self.base {
            Base::R32(r) => Some(Register::W32(r)),
            Base::R64(r) => Some(Register::W64(r)),
            Base::Abs | Base::Global(_) => None,
        }
    }

    fn bytes(&self) -> i32 {
        4 * self.each as i32
    }
}

/// Those of a program, in which a warp may come to some instructions from elsewhere than the one
/// before.
pub(super) fn groups(program: &Program, merges: &BTreeSet<Pc>) -> Groups {
    let mut groups = Groups::new();
    let mut open: Vec<Vec<(Pc, Load)>> = Vec::new();
    for (pc, inst) in (0..).zip(&program.insts) {
        if merges.contains(&pc) {
            close(&mut groups, open.drain(..));
        }
        if let Some(load) = Load::of(program, inst) {
            let like = |group: &&mut Vec<(Pc, Load)>| {
                let (_, first) = group[0];
                let aligned = (load.offset - first.offset) % load.bytes() == 0;
                first.register() == load.register() && first.each == load.each && aligned
            };
            match open.iter_mut().find(like) {
                Some(group) => group.push((pc, load)),
                None => open.push(vec![(pc, load)]),
            }
        }
        let mut over = BTreeSet::new();
        inst.op
            .registers(&program.slot_pool, &mut |role, register| {
                let has = |group: &Vec<(Pc, Load)>| group[0].1.register() == Some(register);
                if role.writes() {
                    over.extend((0..open.len()).filter(|&at| has(&open[at])));
                }
            });
        for at in over.into_iter().rev() {
            close(&mut groups, [open.remove(at)]);
        }
        let unit = inst.op.unit();
        if !(unit.computes() || matches!(unit, Unit::Memory | Unit::Exchange)) {
            close(&mut groups, open.drain(..));
        }
    }
    close(&mut groups, open);
    let firsts: BTreeSet<Pc> = groups.values().map(|group| group.first).collect();
    let place: BTreeMap<Pc, usize> = firsts.into_iter().zip((0..FOUND).cycle()).collect();
    for group in groups.values_mut() {
        group.place = place[&group.first];
    }
    groups
}

fn close(groups: &mut Groups, closed: impl IntoIterator<Item = Vec<(Pc, Load)>>) {
    for members in closed.into_iter().filter(|members| members.len() > 1) {
        let offsets = members.iter().map(|(_, load)| load.offset);
        let reach = offsets.fold((i32::MAX, i32::MIN), |(least, most), offset| {
            (least.min(offset), most.max(offset))
        });
        let first = members[0].0;
        let grouped = Grouped {
            first,
            reach,
            place: 0,
        };
        let member = |(pc, _)| (pc, grouped);
        groups.extend(members.into_iter().map(member));
    }
}

/// What `found` has for a group whose lanes lie in no such way; one of [`Lie`] is added if they do.
fn known_as(grouped: Grouped) -> i32 {
    (grouped.first as i32 + 1) << 3
}

/// Where it says where the first lane of each half is.
fn first(grouped: Grouped, half: usize) -> AsmMemoryOperand {
    call(offset_of!(Arguments, firsts) + 16 * grouped.place + 8 * half)
}

/// Where it says which group was found, and how its lanes lie.
fn found(grouped: Grouped) -> AsmMemoryOperand {
    dword_ptr(r8 + (offset_of!(Arguments, found) + 4 * grouped.place) as i32)
}

impl Writer<'_> {
    /// Forgets which groups and rows were found, where control comes from elsewhere than the
    /// instruction before. Keeps rax.
    pub(super) fn forget_groups(&mut self) -> Result<(), IcedError> {
        self.asm.mov(r8, qword_ptr(rsp))?;
        for place in (0..4 * (FOUND + ROWS)).step_by(8) {
            self.asm
                .mov(call(offset_of!(Arguments, found) + place), 0)?;
        }
        Ok(())
    }

    /// Does a load of a group and is done; goes on otherwise.
    pub(super) fn grouped(
        &mut self,
        pc: Pc,
        inst: &Inst,
        done: CodeLabel,
    ) -> Result<(), IcedError> {
        let grouped = self.groups.get(&pc).copied();
        let load = Load::of(self.program, inst);
        let (Some(grouped), Some(load), Op::Ld { d, .. }, Kind::Whole) =
            (grouped, load, &inst.op, self.kind)
        else {
            return Ok(());
        };
        let slots = pool(self.program, *d);
        let lies: &[Lie] = match (load.each, slots.len()) {
            (4, _) => &[Lie::Halves, Lie::Rows],
            (_, 1) => &[Lie::Same, Lie::Run],
            _ => &[Lie::Same],
        };
        self.asm.mov(r8, qword_ptr(rsp))?;
        let asm = &mut self.asm;
        let (mut known, mut none) = (asm.create_label(), asm.create_label());
        let finder = *(self.finders.entry(grouped.first)).or_insert_with(|| asm.create_label());
        if pc != grouped.first {
            asm.mov(ecx, found(grouped))?;
            asm.xor(ecx, known_as(grouped))?;
            asm.jz(none)?;
            asm.cmp(ecx, 7)?;
            asm.jbe(known)?;
        }
        asm.call(finder)?;
        asm.mov(ecx, found(grouped))?;
        asm.xor(ecx, known_as(grouped))?;
        asm.jz(none)?;
        asm.set_label(&mut known)?;
        for &lie in lies {
            let asm = &mut self.asm;
            let mut otherwise = asm.create_label();
            asm.cmp(ecx, lie as i32)?;
            asm.jne(otherwise)?;
            asm.mov(rax, call(offset_of!(Arguments, counters)))?;
            let counted = offset_of!(Counters, shared_read) as i32;
            asm.add(qword_ptr(rax + counted), 32 * load.bytes())?;
            asm.mov(rcx, first(grouped, 0))?;
            self.take_group(&load, grouped, slots, lie)?;
            let asm = &mut self.asm;
            asm.jmp(done)?;
            asm.set_label(&mut otherwise)?;
            asm.zero_bytes()?;
        }
        self.asm.set_label(&mut none)?;
        self.asm.zero_bytes()
    }

    /// Writes what finds out how the lanes of each group lie.
    pub(super) fn write_finders(&mut self) -> Result<(), IcedError> {
        for (first, mut label) in std::mem::take(&mut self.finders) {
            let load = Load::of(self.program, &self.program.insts[first as usize]);
            if let (Some(load), Some(grouped)) = (load, self.groups.get(&first).copied()) {
                self.asm.set_label(&mut label)?;
                self.find_group(&load, grouped)?;
                self.asm.ret()?;
            }
        }
        Ok(())
    }

    fn find_group(&mut self, load: &Load, grouped: Grouped) -> Result<(), IcedError> {
        let lies = match load.each {
            4 => [Lie::Halves, Lie::Rows],
            _ => [Lie::Same, Lie::Run],
        };
        let asm = &mut self.asm;
        let mut none = asm.create_label();
        let mut good = asm.create_label();
        asm.mov(found(grouped), known_as(grouped))?;
        asm.cmp(active(), -1)?;
        asm.jne(none)?;
        asm.cmp(call(offset_of!(Arguments, touched_read)), 0)?;
        asm.jne(none)?;
        self.shared_addresses(load.base)?;
        let asm = &mut self.asm;
        asm.vmovd(eax, xmm16)?;
        asm.vmovd(edx, xmm17)?;
        asm.vpbroadcastd(zmm18, xmm16)?;
        for lie in lies {
            let mut otherwise = self.asm.create_label();
            self.compare_lie(load, lie)?;
            self.asm.kortestw(k1, k2)?;
            self.asm.jne(otherwise)?;
            let lanes = match lie {
                Lie::Same | Lie::Halves => 1,
                Lie::Run => 32,
                Lie::Rows => 16,
            };
            self.check_group(load, grouped.reach, lanes * load.bytes(), lie, none)?;
            let asm = &mut self.asm;
            asm.mov(found(grouped), known_as(grouped) + lie as i32)?;
            asm.jmp(good)?;
            asm.set_label(&mut otherwise)?;
            asm.zero_bytes()?;
        }
        let asm = &mut self.asm;
        asm.jmp(none)?;
        asm.set_label(&mut good)?;
        asm.mov(rsi, call(offset_of!(Arguments, shared)))?;
        for (half, lane) in [rax, rdx].into_iter().enumerate() {
            asm.add(lane, rsi)?;
            asm.mov(first(grouped, half), lane)?;
        }
        asm.set_label(&mut none)?;
        asm.zero_bytes()
    }

    /// The lanes of zmm16 and zmm17 that do not lie like this, in k1 and k2; zmm18 has the first.
    fn compare_lie(&mut self, load: &Load, lie: Lie) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        match lie {
            Lie::Same | Lie::Halves => {
                let second = match lie {
                    Lie::Same => zmm18,
                    _ => {
                        asm.vpbroadcastd(zmm19, xmm17)?;
                        zmm19
                    }
                };
                asm.vpcmpneqd(k1, zmm16, zmm18)?;
                asm.vpcmpneqd(k2, zmm17, second)?;
            }
            Lie::Run => {
                let steps = match load.each {
                    1 => Constant::Fours,
                    _ => Constant::Eights,
                };
                asm.vpaddd(zmm20, zmm18, constant_part(steps, 0))?;
                asm.vpaddd(zmm21, zmm18, constant_part(steps, 1))?;
                asm.vpcmpneqd(k1, zmm16, zmm20)?;
                asm.vpcmpneqd(k2, zmm17, zmm21)?;
            }
            Lie::Rows => {
                asm.vpaddd(zmm20, zmm18, constant(Constant::Sixteens))?;
                asm.vpcmpneqd(k1, zmm16, zmm20)?;
                asm.vpcmpneqd(k2, zmm17, zmm20)?;
            }
        }
        Ok(())
    }

    /// Leaves unless all loads of a group are in bounds and aligned.
    fn check_group(
        &mut self,
        load: &Load,
        (least, most): (i32, i32),
        extent: i32,
        lie: Lie,
        none: CodeLabel,
    ) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        let firsts = match lie {
            Lie::Halves => &[rax, rdx][..],
            _ => &[rax],
        };
        for &first in firsts {
            asm.lea(rsi, qword_ptr(first + least))?;
            asm.test(esi, load.bytes() - 1)?;
            asm.jne(none)?;
            asm.cmp(rsi, SHARED_BASE as i32)?;
            asm.jl(none)?;
            asm.lea(rsi, qword_ptr(first + (most + extent)))?;
            asm.cmp(rsi, call(offset_of!(Arguments, read_end)))?;
            asm.ja(none)?;
        }
        Ok(())
    }

    /// Loads what begins at rcx, or at rcx and another place.
    fn take_group(
        &mut self,
        load: &Load,
        grouped: Grouped,
        slots: &[Slot],
        lie: Lie,
    ) -> Result<(), IcedError> {
        let at = |i: i32| rcx + (load.offset + 4 * i);
        if lie == Lie::Rows {
            for (i, row) in (0..).zip([zmm16, zmm17, zmm18, zmm19]) {
                self.asm.vmovdqu32(row, zmmword_ptr(at(16 * i)))?;
            }
            self.turn_rows()?;
            self.asm.vmovdqa32(zmm30, constant(Constant::Turned))?;
        }
        if lie == Lie::Halves {
            self.asm.mov(rdx, first(grouped, 1))?;
        }
        let turned = [zmm20, zmm21, zmm22, zmm23];
        for (i, (slot, word)) in (0..).zip(slots.iter().zip(turned)) {
            match (lie, *slot) {
                (Lie::Same, slot) => self.spread(slot, at(i))?,
                (Lie::Run, slot) => self.take_run(slot, at(0))?,
                (Lie::Halves, Slot::W32(d)) => {
                    self.asm.vpbroadcastd(zmm16, dword_ptr(at(i)))?;
                    self.asm
                        .vpbroadcastd(zmm17, dword_ptr(rdx + (load.offset + 4 * i)))?;
                    self.asm.vmovdqa32(half(d, 0), zmm16)?;
                    self.asm.vmovdqa32(half(d, 1), zmm17)?;
                }
                (Lie::Rows, Slot::W32(d)) => {
                    self.asm.vpermd(word, zmm30, word)?;
                    for h in HALVES {
                        self.asm.vmovdqa32(half(d, h), word)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The word at a place for all lanes.
    fn spread(&mut self, slot: Slot, place: AsmMemoryOperand) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        match slot {
            Slot::W32(d) => {
                asm.vpbroadcastd(zmm16, dword_ptr(place))?;
                HALVES
                    .into_iter()
                    .try_for_each(|h| asm.vmovdqa32(half(d, h), zmm16))
            }
            Slot::W64(d) => {
                asm.vpbroadcastq(zmm16, qword_ptr(place))?;
                QUARTERS
                    .into_iter()
                    .try_for_each(|q| asm.vmovdqa64(wide(d, q), zmm16))
            }
            Slot::Sink => Ok(()),
        }
    }

    /// Words one behind the other, from a place on.
    fn take_run(&mut self, slot: Slot, place: AsmMemoryOperand) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        let to = match slot {
            Slot::W32(d) => HALVES.map(|h| half(d, h)).to_vec(),
            Slot::W64(d) => QUARTERS.map(|q| wide(d, q)).to_vec(),
            Slot::Sink => Vec::new(),
        };
        for (part, to) in (0..).zip(to) {
            asm.vmovdqu32(zmm16, zmmword_ptr(place + 64 * part))?;
            asm.vmovdqa32(to, zmm16)?;
        }
        Ok(())
    }
}
