//! Products of two nvfp4 tensors by whole numbers, see [`crate::operator::blocks`].

use super::Evaluator;
use super::region::Region;
use crate::operator::blocks::{Left, available};
use crate::operator::format::Packed;
use rayon::prelude::*;

/// Rows of the left tensor multiplied at a time, as [`crate::operator::Oracle`] does.
const ROWS: usize = 1024;
/// Elements of a product below which packing takes longer than multiplying.
const FEW: usize = 256;

/// Whether this box of a product is made faster by whole numbers.
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
        let (rows, columns) = (region.from_end(1), region.from_end(0));
        let first = |side: &Packed<'_>, start: usize| {
            let (batch, own) = (region.0.len() - 2, side.extents.len() - 2);
            let leading = &region.0[batch - own..batch];
            let axes = leading.iter().zip(&side.extents);
            let matrix = axes.fold(0, |at, (range, extent)| match extent {
                1 => at,
                _ => at * extent + range.start,
            });
            matrix * side.extents[own] + start
        };
        let (elements, scales) = rows_of(right, first(right, columns.start), columns.len());
        let width = columns.len();
        let mut product = Vec::new();
        for (block, out) in out.chunks_mut(ROWS * width).enumerate() {
            let count = out.len() / width;
            let (a, sfa) = rows_of(left, first(left, rows.start) + block * ROWS, count);
            product.clear();
            product.resize(out.len(), 0.0_f32);
            Left::new(a, sfa, left.width()).multiply(elements, scales, &mut product);
            let pairs = out.par_chunks_mut(width).zip(product.par_chunks(width));
            pairs.for_each(|(out, product)| {
                for (out, product) in out.iter_mut().zip(product) {
                    *out = f64::from(*product);
                }
            });
        }
    }
}

/// Elements and scales of some rows.
fn rows_of<'p>(packed: &Packed<'p>, first: usize, count: usize) -> (&'p [u8], &'p [u8]) {
    let (bytes, scales) = (packed.width() / 2, packed.width() / 16);
    (
        &packed.elements[first * bytes..][..count * bytes],
        &packed.scales[first * scales..][..count * scales],
    )
}
