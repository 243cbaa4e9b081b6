//! Loads and stores of words that lie apart, or of some lanes of a warp: gathers and scatters.
//!
//! Only where nobody wants to know of sectors and bank conflicts, which have to be looked for
//! lane by lane.
//!
//! A lane's offset is turned right by as many bits as its alignment has. What is out of bounds or
//! not aligned is then larger than the last place, and one comparison finds both.

use std::mem::offset_of;

use iced_x86::code_asm::*;

use super::Arguments;
use super::access::{Plain, call, of_site};
use super::lanes::{HALVES, QUARTERS, Writer, half, quarter, warp, wide};
use crate::counters::Counters;
use crate::exec::storage::region::Site;
use crate::exec::warp::Warp;
use crate::op::{Base, R32, R64, SHARED_BASE, Slot};

/// The places of a half of the lanes of shared memory, and of a quarter of those of an allocation.
const HALF_PLACES: [AsmRegisterZmm; 2] = [zmm16, zmm17];
const QUARTER_PLACES: [AsmRegisterZmm; 4] = [zmm16, zmm17, zmm18, zmm19];

/// The lanes of each quarter; those of a half are the first eight of the sixteen of k1 and k2.
const LANES: [AsmRegisterK; 4] = [k1, k5, k2, k6];

impl Plain<'_> {
    /// Bits of an offset that alignment makes zero.
    fn turn(&self) -> i32 {
        self.each().trailing_zeros() as i32
    }

    /// Bytes from a place to the next.
    fn scale(&self) -> i32 {
        self.each().min(8)
    }
}

