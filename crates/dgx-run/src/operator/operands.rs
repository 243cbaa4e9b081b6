use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Tensor;
use super::draw::exact::Recipe;
use super::draw::plain::{DataSource, SumKind, quiet};
use super::draw::{OperandDraw, OperandSide};
use super::evaluate::Problem;
use dgx_core::domain::Distribution;
use dgx_core::domain::{Group, Shape};
use dgx_core::operator::{self, ElementType, Operator, Product};

/// Elements along the depth of a product that share a scale.
pub(crate) const SCALE_BLOCK: usize = 16;

/// The inputs of one group, packed as a kernel reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOperands {
    pub group: Group,
    /// In the operator's order.
    pub inputs: Vec<Tensor>,
}

impl GroupOperands {
    /// Group `index` of a shape, drawn from `distribution` by `seed`.
    ///
    /// # Panics
    /// If exact data are requested but do not exist: a plan refuses that.
    pub fn draw(
        operator: &Operator,
        group: &Group,
        index: usize,
        distribution: Distribution,
        seed: u64,
    ) -> Self {
        let mut drawn = Self::blank(operator, group);
        let sizes = operator.sizes_in(group).unwrap_or_default();
        if distribution == Distribution::Exact {
            let recipe = Recipe::of(operator);
            let exact = recipe.and_then(|recipe| recipe.draw(operator, &sizes, index, seed));
            let exact = exact.expect("the plan asked whether there are exact data");
            for (tensor, data) in drawn.inputs.iter_mut().zip(exact) {
                (tensor.elements, tensor.scales) = (data.elements, data.scales);
            }
            return drawn;
        }
        let product = operator.product();
        let scaled =
            |product: &Product| operator.inputs[product.left].element == ElementType::Nvfp4;
        let Some(product) = product.filter(scaled) else {
            let quiet = quiet(&operator.constants);
            for (place, tensor) in drawn.inputs.iter_mut().enumerate() {
                let source = DataSource {
                    seed,
                    group: index,
                    tensor: place,
                    distribution,
                    range: operator.inputs[place].range(&sizes),
                    quiet: &quiet,
                    sums: SumKind::of(operator),
                };
                source.fill(tensor);
            }
            return drawn;
        };
        let depth = drawn.inputs[product.left].columns();
        let draw = OperandDraw::new(seed, index, depth, distribution);
        let rights = product.rights.iter().enumerate();
        let sides = rights.map(|(nth, place)| (*place, OperandSide::Right(nth)));
        for (place, side) in sides.chain([(product.left, OperandSide::Left)]) {
            let tensor = &mut drawn.inputs[place];
            (tensor.elements, tensor.scales) = draw.tensor(side, tensor.rows(), tensor.columns());
        }
        drawn
    }

    /// For evaluation.
    pub(crate) fn problem(&self, operator: &Operator) -> Problem<'_> {
        Problem {
            sizes: operator.sizes_in(&self.group).unwrap_or_default(),
            inputs: self.inputs.iter().map(Tensor::packed).collect(),
            outputs: Vec::new(),
        }
    }

    /// With outputs that a value may read.
    pub(crate) fn problem_with<'a>(
        &'a self,
        operator: &Operator,
        outputs: &'a [Tensor],
    ) -> Problem<'a> {
        Problem {
            outputs: outputs.iter().map(Tensor::packed).collect(),
            ..self.problem(operator)
        }
    }

    fn blank(operator: &Operator, group: &Group) -> Self {
        let inputs = operator.inputs.iter();
        Self {
            group: group.clone(),
            inputs: inputs.map(|t| Tensor::blank(operator, t, group)).collect(),
        }
    }
}

/// Names the operands of a shape, and so their expected result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProblemKey {
    #[serde(with = "operator::wire")]
    pub operator: Arc<Operator>,
    pub shape: Shape,
    pub distribution: Distribution,
    pub seed: u64,
}

impl ProblemKey {
    pub fn new(
        operator: &Arc<Operator>,
        shape: &Shape,
        distribution: Distribution,
        seed: u64,
    ) -> Self {
        Self {
            operator: Arc::clone(operator),
            shape: shape.clone(),
            distribution,
            seed,
        }
    }

    /// Distinguishes it from others of the same operator.
    pub(crate) fn name(&self) -> String {
        format!("{} {} {}", self.shape.name, self.distribution, self.seed)
    }

    pub fn operands(&self) -> Operands {
        Operands::draw(&self.operator, &self.shape, self.distribution, self.seed)
    }
}

/// The inputs of a whole shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operands {
    pub operator: Arc<Operator>,
    pub groups: Vec<GroupOperands>,
}

