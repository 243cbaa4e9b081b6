//! From operands as they lie in shared memory or registers to the vectors the kernel multiplies.
//!
//! A panel of A has, per k, the 16 rows of a warp with each value four times: 64 floats. A panel
//! of B has, per group of 8 columns and per k, the four even columns and then the four odd ones.

use super::super::Element;
use super::super::descriptor::{Major, Matrix};
use super::{Form, OperandA, Step, WgmmaError};
use crate::numeric::Lanes;
use crate::numeric::simd::Level;

/// Floats per k in a panel of A.
pub const A_WIDTH: usize = 64;
/// Floats per k and column group in a panel of B.
pub const B_WIDTH: usize = 8;

/// Sixteen bytes of shared memory.
type Chunk = [u8; 16];

pub fn chunk(shared: &[u8], address: u32, operand: char) -> Result<&Chunk, WgmmaError> {
    let start = address as usize;
    shared
        .get(start..start.wrapping_add(16))
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(WgmmaError::OutOfShared {
            operand,
            address,
            size: shared.len(),
        })
}

/// The fragment registers of one warp for a K-major A in shared memory: a register's eight rows
/// of four words are eight chunks.
pub fn fragment(matrix: &Matrix, warp: u32, shared: &[u8]) -> Result<[Lanes; 4], WgmmaError> {
    let mut registers = [[0u32; 32]; 4];
    for (index, register) in registers.iter_mut().enumerate() {
        let first = 16 * warp + 8 * (index as u32 & 1);
        for (row, words) in register.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let address = matrix.row_chunk(first + row as u32, index as u32 / 2);
            let bytes = chunk(shared, address, 'A')?.as_chunks::<4>().0;
            for (word, bytes) in words.iter_mut().zip(bytes) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
    }
    Ok(registers)
}

/// Calls `each` with every element code of a 16-row slab of A: (row, k, code).
pub fn each_a(
    form: &Form,
    step: &Step<'_>,
    warp: usize,
    shared: &[u8],
    mut each: impl FnMut(usize, usize, u32),
) -> Result<(), WgmmaError> {
    let owned;
    let registers: [&Lanes; 4] = match &step.a {
        OperandA::Registers(warps) => warps[warp],
        OperandA::Shared(matrix) if matrix.major == Major::K => {
            owned = fragment(matrix, warp as u32, shared)?;
            owned.each_ref()
        }
        OperandA::Shared(matrix) => {
            for k in 0..16 {
                for half in 0..2 {
                    let address = matrix.column_chunk(2 * warp as u32 + half, k);
                    let codes = chunk(shared, address, 'A')?.as_chunks::<2>().0;
                    for (row, code) in codes.iter().enumerate() {
                        let code = u32::from(u16::from_le_bytes(*code));
                        each(8 * half as usize + row, k as usize, code);
                    }
                }
            }
            return Ok(());
        }
    };
    let per_word = (32 / form.a.bits()) as usize;
    let mask = u32::MAX >> (32 - form.a.bits());
    for (index, register) in registers.iter().enumerate() {
        for (lane, word) in register.iter().enumerate() {
            let (row, k) = (8 * (index & 1) + lane / 4, 4 * (index / 2) + lane % 4);
            for e in 0..per_word {
                let code = word >> (e as u32 * form.a.bits()) & mask;
                each(row, k * per_word + e, code);
            }
        }
    }
    Ok(())
}

/// Expands A of one instruction for one warp into `panel`.
pub fn expand_a(
    form: &Form,
    level: Level,
    step: &Step<'_>,
    warp: usize,
    shared: &[u8],
    panel: &mut [f32],
) -> Result<(), WgmmaError> {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Avx512 && matches!(form.a, Element::F16 | Element::Bf16) {
        let owned;
        let registers = match &step.a {
            OperandA::Registers(warps) => Some(warps[warp]),
            OperandA::Shared(matrix) if matrix.major == Major::K => {
                owned = fragment(matrix, warp as u32, shared)?;
                Some(owned.each_ref())
            }
            OperandA::Shared(_) => None,
        };
        if let Some(registers) = registers {
            assert!(panel.len() >= 16 * A_WIDTH);
            // SAFETY: the level was detected and the panel holds 16 k.
            unsafe { x86::expand_a_halves(form.a, form.negate, registers, panel) };
            return Ok(());
        }
    }
    let _ = level;
    each_a(form, step, warp, shared, |row, k, code| {
        let value = form.a.value(code);
        let value = if form.negate { -value } else { value };
        let start = k * A_WIDTH + 4 * row;
        panel[start..start + 4].fill(value);
    })
}

/// Where column c of a group stands among the group's eight: even ones first.
pub const fn slot(column: usize) -> usize {
    (column & 1) * 4 + column / 2
}

/// Calls `each` with every element code of one column group of B: (column in group, k, code).
pub fn each_b(
    form: &Form,
    matrix: &Matrix,
    group: usize,
    shared: &[u8],
    mut each: impl FnMut(usize, usize, u32),
) -> Result<(), WgmmaError> {
    if matrix.major == Major::Mn {
        for k in 0..16 {
            let address = matrix.column_chunk(group as u32, k);
            let codes = chunk(shared, address, 'B')?.as_chunks::<2>().0;
            for (column, code) in codes.iter().enumerate() {
                each(column, k as usize, u32::from(u16::from_le_bytes(*code)));
            }
        }
        return Ok(());
    }
    let per_word = (32 / form.b.bits()) as usize;
    let mask = u32::MAX >> (32 - form.b.bits());
    for column in 0..8 {
        for half in 0..2 {
            let address = matrix.row_chunk((8 * group + column) as u32, half);
            let words = chunk(shared, address, 'B')?.as_chunks::<4>().0;
            for (w, word) in words.iter().enumerate() {
                let word = u32::from_le_bytes(*word);
                let first = (4 * half as usize + w) * per_word;
                for e in 0..per_word {
                    each(column, first + e, word >> (e as u32 * form.b.bits()) & mask);
                }
            }
        }
    }
    Ok(())
}

