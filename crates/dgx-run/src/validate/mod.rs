//! Whether an output is right, and if not, how it is wrong. Pure: takes elements and an oracle,
//! returns a judgement.

mod check_operator;
mod elsewhere;
mod guess;
mod mismatch;
mod naming;
mod nearly;
mod passed;
mod reduction;
mod region;
mod rounding;
mod scales;
mod small;
mod survey;
mod ties;
mod wrong_output;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use check_operator::check_operator;
pub use mismatch::Element;
pub use mismatch::Mismatch;
pub use mismatch::significant;
pub use naming::OutputName;
pub use passed::CallEffects;
pub(crate) use passed::examine;
pub use passed::{JudgedImage, Passed, UsedProof, Wrong, prove};
pub use wrong_output::{ErrorMap, Neighbours, WrongOutput, explain_wrong};

use crate::operator::{
    Arithmetic, Evaluator, GroupOracle, Operands, Oracle, OutputElement, OutputValues,
    written_outputs,
};
use dgx_core::operator::{ElementType, Op, Operator, Output, Value};
use dgx_core::record::schema::Settings;
use survey::{ComparedElements, survey_all};

/// One element in this many may need [`rounding::allowance`]; if more do, the cause is not
/// rounding.
const SELDOM: usize = 1 << 16;

/// One code in this many may be the neighbouring one, if the value lies nearly between both.
const TIES: usize = 64;

/// Elements of an output that are computed by the definition before a call is reported as wrong.
const CONFIRMED: usize = 16;

/// From here on a type rounds to infinity.
fn overflow(element: ElementType) -> f64 {
    match element {
        ElementType::F16 => 65520.0,
        ElementType::Bf16 => (2.0 - 2f64.powi(-8)) * 2f64.powi(127),
        ElementType::F32 => (2.0 - 2f64.powi(-24)) * 2f64.powi(127),
        _ => f64::INFINITY,
    }
}

/// An element passes if |got − expected| ≤ t = atol + rtol·|expected|. If t is less than the
/// smallest step of its type, half a step is added, up to one step. Infinity counts as the number
/// at which its type overflows; NaN passes for NaN. The GPU has copies of this rule: `dgx_judge`
/// and `dgx_judge_values` in `backend/cuda/tools.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
}

impl From<&Settings> for Tolerance {
    fn from(settings: &Settings) -> Self {
        let &Settings { rtol, atol, .. } = settings;
        Self { rtol, atol }
    }
}

impl Tolerance {
    /// The round's tolerance for an output in place of the operator's file, for all but whole
    /// numbers.
    pub(crate) fn of_round(self, operator: &Operator, output: &Output) -> RoundTolerance {
        let element = output.tensor.element;
        let (rtol, atol) = operator.outputs[0].tolerance();
        match element.unit_roundoff() {
            0.0 => RoundTolerance::default(),
            _ if (self.rtol, self.atol) == (rtol, atol) => RoundTolerance::default(),
            _ if self.is_of_rounding(element) => RoundTolerance {
                rtol: Some(self.rtol),
                atol: Some(0.0),
            },
            _ => RoundTolerance {
                rtol: (self.rtol != rtol).then_some(self.rtol),
                atol: (self.atol != atol).then_some(self.atol),
            },
        }
    }

    /// The error of rounding a correct result to the type of an output.
    pub(crate) fn of_rounding(output: &Output) -> Self {
        Self {
            rtol: output.tensor.element.unit_roundoff(),
            atol: 0.0,
        }
    }

    /// Whether it allows no error of sums.
    fn is_of_rounding(&self, element: ElementType) -> bool {
        self.atol == 0.0 && self.rtol <= element.unit_roundoff()
    }

    /// The error of an element over its tolerance. Only a value of at most 1 passes; an element
    /// that cannot be compared gives infinity.
    pub fn error(&self, found: OutputElement, expected: f64) -> f64 {
        let got = found.value();
        if got.is_nan() || expected.is_nan() {
            let same = got.is_nan() && expected.is_nan() && found.written;
            return if same { 0.0 } else { f64::INFINITY };
        }
        let error = match got.is_infinite() {
            _ if got == expected => 0.0,
            true => overflow(found.element) - expected * got.signum(),
            false => (got - expected).abs(),
        };
        if error <= 0.0 {
            return 0.0;
        }
        let allowed = self.atol + self.rtol * expected.abs();
        // At the end of the type, rounding alone takes half a step.
        let step = found.element.least_step();
        let ratio = error / allowed.max(step.min(allowed + step / 2.0));
        if ratio.is_nan() { f64::INFINITY } else { ratio }
    }

    /// Whether the element passes.
    pub fn accepts(&self, found: OutputElement, expected: f64) -> bool {
        self.error(found, expected) <= 1.0
    }
}

