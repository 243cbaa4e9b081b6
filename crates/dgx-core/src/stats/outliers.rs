/// The number of values outside Tukey's far fences (three interquartile ranges beyond the
/// quartiles). They are counted and shown, never dropped: a design that stalls one launch in fifty
/// is slower, and its mean should show it.
pub fn outliers(values: &[f64]) -> usize {
    if values.len() < 4 {
        return 0;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (quartile(&sorted, 0.25), quartile(&sorted, 0.75));
    let reach = 3.0 * (high - low);
    let outside = |v: &&f64| **v < low - reach || **v > high + reach;
    values.iter().filter(outside).count()
}

/// Linear interpolation between order statistics; `sorted` is not empty.
fn quartile(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let next = sorted[(low + 1).min(sorted.len() - 1)];
    sorted[low] + part * (next - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_stands_far_out() {
        let calm: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i) * 0.01).collect();
        assert_eq!(outliers(&calm), 0);
        assert_eq!(outliers(&[calm, vec![20.0, 1.0]].concat()), 2);
        assert_eq!(outliers(&[1.0, 100.0]), 0);
    }
}