/// Expands one column group of B of one instruction into `panel`.
pub fn expand_b(
    form: &Form,
    level: Level,
    matrix: &Matrix,
    group: usize,
    shared: &[u8],
    panel: &mut [f32],
) -> Result<(), WgmmaError> {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx2
        && matches!(form.b, Element::F16 | Element::Bf16)
        && matrix.major == Major::K
    {
        let mut rows = [[&[0u8; 16]; 2]; 8];
        for (column, halves) in rows.iter_mut().enumerate() {
            for (half, place) in halves.iter_mut().enumerate() {
                let address = matrix.row_chunk((8 * group + column) as u32, half as u32);
                *place = chunk(shared, address, 'B')?;
            }
        }
        assert!(panel.len() >= 16 * B_WIDTH);
        // SAFETY: the level was detected and the panel holds 16 k.
        unsafe { x86::expand_b_halves(form.b, &rows, panel) };
        return Ok(());
    }
    let _ = level;
    each_b(form, matrix, group, shared, |column, k, code| {
        panel[k * B_WIDTH + slot(column)] = form.b.value(code);
    })
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{A_WIDTH, Chunk, Element, Lanes};
    use std::arch::x86_64::*;

    /// Fragments of 16-bit elements: within a register each group of four lanes is a row, so one
    /// in-lane broadcast makes a row value's four copies.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
    pub fn expand_a_halves(
        element: Element,
        negate: bool,
        registers: [&Lanes; 4],
        panel: &mut [f32],
    ) {
        let sign = _mm512_set1_epi32(if negate { i32::MIN } else { 0 });
        for (index, register) in registers.iter().enumerate() {
            for quarter in 0..2 {
                // SAFETY: a register has two vectors, and the caller made room for 16 k.
                unsafe {
                    let words = _mm512_loadu_si512(register.as_ptr().add(16 * quarter).cast());
                    let (even, odd) = match element {
                        Element::F16 => (
                            _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words)),
                            _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(words))),
                        ),
                        _ => (
                            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)),
                            _mm512_castsi512_ps(_mm512_and_si512(
                                words,
                                _mm512_set1_epi32(0xffff_0000_u32 as i32),
                            )),
                        ),
                    };
                    let flip = |x: __m512| {
                        _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), sign))
                    };
                    let (even, odd) = (flip(even), flip(odd));
                    let first = 8 * (index / 2) * A_WIDTH + 32 * (index & 1) + 16 * quarter;
                    let out = panel.as_mut_ptr().add(first);
                    _mm512_storeu_ps(out, _mm512_permute_ps::<0x00>(even));
                    _mm512_storeu_ps(out.add(A_WIDTH), _mm512_permute_ps::<0x00>(odd));
                    _mm512_storeu_ps(out.add(2 * A_WIDTH), _mm512_permute_ps::<0x55>(even));
                    _mm512_storeu_ps(out.add(3 * A_WIDTH), _mm512_permute_ps::<0x55>(odd));
                    _mm512_storeu_ps(out.add(4 * A_WIDTH), _mm512_permute_ps::<0xaa>(even));
                    _mm512_storeu_ps(out.add(5 * A_WIDTH), _mm512_permute_ps::<0xaa>(odd));
                    _mm512_storeu_ps(out.add(6 * A_WIDTH), _mm512_permute_ps::<0xff>(even));
                    _mm512_storeu_ps(out.add(7 * A_WIDTH), _mm512_permute_ps::<0xff>(odd));
                }
            }
        }
    }

    /// Transposes 8 columns × 16 k of 16-bit elements and widens them.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub fn expand_b_halves(element: Element, rows: &[[&Chunk; 2]; 8], panel: &mut [f32]) {
        // Even columns first, then odd ones; k 0–7 in the lower lanes, 8–15 in the upper.
        let load = |column: usize| {
            // SAFETY: a chunk is 16 bytes.
            unsafe {
                _mm256_inserti128_si256::<1>(
                    _mm256_castsi128_si256(_mm_loadu_si128(rows[column][0].as_ptr().cast())),
                    _mm_loadu_si128(rows[column][1].as_ptr().cast()),
                )
            }
        };
        let [c0, c1, c2, c3, c4, c5, c6, c7] = [0, 2, 4, 6, 1, 3, 5, 7].map(load);
        let low = |a, b| _mm256_unpacklo_epi16(a, b);
        let high = |a, b| _mm256_unpackhi_epi16(a, b);
        // Pairs of columns, then fours, then eights: each step doubles how many columns of one
        // k lie together.
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
                let lower = widen(element, _mm256_castsi256_si128(eight));
                let upper = widen(element, _mm256_extracti128_si256::<1>(eight));
                // SAFETY: the caller made room for 16 k.
                unsafe {
                    _mm256_storeu_ps(panel.as_mut_ptr().add(8 * k), lower);
                    _mm256_storeu_ps(panel.as_mut_ptr().add(8 * (k + 8)), upper);
                }
            }
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    fn widen(element: Element, halves: __m128i) -> __m256 {
        match element {
            Element::F16 => _mm256_cvtph_ps(halves),
            _ => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves))),
        }
    }
}