/// The round's own values; the rest is the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RoundTolerance {
    rtol: Option<f64>,
    /// Nothing is added to it.
    pub atol: Option<f64>,
}

impl RoundTolerance {
    pub(crate) fn or(self, file: Tolerance) -> Tolerance {
        Tolerance {
            rtol: self.rtol.unwrap_or(file.rtol),
            atol: self.atol.unwrap_or(file.atol),
        }
    }
}

/// Shorter rows say little about the size of their elements.
const SHORT: usize = 32;

/// The allowed error of an output's elements, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub everywhere: Tolerance,
    /// Added to atol in each row; empty if nothing is added.
    pub rows: Vec<f64>,
}

impl Allowed {
    fn everywhere(tolerance: Tolerance) -> Self {
        Self {
            everywhere: tolerance,
            rows: Vec::new(),
        }
    }

    /// The file's. Without `atol`, elements are also compared with the root mean square of their
    /// row; and with that of the output if rows are short, and if there are products, whose sums
    /// lose by the size of their terms.
    pub(crate) fn of(output: &Output, answer: &GroupOracle) -> Self {
        let (rtol, atol) = output.tolerance();
        let rounding = 2.0 * output.tensor.element.unit_roundoff();
        let relative = rounding.max(rtol);
        let everywhere = Tolerance { rtol, atol };
        let strict = everywhere.is_of_rounding(output.tensor.element);
        if output.atol.is_some() || strict || rounding == 0.0 {
            return Self::everywhere(everywhere);
        }
        let is_short = answer.columns < SHORT;
        let mut steps = output.value.nodes.iter();
        let least = match is_short || steps.any(|step| step.op == Op::MatMul) {
            true => relative * root_mean_square(answer, 0..answer.len()),
            false => 0.0,
        };
        let everywhere = Tolerance {
            atol: atol + least,
            rtol,
        };
        if is_short {
            return Self::everywhere(everywhere);
        }
        let places = |row: usize| row * answer.columns..(row + 1) * answer.columns;
        let rows = (0..answer.rows).into_par_iter();
        let of_row = |row: usize| relative * root_mean_square(answer, places(row));
        Self {
            everywhere,
            rows: rows.map(|row| (of_row(row) - least).max(0.0)).collect(),
        }
    }

    fn with(self, round: RoundTolerance) -> Self {
        Self {
            everywhere: round.or(self.everywhere),
            rows: match round.atol {
                Some(_) => Vec::new(),
                None => self.rows,
            },
        }
    }

    fn at(&self, row: usize) -> Tolerance {
        let more = self.rows.get(row).copied().unwrap_or(0.0);
        Tolerance {
            atol: self.everywhere.atol + more,
            ..self.everywhere
        }
    }
}

/// Of the finite elements.
fn root_mean_square(answer: &GroupOracle, places: std::ops::Range<usize>) -> f64 {
    let finite = places.map(|i| answer.c(i)).filter(|v| v.is_finite());
    let (sum, count) = finite.fold((0.0, 0_u64), |(sum, count), v| (sum + v * v, count + 1));
    (sum / count.max(1) as f64).sqrt()
}

/// The result of comparing an output.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Every element is within tolerance; the largest error over its tolerance.
    Right {
        worst: f64,
    },
    Wrong(Box<Mismatch>),
}

/// The operands of an oracle, which only an output that is not plainly right is compared with.
pub trait PosedOperands {
    fn operator(&self) -> &Operator;
    fn operands(&self) -> &Operands;
}

impl PosedOperands for Operands {
    fn operator(&self) -> &Operator {
        &self.operator
    }

    fn operands(&self) -> &Operands {
        self
    }
}

/// Compares outputs (of each group, in the shape's order) with the oracle; `operands` are those of
/// the oracle, and show what a wrong element was computed from.
///
/// # Panics
/// If their sizes differ from the oracle's.
pub fn judge(
    outputs: &[OutputValues],
    operands: &dyn PosedOperands,
    oracle: &Oracle,
    tolerance: Tolerance,
) -> Judgement {
    assert_eq!(
        outputs.len(),
        oracle.groups.len(),
        "every output of each group"
    );
    let tolerances = tolerances(operands.operator(), oracle, tolerance);
    let surveyed = survey_all(outputs, oracle, &tolerances);
    if let Some(worst) = surveyed.plainly_right() {
        return Judgement::Right { worst };
    }
    let operands = operands.operands();
    let mut evidence = Evidence {
        outputs,
        operands,
        oracle,
        tolerances,
    };
    let defined;
    let mut compared = evidence.settle(surveyed);
    if compared.is_err() && !evidence.is_as_defined() {
        defined = Oracle::compute(operands);
        evidence = Evidence::new(outputs, operands, &defined, tolerance);
        compared = evidence.compare();
    }
    match compared {
        Ok(worst) => Judgement::Right { worst },
        Err(worst) => Judgement::Wrong(Box::new(evidence.explain(worst))),
    }
}

