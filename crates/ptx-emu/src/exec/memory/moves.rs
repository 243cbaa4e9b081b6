//! What the usual loads and stores of machine code move between registers and the places that
//! [`super::words`] found, as vectors of AVX-512.

use std::arch::x86_64::*;

use crate::exec::lanes::{Halves, lanes, load, store};
use crate::exec::storage::pointers::HostPtr;
use crate::exec::storage::span::{Pattern, Span};
use crate::exec::warp::Warp;
use crate::op::{R32, R64, Slot};

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
pub(super) struct Found {
    pub(super) span: Span,
    pub(super) at: Halves,
}

impl Found {
    /// The first word of a lane's bytes, from the lowest lane on.
    #[inline(always)]
    fn host(&self) -> *mut u8 {
        self.span.host.offset(self.span.low as usize).cast()
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn lanes(&self) -> [u32; 32] {
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

/// The registers of a list of words.
#[inline(always)]
fn narrow<const N: usize>(slots: &[Slot]) -> [R32; N] {
    std::array::from_fn(
        #[inline(always)]
        |i| match slots[i] {
            Slot::W32(r) => r,
            _ => R32(0),
        },
    )
}

/// Reads what was found into registers.
///
/// # Safety
/// All that was found must be valid.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
pub(super) unsafe fn read_slots<const N: usize>(
    w: &mut Warp,
    mask: u32,
    slots: &[Slot],
    found: &Found,
) {
    // SAFETY: by this function's contract.
    unsafe {
        match *slots {
            [Slot::W64(r)] => read_wide(w, mask, r, found),
            _ => read::<N>(w, mask, narrow(slots), found),
        }
    }
}

/// Writes registers where was found.
///
/// # Safety
/// As for [`read_slots`].
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
pub(super) unsafe fn write_slots<const N: usize>(
    w: &Warp,
    mask: u32,
    slots: &[Slot],
    found: &Found,
) {
    // SAFETY: by this function's contract.
    unsafe {
        match *slots {
            [Slot::W64(r)] => write_wide(w, mask, r, found),
            _ => write::<N>(w, mask, narrow(slots), found),
        }
    }
}
