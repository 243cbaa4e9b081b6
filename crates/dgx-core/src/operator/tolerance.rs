//! The allowed error of an output.

use super::{BinaryOp, ElementType, Number, Op, Output, UnaryOp, Value};

/// The relative error allowed for sums and functions in f32.
const F32_SUMS: f64 = 1e-5;

impl Value {
    /// Whether f32 arithmetic rounds more than once in it.
    fn rounds(&self) -> bool {
        self.nodes.iter().any(|node| match node.op {
            Op::Unary(op) => !matches!(
                op,
                UnaryOp::Negate
                    | UnaryOp::Abs
                    | UnaryOp::Relu
                    | UnaryOp::Floor
                    | UnaryOp::Round
                    | UnaryOp::Sign
            ),
            Op::Binary(op) => matches!(op, BinaryOp::Divide | BinaryOp::Power),
            Op::Reduce(..) | Op::Softmax(_) | Op::Cumsum(_) | Op::MatMul => true,
            _ => false,
        })
    }
}

impl Output {
    /// The allowed error of an element, relative and absolute: the file's, or twice the rounding
    /// error of the type. Without `atol` the same share of the output's root mean square is added:
    /// see `Tolerance` in dgx-run's `validate`.
    pub fn tolerance(&self) -> (f64, f64) {
        (self.relative(), self.atol.unwrap_or(0.0))
    }

    /// The relative part. Codes of 8 bits or fewer must be the nearest; kernels compute f32 values
    /// in f32.
    fn relative(&self) -> f64 {
        let element = self.tensor.element;
        let rounding = element.unit_roundoff();
        self.rtol.unwrap_or(match element {
            _ if self.is_coded() => rounding,
            ElementType::F32 if self.value.rounds() => F32_SUMS,
            _ => 2.0 * rounding,
        })
    }

    /// Whether its elements are integers or have few codes, of which a correct kernel writes the
    /// nearest: no tolerance is given.
    pub fn is_coded(&self) -> bool {
        let element = self.tensor.element;
        let few = element.bits() <= 8 || element.number() != Number::Real;
        few && self.rtol.is_none() && self.atol.is_none()
    }
}
