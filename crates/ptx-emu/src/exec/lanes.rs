//! The 32 lanes of a warp: their values, and the lanes of a mask.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A 32-bit register of a warp.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct V32(pub(crate) [u32; 32]);

/// A 64-bit register of a warp.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct V64(pub(crate) [u64; 32]);

/// One value per lane. Always inlined, so that it is compiled for the caller's vector level:
/// `std::array::from_fn` is a function of its own at the plainest level.
#[inline(always)]
pub(crate) fn each<T: Copy + Default>(mut f: impl FnMut(usize) -> T) -> [T; 32] {
    let mut out = [T::default(); 32];
    for (i, value) in out.iter_mut().enumerate() {
        *value = f(i);
    }
    out
}

/// The lanes of a mask, lowest first.
#[inline(always)]
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

/// The lanes of a 32-bit register as vectors.
#[cfg(target_arch = "x86_64")]
pub(crate) type Halves = [__m512i; 2];

/// The halves of a register's lanes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn load(words: &[u32; 32]) -> Halves {
    // SAFETY: sixteen words are a vector, wherever they lie.
    [0, 16].map(|i| unsafe { _mm512_loadu_si512(words[i..i + 16].as_ptr().cast()) })
}

/// Writes the lanes of a register.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn store(words: &mut [u32; 32], v: Halves) {
    for (words, v) in words.as_chunks_mut::<16>().0.iter_mut().zip(v) {
        // SAFETY: sixteen words are a vector, wherever they lie.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), v) };
    }
}
