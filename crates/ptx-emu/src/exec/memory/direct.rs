//! The usual loads and stores: all lanes in one allocation, aligned and within bounds.
//!
//! Compiled into each vector level of the interpreter; `QUICK` is that of a machine with AVX2.
//! Whatever is unusual (a fault, lanes in
//! several places, a copy under way, an access other CTAs may see) is left to [`super::access`],
//! before anything has been counted.

use super::access::Access;
use super::gather::{gather, scatter};
use crate::exec::checked::Checked;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::{each, lanes};
use crate::exec::listen::visit::{Bytes, Room};
use crate::exec::storage::draft::Drafts;
use crate::exec::storage::pointers::{HostPtr, Pointers};
use crate::exec::storage::region::{CachedRegion, REMEMBERED};
use crate::exec::storage::span::{LAYOUTS, Pattern, Span};
use crate::exec::storage::window::{Window, window_of};
use crate::exec::warp::Warp;
use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

#[cfg(target_arch = "x86_64")]
use crate::exec::storage::quick;
use crate::op::{
    Addr, Base, Extend, LOCAL_WINDOW, Order, R32, R64, SHARED_BASE, SHARED_WINDOW, Slot, SlotList,
    Space, pool,
};

/// The low words of 64-bit addresses less `base`; whether they all fit.
#[inline(always)]
fn offsets<const QUICK: bool>(
    r: &[u64; 32],
    offset: i64,
    base: u64,
    mask: u32,
    at: &mut [u32; 32],
) -> bool {
    let base = base.wrapping_sub(offset as u64);
    #[cfg(target_arch = "x86_64")]
    if QUICK {
        // SAFETY: quick machines have AVX2.
        return unsafe { quick::offsets(r, base, mask, at) };
    }
    let mut beyond = 0;
    for (i, &a) in r.iter().enumerate() {
        let chosen = 0u64.wrapping_sub(u64::from(mask >> i & 1));
        beyond |= (a.wrapping_sub(base) & chosen) >> 32;
    }
    for (at, &a) in at.iter_mut().zip(r) {
        *at = a.wrapping_sub(base) as u32;
    }
    beyond == 0
}

