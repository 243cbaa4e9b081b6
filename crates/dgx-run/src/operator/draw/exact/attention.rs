//! q, k and v of attention. Each key has a number, written in digits; each
//! digit is one of a part of the head's channels that has the height A. A query
//! has the number of one key, at or before its own place (a causal mask may be
//! there). Where they meet, the score is larger by A²/√d ≥ 104 than anywhere
//! else, and e⁻¹⁰⁴ is 0 in fp32: the weight of that key is 1, the result is its
//! row of v.

use dgx_core::operator::ElementType;
use rayon::prelude::*;

use super::{ExactData, below, fits, plain, sign};

/// Minimum difference of scores.
const GAP: f64 = 104.0;

/// One of the three tensors (`which`: q, k, v), whose keys are `keys`. `None` if the head has too
/// few channels to number them.
pub(super) fn draw(
    element: ElementType,
    extents: &[usize],
    keys: usize,
    which: [bool; 3],
    [seed, own]: [u64; 2],
) -> Option<ExactData> {
    let [.., rows, width] = *extents else {
        return None;
    };
    let count: usize = extents.iter().product();
    let mut numbers = vec![0.0; count];
    if which[2] {
        let each = numbers.par_iter_mut().enumerate();
        each.for_each(|(at, number)| {
            let size = [1.0, 3.0, 5.0, 7.0][below(own, [at, 0, 0], 4)];
            *number = size * sign(own, [at, 1, 0]);
        });
        return Some(plain(element, &numbers, extents));
    }
    let digits = digits(width, keys)?;
    let height = height(element, width)?;
    let all = numbers.par_chunks_mut(width).enumerate();
    all.for_each(|(row, channels)| {
        let place = row % rows;
        let key = match which[0] {
            true => below(own, [row, 2, 0], place.min(keys - 1) + 1),
            false => place,
        };
        let base = width / digits;
        // Neighbours differ in every digit, differently for each seed.
        let mut rest = key;
        for digit in 0..digits {
            let turn = below(seed, [digit, 3, 0], base);
            channels[digit * base + (rest % base + turn) % base] = height;
            rest /= base;
        }
    });
    Some(plain(element, &numbers, extents))
}

/// Whether a head's channels suffice to number the keys and find them.
pub(super) fn has_data(element: ElementType, width: usize, keys: usize) -> bool {
    digits(width, keys).is_some() && height(element, width).is_some()
}

/// Digits of a key's number.
fn digits(width: usize, keys: usize) -> Option<usize> {
    let enough = |d: &usize| {
        let numbers = (width / d).checked_pow(*d as u32);
        numbers.is_some_and(|n| n >= keys)
    };
    (1..=4).find(enough)
}

/// The smallest whole number of the type with A²/√d ≥ [`GAP`].
fn height(element: ElementType, width: usize) -> Option<f64> {
    let least = (GAP * (width as f64).sqrt()).sqrt().ceil() as u32;
    (least..2 * least)
        .map(f64::from)
        .find(|a| fits(element, *a))
}
