//! Loads and stores of words that lie apart, or of some lanes of a warp.
//!
//! Only where nobody wants to know of sectors and bank conflicts, which have to be looked for
//! lane by lane. Stores are scatters. Loads take one lane after another: a gather is nowhere much
//! quicker, and takes four times as long where microcode keeps it from leaking data; of two or
//! four words it would need as many.
//!
//! A lane's offset is rotated right by the logarithm of its alignment. What is not aligned becomes
//! huge by that, so one unsigned comparison with the last place finds it, and what is out of bounds.

use std::mem::offset_of;

use iced_x86::code_asm::*;

use super::Arguments;
use super::access::{Plain, call, of_site};
use super::constants::Constant;
use super::lanes::{HALVES, Lanes, QUARTERS, Writer, constant, constant_part, half, warp, wide};
use crate::counters::Counters;
use crate::exec::storage::region::Site;
use crate::exec::warp::Warp;
use crate::op::{Base, Pc, R32, R64, SHARED_BASE, Slot};

/// The places of a half of the lanes of shared memory, and of a quarter of those of an allocation.
const HALF_PLACES: [AsmRegisterZmm; 2] = [zmm16, zmm17];
const QUARTER_PLACES: [AsmRegisterZmm; 4] = [zmm16, zmm17, zmm18, zmm19];

/// Lanes that are loaded one by one without looking at the others, at most.
const FEW: i32 = 6;

/// The lanes of each quarter; those of a half are the first eight of the sixteen of k1 and k2.
const LANES: [AsmRegisterK; 4] = [k1, k5, k2, k6];

impl Plain<'_> {
    /// Bits of an offset that alignment makes zero.
    pub(super) fn turn(&self) -> i32 {
        self.each().trailing_zeros() as i32
    }

    /// Bytes from a place to the next.
    fn scale(&self) -> i32 {
        self.each().min(8)
    }
}

