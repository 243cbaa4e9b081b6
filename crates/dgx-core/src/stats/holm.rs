/// Holm's correction: p-values multiplied so that the probability of even one false difference
/// among all comparisons stays at the level of one. Order is kept.
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut running: f64 = 0.0;
    for (place, &index) in order.iter().enumerate() {
        let multiplied = p_values[index] * (p_values.len() - place) as f64;
        running = running.max(multiplied.min(1.0));
        adjusted[index] = running;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn multiplies_the_least_by_the_count() {
        let adjusted = holm(&[0.01, 0.04, 0.03]);
        let expected = [0.03, 0.06, 0.06];
        for (a, e) in adjusted.iter().zip(expected) {
            assert!((a - e).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn never_lowers_and_keeps_order(p in prop::collection::vec(0.0..=1.0f64, 0..20)) {
            let adjusted = holm(&p);
            for (i, a) in adjusted.iter().enumerate() {
                prop_assert!(*a >= p[i] && *a <= 1.0);
                for (j, b) in adjusted.iter().enumerate() {
                    prop_assert!(p[i] > p[j] || a <= b);
                }
            }
        }
    }
}
