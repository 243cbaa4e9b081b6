//! The usual loads and stores of machine code: one, two or four words for each lane, in shared or
//! global memory, as vectors of AVX-512.
//!
//! They do what [`super::direct`] does, which has all other accesses too, and whatever is unusual
//! is left to it.

use std::arch::x86_64::*;

use super::access::Access;
use super::atomic::Word;
use super::moves::{Found, read_slots, write_slots};
use crate::exec::cluster::Cluster;
use crate::exec::lanes::{Halves, V32, load, store};
use crate::exec::listen::visit::Room;
use crate::exec::storage::draft::Drafts;
use crate::exec::storage::page::PAGE;
use crate::exec::storage::pointers::HostPtr;
use crate::exec::storage::region::{CachedRegion, REMEMBERED, Site};
use crate::exec::storage::span::{LAYOUTS, Pattern, Span};
use crate::exec::storage::stores::Lie;
use crate::exec::storage::vectors::{self, common, confine, lanes_equal, offsets, place};
use crate::exec::storage::window::{Window, window_of};
use crate::exec::warp::Warp;
use crate::op::{Addr, Base, Op, R32, R64, SHARED_BASE, Slot, Space, pool};

/// Bytes of a word for each lane.
const RUN: u64 = 128;

/// Where what a warp writes goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    /// Where it was found.
    Here,
    /// Into several private pages.
    Pages,
    /// It is kept as it is.
    AsItIs,
}

#[target_feature(enable = "avx512f")]
#[inline]
fn stored(v: Halves) -> V32 {
    let mut row = V32([0; 32]);
    store(&mut row.0, v);
    row
}

/// The low words of double words, and the high ones.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
fn halves_of(wide: &[u64; 32]) -> [Halves; 2] {
    let high = std::array::from_fn(
        #[inline(always)]
        |lane| wide[lane] >> 32,
    );
    [offsets(wide, 0, 0).0, offsets(&high, 0, 0).0]
}

/// The lanes' offsets into shared memory; those outside the mask repeat its first one.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
fn shared_offsets(w: &Warp, mask: u32, addr: Addr) -> Halves {
    let offset = _mm512_set1_epi32(addr.offset as i32);
    let base = match addr.base {
        Base::R32(r) => load(w.get(r)),
        Base::R64(r) => offsets(w.get64(r), 0, 0).0,
        _ => [_mm512_setzero_si512(); 2],
    };
    let at = base.map(
        #[inline(always)]
        |base| _mm512_add_epi32(base, offset),
    );
    match mask {
        u32::MAX => at,
        _ => confine(at, mask),
    }
}

