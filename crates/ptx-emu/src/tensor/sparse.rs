//! Structured sparsity: A stores half of its elements, and metadata says which.
//!
//! Four bits of metadata speak of one chunk of a row: of four elements, two are stored, and the
//! bits are their two numbers, the first in the low half. Of eight 4-bit elements two pairs are
//! stored, numbered alike; of two tf32 elements one is, written `0b0100` or `0b1110`. A product
//! with such an A is one of half the depth in which every row picks its own elements of B.
//!
//! Which lane holds which bits follows the PTX ISA ("Sparse matrix storage"). With g = lane / 4:
//! - elements of 16 and 32 bits: a lane has four chunks of row g in its low and of row g + 8 in its
//!   high half; a selector names the lane of four, or the pair of lanes (the lower chunks first);
//! - elements of 8 and 4 bits: a lane has eight chunks of one row, row g in the even lane of a pair
//!   and g + 8 in the odd one; a selector names the pair, or both hold one half of the chunks each.

use std::ops::Range;

use thiserror::Error;

use super::Element;
use crate::numeric::halves::Half;
use crate::numeric::{Lanes, arith};

/// Most elements a row stores.
pub(crate) const MAX_STORED: usize = 64;

/// For each of a warp's 16 rows, the dense k of every element it stores.
pub(crate) type Places = [[u8; MAX_STORED]; 16];

/// Rows whose metadata is undefined.
pub(crate) type Undefined = [bool; 16];

/// What stands for a result that is undefined: no number, or the least one.
pub(crate) fn undefined(of: Element, half: bool) -> u32 {
    match of {
        Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 => i32::MIN as u32,
        _ if half => u32::from(Half::F16.narrow(f32::NAN)),
        _ => arith::canonical_f32(f32::NAN),
    }
}

/// What is wrong with a sparse operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum SparseError {
    #[error(
        "a sparse product of {element:?} with k = {k} has no selector {selector}: it has 0 to {most}"
    )]
    Selector {
        element: Element,
        k: usize,
        selector: u8,
        most: u8,
    },
    #[error("there is no sparse product of {element:?} with k = {k}")]
    Shape { element: Element, k: usize },
}

/// How one instruction's metadata is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    element: Element,
    k: usize,
    selector: u8,
    /// `sp::ordered_metadata`: indices increase.
    ordered: bool,
}

impl Pattern {
    /// Checks depth and selector.
    pub(crate) fn new(
        element: Element,
        k: usize,
        selector: u8,
        ordered: bool,
    ) -> Result<Self, SparseError> {
        let pattern = Self {
            element,
            k,
            selector,
            ordered,
        };
        let most = match (element.bits(), pattern.chunks()) {
            (16 | 32, 4) => 3,
            (16 | 32, 8) | (4 | 8, 8) => 1,
            (4 | 8, 16) => 0,
            _ => return Err(SparseError::Shape { element, k }),
        };
        match selector <= most {
            true => Ok(pattern),
            false => Err(SparseError::Selector {
                element,
                k,
                selector,
                most,
            }),
        }
    }

    /// Elements a row stores.
    pub(crate) fn stored(&self) -> usize {
        self.k / 2
    }

    fn chunks(&self) -> usize {
        self.k
            / match self.element.bits() {
                32 => 2,
                4 => 8,
                _ => 4,
            }
    }

    /// The four bits of a row's chunk.
    fn bits(&self, metadata: &Lanes, row: usize, chunk: usize) -> u32 {
        let selector = usize::from(self.selector);
        let (g, upper) = (row % 8, row / 8);
        let (lane, shift) = match (self.element.bits(), self.chunks()) {
            (16 | 32, 4) => (selector, 16 * upper + 4 * chunk),
            (16 | 32, _) => (2 * selector + chunk / 4, 16 * upper + 4 * (chunk % 4)),
            (_, 8) => (2 * selector + upper, 4 * chunk),
            (..) => (2 * (chunk / 8) + upper, 4 * (chunk % 8)),
        };
        metadata[4 * g + lane] >> shift & 0xf
    }

