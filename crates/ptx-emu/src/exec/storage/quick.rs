//! The lanes of an access as vectors of AVX2.
//!
//! What `memory::direct` and [`super::span`] do lane by lane, for machines that have it. Left to
//! itself the compiler takes these loops apart and joins the lanes one after another; by hand they
//! are four times as fast. All of it computes what the plain way computes.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::pointers::HostPtr;

/// All lanes: eight in each vector.
type Lanes = [__m256i; 4];

#[target_feature(enable = "avx2")]
#[inline]
fn load(words: &[u32; 32]) -> Lanes {
    // SAFETY: eight words are a vector, wherever they lie.
    [0, 8, 16, 24].map(|i| unsafe { _mm256_loadu_si256(words[i..i + 8].as_ptr().cast()) })
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(words: &mut [u32; 32], lanes: Lanes) {
    for (words, eight) in words.as_chunks_mut::<8>().0.iter_mut().zip(lanes) {
        // SAFETY: eight words are a vector, wherever they lie.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), eight) };
    }
}

/// All bits of the lanes of a mask.
#[target_feature(enable = "avx2")]
#[inline]
fn chosen(mask: u32) -> Lanes {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    [0, 8, 16, 24].map(
        #[inline(always)]
        |i| {
            let eight = _mm256_set1_epi32((mask >> i) as i32);
            _mm256_cmpeq_epi32(_mm256_and_si256(eight, bits), bits)
        },
    )
}

/// Eight lanes folded to one, `f` being any order's.
macro_rules! folded {
    ($f:ident, $eight:expr) => {{
        let eight = $eight;
        let four = $f(eight, _mm256_permute2x128_si256::<1>(eight, eight));
        let two = $f(four, _mm256_shuffle_epi32::<0x4e>(four));
        let one = $f(two, _mm256_shuffle_epi32::<0xb1>(two));
        _mm256_cvtsi256_si32(one) as u32
    }};
}

/// Thirty-two lanes folded to eight.
macro_rules! eight {
    ($f:ident, $lanes:expr) => {{
        let [a, b, c, d] = $lanes;
        $f($f(a, b), $f(c, d))
    }};
}

/// The low words of addresses less `base`; whether those of the mask fit.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn offsets(r: &[u64; 32], base: u64, mask: u32, at: &mut [u32; 32]) -> bool {
    let base = _mm256_set1_epi64x(base as i64);
    let mut low = [_mm256_setzero_si256(); 4];
    let mut high = low;
    for (i, eight) in r.as_chunks::<8>().0.iter().enumerate() {
        // SAFETY: four double words are a vector.
        let [a, b] = [0, 4].map(|k| unsafe { _mm256_loadu_si256(eight[k..].as_ptr().cast()) });
        let a = _mm256_castsi256_ps(_mm256_sub_epi64(a, base));
        let b = _mm256_castsi256_ps(_mm256_sub_epi64(b, base));
        // Halves of both, in the order 0 1 4 5 2 3 6 7.
        let even = _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(a, b));
        let odd = _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(a, b));
        low[i] = _mm256_permute4x64_epi64::<0xd8>(even);
        high[i] = _mm256_permute4x64_epi64::<0xd8>(odd);
    }
    if mask != u32::MAX {
        for (high, chosen) in high.iter_mut().zip(chosen(mask)) {
            *high = _mm256_and_si256(*high, chosen);
        }
    }
    store(at, low);
    let beyond = eight!(_mm256_or_si256, high);
    _mm256_testz_si256(beyond, beyond) == 1
}

/// Moves lanes outside a mask to its first one.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn confine(at: &mut [u32; 32], mask: u32) {
    let spare = _mm256_set1_epi32(at[mask.trailing_zeros() as usize & 31] as i32);
    let mut lanes = load(at);
    for (lane, chosen) in lanes.iter_mut().zip(chosen(mask)) {
        *lane = _mm256_blendv_epi8(spare, *lane, chosen);
    }
    store(at, lanes);
}

/// Whether lanes lie to the first as `deltas` say.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn alike(at: &[u32; 32], deltas: &[u32; 32]) -> bool {
    let first = _mm256_set1_epi32(at[0] as i32);
    let mut differs = _mm256_setzero_si256();
    for (lane, delta) in load(at).into_iter().zip(load(deltas)) {
        let other = _mm256_xor_si256(_mm256_sub_epi32(lane, first), delta);
        differs = _mm256_or_si256(differs, other);
    }
    _mm256_testz_si256(differs, differs) == 1
}

