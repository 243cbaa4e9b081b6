//! Vector code that expands operands; see [`super::expand`] for what panels look like.

use std::arch::x86_64::*;

use super::super::Element;
use super::expand::{A_WIDTH, B_WIDTH};
use crate::numeric::Lanes;

/// How an element becomes an f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
}

impl Kind {
    pub(super) fn of(element: Element) -> Option<Self> {
        Some(match element {
            Element::F16 => Self::F16,
            Element::Bf16 => Self::Bf16,
            Element::Tf32 => Self::Tf32,
            Element::E4m3 => Self::E4m3,
            Element::E5m2 => Self::E5m2,
            Element::S8 => Self::S8,
            Element::U8 => Self::U8,
            Element::E2m3 | Element::E3m2 | Element::E2m1 => return None,
            Element::F64 | Element::S4 | Element::U4 | Element::B1 => return None,
        })
    }

    /// K of an instruction: elements in 32 bytes.
    pub(super) const fn depth(self) -> usize {
        8 * self.per_word()
    }

    /// Elements in a register word.
    const fn per_word(self) -> usize {
        match self {
            Self::Tf32 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 4,
        }
    }
}

/// e4m3 bits moved to f16's places are the value times 2^-8.
const E4M3_SCALE: f32 = 256.0;

/// Where the four fragment registers of a warp are.
#[derive(Clone, Copy)]
pub(super) enum Fragment<'a> {
    Registers([&'a Lanes; 4]),
    /// The two groups of rows of a K-major tile in shared memory. Four lanes of a register are a
    /// row's chunk.
    Shared(Groups),
}

impl Fragment<'_> {
    /// Four words of lanes `4 * row` to `4 * row + 3` of a register.
    ///
    /// # Safety
    /// The chunks must be readable.
    #[inline(always)]
    unsafe fn row(&self, register: usize, row: usize) -> __m128i {
        // SAFETY: a register has eight rows, and by this function's contract.
        unsafe {
            match self {
                Self::Registers(registers) => {
                    _mm_loadu_si128(registers[register].as_ptr().add(4 * row).cast())
                }
                Self::Shared(groups) => {
                    let further = (register & 1) * groups.stride;
                    let chunk = groups.chunks[row][register / 2] as usize;
                    _mm_loadu_si128(groups.base.add(chunk + further).cast())
                }
            }
        }
    }
}

/// Expands a fragment. Within a register each group of four lanes is a row, so one in-lane
/// broadcast makes a row value's four copies.
///
/// # Safety
/// The fragment's chunks must be readable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
pub(super) unsafe fn expand_a_avx512(
    kind: Kind,
    negate: bool,
    fragment: Fragment<'_>,
    panel: &mut [f32],
) {
    assert!(panel.len() >= kind.depth() * A_WIDTH);
    let sign = _mm512_set1_epi32(if negate { i32::MIN } else { 0 });
    let per_word = kind.per_word();
    for index in 0..4 {
        for part in 0..2 {
            // SAFETY: by this function's contract, and the panel was measured above.
            unsafe {
                let row = |i: usize| fragment.row(index, 4 * part + i);
                let words = _mm512_castsi128_si512(row(0));
                let words = _mm512_inserti32x4::<1>(words, row(1));
                let words = _mm512_inserti32x4::<2>(words, row(2));
                let words = _mm512_inserti32x4::<3>(words, row(3));
                for e in 0..per_word {
                    let value = _mm512_castps_si512(wide_element(kind, words, e as u32));
                    let value = _mm512_castsi512_ps(_mm512_xor_si512(value, sign));
                    let first = (4 * (index / 2) * per_word + e) * A_WIDTH;
                    let out = panel.as_mut_ptr().add(first + 32 * (index & 1) + 16 * part);
                    let step = per_word * A_WIDTH;
                    _mm512_storeu_ps(out, _mm512_permute_ps::<0x00>(value));
                    _mm512_storeu_ps(out.add(step), _mm512_permute_ps::<0x55>(value));
                    _mm512_storeu_ps(out.add(2 * step), _mm512_permute_ps::<0xaa>(value));
                    _mm512_storeu_ps(out.add(3 * step), _mm512_permute_ps::<0xff>(value));
                }
            }
        }
    }
}

