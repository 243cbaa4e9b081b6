//! The expected result, on the CPU: multiplies on all cores, sums in f64, and keeps both products,
//! because the relation of a wrong output to them shows the mistake. A result from another source
//! is checked against the definition before it is used.

use std::convert::Infallible;

use rand::{Rng, RngExt};
use rayon::prelude::*;

use super::gated::kept_steps;
use super::operands::{GroupOperands, Operands};
use super::{Arithmetic, Evaluator, OutputValues, Problem, Tensor};
use dgx_core::operator::{Op, Operator, Output};

/// Elements of each product, or output, of a group that a spot check computes.
const SPOTS: usize = 64;

/// x / (1 + e⁻ˣ)
pub(crate) fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// The expected result of a whole shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Oracle {
    pub groups: Vec<GroupOracle>,
}

/// An output of a group, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupOracle {
    pub rows: usize,
    pub columns: usize,
    /// A·B1ᵀ of a gated product: summed in f64 and rounded once to f32, an error four orders of
    /// magnitude below the tolerance.
    pub gate: Vec<f32>,
    /// A·B2ᵀ
    pub up: Vec<f32>,
    /// The output itself, if the operator is not a gated product; then both products are empty.
    pub values: Vec<f64>,
}

impl GroupOracle {
    /// Of the values of [`kept_steps`], each requested by its index among them.
    pub(super) fn of_steps<E>(
        columns: usize,
        steps: usize,
        mut values: impl FnMut(usize) -> Result<Vec<f64>, E>,
    ) -> Result<Self, E> {
        let single = |values: Vec<f64>| values.into_par_iter().map(|v| v as f32).collect();
        let first = values(0)?;
        let rows = first.len() / columns.max(1);
        let (gate, up, values) = match steps {
            2 => (single(first), single(values(1)?), Vec::new()),
            _ => (Vec::new(), Vec::new(), first),
        };
        Ok(Self {
            rows,
            columns,
            gate,
            up,
            values,
        })
    }

    /// Whether it has both products.
    pub fn is_gated(&self) -> bool {
        self.values.is_empty()
    }

