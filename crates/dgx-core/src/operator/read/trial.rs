//! Sizes for trials: a statement about extents that is true for all of these is taken to be true
//! for all sizes.

use crate::domain::bounds::EXTENT;
use crate::operator::Requirement;

/// One for each size, all different, so that no two sizes are confused.
const FACTORS: [u64; 8] = [2, 3, 5, 7, 11, 13, 17, 19];

/// The first requirement that `sizes` do not meet.
pub(in crate::operator) fn unmet<'a>(
    requires: &'a [Requirement],
    sizes: &[u64],
) -> Option<&'a Requirement> {
    let meets = |r: &&Requirement| matches!(r.condition.eval(sizes), Some(value) if value != 0);
    requires.iter().find(|r| !meets(r))
}

/// Sizes for a file that lists none: small multiples of a power of two, rising, falling or equal.
pub(super) fn small(count: usize, requires: &[Requirement]) -> Option<Vec<u64>> {
    let count = count as u64;
    let sizes = |exponent: u32| {
        let rising = (1..=count).map(|i| i << exponent).collect();
        let falling = (1..=count).rev().map(|i| i << exponent).collect();
        let alike = vec![1 << exponent; count as usize];
        [rising, falling, alike]
    };
    let mut tries = (4..13).flat_map(sizes);
    tries.find(|sizes: &Vec<u64>| unmet(requires, sizes).is_none())
}

/// `small`, and variations of the first of them with sizes grown alone and together.
pub(super) fn trials(small: &[Vec<u64>], requires: &[Requirement]) -> Vec<Vec<u64>> {
    let mut trials = small.to_vec();
    let Some(first) = small.first() else {
        return trials;
    };
    let grown = |factor: &dyn Fn(usize) -> u64| -> Vec<u64> {
        let sizes = first.iter().enumerate();
        sizes.map(|(i, size)| size * factor(i)).collect()
    };
    let mut candidates = vec![grown(&|i| FACTORS[i]), grown(&|_| 2), grown(&|_| 3)];
    for one in 0..first.len() {
        candidates.push(grown(&|i| if i == one { 2 } else { 1 }));
        candidates.push(grown(&|i| if i == one { 3 } else { 1 }));
    }
    let fits = |sizes: &Vec<u64>| {
        sizes.iter().all(|size| *size <= u64::from(EXTENT)) && unmet(requires, sizes).is_none()
    };
    trials.extend(candidates.into_iter().filter(fits));
    trials
}