impl Operands {
    /// Their size on a device, without blocked scales.
    pub fn bytes(&self) -> u64 {
        let inputs = self.groups.iter().flat_map(|group| &group.inputs);
        inputs
            .map(|tensor| (tensor.elements.len() + tensor.scales.len()) as u64)
            .sum()
    }

    /// Zeros of the same sizes: for a call of which only the time is wanted.
    pub fn blank(operator: &Arc<Operator>, shape: &Shape) -> Self {
        let groups = shape.groups.iter();
        Self {
            operator: Arc::clone(operator),
            groups: groups.map(|g| GroupOperands::blank(operator, g)).collect(),
        }
    }

    pub fn draw(
        operator: &Arc<Operator>,
        shape: &Shape,
        distribution: Distribution,
        seed: u64,
    ) -> Self {
        let groups = shape.groups.iter().enumerate();
        let draw = |(index, group)| GroupOperands::draw(operator, group, index, distribution, seed);
        Self {
            operator: Arc::clone(operator),
            groups: groups.map(draw).collect(),
        }
    }

    /// The groups of the shape.
    pub fn groups(&self) -> Vec<Group> {
        self.groups.iter().map(|g| g.group.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::group;

    const DEPTH: usize = 2048;

    fn drawn(m: u32, n: u32, index: usize, how: Distribution, seed: u64) -> GroupOperands {
        GroupOperands::draw(
            default_operator(),
            &group(m, n, DEPTH as u32),
            index,
            how,
            seed,
        )
    }

    fn nibbles(bytes: &[u8]) -> BTreeSet<u8> {
        bytes.iter().flat_map(|b| [b & 15, b >> 4]).collect()
    }

    #[test]
    fn full_covers_every_code_of_both_formats() {
        let operands = drawn(1000, 1024, 0, Distribution::Full, 7);
        for tensor in &operands.inputs {
            assert_eq!(nibbles(&tensor.elements).len(), 16);
        }
        let finite: BTreeSet<u8> = (0..=0x7e).collect();
        for tensor in &operands.inputs {
            let drawn: BTreeSet<u8> = tensor.scales.iter().copied().collect();
            assert_eq!(drawn, finite);
        }
    }

    /// A kernel that looks at one scale learns nothing about the others, and some tokens are
    /// padding.
    #[test]
    fn full_has_no_place_of_its_own_for_anything() {
        let (mut peaks, mut empty) = (BTreeSet::new(), BTreeSet::new());
        for seed in 0..40 {
            let operands = drawn(200, 256, 0, Distribution::Full, seed);
            let (k, first) = (DEPTH, operands.left().scales[0]);
            peaks.insert(first > 0x40);
            let same = operands
                .left()
                .scales
                .chunks(k / 16)
                .filter(|row| row[0] == first);
            assert!(same.count() < 150, "one scale for all rows");
            let rows = operands.left().elements.chunks(k / 2).enumerate();
            let zeros = rows.filter(|(_, row)| row.iter().all(|byte| byte & 0x77 == 0));
            let zeros: Vec<usize> = zeros.map(|(index, _)| index).collect();
            assert!(zeros.len() < 100, "{}", zeros.len());
            empty.extend(zeros);
        }
        assert_eq!(peaks.len(), 2);
        assert!(empty.len() > 100, "{}", empty.len());
        let alone = drawn(1, 256, 0, Distribution::Full, 1);
        assert!(alone.left().elements.iter().any(|byte| byte & 0x77 != 0));
    }

    #[test]
    fn benchmark_keeps_the_public_range() {
        let operands = drawn(200, 256, 0, Distribution::Benchmark, 7);
        let codes = BTreeSet::from([0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(nibbles(&operands.left().elements), codes);
        assert!(operands.up().scales.iter().all(|scale| *scale <= 0x38));
    }

    #[test]
    fn blanks_are_as_large_as_what_is_drawn() {
        let drawn = drawn(200, 256, 0, Distribution::Full, 7);
        let blank = GroupOperands::blank(default_operator(), &drawn.group);
        for (blank, drawn) in blank.inputs.iter().zip(&drawn.inputs) {
            let sizes = |t: &Tensor| (t.elements.len(), t.scales.len(), t.extents.clone());
            assert_eq!(sizes(blank), sizes(drawn));
            let mut bytes = blank.elements.iter().chain(&blank.scales);
            assert!(bytes.all(|byte| *byte == 0));
        }
    }

    #[test]
    fn data_depend_on_seed_group_and_tensor() {
        let draw = |index, seed| drawn(200, 256, index, Distribution::Full, seed);
        let one = draw(0, 1);
        assert_eq!(one, draw(0, 1));
        assert_ne!(one.left(), draw(0, 2).left());
        assert_ne!(one.left(), draw(1, 1).left());
        assert_ne!(one.gate().elements, one.up().elements);
    }
}