    /// Elements of the output.
    pub fn len(&self) -> usize {
        self.rows * self.columns
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index` of the output.
    pub fn c(&self, index: usize) -> f64 {
        if !self.is_gated() {
            return self.values[index];
        }
        silu(f64::from(self.gate[index])) * f64::from(self.up[index])
    }

    /// Element `index` of a kept step, and its name if it is not the output.
    fn step(&self, nth: usize, index: usize) -> (Option<&'static str>, f64) {
        match (self.is_gated(), nth) {
            (false, _) => (None, self.values[index]),
            (true, 0) => (Some("gate"), self.gate[index].into()),
            (true, _) => (Some("up"), self.up[index].into()),
        }
    }
}

impl Oracle {
    pub(crate) fn compute(operands: &Operands) -> Self {
        let groups = operands.groups.iter();
        Self {
            groups: groups
                .flat_map(|group| evaluated(&operands.operator, group))
                .collect(),
        }
    }

    /// Compares a result computed elsewhere with the definition: at the corners and a few places
    /// that `rng` chooses. Sums of nvfp4 products are exact in f64 in any order, so both products
    /// of a gated one must agree; others may differ by 2^-40 of the size of their terms.
    pub(crate) fn spot_check(
        &self,
        operands: &Operands,
        rng: &mut impl Rng,
    ) -> Result<(), Departure> {
        let operator = &operands.operator;
        let answers = self.groups.chunks(operator.outputs.len());
        for (group, (answers, given)) in answers.zip(&operands.groups).enumerate() {
            let mut above = Vec::new();
            for (place, (answer, output)) in answers.iter().zip(&operator.outputs).enumerate() {
                let problem = given.problem_with(operator, &above);
                for (nth, step) in kept_steps(operator, place).into_iter().enumerate() {
                    let evaluator = evaluator(&problem, output).at(step);
                    let departure = |(row, column): (usize, usize)| {
                        let (step, found) = answer.step(nth, row * answer.columns + column);
                        let mut moved = evaluator.moved(row, column, Arithmetic::F64);
                        if answer.is_gated() {
                            moved.by = 0.0;
                        }
                        (!moved.is_near(found)).then(|| Departure {
                            of: step.unwrap_or(&output.tensor.name).to_owned(),
                            group,
                            row,
                            column,
                            found,
                            wanted: moved.value,
                        })
                    };
                    let spot_places = spot_places(answer.rows, answer.columns, rng);
                    if let Some(departure) = spot_places.into_par_iter().find_map_first(departure) {
                        return Err(departure);
                    }
                }
                above.push(written_output(operator, place, &problem.sizes, answer));
            }
        }
        Ok(())
    }
}

/// The corners of an output and a few places that `rng` chooses.
fn spot_places(rows: usize, columns: usize, rng: &mut impl Rng) -> Vec<(usize, usize)> {
    let (bottom, right) = (rows - 1, columns - 1);
    let corners = [(0, 0), (0, right), (bottom, 0), (bottom, right)];
    let drawn = (0..SPOTS).map(|_| (rng.random_range(0..rows), rng.random_range(0..columns)));
    corners.into_iter().chain(drawn).collect()
}

/// Every output of a group by the definition. An output that a later one names is rounded to its
/// type there.
fn evaluated(operator: &Operator, operands: &GroupOperands) -> Vec<GroupOracle> {
    let mut above = Vec::new();
    let mut answers = Vec::new();
    for (place, output) in operator.outputs.iter().enumerate() {
        let problem = operands.problem_with(operator, &above);
        let whole = evaluator(&problem, output);
        let steps = kept_steps(operator, place);
        let Ok(answer) = GroupOracle::of_steps::<Infallible>(whole.width(), steps.len(), |nth| {
            let step = evaluator(&problem, output).at(steps[nth]);
            Ok(step.rows(0..whole.row_count()))
        });
        above.push(written_output(operator, place, &problem.sizes, &answer));
        answers.push(answer);
    }
    answers
}

fn evaluator<'a>(problem: &'a Problem<'a>, output: &'a Output) -> Evaluator<'a> {
    let evaluator = problem.evaluator(&output.value, &output.tensor);
    evaluator.expect("operands drawn for the operator")
}

/// The first outputs of a problem as a kernel writes them, for the value of the next to read.
pub(crate) fn written_outputs(
    operator: &Operator,
    sizes: &[u64],
    answers: &[GroupOracle],
) -> Vec<Tensor> {
    let answers = answers.iter().enumerate();
    answers
        .map(|(place, answer)| written_output(operator, place, sizes, answer))
        .collect()
}

/// An output as a kernel would have written it; empty if no later output names it.
pub(super) fn written_output(
    operator: &Operator,
    place: usize,
    sizes: &[u64],
    answer: &GroupOracle,
) -> Tensor {
    let later = operator.outputs[place + 1..].iter().map(|o| &o.value);
    let mistakes = operator.mistakes.iter().map(|mistake| &mistake.value);
    let mut nodes = later.chain(mistakes).flat_map(|value| &value.nodes);
    let count = match nodes.any(|node| node.op == Op::Output(place)) {
        true => answer.len(),
        false => 0,
    };
    let tensor = &operator.outputs[place].tensor;
    let written = OutputValues::rounded(tensor.element, (0..count).map(|index| answer.c(index)));
    let extents = tensor.extents(sizes).unwrap_or_default().into_iter();
    Tensor {
        name: tensor.name.clone(),
        element: tensor.element,
        extents: extents.map(|extent| extent as usize).collect(),
        elements: written.bytes().to_vec(),
        scales: Vec::new(),
    }
}

/// An element of a result that differs from the definition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{of} of group {group} at row {row}, column {column} is {found:e}, by the definition {wanted:e}"
)]
pub(crate) struct Departure {
    /// A product, or an output.
    pub of: String,
    pub group: usize,
    pub row: usize,
    pub column: usize,
    pub found: f64,
    pub wanted: f64,
}

#[cfg(test)]
mod tests;
