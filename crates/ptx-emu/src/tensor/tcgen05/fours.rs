//! Products of packed 4-bit floats: integer dots of sixteen, each times its scales, in f32.
//!
//! A code is twice its value, so a product counts quarters. A's are raised by twelve to have no
//! sign, as the byte dots of x86 want one operand; what that adds is twelve times the sum of B's
//! group, taken off beforehand. Within a group the order of k does not matter: all low nibbles
//! come before all high ones.

use super::super::scaled::HALVES;
use super::operand::Row;
use super::{BLOCK, LANES};
#[cfg(target_arch = "x86_64")]
use crate::numeric::NAN_F32;
use crate::numeric::simd::Level;

/// Groups of an instruction.
pub(super) const GROUPS: usize = 4;

/// What A's codes are raised by.
const RAISED: i8 = 12;

/// Sixteen rows of A: four codes of each row a vector, sixteen of them. A group is vectors 2g,
/// 2g + 1, 2g + 8 and 2g + 9.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Rows {
    codes: [[[u8; 4]; BLOCK]; 16],
}

impl Rows {
    pub(super) const EMPTY: Self = Self {
        codes: [[[0; 4]; BLOCK]; 16],
    };

    /// Reads sixteen rows.
    pub(super) fn expand(&mut self, level: Level, rows: &[Row; BLOCK], negate: bool) {
        let sign = if negate { -1 } else { 1 };
        let table = HALVES.map(|half| (RAISED + sign * half) as u8);
        match level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's level was detected.
            Level::Avx2 | Level::Avx512 => unsafe { self.expand_avx2(rows, table) },
            _ => self.expand_portable(rows, table),
        }
    }

    /// Eight rows at a time: nibbles to codes, then a transposition of four codes each.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn expand_avx2(&mut self, rows: &[Row; BLOCK], table: [u8; 16]) {
        use std::arch::x86_64::*;
        // SAFETY: rows have 32 bytes, and eight rows of a vector's four codes as well.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            let nibble = _mm256_set1_epi8(15);
            for (half, rows) in rows.as_chunks::<8>().0.iter().enumerate() {
                let bytes: [__m256i; 8] =
                    std::array::from_fn(|r| _mm256_loadu_si256(rows[r].as_ptr().cast()));
                for high in 0..2 {
                    let codes = bytes.map(|row| {
                        let row = match high {
                            0 => row,
                            _ => _mm256_srli_epi16::<4>(row),
                        };
                        _mm256_shuffle_epi8(table, _mm256_and_si256(row, nibble))
                    });
                    for (d, four) in transposed(codes).into_iter().enumerate() {
                        let out = self.codes[8 * high + d].as_mut_ptr().add(8 * half);
                        _mm256_storeu_si256(out.cast(), four);
                    }
                }
            }
        }
    }

    fn expand_portable(&mut self, rows: &[Row; BLOCK], table: [u8; 16]) {
        for (r, row) in rows.iter().enumerate() {
            for (d, four) in row.as_chunks::<4>().0.iter().enumerate() {
                self.codes[d][r] = four.map(|byte| table[usize::from(byte & 15)]);
                self.codes[d + 8][r] = four.map(|byte| table[usize::from(byte >> 4)]);
            }
        }
    }
}

/// Eight rows of eight words as eight columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline]
fn transposed(rows: [std::arch::x86_64::__m256i; 8]) -> [std::arch::x86_64::__m256i; 8] {
    use std::arch::x86_64::*;
    let [a, b, c, d, e, f, g, h] = rows;
    let low = |x, y| _mm256_unpacklo_epi32(x, y);
    let high = |x, y| _mm256_unpackhi_epi32(x, y);
    let pairs = [
        (low(a, b), low(c, d), low(e, f), low(g, h)),
        (high(a, b), high(c, d), high(e, f), high(g, h)),
    ];
    let mut out = rows;
    for (i, (ab, cd, ef, gh)) in pairs.into_iter().enumerate() {
        let fours = [
            (_mm256_unpacklo_epi64(ab, cd), _mm256_unpacklo_epi64(ef, gh)),
            (_mm256_unpackhi_epi64(ab, cd), _mm256_unpackhi_epi64(ef, gh)),
        ];
        for (j, (upper, lower)) in fours.into_iter().enumerate() {
            out[2 * i + j] = _mm256_permute2x128_si256::<0x20>(upper, lower);
            out[2 * i + j + 4] = _mm256_permute2x128_si256::<0x31>(upper, lower);
        }
    }
    out
}

