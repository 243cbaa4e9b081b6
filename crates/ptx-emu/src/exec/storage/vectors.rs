//! How the lanes of an access lie, as vectors of AVX-512.
//!
//! What [`super::quick`] does with AVX2, for the accesses of machine code.

use std::arch::x86_64::*;

use super::banks;
use super::pointers::HostPtr;
use super::span::{Extent, Layout, Pattern, Span};
use crate::exec::lanes::{Halves, load, store};
use crate::memory::SECTOR;

/// The low words of addresses less `base`; whether those of the mask fit.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
pub(crate) fn offsets(r: &[u64; 32], base: u64, mask: u32) -> (Halves, bool) {
    let base = _mm512_set1_epi64(base as i64);
    let high = _mm512_set1_epi64(!0xffff_ffff);
    let mut beyond = 0;
    let mut low = [_mm256_setzero_si256(); 4];
    for (i, eight) in r.as_chunks::<8>().0.iter().enumerate() {
        // SAFETY: eight double words are a vector.
        let at = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
        let at = _mm512_sub_epi64(at, base);
        beyond |= u32::from(_mm512_test_epi64_mask(at, high)) << (8 * i);
        low[i] = _mm512_cvtepi64_epi32(at);
    }
    let [a, b, c, d] = low;
    let join = |low, high| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
    ([join(a, b), join(c, d)], beyond & mask == 0)
}

/// Moves lanes outside a mask to its first one.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn confine(at: Halves, mask: u32) -> Halves {
    let first = mask.trailing_zeros();
    let lane = _mm512_set1_epi32(first as i32 & 15);
    let spare = _mm512_permutexvar_epi32(lane, at[(first >> 4) as usize & 1]);
    [
        _mm512_mask_blend_epi32(mask as u16, spare, at[0]),
        _mm512_mask_blend_epi32((mask >> 16) as u16, spare, at[1]),
    ]
}

/// The offset that all lanes have.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn common(at: Halves) -> Option<u32> {
    let first_lane = _mm512_castsi512_si128(at[0]);
    let first = _mm512_broadcastd_epi32(first_lane);
    let low = _mm512_cmpneq_epi32_mask(at[0], first);
    let high = _mm512_cmpneq_epi32_mask(at[1], first);
    (low | high == 0).then_some(_mm_cvtsi128_si32(first_lane) as u32)
}

/// Whether words at some offsets are aligned and within bounds. An offset is turned right by its
/// alignment, so that one comparison finds both.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn hold_words(at: Halves, (first, end): (u32, u64)) -> bool {
    let Some(last) = end.checked_sub(u64::from(first) + 4) else {
        return false;
    };
    let (first, last) = (
        _mm512_set1_epi32(first as i32),
        _mm512_set1_epi32((last / 4) as i32),
    );
    let beyond = at.map(
        #[inline(always)]
        |at| {
            let place = _mm512_ror_epi32::<2>(_mm512_sub_epi32(at, first));
            _mm512_cmpgt_epu32_mask(place, last)
        },
    );
    beyond == [0; 2]
}

/// Accesses in a row that lie like none before: from then on looking for such is given up, and
/// tried again now and then.
const STRANGERS: u32 = 8;
const TRY_AGAIN: u32 = 64;

/// Where lanes lie that repeat one of the mask outside it, as [`Span::within`]; and whether as the
/// layout then says.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn place(
    layout: &mut Layout,
    at: Halves,
    mask: u32,
    bytes: u32,
    bounds: (u32, u64),
    host: HostPtr,
) -> Option<(Span, bool)> {
    if let Some(first) = follow(layout, at) {
        let span = Span::placed(first, mask, bytes, bounds, host, layout)?;
        return Some((span, true));
    }
    let low = _mm512_reduce_min_epu32(_mm512_min_epu32(at[0], at[1]));
    let high = _mm512_reduce_max_epu32(_mm512_max_epu32(at[0], at[1]));
    let within = _mm512_set1_epi32(bytes as i32 - 1);
    let uneven = _mm512_test_epi32_mask(_mm512_or_si512(at[0], at[1]), within);
    if uneven != 0 || low < bounds.0 || u64::from(high) + u64::from(bytes) > bounds.1 {
        return None;
    }
    let pattern = match low == high {
        true => Pattern::Same,
        false => Pattern::Scattered,
    };
    let span = Span {
        host,
        low,
        high,
        pattern,
    };
    Some((span, false))
}

