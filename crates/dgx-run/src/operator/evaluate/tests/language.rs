//! Parts of the language on their own: broadcasting, axes, slices, NaN.

use super::{Case, expression};

const SMALL: &str = "{ m = 4, n = 6 }";

#[test]
fn operands_are_broadcast_from_the_last_axis() {
    let operator = expression("\"m\", \"n\"", "x * v + x / m - n", SMALL);
    let case = Case::draw(&operator, &[5, 3], 1);
    case.check(&operator, 0, |at| {
        let x = case.at(0, at);
        x * case.at(2, &[at[1]]) + x / 5.0 - 3.0
    });
    // The root may have fewer axes than the output, or be a number.
    let operator = expression("\"m\", \"n\"", "v * 2 + 1", SMALL);
    let case = Case::draw(&operator, &[5, 3], 1);
    case.check(&operator, 0, |at| case.at(2, &[at[1]]) * 2.0 + 1.0);
}

#[test]
fn axes_are_exchanged_and_cut() {
    let operator = expression("\"n\", \"m\"", "x.T + permute(y, 1, 0)", SMALL);
    let case = Case::draw(&operator, &[5, 300], 2);
    case.check(&operator, 0, |at| {
        case.at(0, &[at[1], at[0]]) + case.at(1, &[at[1], at[0]])
    });

    let operator = expression("\"m\", \"n - 2\"", "x[:, 1:n - 1] - y[:, 2:]", SMALL);
    let case = Case::draw(&operator, &[5, 9], 3);
    case.check(&operator, 0, |at| {
        case.at(0, &[at[0], at[1] + 1]) - case.at(1, &[at[0], at[1] + 2])
    });
}

/// Every row needs a sum over columns; a product needs a product.
#[test]
fn what_every_row_needs_is_made_once() {
    let operator = expression("\"m\", \"n\"", "x / sum(y * y, -2) + mean(x, -1)", SMALL);
    for sizes in [[200, 300], [3, 5]] {
        let case = Case::draw(&operator, &sizes, 4);
        let (m, n) = (sizes[0] as usize, sizes[1] as usize);
        let columns: Vec<f64> = (0..n)
            .map(|j| (0..m).map(|i| case.at(1, &[i, j]).powi(2)).sum())
            .collect();
        case.check(&operator, 0, |at| {
            let mean = (0..n).map(|j| case.at(0, &[at[0], j])).sum::<f64>() / n as f64;
            case.at(0, at) / columns[at[1]] + mean
        });
    }
    let operator = expression(
        "\"m\", \"n\"",
        "x @ (y.T @ x) * 0.01 + max(x @ y.T, -1)",
        SMALL,
    );
    let case = Case::draw(&operator, &[7, 11], 5);
    let inner = |a: usize, b: usize| -> f64 {
        (0..7)
            .map(|i| case.at(1, &[i, a]) * case.at(0, &[i, b]))
            .sum()
    };
    case.check(&operator, 0, |at| {
        let product: f64 = (0..11)
            .map(|e| case.at(0, &[at[0], e]) * inner(e, at[1]))
            .sum();
        let scores = (0..7).map(|j| -> f64 {
            (0..11)
                .map(|e| case.at(0, &[at[0], e]) * case.at(1, &[j, e]))
                .sum()
        });
        product * 0.01 + scores.fold(f64::MIN, f64::max)
    });
}

#[test]
fn nan_and_infinity_are_those_of_ieee() {
    let operator = expression(
        "\"m\", \"n\"",
        "maximum(x, y) + min(y, -1) * 0 + where(x > 0, 1, 2)",
        SMALL,
    );
    let mut case = Case::draw(&operator, &[4, 6], 6);
    case.set(0, 0, f64::NAN);
    case.set(1, 7, f64::NAN);
    case.set(1, 13, f64::INFINITY);
    case.set(0, 20, f64::NEG_INFINITY);
    case.check(&operator, 0, |at| {
        let (x, y) = (case.at(0, at), case.at(1, at));
        let row = (0..6).map(|j| case.at(1, &[at[0], j]));
        let least = row.fold(
            f64::INFINITY,
            |a, b| {
                if b.is_nan() || b < a { b } else { a }
            },
        );
        let larger = if x.is_nan() || y.is_nan() {
            f64::NAN
        } else {
            x.max(y)
        };
        larger + least * 0.0 + if x > 0.0 { 1.0 } else { 2.0 }
    });
}

#[test]
fn indices_divide_as_whole_numbers() {
    let operator = expression(
        "\"m\", \"n\"",
        "x * ((i(-1) - 3) // 2) + ((i(-2) - 3) % 4)",
        SMALL,
    );
    let case = Case::draw(&operator, &[6, 9], 7);
    case.check(&operator, 0, |at| {
        let half = (at[1] as i64 - 3).div_euclid(2) as f64;
        case.at(0, at) * half + (at[0] as i64 - 3).rem_euclid(4) as f64
    });
}