/// Columns of B: their codes in the same order, and what each group starts from.
#[derive(Default)]
pub(super) struct Columns {
    codes: Vec<[i8; 64]>,
    starts: Vec<[i32; GROUPS]>,
}

impl Columns {
    pub(super) fn expand(&mut self, level: Level, rows: &[Row]) {
        self.codes.clear();
        self.starts.clear();
        match level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's level was detected.
            Level::Avx2 | Level::Avx512 => unsafe { self.expand_avx2(rows) },
            _ => self.expand_portable(rows),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn expand_avx2(&mut self, rows: &[Row]) {
        use std::arch::x86_64::*;
        // SAFETY: rows have 32 bytes, codes 64, and a table sixteen.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(HALVES.as_ptr().cast()));
            let nibble = _mm256_set1_epi8(15);
            let raised = _mm256_set1_epi8(RAISED);
            let ones = _mm256_set1_epi16(1);
            for row in rows {
                let row = _mm256_loadu_si256(row.as_ptr().cast());
                let low = _mm256_shuffle_epi8(table, _mm256_and_si256(row, nibble));
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(row), nibble);
                let high = _mm256_shuffle_epi8(table, high);
                let mut codes = [0; 64];
                _mm256_storeu_si256(codes.as_mut_ptr().cast(), low);
                _mm256_storeu_si256(codes.as_mut_ptr().add(32).cast(), high);
                let both = _mm256_add_epi16(
                    _mm256_maddubs_epi16(raised, low),
                    _mm256_maddubs_epi16(raised, high),
                );
                // Four bytes each; two neighbours are a group.
                let fours = _mm256_madd_epi16(both, ones);
                let mut sums = [0i32; 8];
                _mm256_storeu_si256(sums.as_mut_ptr().cast(), fours);
                self.codes.push(codes);
                self.starts
                    .push(std::array::from_fn(|g| -(sums[2 * g] + sums[2 * g + 1])));
            }
        }
    }

    fn expand_portable(&mut self, rows: &[Row]) {
        for row in rows {
            let mut codes = [0; 64];
            let mut sums = [0; GROUPS];
            for (i, &byte) in row.iter().enumerate() {
                let (low, high) = (
                    HALVES[usize::from(byte & 15)],
                    HALVES[usize::from(byte >> 4)],
                );
                (codes[i], codes[i + 32]) = (low, high);
                sums[i / 8] -= i32::from(RAISED) * i32::from(low + high);
            }
            self.codes.push(codes);
            self.starts.push(sums);
        }
    }
}

/// Sixteen rows by some columns of D.
pub(super) struct Tile<'t> {
    pub rows: &'t Rows,
    /// A's scales of each group, in quarters.
    pub left: &'t [[f32; BLOCK]; GROUPS],
    pub columns: &'t Columns,
    /// First of the columns.
    pub first: usize,
    /// B's scales, as many as there are columns.
    pub right: &'t [[f32; GROUPS]],
    /// D from its first lane on, a column every [`LANES`] words.
    pub d: &'t mut [u32],
    pub accumulate: bool,
}

