//! The usual loads and stores of machine code: one, two or four words for each lane, in shared or
//! global memory, as vectors of AVX-512.
//!
//! They do what [`super::direct`] does, which has all other accesses too, and whatever is unusual
//! is left to it.

use std::arch::x86_64::*;

use super::access::Access;
use super::atomic::Word;
use crate::exec::cluster::Cluster;
use crate::exec::lanes::{Halves, lanes, load, store};
use crate::exec::listen::visit::Room;
use crate::exec::storage::draft::Drafts;
use crate::exec::storage::pointers::HostPtr;
use crate::exec::storage::region::{CachedRegion, REMEMBERED, Site};
use crate::exec::storage::span::{LAYOUTS, Pattern, Span};
use crate::exec::storage::vectors::{self, common, confine, follow, offsets};
use crate::exec::storage::window::{Window, window_of};
use crate::exec::warp::Warp;
use crate::op::{Addr, Base, Op, R32, R64, SHARED_BASE, Slot, Space, pool};

/// Writes the lanes of a mask; those that have exited too if it is all others.
#[target_feature(enable = "avx512f")]
#[inline]
fn put(w: &mut Warp, mask: u32, d: R32, v: Halves) {
    let whole = mask == w.live;
    let out = &mut w.r32[d.0 as usize].0;
    let v = match whole {
        true => v,
        false => {
            let old = load(out);
            [
                _mm512_mask_blend_epi32(mask as u16, old[0], v[0]),
                _mm512_mask_blend_epi32((mask >> 16) as u16, old[1], v[1]),
            ]
        }
    };
    store(out, v);
}

/// Where the lanes of an access lie.
#[derive(Clone, Copy)]
struct Found {
    span: Span,
    at: Halves,
}

impl Found {
    /// The first word of a lane's bytes, from the lowest lane on.
    #[inline(always)]
    fn host(&self) -> *mut u8 {
        self.span.host.offset(self.span.low as usize).cast()
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn lanes(&self) -> [u32; 32] {
        let mut lanes = [0; 32];
        store(&mut lanes, self.at);
        lanes
    }
}

/// Reads word after word of each lane into registers.
///
/// # Safety
/// All that was found must be valid.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
unsafe fn read<const N: usize>(w: &mut Warp, mask: u32, d: [R32; N], found: &Found) {
    let from = found.host();
    match found.span.pattern {
        Pattern::Same => {
            for (i, d) in d.into_iter().enumerate() {
                // SAFETY: by this function's contract.
                let word = unsafe { from.cast::<i32>().add(i).read() };
                put(w, mask, d, [_mm512_set1_epi32(word); 2]);
            }
        }
        Pattern::Run if N == 1 => {
            // SAFETY: 32 lanes of four bytes each, one behind the other.
            let v = [0, 64].map(|i| unsafe { _mm512_loadu_si512(from.add(i).cast()) });
            put(w, mask, d[0], v);
        }
        _ if N == 4 => {
            let at = found.lanes();
            let mut columns = [[_mm512_setzero_si512(); 2]; 4];
            for (half, at) in at.as_chunks::<16>().0.iter().enumerate() {
                // SAFETY: by this function's contract.
                let four = unsafe { read_fours(found.span.host, at) };
                for (column, v) in columns.iter_mut().zip(four) {
                    column[half] = v;
                }
            }
            for (d, v) in d.into_iter().zip(columns) {
                put(w, mask, d, v);
            }
        }
        _ => {
            let at = found.lanes();
            for (i, d) in d.into_iter().enumerate() {
                let from = found.span.host.offset(4 * i);
                // One by one, which is twice as fast as gathering.
                let words = at.map(
                    #[inline(always)]
                    // SAFETY: by this function's contract.
                    |at| unsafe { from.offset(at as usize).cast::<u32>().read() },
                );
                put(w, mask, d, load(&words));
            }
        }
    }
}

/// Four words of each of sixteen lanes, as four registers.
///
/// # Safety
/// The sixteen bytes at each offset must be valid.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
unsafe fn read_fours(host: HostPtr, at: &[u32; 16]) -> [__m512i; 4] {
    let mut rows = [_mm512_setzero_si512(); 4];
    for (i, row) in rows.iter_mut().enumerate() {
        // Lanes i, 4 + i, 8 + i and 12 + i.
        for (quarter, part) in [0x000f, 0x00f0, 0x0f00, 0xf000].into_iter().enumerate() {
            let from = host.offset(at[4 * quarter + i] as usize);
            // SAFETY: by this function's contract.
            let four = unsafe { _mm_loadu_si128(from.cast()) };
            *row = _mm512_mask_broadcast_i32x4(*row, part, four);
        }
    }
    transposed(rows)
}

/// Four registers' words of sixteen lanes become four words of each lane, four lanes to a row in
/// steps of four; and the other way round.
#[target_feature(enable = "avx512f")]
#[inline]
fn transposed([x, y, z, last]: [__m512i; 4]) -> [__m512i; 4] {
    let (xy, zl) = (_mm512_unpacklo_epi32(x, y), _mm512_unpacklo_epi32(z, last));
    let (xy2, zl2) = (_mm512_unpackhi_epi32(x, y), _mm512_unpackhi_epi32(z, last));
    [
        _mm512_unpacklo_epi64(xy, zl),
        _mm512_unpackhi_epi64(xy, zl),
        _mm512_unpacklo_epi64(xy2, zl2),
        _mm512_unpackhi_epi64(xy2, zl2),
    ]
}

/// Writes four words of each of sixteen lanes, lowest first.
///
/// # Safety
/// The sixteen bytes at each offset must be valid.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn write_fours(rows: [__m512i; 4], host: HostPtr, at: &[u32; 16]) {
    macro_rules! lanes {
        ($($quarter:literal)*) => {
            $(for (i, row) in rows.iter().enumerate() {
                let to = host.offset(at[4 * $quarter + i] as usize);
                // SAFETY: by this function's contract.
                unsafe { _mm_storeu_si128(to.cast(), _mm512_extracti32x4_epi32::<$quarter>(*row)) };
            })*
        };
    }
    lanes!(0 1 2 3);
}