impl Writer<'_> {
    /// Does an access of the lanes of eax and is done; goes on otherwise.
    pub(super) fn lanes_apart(&mut self, plain: &Plain<'_>, pc: Pc) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        if !plain.writes {
            // A load for all lanes that live is also one for those that have exited.
            let mut some = asm.create_label();
            asm.cmp(eax, -1)?;
            asm.je(some)?;
            asm.cmp(eax, dword_ptr(warp(offset_of!(Warp, live))))?;
            asm.je(plain.otherwise)?;
            asm.set_label(&mut some)?;
        }
        let site = Site::number(pc);
        self.split_lanes(eax)?;
        if let (Some(row), Base::R64(r)) =
            (plain.row.filter(|row| row.first == pc), plain.addr.base)
        {
            self.take_rows(plain, row, (r, site))?;
        }
        let counted = match (plain.words.shared, plain.addr.base) {
            (true, base) => self.shared_places(plain, base)?,
            (false, Base::R64(r)) => self.global_places(plain, r, site)?,
            _ => return Ok(()),
        };
        let asm = &mut self.asm;
        asm.popcnt(edi, eax)?;
        asm.shl(edi, plain.turn())?;
        asm.mov(rdx, call(offset_of!(Arguments, counters)))?;
        asm.add(qword_ptr(rdx + counted as i32), rdi)?;
        if !plain.writes {
            self.put_aside(plain)?;
            if let (Lanes::Some, [Slot::W32(r)]) = (self.lanes, plain.slots) {
                self.take_few(plain, *r)?;
            }
            self.take(plain)?;
            return self.asm.jmp(plain.done);
        }
        asm.mov(rdx, call(offset_of!(Arguments, progress)))?;
        asm.add(qword_ptr(rdx), 1)?;
        for (word, slot) in (0..).zip(plain.slots) {
            match *slot {
                Slot::W32(r) => self.scatter_words(plain, r, word)?,
                Slot::W64(r) => self.scatter_doubles(r)?,
                Slot::Sink => {}
            }
        }
        self.asm.jmp(plain.done)
    }

    /// Puts the bytes' offsets from rsi aside, lane by lane; those of other lanes are zero.
    pub(super) fn put_aside(&mut self, plain: &Plain<'_>) -> Result<(), IcedError> {
        let all = self.lanes == Lanes::All;
        let places = offset_of!(Arguments, places) as i32;
        let asm = &mut self.asm;
        let at = |part: i32| zmmword_ptr(r8 + (places + 64 * part));
        if plain.words.shared {
            let chosen = [zmm16.k1().z(), zmm17.k2().z()];
            for (part, (place, chosen)) in (0..).zip(HALF_PLACES.into_iter().zip(chosen)) {
                asm.vprold(if all { place } else { chosen }, place, plain.turn())?;
                asm.vmovdqa32(at(part), place)?;
            }
            return Ok(());
        }
        let chosen = [zmm16.k1(), zmm17.k5(), zmm18.k2(), zmm19.k6()];
        for (part, (place, chosen)) in (0..).zip(QUARTER_PLACES.into_iter().zip(chosen)) {
            asm.vprolq(if all { place } else { chosen.z() }, place, plain.turn())?;
            asm.vmovdqa64(at(part), place)?;
        }
        Ok(())
    }

    /// The places of lanes of shared memory, and rsi where it begins; what counts its bytes.
    fn shared_places(&mut self, plain: &Plain<'_>, base: Base) -> Result<usize, IcedError> {
        let (end, touched, counted) = plain.shared_fields();
        self.asm.cmp(call(touched), 0)?;
        self.asm.jne(plain.otherwise)?;
        self.shared_addresses(base)?;
        let asm = &mut self.asm;
        asm.mov(rdx, call(end))?;
        asm.sub(rdx, SHARED_BASE as i32 + plain.each())?;
        asm.jb(plain.otherwise)?;
        asm.shr(edx, plain.turn())?;
        asm.vpbroadcastd(zmm20, edx)?;
        let first = (plain.addr.offset as i32).wrapping_sub(SHARED_BASE as i32);
        asm.mov(edx, first)?;
        asm.vpbroadcastd(zmm21, edx)?;
        for place in HALF_PLACES {
            asm.vpaddd(place, place, zmm21)?;
            asm.vprord(place, place, plain.turn())?;
        }
        asm.vpcmpnleud(k3.k1(), zmm16, zmm20)?;
        asm.vpcmpnleud(k4.k2(), zmm17, zmm20)?;
        asm.kortestw(k3, k4)?;
        asm.jne(plain.otherwise)?;
        if plain.writes && plain.each() > plain.scale() {
            for place in HALF_PLACES {
                asm.vpslld(place, place, 1)?;
            }
        }
        asm.mov(rsi, call(offset_of!(Arguments, shared)))?;
        asm.add(rsi, SHARED_BASE as i32)?;
        Ok(counted)
    }

    /// As [`Writer::shared_places`], of an allocation.
    fn global_places(
        &mut self,
        plain: &Plain<'_>,
        r: R64,
        site: usize,
    ) -> Result<usize, IcedError> {
        let reach = (plain.addr.offset as i32, plain.each());
        let otherwise = plain.otherwise;
        self.places_within(r, site, reach, plain.turn(), otherwise)?;
        Ok(offset_of!(Counters, global_read))
    }

    /// The places of lanes of an allocation at an offset from a register, and rsi where it begins;
    /// goes to `otherwise` unless so many bytes of each are in it, and aligned.
    pub(super) fn places_within(
        &mut self,
        r: R64,
        site: usize,
        (offset, bytes): (i32, i32),
        turn: i32,
        otherwise: CodeLabel,
    ) -> Result<(), IcedError> {
        let site = of_site(site);
        let asm = &mut self.asm;
        asm.mov(r9, call(offset_of!(Arguments, sites)))?;
        asm.mov(rdx, call(offset_of!(Arguments, generation)))?;
        asm.mov(rdx, qword_ptr(rdx))?;
        asm.cmp(rdx, site(offset_of!(Site, generation)))?;
        asm.jne(otherwise)?;
        asm.cmp(site(offset_of!(Site, marked)), 0)?;
        asm.jne(otherwise)?;
        asm.mov(rdx, site(offset_of!(Site, length)))?;
        asm.sub(rdx, bytes)?;
        asm.jb(otherwise)?;
        asm.shr(rdx, turn)?;
        asm.vpbroadcastq(zmm20, rdx)?;
        asm.mov(rdx, site(offset_of!(Site, base)))?;
        asm.sub(rdx, offset)?;
        asm.vpbroadcastq(zmm21, rdx)?;
        for (q, place) in QUARTERS.into_iter().zip(QUARTER_PLACES) {
            asm.vmovdqa64(place, wide(r, q))?;
            asm.vpsubq(place, place, zmm21)?;
            asm.vprorq(place, place, turn)?;
        }
        asm.vpcmpnleuq(k3.k1(), zmm16, zmm20)?;
        asm.vpcmpnleuq(k4.k5(), zmm17, zmm20)?;
        asm.korw(k3, k3, k4)?;
        asm.vpcmpnleuq(k4.k2(), zmm18, zmm20)?;
        asm.vpcmpnleuq(k7.k6(), zmm19, zmm20)?;
        asm.korw(k4, k4, k7)?;
        asm.kortestw(k3, k4)?;
        asm.jne(otherwise)?;
        asm.mov(rsi, site(offset_of!(Site, host)))
    }

    /// Stores a word of each lane of a half, and another with `word`.
    fn scatter_words(&mut self, plain: &Plain<'_>, r: R32, word: i32) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        for (h, (place, lanes)) in HALVES
            .into_iter()
            .zip(HALF_PLACES.into_iter().zip([k1, k2]))
        {
            let at: AsmMemoryOperand = rsi + place * plain.scale() + 4 * word;
            asm.kmovw(k3, lanes)?;
            asm.vmovdqa32(zmm22, half(r, h))?;
            asm.vpscatterdd(at.k3(), zmm22)?;
        }
        Ok(())
    }

    fn scatter_doubles(&mut self, r: R64) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.vextracti64x4(ymm18, zmm16, 1)?;
        asm.vextracti64x4(ymm19, zmm17, 1)?;
        let places = [ymm16, ymm18, ymm17, ymm19];
        for (q, (place, lanes)) in QUARTERS.into_iter().zip(places.into_iter().zip(LANES)) {
            let at: AsmMemoryOperand = rsi + place * 8;
            asm.kmovw(k3, lanes)?;
            asm.vmovdqa64(zmm22, wide(r, q))?;
            asm.vpscatterdq(at.k3(), zmm22)?;
        }
        Ok(())
    }

    /// Loads words of few lanes, those of eax, of whose bytes edi has the number; goes on if they
    /// are many.
    fn take_few(&mut self, plain: &Plain<'_>, r: R32) -> Result<(), IcedError> {
        let places = offset_of!(Arguments, places) as i32;
        let asm = &mut self.asm;
        let (mut many, mut next) = (asm.create_label(), asm.create_label());
        asm.cmp(edi, FEW * plain.each())?;
        asm.ja(many)?;
        asm.set_label(&mut next)?;
        asm.tzcnt(ecx, eax)?;
        match plain.words.shared {
            true => asm.mov(edx, dword_ptr(r8 + rcx * 4 + places))?,
            false => asm.mov(rdx, qword_ptr(r8 + rcx * 8 + places))?,
        }
        asm.mov(edx, dword_ptr(rsi + rdx))?;
        asm.mov(dword_ptr(r12 + rcx * 4 + r.0 as i32 * 128), edx)?;
        asm.blsr(eax, eax)?;
        asm.jne(next)?;
        asm.jmp(plain.done)?;
        asm.set_label(&mut many)?;
        asm.zero_bytes()
    }

    /// Loads what lanes have at their places, which were put aside.
    fn take(&mut self, plain: &Plain<'_>) -> Result<(), IcedError> {
        let slots = plain.slots;
        match (slots, plain.each()) {
            ([Slot::W64(r)], _) => {
                for q in QUARTERS {
                    self.eight_doubles(plain, q, [xmm16, xmm17, xmm18, xmm19])?;
                    self.put_wide(*r, q, zmm16)?;
                }
            }
            (_, 4) => {
                for h in HALVES {
                    self.sixteen_words(plain, h)?;
                    self.put_slot(slots[0], h, zmm16)?;
                }
            }
            (_, 8) => {
                for h in HALVES {
                    self.eight_doubles(plain, 2 * h, [xmm16, xmm17, xmm18, xmm19])?;
                    self.eight_doubles(plain, 2 * h + 1, [xmm20, xmm17, xmm18, xmm19])?;
                    let asm = &mut self.asm;
                    for (odd, v) in [(0, zmm17), (1, zmm18)] {
                        asm.vmovdqa32(v, constant_part(Constant::Evens, odd))?;
                        asm.vpermi2d(v, zmm16, zmm20)?;
                    }
                    self.put_slot(slots[0], h, zmm17)?;
                    self.put_slot(slots[1], h, zmm18)?;
                }
            }
            _ => {
                let known = plain.words.shared && self.lanes == Lanes::All;
                if known {
                    self.asm.vmovdqa32(zmm28, zmm16)?;
                    self.asm.vmovdqa32(zmm29, zmm17)?;
                }
                for h in HALVES {
                    match known {
                        true => self.rows_by_lie(plain, h)?,
                        false => self.sixteen_rows(plain, h)?,
                    }
                    for (slot, v) in slots.iter().zip([zmm20, zmm21, zmm22, zmm23]) {
                        self.put_slot(*slot, h, v)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn put_slot(
        &mut self,
        slot: Slot,
        h: i32,
        v: AsmRegisterZmm,
    ) -> Result<(), IcedError> {
        match slot {
            Slot::W32(r) => self.put_half(r, h, v),
            _ => Ok(()),
        }
    }

    /// Where a lane's bytes are. Changes rax or rdx, by turns.
    fn at_lane(&mut self, plain: &Plain<'_>, lane: i32) -> Result<AsmMemoryOperand, IcedError> {
        let places = offset_of!(Arguments, places) as i32;
        let (wide, narrow) = [(rax, eax), (rdx, edx)][lane as usize % 2];
        match plain.words.shared {
            true => self.asm.mov(narrow, dword_ptr(r8 + (places + 4 * lane)))?,
            false => self.asm.mov(wide, qword_ptr(r8 + (places + 8 * lane)))?,
        }
        Ok(rsi + wide)
    }

    /// The words of a half, in zmm16.
    fn sixteen_words(&mut self, plain: &Plain<'_>, h: i32) -> Result<(), IcedError> {
        for (four, v) in (0..).zip([xmm16, xmm17, xmm18, xmm19]) {
            let first = 16 * h + 4 * four;
            let at = self.at_lane(plain, first)?;
            self.asm.vmovd(v, dword_ptr(at))?;
            for lane in 1..4 {
                let at = self.at_lane(plain, first + lane)?;
                self.asm.vpinsrd(v, v, dword_ptr(at), lane as u32)?;
            }
        }
        self.join_four([xmm16, xmm17, xmm18, xmm19])
    }

    /// The double words of a quarter, in the first of four vectors.
    fn eight_doubles(
        &mut self,
        plain: &Plain<'_>,
        q: i32,
        vectors: [AsmRegisterXmm; 4],
    ) -> Result<(), IcedError> {
        for (two, v) in (0..).zip(vectors) {
            let at = self.at_lane(plain, 8 * q + 2 * two)?;
            self.asm.vmovq(v, qword_ptr(at))?;
            let at = self.at_lane(plain, 8 * q + 2 * two + 1)?;
            self.asm.vpinsrq(v, v, qword_ptr(at), 1)?;
        }
        self.join_four(vectors)
    }

    /// Four vectors as one, in the place of the first.
    fn join_four(&mut self, [a, b, c, d]: [AsmRegisterXmm; 4]) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        let (wide_a, wide_c, all) = match a == xmm16 {
            true => (ymm16, ymm18, zmm16),
            false => (ymm20, ymm18, zmm20),
        };
        asm.vinserti32x4(wide_a, wide_a, b, 1)?;
        asm.vinserti32x4(wide_c, wide_c, d, 1)?;
        debug_assert_eq!(c, xmm18);
        asm.vinserti64x4(all, all, wide_c, 1)
    }

    /// Four words of each lane of a half, in zmm20 to zmm23: rows of every fourth lane, turned.
    pub(super) fn sixteen_rows(&mut self, plain: &Plain<'_>, h: i32) -> Result<(), IcedError> {
        let firsts = [xmm16, xmm17, xmm18, xmm19];
        let rows = [zmm16, zmm17, zmm18, zmm19];
        for (lane, (first, row)) in (0..).zip(firsts.into_iter().zip(rows)) {
            let at = self.at_lane(plain, 16 * h + lane)?;
            self.asm.vmovdqu32(first, xmmword_ptr(at))?;
            for four in 1..4 {
                let at = self.at_lane(plain, 16 * h + 4 * four + lane)?;
                self.asm
                    .vinserti32x4(row, row, xmmword_ptr(at), four as u32)?;
            }
        }
        self.turn_rows()
    }

    /// The four words of rows in zmm16 to zmm19, in zmm20 to zmm23.
    pub(super) fn turn_rows(&mut self) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.vpunpckldq(zmm24, zmm16, zmm17)?;
        asm.vpunpckhdq(zmm25, zmm16, zmm17)?;
        asm.vpunpckldq(zmm26, zmm18, zmm19)?;
        asm.vpunpckhdq(zmm27, zmm18, zmm19)?;
        asm.vpunpcklqdq(zmm20, zmm24, zmm26)?;
        asm.vpunpckhqdq(zmm21, zmm24, zmm26)?;
        asm.vpunpcklqdq(zmm22, zmm25, zmm27)?;
        asm.vpunpckhqdq(zmm23, zmm25, zmm27)
    }

    /// As [`Writer::sixteen_rows`] where zmm28 and zmm29 have the offsets of all lanes: of a half
    /// whose rows are one, or lie one behind the other, or are those of the other half, fewer are
    /// loaded.
    fn rows_by_lie(&mut self, plain: &Plain<'_>, h: i32) -> Result<(), IcedError> {
        let (v, first) = [(zmm28, xmm28), (zmm29, xmm29)][h as usize];
        let words = [zmm20, zmm21, zmm22, zmm23];
        let asm = &mut self.asm;
        let [mut several, mut apart, mut done] = std::array::from_fn(|_| asm.create_label());
        if h == 1 {
            asm.vpcmpneqd(k3, zmm28, zmm29)?;
            asm.kortestw(k3, k3)?;
            asm.je(done)?;
        }
        asm.vmovd(eax, first)?;
        asm.vpbroadcastd(zmm24, first)?;
        asm.vpcmpneqd(k3, v, zmm24)?;
        asm.kortestw(k3, k3)?;
        asm.jne(several)?;
        for (i, word) in (0..).zip(words) {
            asm.vpbroadcastd(word, dword_ptr(rsi + rax + 4 * i))?;
        }
        asm.jmp(done)?;
        asm.set_label(&mut several)?;
        asm.vpaddd(zmm24, zmm24, constant(Constant::Sixteens))?;
        asm.vpcmpneqd(k3, v, zmm24)?;
        asm.kortestw(k3, k3)?;
        asm.jne(apart)?;
        for (i, row) in (0..).zip([zmm16, zmm17, zmm18, zmm19]) {
            asm.vmovdqu32(row, zmmword_ptr(rsi + rax + 64 * i))?;
        }
        self.turn_rows()?;
        let asm = &mut self.asm;
        asm.vmovdqa32(zmm30, constant(Constant::Turned))?;
        for word in words {
            asm.vpermd(word, zmm30, word)?;
        }
        asm.jmp(done)?;
        asm.set_label(&mut apart)?;
        self.sixteen_rows(plain, h)?;
        self.asm.set_label(&mut done)?;
        self.asm.zero_bytes()
    }
}