/// Makes a layout that of these lanes; the first one's offset. None if that does not pay.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn follow(layout: &mut Layout, at: Halves) -> Option<u32> {
    let first_lane = _mm512_castsi512_si128(at[0]);
    let first = _mm512_broadcastd_epi32(first_lane);
    let known = load(layout.deltas());
    let deltas = at.map(
        #[inline(always)]
        |at| _mm512_sub_epi32(at, first),
    );
    let low = _mm512_cmpneq_epi32_mask(deltas[0], known[0]);
    let high = _mm512_cmpneq_epi32_mask(deltas[1], known[1]);
    if low | high == 0 {
        layout.strangers = 0;
    } else {
        layout.strangers += 1;
        if layout.strangers > STRANGERS {
            if !layout.strangers.is_multiple_of(TRY_AGAIN) {
                return None;
            }
            layout.strangers = STRANGERS;
        }
        let mut lanes = [0; 32];
        store(&mut lanes, deltas);
        layout.renew(&lanes, extent(deltas));
    }
    Some(_mm_cvtsi128_si32(first_lane) as u32)
}

/// Where lanes reach that lie so far from the first.
#[target_feature(enable = "avx512f")]
#[inline]
fn extent(deltas: Halves) -> Extent {
    let [a, b] = deltas;
    let low = _mm512_reduce_min_epi32(_mm512_min_epi32(a, b));
    let lowest = _mm512_set1_epi32(low);
    let above = deltas.map(
        #[inline(always)]
        |half| _mm512_sub_epi32(half, lowest),
    );
    let second = _mm512_permutexvar_epi32(_mm512_set1_epi32(1), a);
    let numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let steps = _mm512_mullo_epi32(numbers, second);
    let half = _mm512_slli_epi32::<4>(second);
    let uneven = _mm512_cmpneq_epi32_mask(a, steps)
        | _mm512_cmpneq_epi32_mask(b, _mm512_add_epi32(steps, half));
    Extent {
        low: low as u32,
        spread: _mm512_reduce_max_epu32(_mm512_max_epu32(above[0], above[1])),
        bits: _mm512_reduce_or_epi32(_mm512_or_si512(above[0], above[1])) as u32,
        even: uneven == 0,
    }
}

/// The sectors of some lanes, as bits of two words of a set of them.
pub(crate) struct Sectors {
    /// The number of the first of the words.
    pub(crate) first: usize,
    pub(crate) bits: [u64; 2],
}

impl Sectors {
    /// Those of lanes from `low` to `high`, if they lie so near. No lane accesses two.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(crate) fn of(at: Halves, (low, high): (u32, u32)) -> Option<Self> {
        const WORD: u32 = 64 * SECTOR as u32;
        let first = low / WORD;
        if high / WORD - first > 1 {
            return None;
        }
        let start = _mm512_set1_epi32((first * WORD) as i32);
        let (one, word) = (_mm512_set1_epi64(1), _mm512_set1_epi64(64));
        let mut bits = [_mm512_setzero_si512(); 2];
        for at in at {
            let sector = _mm512_srli_epi32::<5>(_mm512_sub_epi32(at, start));
            for eight in [
                _mm512_castsi512_si256(sector),
                _mm512_extracti64x4_epi64::<1>(sector),
            ] {
                // Shifted by more than there are bits, nothing is left.
                let sector = _mm512_cvtepu32_epi64(eight);
                let beyond = _mm512_sub_epi64(sector, word);
                bits[0] = _mm512_or_si512(bits[0], _mm512_sllv_epi64(one, sector));
                bits[1] = _mm512_or_si512(bits[1], _mm512_sllv_epi64(one, beyond));
            }
        }
        Some(Self {
            first: first as usize,
            bits: bits.map(
                #[inline(always)]
                |bits| _mm512_reduce_or_epi64(bits) as u64,
            ),
        })
    }
}