/// Element `e` of sixteen register words.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
#[inline]
fn wide_element(kind: Kind, words: __m512i, e: u32) -> __m512 {
    let by = |bits: u32| _mm_cvtsi32_si128((bits * e) as i32);
    match kind {
        Kind::Tf32 => {
            let mask = _mm512_set1_epi32(!0x1fff);
            _mm512_castsi512_ps(_mm512_and_si512(words, mask))
        }
        Kind::F16 => _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srl_epi32(words, by(16)))),
        Kind::Bf16 => {
            let shifted = _mm512_srl_epi32(words, by(16));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(shifted))
        }
        Kind::S8 | Kind::U8 => {
            let top = _mm512_sll_epi32(words, _mm_cvtsi32_si128(24 - 8 * e as i32));
            _mm512_cvtepi32_ps(match kind {
                Kind::S8 => _mm512_srai_epi32::<24>(top),
                _ => _mm512_srli_epi32::<24>(top),
            })
        }
        Kind::E4m3 | Kind::E5m2 => {
            let byte = _mm512_cvtepi32_epi16(_mm512_srl_epi32(words, by(8)));
            let (halves, scale) = halves_of_bytes(kind, byte);
            _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(scale))
        }
    }
}

/// As [`expand_a_avx512`], eight words at a time.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn expand_a_avx2(
    kind: Kind,
    negate: bool,
    fragment: Fragment<'_>,
    panel: &mut [f32],
) {
    assert!(panel.len() >= kind.depth() * A_WIDTH);
    let sign = _mm256_set1_ps(if negate { -0.0 } else { 0.0 });
    let per_word = kind.per_word();
    for index in 0..4 {
        for part in 0..4 {
            // SAFETY: by this function's contract, and the panel was measured above.
            unsafe {
                let row = |i: usize| fragment.row(index, 2 * part + i);
                let words = _mm256_castsi128_si256(row(0));
                let words = _mm256_inserti128_si256::<1>(words, row(1));
                for e in 0..per_word {
                    let value = _mm256_xor_ps(narrow_element(kind, words, e as u32), sign);
                    let first = (4 * (index / 2) * per_word + e) * A_WIDTH;
                    let out = panel.as_mut_ptr().add(first + 32 * (index & 1) + 8 * part);
                    let step = per_word * A_WIDTH;
                    _mm256_storeu_ps(out, _mm256_permute_ps::<0x00>(value));
                    _mm256_storeu_ps(out.add(step), _mm256_permute_ps::<0x55>(value));
                    _mm256_storeu_ps(out.add(2 * step), _mm256_permute_ps::<0xaa>(value));
                    _mm256_storeu_ps(out.add(3 * step), _mm256_permute_ps::<0xff>(value));
                }
            }
        }
    }
}

/// Element `e` of eight register words.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn narrow_element(kind: Kind, words: __m256i, e: u32) -> __m256 {
    let by = |bits: u32| _mm_cvtsi32_si128((bits * e) as i32);
    match kind {
        Kind::Tf32 => {
            let mask = _mm256_set1_epi32(!0x1fff);
            _mm256_castsi256_ps(_mm256_and_si256(words, mask))
        }
        Kind::F16 => _mm256_cvtph_ps(low_halves(_mm256_srl_epi32(words, by(16)))),
        Kind::Bf16 => {
            let shifted = _mm256_srl_epi32(words, by(16));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(shifted))
        }
        Kind::S8 | Kind::U8 => {
            let top = _mm256_sll_epi32(words, _mm_cvtsi32_si128(24 - 8 * e as i32));
            _mm256_cvtepi32_ps(match kind {
                Kind::S8 => _mm256_srai_epi32::<24>(top),
                _ => _mm256_srli_epi32::<24>(top),
            })
        }
        Kind::E4m3 | Kind::E5m2 => {
            let byte = low_halves(_mm256_srl_epi32(words, by(8)));
            let (halves, scale) = halves_of_bytes(kind, _mm256_castsi128_si256(byte));
            let values = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
            _mm256_mul_ps(values, _mm256_set1_ps(scale))
        }
    }
}

