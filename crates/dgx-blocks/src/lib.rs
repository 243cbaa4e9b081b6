//! Products of block-scaled tensors by whole numbers. Twice an e2m1 value is a
//! whole number of at most 12, so the dot product of two blocks is one of at
//! most 2304, and exact; times both scales it has 20 significant bits. Only the
//! sum over blocks is left to f64, which therefore rounds no more often than
//! one that adds element by element: where that is exact, the bits are the same.
//!
//! A third of the time of a product in f64, on machines that multiply bytes
//! (AVX-512 VNNI). Other machines use the evaluator's f64 product.
//!
//! A crate of its own, so that the tests have it optimised: without that, every instruction of a
//! vector is a call.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use rayon::prelude::*;

/// Elements that share a scale.
const SCALE_BLOCK: usize = 16;

/// Columns and rows whose sums are in registers together.
const COLUMNS: usize = 32;
const ROWS: usize = 4;
/// Columns multiplied before any is copied to its place: this limits the memory.
const AT_ONCE: usize = 4096;
/// Words of four elements in a block.
const WORDS: usize = SCALE_BLOCK / 4;
/// Added to the elements of B, because one side of the instruction is unsigned.
const OFFSET: i32 = 12;

/// Whether this machine has the instructions that [`Left::multiply`] needs.
pub fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vnni")
}

/// The values of the codes of e2m1 and of e4m3.
#[derive(Debug)]
pub struct Values {
    /// Of e2m1.
    pub elements: [f64; 16],
    /// Of e4m3.
    pub scales: [f64; 256],
}

/// Rows of A. One block after another, row by row.
#[derive(Debug)]
pub struct Left {
    blocks: usize,
    /// Twice the elements, four to a word.
    words: Vec<[i32; WORDS]>,
    /// The offset's contribution to a block's product, negated.
    excess: Vec<i32>,
    /// A quarter of the scale: both elements were doubled.
    scales: Vec<f64>,
    values: &'static Values,
}

/// A block of [`COLUMNS`] columns of B.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Panel {
    /// Twice the elements and the offset: four of each column to a word.
    words: [[i32; COLUMNS]; WORDS],
    scales: [f32; COLUMNS],
}

/// Packed elements of a block.
type Block = [u8; SCALE_BLOCK / 2];

/// For each packed byte, twice its two elements, plus a constant.
struct Doubles([[u8; 2]; 256]);

impl Doubles {
    fn plus(offset: i32, values: &Values) -> Self {
        let byte = |code: usize| ((2.0 * values.elements[code]) as i32 + offset) as u8;
        Self(std::array::from_fn(|packed| {
            [byte(packed & 15), byte(packed >> 4)]
        }))
    }

    fn words(&self, block: &Block) -> [i32; WORDS] {
        let mut words = [0; WORDS];
        for (word, [low, high]) in words.iter_mut().zip(block.as_chunks::<2>().0) {
            let [low, high] = [self.0[usize::from(*low)], self.0[usize::from(*high)]];
            *word = i32::from_le_bytes([low[0], low[1], high[0], high[1]]);
        }
        words
    }
}

impl Left {
    /// Packed rows of `columns` elements and their scales.
    ///
    /// # Panics
    /// If `columns` is zero or not a multiple of 16.
    pub fn new(elements: &[u8], scales: &[u8], columns: usize, values: &'static Values) -> Self {
        assert!(
            columns > 0 && columns.is_multiple_of(SCALE_BLOCK),
            "a row of {columns} elements is not made of whole blocks"
        );
        let doubles = Doubles::plus(0, values);
        let blocks = elements.as_chunks().0.par_iter();
        let words: Vec<[i32; WORDS]> = blocks.map(|block| doubles.words(block)).collect();
        let sum = |words: &[i32; WORDS]| -> i32 {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            bytes.map(|byte| i32::from(byte as i8)).sum()
        };
        Self {
            blocks: columns / SCALE_BLOCK,
            excess: words.par_iter().map(|words| -OFFSET * sum(words)).collect(),
            words,
            scales: (scales.iter())
                .map(|code| values.scales[usize::from(*code)] / 4.0)
                .collect(),
            values,
        }
    }

    /// `out` (rows of A × rows of B, row-major) = A · Bᵀ, rounded once to f32.
    ///
    /// # Panics
    /// If this is not [`available`].
    pub fn multiply(&self, elements: &[u8], scales: &[u8], out: &mut [f32]) {
        assert!(available(), "the caller asked");
        let n = scales.len() / self.blocks;
        let rows = self.excess.len() / self.blocks;
        assert_eq!(out.len(), rows * n);
        let right = Right {
            elements: elements.as_chunks().0,
            scales,
            doubles: Doubles::plus(OFFSET, self.values),
            values: self.values.scales.map(|value| value as f32),
        };
        for first in (0..n).step_by(AT_ONCE) {
            let columns = first..(first + AT_ONCE).min(n);
            self.multiply_columns(&right, columns, rows, out);
        }
    }