/// Writes registers as word after word of each lane; of lanes at one place the last one wins.
///
/// # Safety
/// All that was found must be valid.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn write<const N: usize>(w: &Warp, mask: u32, s: [R32; N], found: &Found) {
    let to = found.host();
    if N == 1 && found.span.pattern == Pattern::Run {
        for (i, v) in [0, 64].into_iter().zip(load(w.get(s[0]))) {
            // SAFETY: 32 lanes of four bytes each, one behind the other.
            unsafe { _mm512_storeu_si512(to.add(i).cast(), v) };
        }
        return;
    }
    if N == 4 && mask == u32::MAX {
        let columns = s.map(
            #[inline(always)]
            |s| load(w.get(s)),
        );
        for (half, at) in found.lanes().as_chunks::<16>().0.iter().enumerate() {
            let rows = transposed(std::array::from_fn(
                #[inline(always)]
                |i| columns[i][half],
            ));
            // SAFETY: by this function's contract.
            unsafe { write_fours(rows, found.span.host, at) };
        }
        return;
    }
    let at = found.lanes();
    for (i, s) in s.into_iter().enumerate() {
        let to = found.span.host.offset(4 * i);
        let words = w.get(s);
        for lane in lanes(mask) {
            // SAFETY: by this function's contract.
            unsafe {
                to.offset(at[lane] as usize)
                    .cast::<u32>()
                    .write(words[lane])
            };
        }
    }
}

/// Reads a double word of each lane into a register.
///
/// # Safety
/// All that was found must be valid.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
unsafe fn read_wide(w: &mut Warp, mask: u32, d: R64, found: &Found) {
    let from = found.host();
    let at = found.lanes();
    let whole = mask == w.live;
    let out = &mut w.r64[d.0 as usize].0;
    for (q, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        // SAFETY: by this function's contract; offsets are below 2 GiB.
        let v = unsafe {
            match found.span.pattern {
                Pattern::Same => _mm512_set1_epi64(from.cast::<i64>().read()),
                Pattern::Run => _mm512_loadu_si512(from.add(64 * q).cast()),
                Pattern::Scattered => {
                    let words: [u64; 8] = std::array::from_fn(
                        #[inline(always)]
                        |i| {
                            found
                                .span
                                .host
                                .offset(at[8 * q + i] as usize)
                                .cast::<u64>()
                                .read()
                        },
                    );
                    _mm512_loadu_si512(words.as_ptr().cast())
                }
            }
        };
        let chosen = if whole { 0xff } else { (mask >> (8 * q)) as u8 };
        // SAFETY: eight double words are a vector.
        unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), chosen, v) };
    }
}

