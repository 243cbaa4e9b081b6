//! Values that a vendor's library can multiply.

use super::{BinaryOp, ElementType, NodeId, Op, Operator, UnaryOp, Value};

/// `left @ right.T`, or `silu(left @ right.T) * (left @ other.T)`, of inputs by their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    pub left: usize,
    pub rights: Vec<usize>,
}

impl Operator {
    /// The product, if the whole value is one and cuBLAS supports its types: NVFP4 as fp16, fp16 or
    /// bf16.
    pub fn product(&self) -> Option<Product> {
        let [output] = &self.outputs[..] else {
            return None;
        };
        let product = of_value(&output.value)?;
        let operands = product.rights.iter().chain([&product.left]);
        let wanted = match self.inputs[product.left].element {
            ElementType::Nvfp4 | ElementType::F16 => ElementType::F16,
            ElementType::Bf16 => ElementType::Bf16,
            _ => return None,
        };
        let element = self.inputs[product.left].element;
        let axes = output.tensor.extents.len();
        let alike = operands.map(|place| &self.inputs[*place]).all(|input| {
            let batch = input.extents[..axes - 2] == output.tensor.extents[..axes - 2];
            input.element == element && input.extents.len() == axes && batch
        });
        // Two right operands are stacked while they are converted to fp16.
        let joined = product.rights.len() == 1 || (element == ElementType::Nvfp4 && axes == 2);
        let fits = alike && joined && (2..=3).contains(&axes) && output.tensor.element == wanted;
        fits.then_some(product)
    }
}

fn of_value(value: &Value) -> Option<Product> {
    let of = |id: NodeId| (&value.node(id).op, &value.node(id).inputs[..]);
    let input = |id: NodeId| match of(id) {
        (Op::Input(place), _) => Some(*place),
        _ => None,
    };
    let factors = |id: NodeId| match of(id) {
        (Op::MatMul, &[left, right]) => match of(right) {
            (Op::Transpose, &[right]) => Some((input(left)?, input(right)?)),
            _ => None,
        },
        _ => None,
    };
    if let Some((left, right)) = factors(value.root) {
        return Some(Product {
            left,
            rights: vec![right],
        });
    }
    let (Op::Binary(BinaryOp::Multiply), &[gate, up]) = of(value.root) else {
        return None;
    };
    let (Op::Unary(UnaryOp::Silu), &[gate]) = of(gate) else {
        return None;
    };
    let ((left, gate), (other, up)) = (factors(gate)?, factors(up)?);
    (left == other).then(|| Product {
        left,
        rights: vec![gate, up],
    })
}

#[cfg(test)]
mod tests {
    use super::super::built_in;
    use super::*;
    use crate::diagnostic::SourceFile;

    #[test]
    fn gemms_are_products_and_the_dual_one_has_two() {
        let rights = |name: &str| Some(built_in(name)?.product()?.rights);
        assert_eq!(rights("nvfp4-dual-gemm"), Some(vec![1, 2]));
        for name in ["nvfp4-gemm", "nvfp4-gemv", "f16-gemm"] {
            assert_eq!(rights(name), Some(vec![1]), "{name}");
        }
        for name in ["rms-norm", "layer-norm", "softmax", "attention"] {
            assert_eq!(rights(name), None, "{name}");
        }
    }

    #[test]
    fn cublas_has_no_gated_product_of_fp16() {
        let gated = "summary = \"test\"\nsizes = [\"m\"]\n\
            [in.a]\ntype = \"f16\"\nsize = [\"m\", 64]\n\
            [in.b]\ntype = \"f16\"\nsize = [64, 64]\n\
            [in.c]\ntype = \"f16\"\nsize = [64, 64]\n\
            [out.y]\ntype = \"f16\"\nsize = [\"m\", 64]\nvalue = \"silu(a @ b.T) * (a @ c.T)\"\n";
        let file = SourceFile {
            path: "operators/test.toml".into(),
            text: gated.into(),
        };
        let operator = Operator::from_source(file).expect("right in itself");
        assert_eq!(operator.product(), None);
    }
}
