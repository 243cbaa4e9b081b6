//! Codes next to the expected one: a kernel that computes in f32 may round a value that lies nearly
//! between two codes to the other one.

use super::{Element, Evidence};
use crate::operator::{Arithmetic, rounded};
use dgx_core::operator::{NodeId, Op, UnaryOp, Value};

/// The error of a division by an approximate reciprocal, or similar.
const ARITHMETIC: f64 = 1.0 / (1 << 20) as f64;

/// Whether the element is a nearest code of some number within the error of f32 arithmetic.
pub(super) fn is_tie(evidence: &Evidence<'_>, element: &Element) -> bool {
    let output = evidence.output(element.group);
    let (root, whole) = before_rounding(&output.value);
    let moved = evidence.on_operands(element.group, &output.value, |evaluator| {
        let evaluator = evaluator.at(root);
        evaluator.moved(element.row, element.column, Arithmetic::Fp32)
    });
    let Some(moved) = moved else {
        return false;
    };
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

/// The step before the final rounding of a value, and the function of that rounding besides the
/// cast.
fn before_rounding(value: &Value) -> (NodeId, Option<UnaryOp>) {
    let root = value.node(value.root);
    let rounded = match root.op {
        Op::Cast(_) => root.inputs[0],
        _ => value.root,
    };
    match value.node(rounded).op {
        Op::Unary(op @ (UnaryOp::Round | UnaryOp::Floor)) => {
            (value.node(rounded).inputs[0], Some(op))
        }
        _ => (rounded, None),
    }
}