/// Whether every element is within tolerance of the oracle.
pub(crate) fn accepts(
    outputs: &[OutputValues],
    operands: &Operands,
    oracle: &Oracle,
    tolerance: Tolerance,
) -> bool {
    Evidence::new(outputs, operands, oracle, tolerance)
        .compare()
        .is_ok()
}

/// What each output of an oracle may differ by. `tolerance` is the round's.
fn tolerances(operator: &Operator, oracle: &Oracle, tolerance: Tolerance) -> Vec<Allowed> {
    let answers = oracle.groups.iter().zip(operator.outputs.iter().cycle());
    let tolerances = answers.map(|(answer, output)| {
        let round = tolerance.of_round(operator, output);
        Allowed::of(output, answer).with(round)
    });
    tolerances.collect()
}

/// Everything that an explanation can use.
#[derive(Clone)]
struct Evidence<'a> {
    outputs: &'a [OutputValues],
    operands: &'a Operands,
    oracle: &'a Oracle,
    /// Of each output.
    tolerances: Vec<Allowed>,
}

impl<'a> Evidence<'a> {
    /// `tolerance` is the round's.
    fn new(
        outputs: &'a [OutputValues],
        operands: &'a Operands,
        oracle: &'a Oracle,
        tolerance: Tolerance,
    ) -> Self {
        Self {
            outputs,
            operands,
            oracle,
            tolerances: tolerances(&operands.operator, oracle, tolerance),
        }
    }

    /// The largest error over its tolerance: `Ok` if all elements are right.
    fn compare(&self) -> Result<f64, f64> {
        self.settle(survey_all(self.outputs, self.oracle, &self.tolerances))
    }

    /// The same, once every element was compared.
    fn settle(&self, surveyed: ComparedElements) -> Result<f64, f64> {
        let ComparedElements {
            worst,
            wrong,
            doubtful,
        } = surveyed;
        let within_allowed_count = match wrong {
            0 => Some(worst),
            _ => self.within_allowed_count(wrong),
        };
        match within_allowed_count {
            Some(worst) if doubtful == 0 || small::missed(self).is_empty() => Ok(worst),
            _ => Err(worst),
        }
    }

