//! Two products of block-scaled operands with a common left operand, where the first gates the
//! second: the form that the oracle, shuffles, device judging and explanations handle specially.

use super::{GroupOperands, Tensor};
use dgx_core::operator::{ElementType, NodeId, Op, Operator, Product, Tensor as Input};

/// Whether `operator` is silu(a @ b.T) * (a @ c.T) of three block-scaled
/// operands in this order, the output as 16-bit floats.
pub(crate) fn is_gated(operator: &Operator) -> bool {
    let scaled = |input: &Input| input.element == ElementType::Nvfp4 && input.extents.len() == 2;
    let gated = Product {
        left: 0,
        rights: vec![1, 2],
    };
    operator.inputs.iter().all(scaled) && operator.product() == Some(gated)
}

/// The steps of an output that an oracle keeps: its value; of a gated product, both products.
pub(super) fn kept_steps(operator: &Operator, output: usize) -> Vec<NodeId> {
    let value = &operator.outputs[output].value;
    let is_product = |id: &NodeId| value.node(*id).op == Op::MatMul;
    match is_gated(operator) {
        true => (0..value.nodes.len()).filter(is_product).collect(),
        false => vec![value.root],
    }
}

impl GroupOperands {
    /// The operand that both products share.
    pub(crate) fn left(&self) -> &Tensor {
        &self.inputs[0]
    }

    pub(crate) fn gate(&self) -> &Tensor {
        &self.inputs[1]
    }

    pub(crate) fn up(&self) -> &Tensor {
        &self.inputs[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::operator::{built_in, names};

    #[test]
    fn only_the_dual_gemm_is_gated() {
        let gated = |name: &&str| is_gated(built_in(name).unwrap());
        assert_eq!(
            names().filter(gated).collect::<Vec<_>>(),
            ["nvfp4-dual-gemm"]
        );
    }
}
