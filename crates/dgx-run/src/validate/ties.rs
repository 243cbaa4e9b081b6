//! Codes next to the expected one: a kernel that computes in f32 may round a value that lies nearly
//! between two codes to the other one.

use super::{Element, Evidence};
use crate::operator::{Arithmetic, Evaluator, rounded};
use dgx_core::operator::{Op, Output, UnaryOp, Value};

/// The error of a division by an approximate reciprocal, or similar.
const ARITHMETIC: f64 = 1.0 / (1 << 20) as f64;

/// Whether the element is a nearest code of some number within the error of f32 arithmetic.
pub(super) fn is_tie(evidence: &Evidence<'_>, output: &Output, element: &Element) -> bool {
    let (value, whole) = before_rounding(&output.value);
    let operator = &evidence.operands.operator;
    let operands = &evidence.operands.groups[element.group / operator.outputs.len()];
    let above = evidence.above(element.group);
    let problem = operands.problem_with(operator, &above);
    let extents = output.tensor.extents(&problem.sizes).unwrap_or_default();
    let Ok(evaluator) = Evaluator::new(&value, &extents, &problem) else {
        return false;
    };
    let moved = evaluator.moved(element.row, element.column, Arithmetic::Fp32);
    let by = moved.by.max(ARITHMETIC * moved.value.abs());
    let code = |value: f64| {
        let value = match whole {
            Some(UnaryOp::Floor) => value.floor(),
            Some(_) => value.round_ties_even(),
            None => value,
        };
        rounded(output.tensor.element, value)
    };
    let got = element.got();
    code(moved.value - by) <= got && got <= code(moved.value + by)
}

/// The value without its final rounding, and the function of that rounding besides the cast.
fn before_rounding(value: &Value) -> (Value, Option<UnaryOp>) {
    let mut value = value.clone();
    if matches!(value.node(value.root).op, Op::Cast(_)) {
        value.root = value.node(value.root).inputs[0];
    }
    let function = match value.node(value.root).op {
        Op::Unary(op @ (UnaryOp::Round | UnaryOp::Floor)) => {
            value.root = value.node(value.root).inputs[0];
            Some(op)
        }
        _ => None,
    };
    (value, function)
}