/// The low halves of eight words, packed.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn low_halves(words: __m256i) -> __m128i {
    let low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    let packed = _mm256_packus_epi32(low, low);
    _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(packed))
}

/// fp8 codes in the low bytes of half words as f16 codes, and what the values must then be
/// multiplied by.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn halves_of_bytes(kind: Kind, bytes: __m256i) -> (__m256i, f32) {
    if kind == Kind::E5m2 {
        return (_mm256_slli_epi16::<8>(bytes), 1.0);
    }
    let magnitude = _mm256_and_si256(bytes, _mm256_set1_epi16(0x7f));
    let sign = _mm256_and_si256(_mm256_slli_epi16::<8>(bytes), _mm256_set1_epi16(i16::MIN));
    let value = _mm256_or_si256(_mm256_slli_epi16::<7>(magnitude), sign);
    let nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
    (_mm256_or_si256(value, nan), E4M3_SCALE)
}

/// Groups of eight rows of A, or columns of B, that lie alike: the chunks of the first one from
/// `base` on, and bytes from each to the next.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub base: *const u8,
    pub chunks: [[u32; 2]; 8],
    pub stride: usize,
}

/// Expands B of one instruction, group after group, each into a panel of its own.
///
/// # Safety
/// The chunks of as many groups as there are panels must be readable.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn expand_b<'p>(
    kind: Kind,
    mut columns: Groups,
    panels: impl Iterator<Item = &'p mut [f32]>,
) {
    for panel in panels {
        // SAFETY: by this function's contract.
        unsafe { expand_group(kind, columns.base, &columns.chunks, panel) };
        columns.base = columns.base.wrapping_add(columns.stride);
    }
}

/// Expands one column group of one instruction: a transposition, then a widening.
///
/// # Safety
/// The chunks must be readable.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
unsafe fn expand_group(kind: Kind, base: *const u8, rows: &[[u32; 2]; 8], panel: &mut [f32]) {
    // SAFETY: by this function's contract, and a chunk is 16 bytes.
    let load = |chunk: u32| unsafe { _mm_loadu_si128(base.add(chunk as usize).cast()) };
    // Even columns first, then odd ones, as panels want them.
    let order = [0usize, 2, 4, 6, 1, 3, 5, 7];
    let whole = order.map(|c| {
        let (low, high) = (load(rows[c][0]), load(rows[c][1]));
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    });
    match kind {
        Kind::Tf32 => transpose_words(whole, panel),
        Kind::F16 | Kind::Bf16 => transpose_halves(kind, whole, 1.0, panel),
        Kind::E4m3 | Kind::E5m2 => {
            for half in 0..2 {
                let mut scale = 1.0;
                let columns = order.map(|c| {
                    let bytes = _mm256_cvtepu8_epi16(load(rows[c][half]));
                    let (halves, by) = halves_of_bytes(kind, bytes);
                    scale = by;
                    halves
                });
                transpose_halves(kind, columns, scale, &mut panel[half * 16 * B_WIDTH..]);
            }
        }
        Kind::S8 | Kind::U8 => {
            for half in 0..2 {
                let columns = order.map(|c| match kind {
                    Kind::S8 => _mm256_cvtepi8_epi16(load(rows[c][half])),
                    _ => _mm256_cvtepu8_epi16(load(rows[c][half])),
                });
                transpose_halves(kind, columns, 1.0, &mut panel[half * 16 * B_WIDTH..]);
            }
        }
    }
}