    /// Whether the expected result agrees with the definition, at some of the elements that differ.
    /// Symmetries are found on small shapes: they alone are no proof that a kernel is wrong.
    fn is_as_defined(&self) -> bool {
        if self.is_gated() {
            return true;
        }
        self.missed().iter().enumerate().all(|(place, flags)| {
            let answer = &self.oracle.groups[place];
            let wrong: Vec<usize> = (0..flags.len()).filter(|i| flags[*i]).collect();
            let step = wrong.len().div_ceil(CONFIRMED).max(1);
            let agrees = |evaluator: Evaluator<'_>| {
                wrong.iter().step_by(step).all(|index| {
                    let (row, column) = (index / answer.columns, index % answer.columns);
                    let moved = evaluator.moved(row, column, Arithmetic::F64);
                    moved.is_near(answer.c(*index))
                })
            };
            let value = &self.output(place).value;
            self.on_operands(place, value, agrees) == Some(true)
        })
    }

    /// Whether the few elements that miss the tolerance do so by no more than a sum over their K
    /// may lose: then the largest error over its limit.
    fn within_allowed_count(&self, wrong: usize) -> Option<f64> {
        let total: usize = self.outputs.iter().map(OutputValues::len).sum();
        let coded = self.operands.operator.outputs.iter().any(Output::is_coded);
        if wrong > total.div_ceil(if coded { TIES } else { SELDOM }) {
            return None;
        }
        let groups = self.missed().into_iter().enumerate();
        let missed = groups.flat_map(|(group, flags)| {
            let flagged = flags.into_iter().enumerate().filter(|(_, wrong)| *wrong);
            flagged.map(move |(index, _)| (group, index))
        });
        let mut worst = 1.0_f64; // of those that need no excuse, at most
        for (group, index) in missed {
            let element = self.element(group, index);
            if self.output(group).is_coded() && ties::is_tie(self, &element) {
                continue;
            }
            let tolerance = self.tolerance(&element);
            if tolerance.is_of_rounding(element.found.element) {
                return None;
            }
            let allowed = Tolerance {
                atol: tolerance.atol + self.allowance(&element),
                ..tolerance
            };
            worst = worst.max(allowed.error(element.found, element.expected));
        }
        (worst <= 1.0).then_some(worst)
    }

    fn tolerance(&self, element: &Element) -> Tolerance {
        self.tolerances[element.group].at(element.row)
    }

    /// Whether it is a gated product of block-scaled operands, about whose sums more is known.
    fn is_gated(&self) -> bool {
        self.oracle.groups.iter().all(GroupOracle::is_gated)
    }

    /// The output at this index, counted over all groups.
    fn output(&self, place: usize) -> &Output {
        let outputs = &self.operands.operator.outputs;
        &outputs[place % outputs.len()]
    }

    /// Evaluates a value for the output at this index on the operands of its group, and on the
    /// outputs above it.
    fn on_operands<T>(
        &self,
        place: usize,
        value: &Value,
        then: impl FnOnce(Evaluator<'_>) -> T,
    ) -> Option<T> {
        let operator = &self.operands.operator;
        let outputs = operator.outputs.len();
        let operands = &self.operands.groups[place / outputs];
        let sizes = operator.sizes_in(&operands.group).unwrap_or_default();
        let answers = &self.oracle.groups[place - place % outputs..place];
        let above = written_outputs(operator, &sizes, answers);
        let problem = operands.problem_with(operator, &above);
        let evaluator = problem.evaluator(value, &self.output(place).tensor);
        evaluator.ok().map(then)
    }

    /// The error that the sums of a correct kernel may leave in an element.
    fn allowance(&self, element: &Element) -> f64 {
        if self.oracle.groups[element.group].is_gated() {
            return rounding::allowance(&self.operands.groups[element.group], element);
        }
        let value = &self.output(element.group).value;
        let moved = self.on_operands(element.group, value, |evaluator| {
            evaluator.moved(element.row, element.column, Arithmetic::Fp32)
        });
        let moved = moved.filter(|moved| moved.value.is_finite());
        moved.map_or(0.0, |moved| moved.by)
    }

    fn explain(&self, worst: f64) -> Mismatch {
        let wrong = self.wrong_elements();
        // If nothing misses the tolerance, it was not the criterion.
        let by_rounding = worst <= 1.0;
        let worst = match by_rounding {
            true => small::missed(self)
                .iter()
                .map(|m| m.error)
                .fold(0.0, f64::max),
            false => worst,
        };
        let count = |of: &dyn Fn(OutputElement) -> bool| -> usize {
            let counted = |(wrong, output): (&Vec<bool>, &OutputValues)| {
                let wrong = wrong.iter().enumerate().filter(|(_, wrong)| **wrong);
                wrong.filter(|(i, _)| of(output.at(*i))).count()
            };
            wrong.iter().zip(self.outputs).map(counted).sum()
        };
        let sample = self.sample(&wrong);
        let answers = OutputName::all(self.operands);
        let first = sample[0];
        Mismatch {
            wrong: count(&|_| true),
            total: self.outputs.iter().map(OutputValues::len).sum(),
            unwritten: count(&|found| !found.written),
            nan: count(&|found| found.written && found.value().is_nan()),
            first,
            at: answers[first.group].element(first.row, first.column),
            worst,
            by_rounding,
            place: region::describe(&wrong, &answers),
            guess: guess::guess(self, &sample),
        }
    }

    fn wrong_elements(&self) -> Vec<Vec<bool>> {
        let mut wrong = self.missed();
        for small::SmallError { group, index, .. } in small::missed(self) {
            wrong[group][index] = true;
        }
        wrong
    }

    /// The elements that miss the tolerance.
    fn missed(&self) -> Vec<Vec<bool>> {
        let groups = self.outputs.iter().zip(&self.oracle.groups);
        groups
            .zip(&self.tolerances)
            .map(|((output, answer), allowed)| {
                let right = |i: usize, found: OutputElement| {
                    let tolerance = allowed.at(i / answer.columns);
                    tolerance.accepts(found, answer.c(i))
                };
                let all = output.all().enumerate();
                all.map(|(i, found)| !right(i, found)).collect()
            })
            .collect()
    }

    /// Up to [`guess::SAMPLE`] wrong elements, evenly spread, including the first.
    fn sample(&self, wrong: &[Vec<bool>]) -> Vec<Element> {
        let total: usize = wrong
            .iter()
            .map(|group| group.iter().filter(|w| **w).count())
            .sum();
        // A stride without common factors with tile sizes reaches all columns.
        let stride = (total / guess::SAMPLE).max(1) | 1;
        let places = wrong.iter().enumerate().flat_map(|(group, flags)| {
            let flagged = flags.iter().enumerate().filter(|(_, wrong)| **wrong);
            flagged.map(move |(index, _)| (group, index))
        });
        places
            .step_by(stride)
            .map(|(group, index)| self.element(group, index))
            .collect()
    }

    fn element(&self, group: usize, index: usize) -> Element {
        let answer = &self.oracle.groups[group];
        let columns = answer.columns;
        Element {
            group,
            row: index / columns,
            column: index % columns,
            found: self.outputs[group].at(index),
            expected: answer.c(index),
        }
    }
}

#[cfg(test)]
mod tests;
