//! Reduces many values to a few levels: each value is raised to the next level.

/// Values that a set can contain: the bits of an `i64` without its sign.
pub(super) const SET: usize = 63;

/// The best set of at most `most` values. Value v has the weight `weights[v]`, 0 if it does not
/// occur; this set minimises the sum of each weight times the distance it is raised.
pub(super) fn levels(weights: &[u64; SET], most: usize) -> i64 {
    let values: Vec<usize> = (0..SET).filter(|v| weights[*v] > 0).collect();
    // For the first i values: the cost of raising them, and the set.
    let mut best: Vec<(u128, i64)> = vec![(u128::MAX, 0); values.len() + 1];
    best[0] = (0, 0);
    for _ in 0..most.min(values.len()) {
        let mut more = best.clone();
        for end in 1..=values.len() {
            let top = values[end - 1];
            let mut raised = 0_u128;
            for start in (0..end).rev() {
                let value = values[start];
                raised += u128::from(weights[value]) * (top - value) as u128;
                let (before, kept) = best[start];
                let cost = before.saturating_add(raised);
                if cost < more[end].0 {
                    more[end] = (cost, kept | 1 << top);
                }
            }
        }
        best = more;
    }
    best[values.len()].1
}