/// Eight columns of sixteen 16-bit elements; k 0–7 in the lower lanes, 8–15 in the upper.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn transpose_halves(kind: Kind, columns: [__m256i; 8], scale: f32, panel: &mut [f32]) {
    assert!(panel.len() >= 16 * B_WIDTH);
    let [c0, c1, c2, c3, c4, c5, c6, c7] = columns;
    let low = |a, b| _mm256_unpacklo_epi16(a, b);
    let high = |a, b| _mm256_unpackhi_epi16(a, b);
    // Pairs of columns, then fours, then eights: each step doubles how many columns of one k
    // lie together.
    let (a0, a1, a2, a3) = (low(c0, c1), low(c2, c3), low(c4, c5), low(c6, c7));
    let (b0, b1, b2, b3) = (high(c0, c1), high(c2, c3), high(c4, c5), high(c6, c7));
    let low2 = |a, b| _mm256_unpacklo_epi32(a, b);
    let high2 = |a, b| _mm256_unpackhi_epi32(a, b);
    let fours = [
        (low2(a0, a1), low2(a2, a3)),
        (high2(a0, a1), high2(a2, a3)),
        (low2(b0, b1), low2(b2, b3)),
        (high2(b0, b1), high2(b2, b3)),
    ];
    for (pair, (left, right)) in fours.into_iter().enumerate() {
        let even = _mm256_unpacklo_epi64(left, right);
        let odd = _mm256_unpackhi_epi64(left, right);
        for (k, eight) in [(2 * pair, even), (2 * pair + 1, odd)] {
            let lower = widen(kind, _mm256_castsi256_si128(eight), scale);
            let upper = widen(kind, _mm256_extracti128_si256::<1>(eight), scale);
            // SAFETY: the panel was measured above.
            unsafe {
                _mm256_storeu_ps(panel.as_mut_ptr().add(B_WIDTH * k), lower);
                _mm256_storeu_ps(panel.as_mut_ptr().add(B_WIDTH * (k + 8)), upper);
            }
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn widen(kind: Kind, halves: __m128i, scale: f32) -> __m256 {
    match kind {
        Kind::Bf16 => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves))),
        Kind::S8 | Kind::U8 => _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(halves)),
        Kind::E4m3 => _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(scale)),
        _ => _mm256_cvtph_ps(halves),
    }
}

/// Eight columns of eight 32-bit elements.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn transpose_words(columns: [__m256i; 8], panel: &mut [f32]) {
    assert!(panel.len() >= 8 * B_WIDTH);
    let mask = _mm256_set1_epi32(!0x1fff);
    let [c0, c1, c2, c3, c4, c5, c6, c7] = columns.map(|c| _mm256_and_si256(c, mask));
    let low = |a, b| _mm256_unpacklo_epi32(a, b);
    let high = |a, b| _mm256_unpackhi_epi32(a, b);
    let quads = [
        (low(c0, c1), low(c2, c3), low(c4, c5), low(c6, c7)),
        (high(c0, c1), high(c2, c3), high(c4, c5), high(c6, c7)),
    ];
    for (pair, (a, b, c, d)) in quads.into_iter().enumerate() {
        let evens = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
        let odds = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
        for (k, (left, right)) in [(2 * pair, evens), (2 * pair + 1, odds)] {
            let lower = _mm256_permute2x128_si256::<0x20>(left, right);
            let upper = _mm256_permute2x128_si256::<0x31>(left, right);
            // SAFETY: the panel was measured above.
            unsafe {
                _mm256_storeu_si256(panel.as_mut_ptr().add(B_WIDTH * k).cast(), lower);
                _mm256_storeu_si256(panel.as_mut_ptr().add(B_WIDTH * (k + 4)).cast(), upper);
            }
        }
    }
}
