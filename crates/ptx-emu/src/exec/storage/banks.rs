//! Shared-memory bank conflicts.

#[cfg(target_arch = "x86_64")]
use super::quick;
use crate::exec::lanes::lanes;

/// Wavefronts beyond the least a warp access of `bytes` per lane needs.
pub(crate) fn extra_wavefronts(mask: u32, at: &[u64; 32], bytes: u64) -> u32 {
    let lanes_per_pass = match bytes {
        16 => 8,
        8 => 16,
        _ => 32,
    };
    let words = (bytes / 4).max(1);
    let mut extra = 0;
    for first in (0..32).step_by(lanes_per_pass) {
        // Distinct words of each bank; a pass touches at most 32.
        let mut per_bank = [0u32; 32];
        let mut seen = [0u64; 32];
        let mut count = 0;
        let pass = lanes(mask).filter(|l| (first..first + lanes_per_pass).contains(l));
        for word in pass.flat_map(|l| (0..words).map(move |k| at[l] / 4 + k)) {
            if !seen[..count].contains(&word) {
                seen[count] = word;
                count += 1;
                per_bank[word as usize % 32] += 1;
            }
        }
        extra += per_bank.into_iter().max().unwrap_or(0).saturating_sub(1);
    }
    extra
}

/// As [`extra_wavefronts`] for aligned accesses of a power of two up to 16 bytes in the CTA's own
/// memory; lanes outside the mask repeat one inside. It is the same wherever the first lane lies,
/// if its place in a word is.
#[inline(always)]
pub(crate) fn conflicts<const QUICK: bool>(mask: u32, at: &[u32; 32], bytes: u32) -> u32 {
    match QUICK {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: quick machines have AVX2.
        true => unsafe { quick_count(mask, at, bytes) },
        _ => plain_count(mask, at, bytes),
    }
}

#[inline(never)]
fn plain_count(mask: u32, at: &[u32; 32], bytes: u32) -> u32 {
    match apart(mask, at, bytes) {
        // What most kernels have seen to needs no counting.
        true => 0,
        false => count(mask, at, bytes),
    }
}

/// As [`plain_count`], with the words of all banks counted at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline(never)]
fn quick_count(mask: u32, at: &[u32; 32], bytes: u32) -> u32 {
    if quick::apart(mask, at, bytes) {
        return 0;
    }
    if bytes > 4 {
        return count(mask, at, bytes);
    }
    match quick::most_in_a_bank(at) {
        Some(most) => most - 1,
        None => count(mask, at, bytes),
    }
}

/// Whether no two lanes of a pass lie in the same banks.
#[inline(always)]
fn apart(mask: u32, at: &[u32; 32], bytes: u32) -> bool {
    let shift = bytes.max(4).trailing_zeros();
    // As many places in a pass as it has lanes: all passes together fill one word of bits.
    let within = (128 >> shift) - 1;
    let mut places = 0u32;
    for (i, &a) in at.iter().enumerate() {
        places |= (mask >> i & 1) << ((a >> shift & within) | (i as u32 & !within));
    }
    places.count_ones() == mask.count_ones()
}

/// Counts wavefront by wavefront: each serves one word of every bank, and all lanes that want it.
#[inline(always)]
fn count(mask: u32, at: &[u32; 32], bytes: u32) -> u32 {
    let shift = bytes.max(4).trailing_zeros();
    // A pass takes as many lanes as fill 128 bytes, and there are as many places for them.
    let lanes_per_pass = 128 >> shift;
    let within = lanes_per_pass - 1;
    let mut extra = 0;
    for first in (0..32).step_by(lanes_per_pass) {
        let mut left = u32::MAX >> (32 - lanes_per_pass) << first & mask;
        let mut wavefronts = 0u32;
        while left != 0 {
            let mut served = [0; 32];
            for lane in lanes(left) {
                let word = at[lane] >> shift;
                served[word as usize & within] = word;
            }
            for lane in lanes(left) {
                let word = at[lane] >> shift;
                left &= !(u32::from(served[word as usize & within] == word) << lane);
            }
            wavefronts += 1;
        }
        extra += wavefronts.saturating_sub(1);
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::lanes::each;
    use crate::numeric::simd::Level;

    #[test]
    fn strides_conflict_and_broadcasts_do_not() {
        let at = |f: fn(u64) -> u64| each(|i| f(i as u64));
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 4 * i), 4), 0);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|_| 64), 4), 0);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 8 * i), 4), 1);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 128 * i), 4), 31);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 16 * i), 16), 0);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 128 * i), 16), 4 * 7);
    }

    #[test]
    fn the_quick_count_is_the_plain_one() {
        let mut state = 1u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        for round in 0..20_000 {
            let bytes = 1 << (round % 5);
            let span = 4 << (draw() % 14);
            let mask = [u32::MAX, draw() << 8 | 1, 1 << (draw() % 32)][draw() as usize % 3];
            let mut at: [u32; 32] = each(|_| 1024 + draw() % span / bytes * bytes);
            let first = at[mask.trailing_zeros() as usize];
            at = each(|i| if mask >> i & 1 == 1 { at[i] } else { first });
            let plain = extra_wavefronts(mask, &at.map(u64::from), bytes.into());
            assert_eq!(
                count(mask, &at, bytes),
                plain,
                "{bytes} bytes, mask {mask:#x}, {at:?}"
            );
            assert!(!apart(mask, &at, bytes) || plain == 0);
            let moved = at.map(|a| a + bytes.max(4) * (round % 64));
            assert_eq!(conflicts::<false>(mask, &moved, bytes), plain);
            if Level::best() >= Level::Avx2 {
                assert_eq!(conflicts::<true>(mask, &moved, bytes), plain);
            }
            let spread = each(|i| 1024 + i as u32 * bytes.max(4));
            assert!(apart(mask, &spread, bytes));
        }
    }
}
