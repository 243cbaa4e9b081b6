/// Kendall's τ-b between two scorings of the same things: 1 if their order is the same, −1 if
/// opposite. `None` if either ties everything.
pub fn kendall_tau(x: &[f64], y: &[f64]) -> Option<f64> {
    let n = x.len().min(y.len());
    let (mut score, mut untied_x, mut untied_y) = (0i64, 0u64, 0u64);
    for i in 0..n {
        for j in i + 1..n {
            let dx = compare(x[i], x[j]);
            let dy = compare(y[i], y[j]);
            score += dx * dy;
            untied_x += dx.unsigned_abs();
            untied_y += dy.unsigned_abs();
        }
    }
    let scale = (untied_x as f64 * untied_y as f64).sqrt();
    (scale > 0.0).then(|| score as f64 / scale)
}

fn compare(a: f64, b: f64) -> i64 {
    i64::from(a > b) - i64::from(a < b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_disagrees_and_abstains() {
        assert_eq!(
            kendall_tau(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]),
            Some(1.0)
        );
        assert_eq!(kendall_tau(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(kendall_tau(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(kendall_tau(&[1.0], &[2.0]), None);
    }
}
