//! How far elements may move.

use dgx_core::operator::built_in;

use super::{Case, expression};
use crate::operator::evaluate::Arithmetic;

const SMALL: &str = "{ m = 4, n = 6 }";

#[test]
fn the_value_is_the_element() {
    for name in dgx_core::operator::names() {
        let operator = built_in(name).unwrap();
        let case = Case::draw(operator, &operator.small[0], 1);
        case.evaluate(operator, 0, |evaluator| {
            let (rows, width) = (evaluator.row_count(), evaluator.width());
            for (row, column) in [(0, 0), (rows - 1, width - 1), (rows / 2, width / 2)] {
                let element = evaluator.element(row, column);
                let moved = evaluator.moved(row, column, Arithmetic::Fp32);
                let exact = evaluator.moved(row, column, Arithmetic::F64);
                assert!(
                    (moved.value - element).abs() <= 1e-12 * (1.0 + element.abs()),
                    "{name}"
                );
                assert!(
                    moved.by > 0.0 && moved.by < 0.05 * (1.0 + element.abs()),
                    "{name} {moved:?}"
                );
                assert!(
                    exact.by > 0.0 && exact.by < 1e-9 * (1.0 + element.abs()),
                    "{name} {exact:?}"
                );
            }
        });
    }
}

/// One product of tensors: only the rule of its sum applies.
#[test]
fn a_product_moves_by_its_rule() {
    let operator = built_in("f16-gemm").unwrap();
    let case = Case::draw(operator, &[4, 8, 300], 2);
    let terms = (0..300).map(|i| case.at(0, &[2, i]) * case.at(1, &[3, i]));
    let (sum, squares) = terms.fold((0.0, 0.0), |(s, q): (f64, f64), t| (s + t, q + t * t));
    let by = |arithmetic| case.evaluate(operator, 0, |e| e.moved(2, 3, arithmetic).by);
    let roundings = 300.0 / 16.0 + 6.0 * 100f64.sqrt();
    let wanted = 2f64.powi(-24) * roundings * (sum.abs() + 3.0 * squares.sqrt());
    assert!((by(Arithmetic::Fp32) / wanted - 1.0).abs() < 1e-9);
    let wanted = 2f64.powi(-40) * (sum.abs() + squares.sqrt());
    assert!((by(Arithmetic::F64) / wanted - 1.0).abs() < 1e-9);
}

/// Sums in f32, added in order, stay within it.
#[test]
fn sums_in_fp32_stay_within() {
    let operator = expression("\"m\", 1", "exp(sum(x * y, -1) * 0.01)", SMALL);
    let case = Case::draw(&operator, &[50, 4000], 3);
    for row in 0..50 {
        let term = |j: usize| (case.at(0, &[row, j]) * case.at(1, &[row, j])) as f32;
        let sum = (0..4000).map(term).fold(0.0_f32, |a, b| a + b);
        let found = f64::from((sum * 0.01).exp());
        let moved = case.evaluate(&operator, 0, |e| e.moved(row, 0, Arithmetic::Fp32));
        assert!(
            (found - moved.value).abs() <= moved.by,
            "{row} {found} {moved:?}"
        );
        assert!(moved.by < 1e-2 * moved.value);
    }
}

/// Values without sums do not move.
#[test]
fn tensors_and_choices_do_not_move() {
    let operator = expression("\"m\", \"n\"", "where(x > 0, x, -y) * 2", SMALL);
    let case = Case::draw(&operator, &[4, 6], 4);
    case.evaluate(&operator, 0, |evaluator| {
        assert_eq!(evaluator.moved(1, 2, Arithmetic::Fp32).by, 0.0);
    });
}