impl Tile<'_> {
    pub(super) fn multiply(self, level: Level) {
        let width = self.right.len();
        assert!(
            width == 0
                || (self.d.len() >= (width - 1) * LANES + BLOCK
                    && self.columns.codes.len() >= self.first + width
                    && self.columns.starts.len() >= self.first + width)
        );
        match level {
            // SAFETY: the caller's level was detected, and the tile was measured above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { self.avx512() },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { self.avx2() },
            _ => self.portable(),
        }
    }

    /// A group's dot has twelve bits and its scales eight, so their product is exact in f32 and a
    /// multiplication and an addition round like the fused instruction.
    fn portable(self) {
        for (n, right) in self.right.iter().enumerate() {
            let b = &self.columns.codes[self.first + n];
            let starts = &self.columns.starts[self.first + n];
            let d = &mut self.d[n * LANES..][..BLOCK];
            let mut sums = [0f32; BLOCK];
            if self.accumulate {
                for (sum, &word) in sums.iter_mut().zip(d.iter()) {
                    *sum = f32::from_bits(word);
                }
            }
            for g in 0..GROUPS {
                let mut dots = [starts[g]; BLOCK];
                for v in [2 * g, 2 * g + 1, 2 * g + 8, 2 * g + 9] {
                    for (dot, a) in dots.iter_mut().zip(&self.rows.codes[v]) {
                        for (x, y) in a.iter().zip(&b[4 * v..]) {
                            *dot += i32::from(*x) * i32::from(*y);
                        }
                    }
                }
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum += dots[i] as f32 * (self.left[g][i] * right[g]);
                }
            }
            for (word, sum) in d.iter_mut().zip(sums) {
                *word = crate::numeric::arith::canonical_f32(sum);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(self) {
        use std::arch::x86_64::*;
        let ones = _mm256_set1_epi16(1);
        let nan = _mm256_set1_ps(f32::from_bits(NAN_F32));
        for half in 0..2 {
            // SAFETY: the tile was measured by `multiply`; eight rows are a vector.
            unsafe {
                let a: [__m256i; 16] = std::array::from_fn(|v| {
                    _mm256_loadu_si256(self.rows.codes[v].as_ptr().add(8 * half).cast())
                });
                let left: [__m256; GROUPS] =
                    std::array::from_fn(|g| _mm256_loadu_ps(self.left[g].as_ptr().add(8 * half)));
                for (n, right) in self.right.iter().enumerate() {
                    let b: *const i32 = self.columns.codes[self.first + n].as_ptr().cast();
                    let starts = &self.columns.starts[self.first + n];
                    let d = self.d.as_mut_ptr().add(n * LANES + 8 * half);
                    let mut sum = match self.accumulate {
                        true => _mm256_loadu_ps(d.cast()),
                        false => _mm256_setzero_ps(),
                    };
                    for g in 0..GROUPS {
                        let part = |v: usize| {
                            let b = _mm256_set1_epi32(b.add(v).read_unaligned());
                            _mm256_maddubs_epi16(a[v], b)
                        };
                        let low = _mm256_add_epi16(part(2 * g), part(2 * g + 1));
                        let high = _mm256_add_epi16(part(2 * g + 8), part(2 * g + 9));
                        let dot = _mm256_madd_epi16(_mm256_add_epi16(low, high), ones);
                        let dot = _mm256_add_epi32(dot, _mm256_set1_epi32(starts[g]));
                        let scale = _mm256_mul_ps(left[g], _mm256_set1_ps(right[g]));
                        sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, sum);
                    }
                    let bad = _mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum);
                    _mm256_storeu_ps(d.cast(), _mm256_blendv_ps(sum, nan, bad));
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn avx512(self) {
        use std::arch::x86_64::*;
        let nan = _mm512_set1_ps(f32::from_bits(NAN_F32));
        // SAFETY: the tile was measured by `multiply`; sixteen rows are a vector.
        unsafe {
            let a: [__m512i; 16] =
                std::array::from_fn(|v| _mm512_loadu_si512(self.rows.codes[v].as_ptr().cast()));
            let left: [__m512; GROUPS] =
                std::array::from_fn(|g| _mm512_loadu_ps(self.left[g].as_ptr()));
            for (n, right) in self.right.iter().enumerate() {
                let b: *const i32 = self.columns.codes[self.first + n].as_ptr().cast();
                let starts = &self.columns.starts[self.first + n];
                let d = self.d.as_mut_ptr().add(n * LANES);
                let mut sum = match self.accumulate {
                    true => _mm512_loadu_ps(d.cast()),
                    false => _mm512_setzero_ps(),
                };
                for g in 0..GROUPS {
                    let mut dot = _mm512_set1_epi32(starts[g]);
                    for v in [2 * g, 2 * g + 1, 2 * g + 8, 2 * g + 9] {
                        let b = _mm512_set1_epi32(b.add(v).read_unaligned());
                        dot = _mm512_dpbusd_epi32(dot, a[v], b);
                    }
                    let scale = _mm512_mul_ps(left[g], _mm512_set1_ps(right[g]));
                    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, sum);
                }
                let bad = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
                _mm512_storeu_ps(d.cast(), _mm512_mask_blend_ps(bad, sum, nan));
            }
        }
    }
}
