//! Least squares with non-negative coefficients. There are few of them (at most
//! [`dgx_core::domain::bounds::TERMS`]), so every subset of non-zero ones is tried.

/// Values of the terms, and the target of their sum.
pub(super) type Row = (Vec<f64>, f64);

/// The coefficients c ≥ 0 with the lowest sum of (row · c − target)², or `None` if the rows
/// determine no subset of them.
pub(super) fn least_squares(rows: &[Row], count: usize) -> Option<Vec<f64>> {
    // Columns differ by many orders of magnitude.
    let norm = |i: usize| {
        rows.iter()
            .map(|row| row.0[i] * row.0[i])
            .sum::<f64>()
            .sqrt()
    };
    let norms: Vec<f64> = (0..count).map(norm).collect();
    let mut best: Option<(f64, Vec<f64>)> = None;
    for chosen in 1..1_usize << count {
        let used: Vec<usize> = (0..count)
            .filter(|i| chosen >> i & 1 == 1 && norms[*i] > 0.0)
            .collect();
        // Terms that are 0 on every sample have no effect; a pick always costs something.
        if used.is_empty() {
            continue;
        }
        let mut system: Vec<Vec<f64>> = Vec::new();
        for i in &used {
            let with = |other: &dyn Fn(&Row) -> f64| -> f64 {
                let products = rows.iter().map(|row| row.0[*i] / norms[*i] * other(row));
                products.sum()
            };
            let products = used.iter().map(|j| with(&|row| row.0[*j] / norms[*j]));
            let mut equation: Vec<f64> = products.collect();
            equation.push(with(&|row| row.1));
            system.push(equation);
        }
        let Some(found) = eliminated(system) else {
            continue;
        };
        if found.iter().any(|c| *c < 0.0) {
            continue;
        }
        let mut coefficients = vec![0.0; count];
        for (i, c) in used.iter().zip(found) {
            coefficients[*i] = c / norms[*i];
        }
        let error = |(row, target): &Row| {
            let sum: f64 = row.iter().zip(&coefficients).map(|(x, c)| x * c).sum();
            (sum - target).powi(2)
        };
        let error: f64 = rows.iter().map(error).sum();
        if best.as_ref().is_none_or(|(least, _)| error < *least) {
            best = Some((error, coefficients));
        }
    }
    best.map(|(_, coefficients)| coefficients)
}

/// Solves a square system whose equations end with their right side.
fn eliminated(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    const SINGULAR: f64 = 1e-10;
    let size = system.len();
    for column in 0..size {
        let largest = |a: &usize, b: &usize| {
            let (a, b) = (system[*a][column].abs(), system[*b][column].abs());
            a.total_cmp(&b)
        };
        let pivot = (column..size).max_by(largest)?;
        if system[pivot][column].abs() < SINGULAR {
            return None;
        }
        system.swap(column, pivot);
        let equation = system[column].clone();
        for (_, other) in system.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let factor = other[column] / equation[column];
            for (x, y) in other.iter_mut().zip(&equation) {
                *x -= factor * y;
            }
        }
    }
    Some((0..size).map(|i| system[i][size] / system[i][i]).collect())
}