/// Takes the deltas of lanes from the first on: the lowest (as signed, and at most 0), the highest
/// above it, the bits set in any above it, and whether they grow by the second one's.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn extent(at: &[u32; 32], deltas: &mut [u32; 32]) -> (u32, u32, u32, bool) {
    let first = _mm256_set1_epi32(at[0] as i32);
    let lanes = load(at).map(
        #[inline(always)]
        |eight| _mm256_sub_epi32(eight, first),
    );
    store(deltas, lanes);
    let low = folded!(_mm256_min_epi32, eight!(_mm256_min_epi32, lanes));
    let base = _mm256_set1_epi32(low as i32);
    let above = lanes.map(
        #[inline(always)]
        |eight| _mm256_sub_epi32(eight, base),
    );
    let spread = folded!(_mm256_max_epu32, eight!(_mm256_max_epu32, above));
    let bits = folded!(_mm256_or_si256, eight!(_mm256_or_si256, above));
    let step = _mm256_set1_epi32(at[1].wrapping_sub(at[0]) as i32);
    let mut expected = _mm256_mullo_epi32(step, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    let by = _mm256_slli_epi32::<3>(step);
    let mut differs = _mm256_setzero_si256();
    for eight in lanes {
        differs = _mm256_or_si256(differs, _mm256_xor_si256(eight, expected));
        expected = _mm256_add_epi32(expected, by);
    }
    (low, spread, bits, _mm256_testz_si256(differs, differs) == 1)
}

/// Reads the words at offsets from `low` on, less than 2 GiB further, into the lanes of a mask.
///
/// # Safety
/// They must all be valid.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) unsafe fn gather(
    from: HostPtr,
    low: u32,
    at: &[u32; 32],
    mask: u32,
    words: &mut [u32; 32],
) {
    let low = _mm256_set1_epi32(low as i32);
    let mut lanes = load(at).map(
        #[inline(always)]
        |eight| {
            let eight = _mm256_sub_epi32(eight, low);
            // SAFETY: by this function's contract.
            unsafe { _mm256_i32gather_epi32::<1>(from.cast(), eight) }
        },
    );
    if mask != u32::MAX {
        let others = load(words).into_iter().zip(chosen(mask));
        for (lane, (other, chosen)) in lanes.iter_mut().zip(others) {
            *lane = _mm256_blendv_epi8(other, *lane, chosen);
        }
    }
    store(words, lanes);
}

/// Whether no two lanes of a pass lie in the same banks. There are as many places in a pass as it
/// has lanes: all passes together fill one word of bits.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn apart(mask: u32, at: &[u32; 32], bytes: u32) -> bool {
    let shift = bytes.max(4).trailing_zeros();
    let within = (128 >> shift) - 1;
    let of_pass = _mm256_set1_epi32(within);
    let pass = _mm256_set1_epi32(!within);
    let shift = _mm_cvtsi32_si128(shift as i32);
    let mut lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut places = _mm256_setzero_si256();
    for (eight, chosen) in load(at).into_iter().zip(chosen(mask)) {
        let place = _mm256_and_si256(_mm256_srl_epi32(eight, shift), of_pass);
        let place = _mm256_or_si256(place, _mm256_and_si256(lane, pass));
        let bit = _mm256_sllv_epi32(_mm256_set1_epi32(1), place);
        places = _mm256_or_si256(places, _mm256_and_si256(bit, chosen));
        lane = _mm256_add_epi32(lane, _mm256_set1_epi32(8));
    }
    folded!(_mm256_or_si256, places).count_ones() == mask.count_ones()
}

/// Places where a word may be looked for.
const PLACES: usize = 1024;

