//! Rows for a sum of squares and for softmax.

use dgx_core::operator::ElementType;
use rayon::prelude::*;

use super::{ExactData, below, fits, plain, sign};
use crate::operator::format::rounded;

/// Approximate sum of a row's squares.
const SQUARES: f64 = 4_194_304.0;
/// Softmax: this far below the maximum of its row, e⁻¹²⁸ is 0 in fp32.
const DEEP: f64 = 128.0;
/// The number of maxima in a row with few of them, or of others in a row of maxima.
const FEW: usize = 8;

/// Whole numbers; one of them in each row has a third of the sum of squares.
pub(super) fn squares(element: ElementType, extents: &[usize], seed: u64) -> ExactData {
    let width = extents.last().copied().unwrap_or(1).max(1);
    let count: usize = extents.iter().product();
    let most = (3.0 * SQUARES / width as f64).sqrt().clamp(1.0, 100.0) as usize;
    let mut numbers = vec![0.0; count];
    let rows = numbers.par_chunks_mut(width).enumerate();
    rows.for_each(|(row, numbers)| {
        for (column, number) in numbers.iter_mut().enumerate() {
            let size = (1 + below(seed, [row, column, 0], most)) as f64;
            *number = rounded(element, size) * sign(seed, [row, column, 1]);
        }
        let spike = below(seed, [row, 0, 2], width);
        let others: f64 = numbers.iter().map(|x| x * x).sum::<f64>() - numbers[spike].powi(2);
        let size = rounded(element, (others / 2.0).sqrt().round());
        numbers[spike] = size.max(1.0) * sign(seed, [row, 0, 3]);
    });
    plain(element, &numbers, extents)
}

/// Each element is c or c − 128, with a different c for each row; few of one in a row, few of the
/// other in the next. `None` if the type has no such pair.
pub(super) fn softmax(element: ElementType, extents: &[usize], seed: u64) -> Option<ExactData> {
    let width = extents.last().copied().unwrap_or(1).max(1);
    let count: usize = extents.iter().product();
    let tops: Vec<f64> = (-16..=16)
        .map(f64::from)
        .filter(|c| fits(element, *c) && fits(element, c - DEEP))
        .collect();
    if tops.is_empty() {
        return None;
    }
    let mut numbers = vec![0.0; count];
    let rows = numbers.par_chunks_mut(width).enumerate();
    rows.for_each(|(row, numbers)| {
        let top = tops[below(seed, [row, 0, 4], tops.len())];
        let few = 1 + below(seed, [row, 1, 4], FEW.min(width));
        let (most, seldom) = match row % 2 {
            0 => (top - DEEP, top),
            _ => (top, top - DEEP),
        };
        numbers.fill(most);
        for one in 0..few {
            numbers[below(seed, [row, one, 5], width)] = seldom;
        }
        // A row needs a maximum.
        if row % 2 == 1 && !numbers.contains(&top) {
            numbers[0] = top;
        }
    });
    Some(plain(element, &numbers, extents))
}