/// Bank conflicts of lanes that lie as the layout says.
#[target_feature(enable = "avx512f,popcnt")]
#[inline]
pub(crate) fn conflicts(layout: &mut Layout, mask: u32, at: Halves, bytes: u32) -> u32 {
    let this = (mask, bytes, 0);
    match layout.known_conflicts(this) {
        Some(extra) => extra,
        None => layout.remember_conflicts(this, count_conflicts(mask, at, bytes)),
    }
}

#[target_feature(enable = "avx512f,popcnt")]
#[inline(never)]
pub(crate) fn count_conflicts(mask: u32, at: Halves, bytes: u32) -> u32 {
    let mut lanes = [0; 32];
    store(&mut lanes, at);
    match bytes {
        4 => words_of_a_bank(mask, at, &lanes) - 1,
        _ => banks::conflicts::<true>(mask, &lanes, bytes),
    }
}

/// The most words that lanes want of one bank.
#[target_feature(enable = "avx512f,popcnt")]
#[inline]
fn words_of_a_bank(mask: u32, at: Halves, lanes: &[u32; 32]) -> u32 {
    let words = at.map(
        #[inline(always)]
        |at| _mm512_srli_epi32::<2>(at),
    );
    let banks = words.map(
        #[inline(always)]
        |word| _mm512_and_si512(word, _mm512_set1_epi32(31)),
    );
    let one = _mm512_set1_epi32(1);
    let bits = [
        _mm512_maskz_sllv_epi32(mask as u16, one, banks[0]),
        _mm512_maskz_sllv_epi32((mask >> 16) as u16, one, banks[1]),
    ];
    let used = _mm512_reduce_or_epi32(_mm512_or_si512(bits[0], bits[1])) as u32;
    if used.count_ones() == mask.count_ones() {
        return 1;
    }
    // A bank has no more words than lanes want: those of most lanes are looked at first.
    let digits = counted(bits);
    let (mut found, mut left) = (1, u32::MAX);
    loop {
        let (most, fullest) = fullest(digits, left);
        if found >= most {
            return found;
        }
        let bank = fullest.trailing_zeros();
        let of = lanes_equal(banks, _mm512_set1_epi32(bank as i32));
        found = found.max(distinct(of, words, lanes));
        left &= !(1 << bank);
    }
}

/// The largest of some numbers, and which of them it is; there is one for each bit of a word, in
/// binary digits.
#[inline(always)]
fn fullest(digits: [u32; 6], among: u32) -> (u32, u32) {
    let (mut most, mut among) = (0, among);
    for (i, digit) in digits.into_iter().enumerate().rev() {
        if among & digit != 0 {
            among &= digit;
            most |= 1 << i;
        }
    }
    (most, among)
}

/// How many words some lanes want.
#[target_feature(enable = "avx512f")]
#[inline]
fn distinct(of: u32, words: Halves, lanes: &[u32; 32]) -> u32 {
    let (mut left, mut found) = (of, 0);
    while left != 0 {
        let word = lanes[left.trailing_zeros() as usize & 31] / 4;
        left &= !lanes_equal(words, _mm512_set1_epi32(word as i32));
        found += 1;
    }
    found
}

/// The lanes that have a value.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn lanes_equal(v: Halves, value: __m512i) -> u32 {
    let low = _mm512_cmpeq_epi32_mask(v[0], value);
    let high = _mm512_cmpeq_epi32_mask(v[1], value);
    u32::from(high) << 16 | u32::from(low)
}