    /// Where a warp's stored elements belong, and which rows have undefined metadata: of such a row
    /// PTX promises nothing. Where a tile ends, CUTLASS has zeros for A, B and the metadata, of
    /// which nothing comes, or what was there before, and drops the row.
    pub(crate) fn places(
        &self,
        metadata: &Lanes,
        mut adds_nothing: impl FnMut(&Chunk) -> bool,
    ) -> (Places, Undefined) {
        let (mut places, mut undefined) = ([[0; MAX_STORED]; 16], [false; 16]);
        let stored = self.stored() / self.chunks();
        for (row, (places, undefined)) in places.iter_mut().zip(&mut undefined).enumerate() {
            for chunk in 0..self.chunks() {
                let bits = self.bits(metadata, row, chunk);
                let of_chunk = &mut places[stored * chunk..stored * (chunk + 1)];
                let defined = place_chunk(bits, 2 * stored * chunk, of_chunk, self.ordered);
                let at = Chunk {
                    row,
                    stored: stored * chunk..stored * (chunk + 1),
                    dense: 2 * stored * chunk..2 * stored * (chunk + 1),
                };
                *undefined |= !defined && !adds_nothing(&at);
            }
        }
        (places, undefined)
    }
}

/// Places a chunk's elements, which begin at this dense k; false if the bits are undefined. Ordered
/// indices increase.
pub(crate) fn place_chunk(bits: u32, begin: usize, places: &mut [u8], ordered: bool) -> bool {
    let (first, second) = ((bits & 3) as u8, (bits >> 2) as u8);
    let begin = begin as u8;
    match places {
        [one] => {
            *one = begin + u8::from(bits == 0b1110);
            matches!(bits, 0b0100 | 0b1110)
        }
        [a, b] => {
            (*a, *b) = (begin + first, begin + second);
            !ordered || first < second
        }
        _ => {
            let four = [2 * first, 2 * first + 1, 2 * second, 2 * second + 1];
            for (place, index) in places.iter_mut().zip(four) {
                *place = begin + index;
            }
            !ordered || first < second
        }
    }
}

/// A chunk of a row.
pub(crate) struct Chunk {
    row: usize,
    /// Its elements of A.
    stored: Range<usize>,
    /// The elements of B's columns that it picks from.
    dense: Range<usize>,
}

impl Chunk {
    /// Whichever elements are picked, their products are zero.
    pub(crate) fn adds_nothing<'a>(
        &self,
        rows: &[impl AsRef<[f32]>],
        mut columns: impl Iterator<Item = &'a [f32]>,
    ) -> bool {
        let a = &rows[self.row].as_ref()[self.stored.clone()];
        let finite = |column: &[f32]| column[self.dense.clone()].iter().all(|x| x.is_finite());
        a.iter().all(|&x| x == 0.0) && columns.all(finite)
    }
}

/// The elements of a column that a row picks.
pub(crate) fn pick<T: Copy + Default>(column: &[T], places: &[u8]) -> [T; MAX_STORED] {
    let mut picked = [T::default(); MAX_STORED];
    for (picked, &place) in picked.iter_mut().zip(places) {
        *picked = column[usize::from(place)];
    }
    picked
}

/// x·y + old in 32 bits, wrapping or held at the ends.
pub(crate) fn dot_integers(x: &[i32], y: &[i32], old: u32, satfinite: bool) -> u32 {
    let dot: i32 = x.iter().zip(y).map(|(x, y)| x * y).sum();
    let sum = match satfinite {
        true => (old as i32).saturating_add(dot),
        false => (old as i32).wrapping_add(dot),
    };
    sum as u32
}

/// x·y + old in order, in f32; `half` has the sum in f16 and rounds it once.
pub(crate) fn dot_floats(x: &[f32], y: &[f32], old: u32, half: bool) -> u32 {
    let first = match half {
        true => Half::F16.widen(old as u16),
        false => f32::from_bits(old),
    };
    let sum = x.iter().zip(y).fold(first, |sum, (x, y)| sum + x * y);
    match half {
        true => u32::from(Half::F16.narrow(sum)),
        false => arith::canonical_f32(sum),
    }
}