impl Writer<'_> {
    /// Does an access of the lanes of eax and is done; goes on otherwise.
    pub(super) fn lanes_apart(&mut self, plain: &Plain<'_>, site: usize) -> Result<(), IcedError> {
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
        asm.kmovd(k1, eax)?;
        asm.kshiftrd(k5, k1, 8)?;
        asm.kshiftrd(k2, k1, 16)?;
        asm.kshiftrd(k6, k1, 24)?;
        let counted = match (plain.words.shared, plain.addr.base) {
            (true, base) => self.shared_places(plain, base)?,
            (false, Base::R64(r)) => self.global_places(plain, r, site)?,
            _ => return Ok(()),
        };
        let asm = &mut self.asm;
        asm.popcnt(eax, eax)?;
        asm.shl(eax, plain.turn())?;
        asm.mov(rdx, call(offset_of!(Arguments, counters)))?;
        asm.add(qword_ptr(rdx + counted as i32), rax)?;
        if plain.writes {
            asm.mov(rdx, call(offset_of!(Arguments, progress)))?;
            asm.add(qword_ptr(rdx), 1)?;
        }
        for (word, slot) in (0..).zip(plain.slots) {
            match (*slot, plain.words.shared) {
                (Slot::W32(r), true) => self.shared_words(plain, r, word)?,
                (Slot::W32(r), false) => self.global_words(plain, r, word)?,
                (Slot::W64(r), true) => self.shared_doubles(plain, r)?,
                (Slot::W64(r), false) => self.global_doubles(r)?,
                (Slot::Sink, _) => {}
            }
        }
        self.asm.jmp(plain.done)
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
        if plain.each() > plain.scale() {
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
        let site = of_site(site);
        let asm = &mut self.asm;
        asm.mov(r9, call(offset_of!(Arguments, sites)))?;
        asm.mov(rdx, call(offset_of!(Arguments, generation)))?;
        asm.mov(rdx, qword_ptr(rdx))?;
        asm.cmp(rdx, site(offset_of!(Site, generation)))?;
        asm.jne(plain.otherwise)?;
        asm.cmp(site(offset_of!(Site, marked)), 0)?;
        asm.jne(plain.otherwise)?;
        asm.mov(rdx, site(offset_of!(Site, length)))?;
        asm.sub(rdx, plain.each())?;
        asm.jb(plain.otherwise)?;
        asm.shr(rdx, plain.turn())?;
        asm.vpbroadcastq(zmm20, rdx)?;
        asm.mov(rdx, site(offset_of!(Site, base)))?;
        asm.sub(rdx, plain.addr.offset as i32)?;
        asm.vpbroadcastq(zmm21, rdx)?;
        for (q, place) in QUARTERS.into_iter().zip(QUARTER_PLACES) {
            asm.vmovdqa64(place, wide(r, q))?;
            asm.vpsubq(place, place, zmm21)?;
            asm.vprorq(place, place, plain.turn())?;
        }
        asm.vpcmpnleuq(k3.k1(), zmm16, zmm20)?;
        asm.vpcmpnleuq(k4.k5(), zmm17, zmm20)?;
        asm.korw(k3, k3, k4)?;
        asm.vpcmpnleuq(k4.k2(), zmm18, zmm20)?;
        asm.vpcmpnleuq(k7.k6(), zmm19, zmm20)?;
        asm.korw(k4, k4, k7)?;
        asm.kortestw(k3, k4)?;
        asm.jne(plain.otherwise)?;
        if plain.each() > plain.scale() {
            for place in QUARTER_PLACES {
                asm.vpsllq(place, place, 1)?;
            }
        }
        asm.mov(rsi, site(offset_of!(Site, host)))?;
        Ok(offset_of!(Counters, global_read))
    }

    fn shared_words(&mut self, plain: &Plain<'_>, r: R32, word: i32) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        for (h, (place, lanes)) in HALVES
            .into_iter()
            .zip(HALF_PLACES.into_iter().zip([k1, k2]))
        {
            let at: AsmMemoryOperand = rsi + place * plain.scale() + 4 * word;
            asm.kmovw(k3, lanes)?;
            asm.vmovdqa32(zmm22, half(r, h))?;
            if plain.writes {
                asm.vpscatterdd(at.k3(), zmm22)?;
            } else {
                asm.vpgatherdd(zmm22.k3(), at)?;
                asm.vmovdqa32(half(r, h), zmm22)?;
            }
        }
        Ok(())
    }

    fn shared_doubles(&mut self, plain: &Plain<'_>, r: R64) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.vextracti64x4(ymm18, zmm16, 1)?;
        asm.vextracti64x4(ymm19, zmm17, 1)?;
        let places = [ymm16, ymm18, ymm17, ymm19];
        for (q, (place, lanes)) in QUARTERS.into_iter().zip(places.into_iter().zip(LANES)) {
            let at: AsmMemoryOperand = rsi + place * 8;
            asm.kmovw(k3, lanes)?;
            asm.vmovdqa64(zmm22, wide(r, q))?;
            if plain.writes {
                asm.vpscatterdq(at.k3(), zmm22)?;
            } else {
                asm.vpgatherdq(zmm22.k3(), at)?;
                asm.vmovdqa64(wide(r, q), zmm22)?;
            }
        }
        Ok(())
    }

    fn global_words(&mut self, plain: &Plain<'_>, r: R32, word: i32) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        for (q, (place, lanes)) in QUARTERS
            .into_iter()
            .zip(QUARTER_PLACES.into_iter().zip(LANES))
        {
            asm.kmovw(k3, lanes)?;
            asm.vmovdqa32(ymm22, quarter(r, q))?;
            asm.vpgatherqd(ymm22.k3(), rsi + place * plain.scale() + 4 * word)?;
            asm.vmovdqa32(quarter(r, q), ymm22)?;
        }
        Ok(())
    }

    fn global_doubles(&mut self, r: R64) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        for (q, (place, lanes)) in QUARTERS
            .into_iter()
            .zip(QUARTER_PLACES.into_iter().zip(LANES))
        {
            asm.kmovw(k3, lanes)?;
            asm.vmovdqa64(zmm22, wide(r, q))?;
            asm.vpgatherqq(zmm22.k3(), rsi + place * 8)?;
            asm.vmovdqa64(wide(r, q), zmm22)?;
        }
        Ok(())
    }
}