impl Cluster<'_> {
    /// Finds and counts the lanes of a usual access of `bytes` each; `at` becomes their offsets.
    #[inline(always)]
    pub(crate) fn span<const QUICK: bool>(
        &mut self,
        w: &Warp,
        mask: u32,
        space: Space,
        addr: Addr,
        access: Access,
        at: &mut [u32; 32],
    ) -> Option<Span> {
        match (space, addr.base) {
            (Space::Global | Space::Const, Base::R64(r)) => {
                self.global_span::<QUICK>(w, mask, (r, addr.offset), access, at)
            }
            (Space::Generic, Base::R64(r)) => {
                let first = w.get64(r)[mask.trailing_zeros() as usize & 31];
                let (place, window) = match window_of(first.wrapping_add_signed(addr.offset)) {
                    Window::Global => {
                        return self.global_span::<QUICK>(w, mask, (r, addr.offset), access, at);
                    }
                    Window::Shared => (Window::Shared, SHARED_WINDOW),
                    Window::Local => (Window::Local, LOCAL_WINDOW),
                    Window::Param => return None,
                };
                let fit = offsets::<QUICK>(w.get64(r), addr.offset, window, mask, at);
                match (fit, place) {
                    (true, Window::Shared) => self.shared_span::<QUICK>(w, mask, access, at),
                    (true, _) => self.local_span::<QUICK>(w, mask, access, at),
                    (false, _) => None,
                }
            }
            (Space::Shared, base) => {
                let narrow = narrow::<QUICK>(w, base, addr.offset, at);
                narrow.then(|| self.shared_span::<QUICK>(w, mask, access, at))?
            }
            (Space::Local, base) => {
                let narrow = narrow::<QUICK>(w, base, addr.offset, at);
                narrow.then(|| self.local_span::<QUICK>(w, mask, access, at))?
            }
            (Space::Param, Base::Abs) if !access.writes() => {
                let params = &self.env.params;
                let bounds = (0, params.len() as u64);
                let host = HostPtr::to(params.as_ptr().cast_mut());
                *at = [addr.offset as u32; 32];
                Span::at_once(at[0], access.bytes as u32, bounds, host)
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn global_span<const QUICK: bool>(
        &mut self,
        w: &Warp,
        mask: u32,
        (r, offset): (R64, i64),
        access: Access,
        at: &mut [u32; 32],
    ) -> Option<Span> {
        let (bytes, write) = (access.bytes as u32, access.writes());
        let r = w.get64(r);
        let slot = w.pc as usize % REMEMBERED;
        let mut region = self.regions[slot];
        let first = r[mask.trailing_zeros() as usize & 31].wrapping_add_signed(offset);
        if first.wrapping_sub(region.base) >= region.end - region.base {
            region = CachedRegion::of(self.env.memory, first)?;
            self.regions[slot] = region;
        }
        if !offsets::<QUICK>(r, offset, region.base, mask, at) {
            return None;
        }
        let bounds = (0, region.end - region.base);
        let layout = &mut self.layouts[w.pc as usize % LAYOUTS];
        let host = HostPtr::to(region.bytes.first());
        let mut span = Span::within::<QUICK>(at, mask, bytes, bounds, host, layout)?;
        if self.drafts.concern(region.index, write) {
            // Within a page the cluster's own bytes lie as in the allocation.
            if !Drafts::together(span.low.into(), span.high.into()) {
                return None;
            }
            let low = u64::from(span.low);
            span.host = match (write, span.pattern) {
                (true, Pattern::Scattered) => {
                    let (page, first) = self.drafts.at_lanes(&region, at, bytes, true);
                    HostPtr::to(page.first()).back(first as usize)
                }
                (true, _) => {
                    let length = u64::from(span.high - span.low + bytes);
                    let place = self.drafts.at_written(&region, low, length);
                    HostPtr::to(place.first()).back(span.low as usize)
                }
                (false, _) => {
                    let place = self.drafts.at(&region, low);
                    HostPtr::to(place.first()).back(span.low as usize)
                }
            };
        }
        let room = Room::Global {
            region: region.index,
        };
        self.pass_span(w, mask, (span, at), room, access);
        Some(span)
    }

    /// Accounts for the lanes of a usual access.
    #[inline(always)]
    pub(super) fn pass_span(
        &mut self,
        w: &Warp,
        mask: u32,
        (span, at): (Span, &[u32; 32]),
        room: Room,
        access: Access,
    ) {
        let each = access.bytes as u32;
        let bytes = Bytes::Lanes {
            at,
            each,
            low: span.low,
            end: span.high + each,
            dense: span.pattern != Pattern::Scattered,
        };
        self.pass_threads(w.origin(mask), room, access, bytes);
    }

    #[inline(always)]
    fn shared_span<const QUICK: bool>(
        &mut self,
        w: &Warp,
        mask: u32,
        access: Access,
        at: &mut [u32; 32],
    ) -> Option<Span> {
        let bytes = access.bytes as u32;
        let cta = &mut self.ctas[w.cta as usize];
        let host = HostPtr::to(cta.shared.as_mut_ptr());
        let bounds = (SHARED_BASE, cta.shared.len() as u64);
        let layout = &mut self.layouts[w.pc as usize % LAYOUTS];
        let span = Span::within::<QUICK>(at, mask, bytes, bounds, host, layout)?;
        // Neighbours lie in different banks, and one word is read once for all.
        if span.pattern == Pattern::Scattered && self.counts_conflicts {
            let extra = layout.conflicts::<QUICK>(mask, at, bytes);
            self.counters.bank_conflicts += u64::from(extra);
        }
        self.pass_span(w, mask, (span, at), Room::Shared { cta: w.cta }, access);
        Some(span)
    }

    #[inline(always)]
    fn local_span<const QUICK: bool>(
        &mut self,
        w: &Warp,
        mask: u32,
        access: Access,
        at: &mut [u32; 32],
    ) -> Option<Span> {
        let (bytes, write) = (access.bytes as u32, access.writes());
        let per_lane = self.env.program.local_bytes.next_multiple_of(16);
        // Touched for the first time, it is made by the slow way.
        let host = match w.local.is_empty() {
            true => return None,
            false => HostPtr::to(w.local.as_ptr().cast_mut()),
        };
        let layout = &mut self.layouts[w.pc as usize % LAYOUTS];
        let mut span = Span::within::<QUICK>(at, mask, bytes, (0, per_lane.into()), host, layout)?;
        let total = u64::from(bytes) * u64::from(mask.count_ones());
        match write {
            true => self.counters.local_written += total,
            false => self.counters.local_read += total,
        }
        span.pattern = Pattern::Scattered;
        span.high += 31 * per_lane;
        for (at, lane) in at.iter_mut().zip(0..) {
            *at += lane * per_lane;
        }
        Some(span)
    }

    /// The lanes of a load or store of a slot list, if it is a usual one: weak, and of one power
    /// of two of bytes up to 16.
    #[inline(always)]
    fn usual_span<const QUICK: bool>(
        &mut self,
        w: &Warp,
        mask: u32,
        (space, order): (Space, Order),
        bytes: u32,
        (addr, write): (Addr, bool),
        at: &mut [u32; 32],
    ) -> Option<Span> {
        let usual = order == Order::Weak && bytes.is_power_of_two() && bytes <= 16;
        match usual {
            true => self.span::<QUICK>(w, mask, space, addr, Access::weak(bytes.into(), write), at),
            false => None,
        }
    }

    #[inline(always)]
    pub(crate) fn load<const QUICK: bool>(
        &mut self,
        w: &mut Warp,
        mask: u32,
        (space, order): (Space, Order),
        (width, ext): (u8, Extend),
        d: SlotList,
        addr: Addr,
    ) -> Checked<Flow> {
        let bytes = u32::from(width) * u32::from(d.len);
        let mut at = [0; 32];
        let Some(span) =
            self.usual_span::<QUICK>(w, mask, (space, order), bytes, (addr, false), &mut at)
        else {
            return self.load_any(w, mask, (space, order), (width, ext), d, addr);
        };
        let slots = pool(self.env.program, d);
        if let (&[Slot::W32(d)], 4) = (slots, width) {
            // SAFETY: `span` checked every lane's bytes and their alignment.
            unsafe { read_words::<QUICK>(w, mask, d, (span, &at), 0) };
            return Ok(Flow::Next);
        }
        if let (&[Slot::W32(x), Slot::W32(y), Slot::W32(z), Slot::W32(last)], 4) = (slots, width)
            && span.pattern != Pattern::Same
        {
            // SAFETY: `span` checked every lane's bytes.
            let fours = unsafe { read_fours(span, &at) };
            for (d, v) in [x, y, z, last].into_iter().zip(fours) {
                w.put(mask, d, v);
            }
            return Ok(Flow::Next);
        }
        for (i, &slot) in slots.iter().enumerate() {
            let offset = i * usize::from(width);
            // SAFETY: `span` checked every lane's bytes and their alignment.
            unsafe {
                match slot {
                    Slot::W32(d) if width == 4 => {
                        read_words::<QUICK>(w, mask, d, (span, &at), offset)
                    }
                    Slot::W64(d) if width == 8 => read_doubles(w, mask, d, (span, &at), offset),
                    _ => read_narrow(w, mask, slot, &span.pointers(&at), offset, (width, ext)),
                }
            }
        }
        Ok(Flow::Next)
    }

    #[inline(always)]
    pub(crate) fn store<const QUICK: bool>(
        &mut self,
        w: &mut Warp,
        mask: u32,
        (space, order): (Space, Order),
        width: u8,
        s: SlotList,
        addr: Addr,
    ) -> Checked<Flow> {
        let bytes = u32::from(width) * u32::from(s.len);
        let mut at = [0; 32];
        let Some(span) =
            self.usual_span::<QUICK>(w, mask, (space, order), bytes, (addr, true), &mut at)
        else {
            return self.store_any(w, mask, (space, order), width, s, addr);
        };
        self.progress += 1;
        let slots = pool(self.env.program, s);
        if self.is_change_wanted() {
            // SAFETY: as in `load`.
            unsafe { self.tell_if_unchanged(w, mask, slots, width, &span.pointers(&at)) };
        }
        if let (&[Slot::W32(x), Slot::W32(y), Slot::W32(z), Slot::W32(last)], 4, u32::MAX) =
            (slots, width, mask)
        {
            // SAFETY: as in `load`.
            unsafe { write_fours(w, [x, y, z, last], span, &at) };
            return Ok(Flow::Next);
        }
        for (i, &slot) in slots.iter().enumerate() {
            let offset = i * usize::from(width);
            // SAFETY: as in `load`.
            unsafe {
                match slot {
                    Slot::W32(s) if width == 4 => write_words(w, mask, s, (span, &at), offset),
                    _ => write_any(w, mask, slot, &span.pointers(&at), offset, width),
                }
            }
        }
        Ok(Flow::Next)
    }
}

/// Addresses of a 32-bit space; false if they are of none.
#[inline(always)]
fn narrow<const QUICK: bool>(w: &Warp, base: Base, offset: i64, at: &mut [u32; 32]) -> bool {
    match base {
        Base::R32(r) => {
            for (at, r) in at.iter_mut().zip(w.get(r)) {
                *at = r.wrapping_add(offset as u32);
            }
        }
        Base::R64(r) => {
            // Shared and local addresses are 32 bits even when they come in 64.
            offsets::<QUICK>(w.get64(r), offset, 0, u32::MAX, at);
        }
        Base::Abs => *at = [offset as u32; 32],
        Base::Global(_) => return false,
    }
    true
}

/// # Safety
/// The four bytes at `offset` of every lane must be valid and aligned.
#[inline(always)]
unsafe fn read_words<const QUICK: bool>(
    w: &mut Warp,
    mask: u32,
    d: R32,
    (span, at): (Span, &[u32; 32]),
    offset: usize,
) {
    let from = span.host.offset(offset);
    // SAFETY: by this function's contract.
    let read =
        |at: u32| unsafe { AtomicU32::from_ptr(from.offset(at as usize).cast()).load(Relaxed) };
    let v = match span.pattern {
        Pattern::Same => [read(span.low); 32],
        Pattern::Run if span.high - span.low == 31 * 4 => {
            let mut v = [0u32; 32];
            // SAFETY: 32 lanes of four bytes each, one behind the other.
            unsafe {
                copy_nonoverlapping(from.offset(span.low as usize).cast(), v.as_mut_ptr(), 32);
            }
            v
        }
        #[cfg(target_arch = "x86_64")]
        _ if QUICK && span.high - span.low < 1 << 31 => {
            let (from, low) = (from.offset(span.low as usize), span.low);
            let mask = if mask == w.live { u32::MAX } else { mask };
            // SAFETY: quick machines have AVX2, and the rest is this function's contract.
            return unsafe { quick::gather(from, low, at, mask, &mut w.r32[d.0 as usize].0) };
        }
        _ => each(
            #[inline(always)]
            |i| read(at[i]),
        ),
    };
    w.put(mask, d, v);
}

/// # Safety
/// As for [`read_words`], with eight bytes.
#[inline(always)]
unsafe fn read_doubles(
    w: &mut Warp,
    mask: u32,
    d: R64,
    (span, at): (Span, &[u32; 32]),
    offset: usize,
) {
    let from = span.host.offset(offset);
    // SAFETY: by this function's contract.
    let read =
        |at: u32| unsafe { AtomicU64::from_ptr(from.offset(at as usize).cast()).load(Relaxed) };
    let v = match span.pattern {
        Pattern::Same => [read(span.low); 32],
        _ => each(
            #[inline(always)]
            |i| read(at[i]),
        ),
    };
    w.put64(mask, d, v);
}

/// # Safety
/// As for [`read_words`], with the width's bytes.
#[inline(never)]
unsafe fn read_narrow(
    w: &mut Warp,
    mask: u32,
    slot: Slot,
    pointers: &Pointers,
    offset: usize,
    (width, ext): (u8, Extend),
) {
    // SAFETY: by this function's contract.
    unsafe { gather(w, mask, slot, pointers, offset, width, ext) };
}

/// Writes the lanes of the mask, lowest first.
///
/// # Safety
/// As for [`read_words`].
#[inline(always)]
unsafe fn write_words(w: &Warp, mask: u32, s: R32, (span, at): (Span, &[u32; 32]), offset: usize) {
    let s = w.get(s);
    let to = span.host.offset(offset);
    if span.pattern == Pattern::Run && span.high - span.low == 31 * 4 {
        // SAFETY: 32 lanes of four bytes each, one behind the other.
        unsafe { copy_nonoverlapping(s.as_ptr(), to.offset(span.low as usize).cast(), 32) };
        return;
    }
    let write = |i: usize| {
        let to = to.offset(at[i] as usize).cast();
        // SAFETY: by this function's contract.
        unsafe { AtomicU32::from_ptr(to).store(s[i], Relaxed) };
    };
    match mask {
        u32::MAX => (0..32).for_each(write),
        _ => lanes(mask).for_each(write),
    }
}

/// Four lanes of four registers become four lanes' four words, and the other way round. The
/// compiler takes them word by word.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn transposed(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86-64, and a vector is four words in any order of bytes.
    unsafe {
        let [x, y, z, last] = rows.map(|row| std::mem::transmute::<[u32; 4], __m128i>(row));
        let (xy, zl) = (_mm_unpacklo_epi32(x, y), _mm_unpacklo_epi32(z, last));
        let (xy2, zl2) = (_mm_unpackhi_epi32(x, y), _mm_unpackhi_epi32(z, last));
        [
            _mm_unpacklo_epi64(xy, zl),
            _mm_unpackhi_epi64(xy, zl),
            _mm_unpacklo_epi64(xy2, zl2),
            _mm_unpackhi_epi64(xy2, zl2),
        ]
        .map(|column| std::mem::transmute::<__m128i, [u32; 4]>(column))
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn transposed(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
    std::array::from_fn(|i| rows.map(|row| row[i]))
}

/// Writes four words of all lanes, lowest first.
///
/// # Safety
/// As for [`read_words`], with sixteen bytes.
#[inline(always)]
unsafe fn write_fours(w: &Warp, s: [R32; 4], span: Span, at: &[u32; 32]) {
    let registers = s.map(|s| w.get(s).as_chunks::<4>().0);
    for (i, at) in at.as_chunks::<4>().0.iter().enumerate() {
        let lanes = transposed(registers.map(|register| register[i]));
        for (at, words) in at.iter().zip(lanes) {
            let to = span.host.offset(*at as usize).cast::<[u32; 4]>();
            // SAFETY: by this function's contract.
            unsafe { to.write(words) };
        }
    }
}

/// Reads four words of each lane, as four registers.
///
/// # Safety
/// As for [`write_fours`].
#[inline(always)]
unsafe fn read_fours(span: Span, at: &[u32; 32]) -> [[u32; 32]; 4] {
    let mut registers = [[0; 32]; 4];
    for (i, at) in at.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: by this function's contract.
        let lanes = at.map(|at| unsafe { span.host.offset(at as usize).cast::<[u32; 4]>().read() });
        for (register, words) in registers.iter_mut().zip(transposed(lanes)) {
            register.as_chunks_mut::<4>().0[i] = words;
        }
    }
    registers
}

/// # Safety
/// As for [`read_words`], with the width's bytes.
#[inline(never)]
unsafe fn write_any(
    w: &Warp,
    mask: u32,
    slot: Slot,
    pointers: &Pointers,
    offset: usize,
    width: u8,
) {
    // SAFETY: by this function's contract.
    unsafe { scatter(w, mask, slot, pointers, offset, width) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::storage::span::Layout;

    #[test]
    fn four_words_of_each_lane_go_out_and_come_back() {
        let mut w = Warp::new(4, 0, 0, 0, 0, u32::MAX);
        for (register, of) in w.r32.iter_mut().zip(0..) {
            register.0 = each(|lane| 100 * lane as u32 + of);
        }
        let mut memory = vec![[0u32; 4]; 64];
        // Every other place, backwards.
        let mut at = each(|lane| 16 * (63 - 2 * lane as u32));
        let host = HostPtr::to(memory.as_mut_ptr().cast());
        let mut layout = Layout::SAME;
        let span = Span::within::<false>(&mut at, u32::MAX, 16, (0, 1024), host, &mut layout);
        let span = span.expect("inside");
        // SAFETY: the span lies within `memory`.
        let back = unsafe {
            write_fours(&w, [R32(0), R32(1), R32(2), R32(3)], span, &at);
            read_fours(span, &at)
        };
        for lane in 0..32 {
            let words: [u32; 4] = std::array::from_fn(|i| 100 * lane as u32 + i as u32);
            assert_eq!(memory[63 - 2 * lane], words);
            assert_eq!(memory[62 - 2 * lane], [0; 4]);
        }
        for (register, back) in w.r32.iter().zip(back) {
            assert_eq!(register.0, back);
        }
    }
}