/// How often each bit is set, as binary digits, the lowest first.
#[target_feature(enable = "avx512f")]
#[inline]
fn counted([a, b]: Halves) -> [u32; 6] {
    let mut digits = [_mm512_setzero_si512(); 6];
    digits[0] = _mm512_xor_si512(a, b);
    digits[1] = _mm512_and_si512(a, b);
    macro_rules! add_half {
        ($known:literal, $other:expr) => {
            let mut carry = _mm512_setzero_si512();
            for digit in &mut digits[..$known] {
                let other: __m512i = $other(*digit);
                let sum = _mm512_ternarylogic_epi32::<0x96>(*digit, other, carry);
                carry = _mm512_ternarylogic_epi32::<0xe8>(*digit, other, carry);
                *digit = sum;
            }
            digits[$known] = carry;
        };
    }
    add_half!(2, |x| _mm512_shuffle_i64x2::<0x4e>(x, x));
    add_half!(3, |x| _mm512_shuffle_i64x2::<0xb1>(x, x));
    add_half!(4, |x| _mm512_shuffle_epi32::<0x4e>(x));
    add_half!(5, |x| _mm512_shuffle_epi32::<0xb1>(x));
    digits.map(
        #[inline(always)]
        |digit| _mm_cvtsi128_si32(_mm512_castsi512_si128(digit)) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::lanes::each;
    use crate::numeric::simd::Level;

    #[test]
    fn lanes_lie_where_the_plain_way_finds_them() {
        if Level::best() < Level::Avx512 {
            return;
        }
        let mut state = 1u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let mut near = 0;
        for round in 0..20_000 {
            let mask = [u32::MAX, draw(1 << 24) << 8 | 1, 1 << draw(32)][round % 3];
            let (span, step) = (1 << draw(12), 4 * draw(40));
            let mut at: [u32; 32] = match draw(3) {
                0 => each(|lane| 1024 + lane as u32 * step),
                _ => each(|_| 1024 + 4 * draw(span)),
            };
            let first = at[mask.trailing_zeros() as usize];
            at = each(|lane| {
                if mask >> lane & 1 == 1 {
                    at[lane]
                } else {
                    first
                }
            });
            let (mut quick, mut plain) = (Layout::SAME, Layout::SAME);
            plain.follow::<false>(&at);
            let bounds = (1024, 1 << 20);
            let mut wild = Layout::SAME;
            wild.strangers = STRANGERS;
            // SAFETY: the machine has AVX-512.
            let (first, conflicts, sectors, placed, exact) = unsafe {
                let at_once = load(&at);
                let ends = (*at.iter().min().unwrap(), *at.iter().max().unwrap());
                (
                    follow(&mut quick, at_once),
                    count_conflicts(mask, at_once, 4),
                    Sectors::of(at_once, ends),
                    place(&mut { quick }, at_once, mask, 4, bounds, HostPtr::default()),
                    place(&mut wild, at_once, mask, 4, bounds, HostPtr::default()),
                )
            };
            quick.strangers = 0;
            assert_eq!((first, &quick), (Some(at[0]), &plain));
            let ends = |placed: Option<(Span, bool)>| {
                placed.map(|(span, known)| (span.low, span.high, known))
            };
            let (low, high) = (*at.iter().min().unwrap(), *at.iter().max().unwrap());
            assert_eq!(ends(placed), Some((low, high, true)));
            let same = at == [at[0]; 32];
            assert_eq!(ends(exact), Some((low, high, same)));
            let expected = banks::extra_wavefronts(mask, &at.map(u64::from), 4);
            assert_eq!(conflicts, expected, "mask {mask:#x}, {at:?}");
            let Some(sectors) = sectors else {
                continue;
            };
            near += 1;
            let mut bits = [0; 2];
            for sector in at.map(|at| at as usize / SECTOR as usize) {
                bits[sector / 64 - sectors.first] |= 1 << (sector % 64);
            }
            assert_eq!(sectors.bits, bits, "{at:?}");
        }
        assert!((1000..19_000).contains(&near), "{near}");
    }
}