impl Cluster<'_> {
    /// Finds the lanes of an access to the CTA's shared memory, and counts it; `at` becomes their
    /// offsets. (Returned with the span they would be copied through memory, in pieces that a
    /// load of one lane has to wait for.)
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    #[inline]
    fn find_shared<const WRITE: bool, const N: usize>(
        &mut self,
        w: &Warp,
        mask: u32,
        addr: Addr,
        at: &mut Halves,
    ) -> Option<Span> {
        let bytes = 4 * N as u32;
        *at = shared_offsets(w, mask, addr);
        let cta = &mut self.ctas[w.cta as usize];
        let host = HostPtr::to(cta.shared.as_mut_ptr());
        let bounds = (SHARED_BASE, cta.shared.len() as u64);
        let layout = &mut self.layouts[w.pc as usize % LAYOUTS];
        let (span, known) = match common(*at) {
            Some(all) => (Span::at_once(all, bytes, bounds, host)?, true),
            None => place(layout, *at, mask, bytes, bounds, host)?,
        };
        if span.pattern == Pattern::Scattered && self.counts_conflicts {
            let extra = match known {
                true => vectors::conflicts(layout, mask, *at, bytes),
                false => vectors::count_conflicts(mask, *at, bytes),
            };
            self.counters.bank_conflicts += u64::from(extra);
        }
        let access = Access::weak(bytes.into(), WRITE);
        let room = Room::Shared { cta: w.cta };
        self.pass_span(
            w,
            mask,
            (span, &Found { span, at: *at }.lanes()),
            room,
            access,
        );
        Some(span)
    }

    /// As [`Cluster::find_shared`] for an allocation of global memory; and where what is written
    /// goes.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    #[inline]
    fn find_global<const WRITE: bool, const N: usize>(
        &mut self,
        w: &Warp,
        mask: u32,
        (r, offset): (R64, i64),
        at: &mut Halves,
    ) -> Option<(Span, Goes)> {
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
        let (low, fit) = offsets(r, region.base.wrapping_sub(offset as u64), mask);
        if !fit {
            return None;
        }
        *at = match mask {
            u32::MAX => low,
            _ => confine(low, mask),
        };
        let layout = &mut self.layouts[w.pc as usize % LAYOUTS];
        let bounds = (0, region.end - region.base);
        let host = HostPtr::to(region.bytes.first());
        let (mut span, _) = place(layout, *at, mask, bytes, bounds, host)?;
        let mut goes = Goes::Here;
        if self.drafts.concern(region.index, WRITE) {
            match (WRITE, Drafts::together(span.low.into(), span.high.into())) {
                (true, _) if self.drafts.keeps(region.index) => goes = Goes::AsItIs,
                (_, true) => {
                    let found = Found { span, at: *at };
                    span.host = self.drafted(&region, &found, bytes, WRITE);
                }
                (true, false) => goes = Goes::Pages,
                (false, false) => return None,
            }
        }
        if !WRITE {
            self.remember(Site::number(w.pc), &region);
        }
        let access = Access::weak(bytes.into(), WRITE);
        if span.pattern == Pattern::Scattered {
            let total = access.bytes * u64::from(mask.count_ones());
            self.pass_lanes(region.index, WRITE, total, *at, (span.low, span.high));
        } else {
            let room = Room::Global {
                region: region.index,
            };
            self.pass_span(
                w,
                mask,
                (span, &Found { span, at: *at }.lanes()),
                room,
                access,
            );
        }
        Some((span, goes))
    }

    /// Lets code find an allocation by itself.
    #[inline(always)]
    fn remember(&mut self, number: usize, region: &CachedRegion<'_>) {
        let generation = self.drafts.generation;
        let known = self.sites.know(number, region.base, generation);
        if !known && !self.drafts.holds(region.index) {
            let (marked, strides) = match self.env.detailed_counters {
                true => self.env.read.set(region.index),
                false => Default::default(),
            };
            let site = Site {
                base: region.base,
                length: region.end - region.base,
                host: region.bytes.first() as usize,
                marked: if marked.is_empty() {
                    0
                } else {
                    marked.as_ptr() as usize
                },
                strides: strides.as_ptr() as usize,
                generation,
                last: 0,
            };
            self.sites.set(number, region.index, site);
        }
    }

    /// Where the cluster keeps its own copy of bytes that lie in one page.
    #[target_feature(enable = "avx512f")]
    #[inline(never)]
    fn drafted(
        &mut self,
        region: &CachedRegion<'_>,
        found: &Found,
        bytes: u32,
        write: bool,
    ) -> HostPtr {
        let span = found.span;
        if !write {
            let place = self.drafts.at(region, span.low.into());
            return HostPtr::to(place.first()).back(span.low as usize);
        }
        let (page, first) = match span.pattern {
            Pattern::Scattered => self.drafts.at_lanes(region, &found.lanes(), bytes, false),
            _ => {
                let length = span.high - span.low + bytes;
                self.drafts.over_range(region, span.low, length)
            }
        };
        HostPtr::to(page.first()).back(first as usize)
    }

    /// Those of some lanes that write to the page of the first: which they are, and where.
    #[target_feature(enable = "avx512f")]
    #[inline(never)]
    fn in_page(
        &mut self,
        region: &CachedRegion<'_>,
        found: &Found,
        left: u32,
        bytes: u32,
    ) -> (Found, u32) {
        let pages = found.at.map(
            #[inline(always)]
            |at| _mm512_srli_epi32::<{ PAGE.trailing_zeros() }>(at),
        );
        let first = found.lanes()[left.trailing_zeros() as usize & 31] as usize / PAGE;
        let lanes = left & lanes_equal(pages, _mm512_set1_epi32(first as i32));
        let mut of_page = Found {
            at: confine(found.at, lanes),
            ..*found
        };
        let (page, start) = self.drafts.at_lanes(region, &of_page.lanes(), bytes, false);
        of_page.span.host = HostPtr::to(page.first()).back(start as usize);
        of_page.span.pattern = Pattern::Scattered;
        (of_page, lanes)
    }

    /// Keeps a store as it is.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    #[inline]
    fn keep_words(
        &mut self,
        w: &Warp,
        (region, mask): (&CachedRegion<'_>, u32),
        slots: &[Slot],
        found: &Found,
    ) {
        let span = found.span;
        let mut keep = |word: u32, words: Halves| {
            let at = match span.pattern {
                Pattern::Run if slots.len() == 1 && !matches!(slots[0], Slot::W64(_)) => {
                    Lie::Run(span.low)
                }
                _ => {
                    let offset = _mm512_set1_epi32(4 * word as i32);
                    Lie::Apart(stored(found.at.map(
                        #[inline(always)]
                        |at| _mm512_add_epi32(at, offset),
                    )))
                }
            };
            if self.drafts.keep(region.index, mask, at, stored(words)) {
                // Code must not find by itself any more what has now to be looked for.
                self.sites.forget(region.index, region.base);
            }
        };
        for (word, slot) in (0..).zip(slots) {
            match *slot {
                Slot::W32(r) => keep(word, load(w.get(r))),
                Slot::W64(r) => {
                    let [low, high] = halves_of(w.get64(r));
                    keep(0, low);
                    keep(1, high);
                }
                Slot::Sink => {}
            }
        }
    }

    /// Keeps a store of words one behind the other as it is; false if it is another, and then nothing
    /// is done.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn keep_run(&mut self, w: &Warp, (base, offset): (R64, i64), source: R32) -> bool {
        let at = w.get64(base);
        let first = at[0].wrapping_add_signed(offset);
        let region = &self.regions[w.pc as usize % REMEMBERED];
        let place = first.wrapping_sub(region.base);
        let ends = place.wrapping_add(RUN);
        if ends > region.end - region.base || ends < RUN || ends > u32::MAX.into() {
            return false;
        }
        let (index, allocation) = (region.index, region.base);
        let kept = self.drafts.on && self.drafts.keeps(index) && place.is_multiple_of(4);
        if !kept || self.env.detailed_counters || window_of(first) != Window::Global {
            return false;
        }
        let mut due = _mm512_add_epi64(
            _mm512_set1_epi64(at[0] as i64),
            _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28),
        );
        let mut differs = 0;
        for eight in at.as_chunks::<8>().0 {
            // SAFETY: eight double words are a vector.
            let eight = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
            differs |= _mm512_cmpneq_epi64_mask(eight, due);
            due = _mm512_add_epi64(due, _mm512_set1_epi64(32));
        }
        if differs != 0 {
            return false;
        }
        self.pass_run(RUN);
        self.progress += 1;
        let words = V32(*w.get(source));
        if self
            .drafts
            .keep(index, u32::MAX, Lie::Run(place as u32), words)
        {
            self.sites.forget(index, allocation);
        }
        true
    }

    /// A load or store of [`WordAccess`](crate::exec::native::WordAccess); false if it is not a usual one,
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
        let slots = pool(self.env.program, list);
        if WRITE
            && !SHARED
            && mask == u32::MAX
            && let (&[Slot::W32(source)], Base::R64(base)) = (slots, addr.base)
            && self.keep_run(w, (base, addr.offset), source)
        {
            return true;
        }
        let mut at = [_mm512_setzero_si512(); 2];
        let span = match (SHARED, addr.base) {
            (true, _) => {
                let span = self.find_shared::<WRITE, N>(w, mask, addr, &mut at);
                span.map(|span| (span, Goes::Here))
            }
            (false, Base::R64(r)) => {
                self.find_global::<WRITE, N>(w, mask, (r, addr.offset), &mut at)
            }
            _ => None,
        };
        let Some((span, goes)) = span else {
            return false;
        };
        let found = Found { span, at };
        if WRITE {
            self.progress += 1;
        }
        if !WRITE {
            // SAFETY: what was found was checked.
            unsafe { read_slots::<N>(w, mask, slots, &found) };
            return true;
        }
        if goes == Goes::Here {
            // SAFETY: as above.
            unsafe { write_slots::<N>(w, mask, slots, &found) };
            return true;
        }
        let region = self.regions[w.pc as usize % REMEMBERED];
        if goes == Goes::AsItIs {
            self.keep_words(w, (&region, mask), slots, &found);
            return true;
        }
        let mut left = mask;
        while left != 0 {
            let (of_page, lanes) = self.in_page(&region, &found, left, 4 * N as u32);
            // SAFETY: as above, and the page is the cluster's own.
            unsafe { write_slots::<N>(w, lanes, slots, &of_page) };
            left &= !lanes;
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
        let mut at = [_mm512_setzero_si512(); 2];
        let span = if self.counts_conflicts {
            let Some(span) = self.find_shared::<true, 1>(w, mask, atom.addr, &mut at) else {
                return false;
            };
            span
        } else {
            // Nobody asks how they lie.
            at = shared_offsets(w, mask, atom.addr);
            let shared = &mut self.ctas[w.cta as usize].shared;
            if !vectors::hold_words(at, (SHARED_BASE, shared.len() as u64)) {
                return false;
            }
            let host = HostPtr::to(shared.as_mut_ptr());
            self.pass_words(mask);
            Span::apart(host)
        };
        let found = Found { span, at };
        self.counters.atomics += u64::from(mask.count_ones());
        // SAFETY: what was found was checked.
        let changed = unsafe { word.update(w, mask, atom.op, (found.span, &found.lanes())) };
        self.progress += u64::from(changed);
        true
    }
}
