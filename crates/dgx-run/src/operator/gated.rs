//! Two products of block-scaled operands with a common left operand, where the first gates the
//! second: the form that the oracle, shuffles, device judging and explanations handle specially.

use super::{GroupOperands, Tensor};
use dgx_core::domain::Group;
use dgx_core::operator::{ElementType, Operator, Product, Tensor as Input};

/// Rows and columns of the output, and the length of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extents {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
}

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

impl Extents {
    pub(crate) fn of(operator: &Operator, group: &Group) -> Option<Self> {
        let (rows, columns) = operator.output_extents(0, group)?;
        is_gated(operator).then(|| Self {
            rows,
            columns,
            depth: operator.depth(group) as usize,
        })
    }
}

impl Extents {
    /// Rows, columns and depth in 64 bits.
    pub(crate) fn wide(self) -> [u64; 3] {
        [self.rows, self.columns, self.depth].map(|extent| extent as u64)
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

    pub(crate) fn extents(&self) -> Extents {
        Extents {
            rows: self.left().rows(),
            columns: self.gate().rows(),
            depth: self.left().columns(),
        }
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