/// How many different words (of four bytes) the bank has that is asked for most; none if two words
/// are looked for in one place.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn most_in_a_bank(at: &[u32; 32]) -> Option<u32> {
    // The last lane of each place. Those that no lane has are not read.
    let mut last = [MaybeUninit::<u32>::uninit(); PLACES];
    for (lane, a) in (0..).zip(at) {
        last[*a as usize / 4 % PLACES].write(lane);
    }
    // One by one, which is twice as fast as gathering.
    let (mut banks, mut differs) = ([0; 32], 0);
    for (lane, bank) in banks.iter_mut().enumerate() {
        let word = at[lane] / 4;
        // SAFETY: this lane has written its place, if no later one has.
        let of = unsafe { last[word as usize % PLACES].assume_init() };
        differs |= (at[of as usize % 32] / 4) ^ word;
        *bank = u32::from(of as usize == lane) << (word % 32);
    }
    if differs != 0 {
        return None;
    }
    let banks = load(&banks);
    let counts = counted(banks);
    let (mut most, mut among) = (0, u32::MAX);
    for (i, digit) in counts.into_iter().enumerate().rev() {
        if among & digit != 0 {
            among &= digit;
            most |= 1 << i;
        }
    }
    Some(most)
}

/// How often each bit is set, as binary digits, the lowest first.
#[target_feature(enable = "avx2")]
#[inline]
fn counted([a, b, c, d]: Lanes) -> [u32; 6] {
    let zero = _mm256_setzero_si256();
    let mut digits = [zero; 6];
    let ab = _mm256_xor_si256(a, b);
    let abc = _mm256_xor_si256(ab, c);
    let two = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(ab, c));
    let too = _mm256_and_si256(abc, d);
    digits[0] = _mm256_xor_si256(abc, d);
    digits[1] = _mm256_xor_si256(two, too);
    digits[2] = _mm256_and_si256(two, too);
    macro_rules! add_half {
        ($other:expr) => {
            let mut carry = zero;
            for digit in &mut digits {
                let other: __m256i = $other(*digit);
                let sum = _mm256_xor_si256(*digit, other);
                let both = _mm256_and_si256(*digit, other);
                *digit = _mm256_xor_si256(sum, carry);
                carry = _mm256_or_si256(both, _mm256_and_si256(sum, carry));
            }
        };
    }
    add_half!(|x| _mm256_permute2x128_si256::<1>(x, x));
    add_half!(|x| _mm256_shuffle_epi32::<0x4e>(x));
    add_half!(|x| _mm256_shuffle_epi32::<0xb1>(x));
    digits.map(
        #[inline(always)]
        |digit| _mm256_cvtsi256_si32(digit) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::simd::Level;

    #[test]
    fn lanes_are_where_the_plain_way_finds_them() {
        if Level::best() < Level::Avx2 {
            return;
        }
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state >> 20
        };
        for round in 0..2000 {
            let (base, mask) = (draw(), draw() as u32 | 1 << 5);
            let reach = [1 << 12, 1 << 33][round % 2];
            let r: [u64; 32] = std::array::from_fn(|_| base + draw() % reach);
            let mut at = [0; 32];
            // SAFETY: the machine has AVX2.
            unsafe {
                let fit = offsets(&r, base, mask, &mut at);
                let inside = |i: usize| mask >> i & 1 == 1;
                assert_eq!(fit, (0..32).all(|i| !inside(i) || r[i] - base < 1 << 32));
                assert!((0..32).all(|i| at[i] == (r[i] - base) as u32));
                let before = at;
                confine(&mut at, mask);
                let first = before[mask.trailing_zeros() as usize];
                assert!((0..32).all(|i| at[i] == if inside(i) { before[i] } else { first }));
                let mut found = [0; 32];
                let (low, spread, bits, even) = extent(&at, &mut found);
                assert!((0..32).all(|i| found[i] == at[i].wrapping_sub(at[0])));
                assert!(alike(&at, &found));
                assert_eq!(alike(&at, &before), found == before);
                let lowest = found.iter().map(|&d| d as i32).min().unwrap() as u32;
                let above = found.map(|d| d.wrapping_sub(lowest));
                assert_eq!(low, lowest);
                assert_eq!(spread, above.into_iter().max().unwrap());
                assert_eq!(bits, above.into_iter().fold(0, |bits, a| bits | a));
                assert_eq!(even, spread == 0);
            }
        }
        let steps = std::array::from_fn(|i| (i as u32).wrapping_mul(0u32.wrapping_sub(48)));
        // SAFETY: as above.
        let (low, spread, _, even) = unsafe { extent(&steps, &mut [0; 32]) };
        assert_eq!((low as i32, spread, even), (-31 * 48, 31 * 48, true));
    }
}
