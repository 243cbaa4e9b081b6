//! Products of two nvfp4 tensors by whole numbers, see [`dgx_blocks`].

use std::sync::LazyLock;

use dgx_blocks::{Left, Values, available};
use rayon::prelude::*;

use super::Evaluator;
use super::region::Region;
use crate::operator::format::Packed;
use crate::operator::{decode_e2m1, decode_e4m3};

static VALUES: LazyLock<Values> = LazyLock::new(|| Values {
    elements: std::array::from_fn(|code| decode_e2m1(code as u8)),
    scales: std::array::from_fn(|code| decode_e4m3(code as u8)),
});

/// Rows of the left tensor multiplied at a time, as in [`crate::operator::Oracle`].
const ROWS: usize = 1024;
/// Elements of a product below which packing takes longer than multiplying.
const FEW: usize = 256;

/// Whether this box of a product is computed faster by whole numbers.
pub(super) fn worth(region: &Region) -> bool {
    available() && region.volume() >= FEW
}

impl Evaluator<'_> {
    /// One matrix of left · rightᵀ, each element rounded once to f32. The
    /// region has one index for each leading axis.
    pub(super) fn by_blocks(
        &self,
        left: &Packed<'_>,
        right: &Packed<'_>,
        region: &Region,
        out: &mut [f64],
    ) {
        let (rows, columns) = (region.axis(1), region.axis(0));
        let first_row = first(left, region, rows.start);
        let first_column = first(right, region, columns.start);
        let (elements, scales) = rows_of(right, first_column, columns.len());
        let width = columns.len();
        let mut product = Vec::new();
        for (block, out) in out.chunks_mut(ROWS * width).enumerate() {
            let count = out.len() / width;
            let (a, sfa) = rows_of(left, first_row + block * ROWS, count);
            product.clear();
            product.resize(out.len(), 0.0_f32);
            let left = Left::new(a, sfa, left.width(), &VALUES);
            left.multiply(elements, scales, &mut product);
            let pairs = out.par_chunks_mut(width).zip(product.par_chunks(width));
            pairs.for_each(|(out, product)| {
                for (out, product) in out.iter_mut().zip(product) {
                    *out = f64::from(*product);
                }
            });
        }
    }
}

/// Row `start` of the matrix of a side at a region's leading indices, with all leading axes of the
/// side counted as one.
fn first(side: &Packed<'_>, region: &Region, start: usize) -> usize {
    let (batch, own) = (region.0.len() - 2, side.extents.len() - 2);
    let leading = &region.0[batch - own..batch];
    let axes = leading.iter().zip(&side.extents);
    let matrix = axes.fold(0, |at, (range, extent)| match extent {
        1 => at,
        _ => at * extent + range.start,
    });
    matrix * side.extents[own] + start
}

/// Elements and scales of some rows.
fn rows_of<'p>(packed: &Packed<'p>, first: usize, count: usize) -> (&'p [u8], &'p [u8]) {
    let (bytes, scales) = (packed.width() / 2, packed.width() / 16);
    (
        &packed.elements[first * bytes..][..count * bytes],
        &packed.scales[first * scales..][..count * scales],
    )
}

#[cfg(test)]
mod tests {
    use dgx_core::operator::ElementType;

    use super::*;
    use crate::operator::quantise;

    /// The rows that are cut out are those that are read.
    #[test]
    fn rows_of_a_batch_are_found() {
        let extents = vec![2, 1, 3, 5, 16];
        let values: Vec<f64> = (0..2 * 3 * 5 * 16).map(|i| f64::from(i % 7)).collect();
        let (elements, scales) = quantise(ElementType::Nvfp4, &values, 16);
        let packed = Packed {
            element: ElementType::Nvfp4,
            elements: &elements,
            scales: &scales,
            extents,
        };
        for (a, c) in [(0, 0), (1, 0), (1, 2)] {
            // The second axis of the product is longer: this side is stretched.
            let region = Region(vec![a..a + 1, 3..4, c..c + 1, 2..4, 0..9]);
            let row = first(&packed, &region, 2);
            assert_eq!(row, (a * 3 + c) * 5 + 2);
            let (bytes, codes) = rows_of(&packed, row, 2);
            let cut = Packed {
                element: ElementType::Nvfp4,
                elements: bytes,
                scales: codes,
                extents: vec![2, 16],
            };
            let (mut found, mut wanted) = ([0.0; 16], [0.0; 16]);
            cut.read(1, 0..16, &mut found);
            packed.read(row + 1, 0..16, &mut wanted);
            assert_eq!(found, wanted);
        }
    }
}