    /// Some columns of the product.
    fn multiply_columns(
        &self,
        right: &Right<'_>,
        columns: std::ops::Range<usize>,
        rows: usize,
        out: &mut [f32],
    ) {
        let n = out.len() / rows;
        let strips: Vec<(usize, Vec<f32>)> = columns
            .clone()
            .into_par_iter()
            .step_by(COLUMNS)
            .map_with(Vec::new(), |panels, first| {
                let strip = first..(first + COLUMNS).min(columns.end);
                right.pack(strip, self.blocks, panels);
                let mut strip = vec![0.0; rows.next_multiple_of(ROWS) * COLUMNS];
                for (tile, out) in strip.chunks_exact_mut(ROWS * COLUMNS).enumerate() {
                    // SAFETY: the instructions are available.
                    unsafe { self.tile(panels, ROWS * tile, rows, out) };
                }
                (first, strip)
            })
            .collect();
        out.par_chunks_mut(n).enumerate().for_each(|(row, out)| {
            for (first, strip) in &strips {
                let from = &strip.as_chunks::<COLUMNS>().0[row];
                let out = &mut out[*first..columns.end];
                match out.first_chunk_mut() {
                    Some(whole) => *whole = *from,
                    None => out.copy_from_slice(&from[..out.len()]),
                }
            }
        });
    }

    /// [`ROWS`] rows from `first` on times one strip of columns. Rows beyond the last repeat it.
    #[target_feature(enable = "avx512f,avx512dq,avx512vnni")]
    fn tile(&self, panels: &[Panel], first: usize, rows: usize, out: &mut [f32]) {
        let starts: [usize; ROWS] =
            std::array::from_fn(|row| (first + row).min(rows - 1) * self.blocks);
        let of_row = |row: usize| starts[row]..starts[row] + self.blocks;
        let words: [_; ROWS] = std::array::from_fn(|row| &self.words[of_row(row)]);
        let excess: [_; ROWS] = std::array::from_fn(|row| &self.excess[of_row(row)]);
        let scales: [_; ROWS] = std::array::from_fn(|row| &self.scales[of_row(row)]);
        let mut sums = [[_mm512_setzero_pd(); 4]; ROWS];
        for (block, panel) in panels.iter().enumerate().take(self.blocks) {
            for half in 0..2 {
                // SAFETY: a panel's lines have two vectors each.
                let columns = |line: *const i32| unsafe {
                    _mm512_load_si512(line.add(16 * half).cast::<__m512i>())
                };
                // Functions of the library, such as `map`, are compiled without the instructions,
                // and would pass vectors through memory.
                let [w0, w1, w2, w3] = &panel.words;
                let b = [
                    columns(w0.as_ptr()),
                    columns(w1.as_ptr()),
                    columns(w2.as_ptr()),
                    columns(w3.as_ptr()),
                ];
                let scale = _mm512_castsi512_ps(columns(panel.scales.as_ptr().cast()));
                for row in 0..ROWS {
                    let a = &words[row][block];
                    let mut dot = _mm512_set1_epi32(excess[row][block]);
                    for word in 0..WORDS {
                        dot = _mm512_dpbusd_epi32(dot, b[word], _mm512_set1_epi32(a[word]));
                    }
                    let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), scale);
                    let low = _mm512_cvtps_pd(_mm512_castps512_ps256(scaled));
                    let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(scaled));
                    let by = _mm512_set1_pd(scales[row][block]);
                    let sums = &mut sums[row];
                    sums[2 * half] = _mm512_fmadd_pd(low, by, sums[2 * half]);
                    sums[2 * half + 1] = _mm512_fmadd_pd(high, by, sums[2 * half + 1]);
                }
            }
        }
        let out = out.as_chunks_mut::<8>().0;
        for (to, sum) in out.iter_mut().zip(sums.as_flattened()) {
            // SAFETY: eight floats.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), _mm512_cvtpd_ps(*sum)) };
        }
    }
}

/// B as given, and the values of its codes.
struct Right<'o> {
    elements: &'o [Block],
    scales: &'o [u8],
    doubles: Doubles,
    values: [f32; 256],
}

impl Right<'_> {
    /// Some columns as panels; columns beyond the last are zero.
    fn pack(&self, columns: std::ops::Range<usize>, blocks: usize, panels: &mut Vec<Panel>) {
        let nothing = Panel {
            words: [[0; COLUMNS]; WORDS],
            scales: [0.0; COLUMNS],
        };
        panels.clear();
        panels.resize(blocks, nothing);
        for (place, column) in columns.enumerate() {
            let own = column * blocks..(column + 1) * blocks;
            let both = self.elements[own.clone()].iter().zip(&self.scales[own]);
            for (panel, (block, scale)) in panels.iter_mut().zip(both) {
                let words = self.doubles.words(block);
                for (to, word) in panel.words.iter_mut().zip(words) {
                    to[place] = word;
                }
                panel.scales[place] = self.values[usize::from(*scale)];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a row of 24 elements is not made of whole blocks")]
    fn rows_that_are_not_whole_blocks_are_refused() {
        static VALUES: Values = Values {
            elements: [0.0; 16],
            scales: [0.0; 256],
        };
        Left::new(&[0; 24], &[0; 3], 24, &VALUES);
    }
}