/// Writes a register as a double word of each lane; of lanes at one place the last one wins.
///
/// # Safety
/// All that was found must be valid.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
unsafe fn write_wide(w: &Warp, mask: u32, s: R64, found: &Found) {
    if found.span.pattern == Pattern::Run {
        let to = found.host().cast::<[u64; 32]>();
        // SAFETY: 32 lanes of eight bytes each, one behind the other.
        return unsafe { to.write_unaligned(*w.get64(s)) };
    }
    let at = found.lanes();
    let words = w.get64(s);
    for lane in lanes(mask) {
        let to = found.span.host.offset(at[lane] as usize);
        // SAFETY: by this function's contract.
        unsafe { to.cast::<u64>().write(words[lane]) };
    }
}

impl Cluster<'_> {
    /// Finds the lanes of an access to the CTA's shared memory, and counts it.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    #[inline]
    fn find_shared<const WRITE: bool, const N: usize>(
        &mut self,
        w: &Warp,
        mask: u32,
        addr: Addr,
    ) -> Option<Found> {
        let bytes = 4 * N as u32;
        let offset = _mm512_set1_epi32(addr.offset as i32);
        let base = match addr.base {
            Base::R32(r) => load(w.get(r)),
            Base::R64(r) => offsets(w.get64(r), 0, 0).0,
            _ => [_mm512_setzero_si512(); 2],
        };
        let mut at = base.map(
            #[inline(always)]
            |base| _mm512_add_epi32(base, offset),
        );
        if mask != u32::MAX {
            at = confine(at, mask);
        }
        let cta = &mut self.ctas[w.cta as usize];
        let host = HostPtr::to(cta.shared.as_mut_ptr());
        let bounds = (SHARED_BASE, cta.shared.len() as u64);
        let layout = &mut self.layouts[w.pc as usize % LAYOUTS];
        let span = match common(at) {
            Some(all) => Span::at_once(all, bytes, bounds, host)?,
            None => Span::placed(follow(layout, at), mask, bytes, bounds, host, layout)?,
        };
        let found = Found { span, at };
        if span.pattern == Pattern::Scattered {
            let extra = vectors::conflicts(layout, mask, at, bytes);
            self.counters.bank_conflicts += u64::from(extra);
        }
        let access = Access::weak(bytes.into(), WRITE);
        let room = Room::Shared { cta: w.cta };
        self.pass_span(w, mask, (span, &found.lanes()), room, access);
        Some(found)
    }

    /// As [`Cluster::find_shared`] for an allocation of global memory.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    #[inline]
    fn find_global<const WRITE: bool, const N: usize>(
        &mut self,
        w: &Warp,
        mask: u32,
        (r, offset): (R64, i64),
    ) -> Option<Found> {
        let bytes = 4 * N as u32;
        let r = w.get64(r);
        let slot = w.pc as usize % REMEMBERED;
        let first = r[mask.trailing_zeros() as usize & 31].wrapping_add_signed(offset);
        // A generic address may lead elsewhere.
        if window_of(first) != Window::Global {
            return None;
        }
        let known = &self.regions[slot];
        if first.wrapping_sub(known.base) >= known.end - known.base {
            self.regions[slot] = CachedRegion::of(self.env.memory, first)?;
        }
        let region = self.regions[slot];
        let (mut at, fit) = offsets(r, region.base.wrapping_sub(offset as u64), mask);
        if !fit {
            return None;
        }
        if mask != u32::MAX {
            at = confine(at, mask);
        }
        let layout = &mut self.layouts[w.pc as usize % LAYOUTS];
        let first = follow(layout, at);
        let bounds = (0, region.end - region.base);
        let host = HostPtr::to(region.bytes.first());
        let span = Span::placed(first, mask, bytes, bounds, host, layout)?;
        let mut found = Found { span, at };
        if self.drafts.concern(region.index, WRITE) {
            found.span.host = self.drafted(&region, &found, bytes, WRITE)?;
        }
        if !WRITE {
            self.remember(Site::number(w.pc), &region);
        }
        let access = Access::weak(bytes.into(), WRITE);
        if span.pattern == Pattern::Scattered {
            let total = access.bytes * u64::from(mask.count_ones());
            self.pass_lanes(region.index, WRITE, total, at, (span.low, span.high));
        } else {
            let room = Room::Global {
                region: region.index,
            };
            self.pass_span(w, mask, (span, &found.lanes()), room, access);
        }
        Some(found)
    }

    /// Lets code find an allocation by itself.
    #[inline(always)]
    fn remember(&mut self, number: usize, region: &CachedRegion<'_>) {
        let generation = self.drafts.generation;
        let site = &mut self.sites[number];
        let known = site.base == region.base && site.generation == generation;
        if !known && !self.drafts.holds(region.index) {
            let (marked, strides) = self.env.read.set(region.index);
            *site = Site {
                base: region.base,
                length: region.end - region.base,
                host: region.bytes.first() as usize,
                marked: marked.as_ptr() as usize,
                strides: strides.as_ptr() as usize,
                generation,
            };
        }
    }

    /// Where the cluster keeps its own copy of bytes, if they lie in one page.
    #[target_feature(enable = "avx512f")]
    #[inline(never)]
    fn drafted(
        &mut self,
        region: &CachedRegion<'_>,
        found: &Found,
        bytes: u32,
        write: bool,
    ) -> Option<HostPtr> {
        let span = found.span;
        if !Drafts::together(span.low.into(), span.high.into()) {
            return None;
        }
        if !write {
            let place = self.drafts.at(region, span.low.into());
            return Some(HostPtr::to(place.first()).back(span.low as usize));
        }
        let (page, first) = match span.pattern {
            Pattern::Scattered => self.drafts.at_lanes(region, &found.lanes(), bytes, false),
            _ => {
                let length = span.high - span.low + bytes;
                self.drafts.over_range(region, span.low, length)
            }
        };
        Some(HostPtr::to(page.first()).back(first as usize))
    }

    /// A load or store of [`Words`](crate::exec::native::Words); false if it is not a usual one,
    /// and then nothing is done.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    #[inline]
    pub(crate) fn move_words<const SHARED: bool, const WRITE: bool, const N: usize>(
        &mut self,
        w: &mut Warp,
        mask: u32,
        op: &Op,
    ) -> bool {
        let (Op::Ld { d: list, addr, .. } | Op::St { s: list, addr, .. }) = *op else {
            return false;
        };
        // A listener may want to know whether a store changes anything.
        if self.ear.is_some() {
            return false;
        }
        let found = match (SHARED, addr.base) {
            (true, _) => self.find_shared::<WRITE, N>(w, mask, addr),
            (false, Base::R64(r)) => self.find_global::<WRITE, N>(w, mask, (r, addr.offset)),
            _ => None,
        };
        let Some(found) = found else {
            return false;
        };
        if WRITE {
            self.progress += 1;
        }
        let slots = pool(self.env.program, list);
        if let [Slot::W64(r)] = *slots {
            // SAFETY: what was found was checked.
            unsafe {
                match WRITE {
                    true => write_wide(w, mask, r, &found),
                    false => read_wide(w, mask, r, &found),
                }
            }
            return true;
        }
        let registers = std::array::from_fn(|i| match slots[i] {
            Slot::W32(r) => r,
            _ => R32(0),
        });
        if WRITE {
            // SAFETY: what was found was checked.
            unsafe { write::<N>(w, mask, registers, &found) };
        } else {
            // SAFETY: as above.
            unsafe { read::<N>(w, mask, registers, &found) };
        }
        true
    }

    /// An atomic operation on a word of shared memory for each lane; false if it is not a usual
    /// one, and then nothing is done.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    #[inline]
    pub(crate) fn update_words(&mut self, w: &mut Warp, mask: u32, op: &Op) -> bool {
        let Op::Atom(atom) = op else {
            return false;
        };
        let program = self.env.program;
        let own = matches!(atom.addr.base, Base::R32(_) | Base::R64(_) | Base::Abs);
        let word = Word::of(atom, (pool(program, atom.d), pool(program, atom.b)));
        let Some(word) = word.filter(|_| own && atom.space == Space::Shared) else {
            return false;
        };
        if self.ear.is_some() {
            return false;
        }
        let Some(found) = self.find_shared::<true, 1>(w, mask, atom.addr) else {
            return false;
        };
        self.counters.atomics += u64::from(mask.count_ones());
        // SAFETY: what was found was checked.
        let changed = unsafe { word.update(w, mask, atom.op, (found.span, &found.lanes())) };
        self.progress += u64::from(changed);
        true
    }
}
