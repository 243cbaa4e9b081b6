//! Whether an output is right, and if not, how it is wrong. Pure: fp16 bits
//! and an oracle in, a judgement out.

mod elsewhere;
mod guess;
mod mismatch;
mod nearly;
mod passed;
mod place;
mod reduction;
mod rounding;
mod scales;
mod small;
mod story;

use half::f16;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use mismatch::Element;
pub use mismatch::Mismatch;
pub use mismatch::significant;
pub use passed::Exhibit;
pub(crate) use passed::examine;
pub use passed::{Finding, Passed, Spent, Subject, Wrong, prove};
pub use story::{Chart, Patch, Story, story};

use crate::operator::{GroupOracle, Operands, Oracle};

/// What every element of C holds before a call: an fp16 NaN that no arithmetic
/// makes, so that an element nobody wrote can neither pass nor be mistaken for
/// a computed NaN.
pub const POISON: u16 = 0x7e5a;

/// One element in this many may need [`rounding::allowance`]; where more do, it
/// is not rounding.
const SELDOM: usize = 1 << 16;

/// From here on fp16 rounds to infinity.
const FP16_OVERFLOW: f64 = 65520.0;

/// An element passes if |got − expected| ≤ atol + rtol·|expected|, where
/// infinity is the number at which fp16 overflows; NaN passes for NaN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
}

impl Tolerance {
    /// The error of an element over what is allowed there. Only a value that
    /// is at most 1 passes; whatever cannot be compared is infinite.
    pub fn error(&self, bits: u16, expected: f64) -> f64 {
        let got = f16::from_bits(bits).to_f64();
        if got.is_nan() || expected.is_nan() {
            let same = got.is_nan() && expected.is_nan() && bits != POISON;
            return if same { 0.0 } else { f64::INFINITY };
        }
        let error = match got.is_infinite() {
            true => FP16_OVERFLOW - expected * got.signum(),
            false => (got - expected).abs(),
        };
        if error <= 0.0 {
            return 0.0;
        }
        let ratio = error / (self.atol + self.rtol * expected.abs());
        if ratio.is_nan() { f64::INFINITY } else { ratio }
    }

    /// Whether the element passes.
    pub fn accepts(&self, bits: u16, expected: f64) -> bool {
        self.error(bits, expected) <= 1.0
    }
}

/// What an output shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Every element is within tolerance; the largest error over its tolerance.
    Right {
        worst: f64,
    },
    Wrong(Box<Mismatch>),
}

/// Holds `c` (fp16 bits of each group, in the shape's order) against the
/// oracle; `operands` are what the oracle answers, and tell what a wrong
/// element was computed from.
///
/// # Panics
/// If `c` has not the sizes of the oracle.
pub fn judge(
    c: &[Vec<u16>],
    operands: &Operands,
    oracle: &Oracle,
    tolerance: Tolerance,
) -> Judgement {
    assert_eq!(c.len(), oracle.groups.len(), "one output per group");
    let groups = c.iter().zip(&oracle.groups);
    let Survey {
        worst,
        wrong,
        doubtful,
    } = groups
        .map(|(output, answer)| survey(output, answer, tolerance))
        .fold(Survey::default(), Survey::with);
    let evidence = Evidence {
        c,
        operands,
        oracle,
        tolerance,
    };
    let excused = match wrong {
        0 => Some(worst),
        _ => evidence.excused(wrong),
    };
    match excused {
        Some(worst) if doubtful == 0 || small::missed(&evidence).is_empty() => {
            Judgement::Right { worst }
        }
        _ => Judgement::Wrong(Box::new(evidence.explain(worst))),
    }
}

/// What a look at every element shows.
#[derive(Clone, Copy, Default)]
struct Survey {
    /// The largest error over its tolerance.
    worst: f64,
    wrong: usize,
    /// Elements that pass, and are too small for that to say much.
    doubtful: usize,
}

impl Survey {
    fn with(self, other: Self) -> Self {
        Self {
            worst: self.worst.max(other.worst),
            wrong: self.wrong + other.wrong,
            doubtful: self.doubtful + other.doubtful,
        }
    }
}

fn survey(output: &[u16], answer: &GroupOracle, tolerance: Tolerance) -> Survey {
    assert_eq!(output.len(), answer.gate.len(), "every element of a group");
    output
        .par_iter()
        .enumerate()
        .with_min_len(4096)
        .map(|(i, bits)| {
            let expected = answer.c(i);
            let worst = tolerance.error(*bits, expected);
            // Counted by what is accepted, so that nothing incomparable slips by.
            let accepted = worst <= 1.0;
            Survey {
                worst,
                wrong: usize::from(!accepted),
                doubtful: usize::from(small::doubtful(*bits, expected, tolerance)),
            }
        })
        .reduce(Survey::default, Survey::with)
}

/// Everything an explanation can draw on.
#[derive(Clone, Copy)]
struct Evidence<'a> {
    c: &'a [Vec<u16>],
    operands: &'a Operands,
    oracle: &'a Oracle,
    tolerance: Tolerance,
}

impl Evidence<'_> {
    /// Whether the few elements that miss the tolerance do so by no more than a
    /// sum over their K may lose: then the largest error over what is allowed.
    fn excused(&self, wrong: usize) -> Option<f64> {
        let total: usize = self.c.iter().map(Vec::len).sum();
        if wrong > total.div_ceil(SELDOM) {
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
            let allowed = Tolerance {
                atol: self.tolerance.atol
                    + rounding::allowance(&self.operands.groups[group], &element),
                ..self.tolerance
            };
            worst = worst.max(allowed.error(element.bits, element.expected));
        }
        (worst <= 1.0).then_some(worst)
    }

    fn explain(&self, worst: f64) -> Mismatch {
        let wrong = self.wrong_elements();
        // Where nothing misses the tolerance, it did not decide.
        let by_rounding = worst <= 1.0;
        let worst = match by_rounding {
            true => small::missed(self)
                .iter()
                .map(|m| m.error)
                .fold(0.0, f64::max),
            false => worst,
        };
        let count = |of: &dyn Fn(u16) -> bool| -> usize {
            let bits = wrong.iter().zip(self.c);
            bits.map(|(wrong, c)| wrong.iter().zip(c).filter(|(w, b)| **w && of(**b)).count())
                .sum()
        };
        let sample = self.sample(&wrong);
        Mismatch {
            wrong: count(&|_| true),
            total: self.c.iter().map(Vec::len).sum(),
            unwritten: count(&|bits| bits == POISON),
            nan: count(&|bits| bits != POISON && f16::from_bits(bits).is_nan()),
            first: sample[0],
            worst,
            by_rounding,
            place: place::describe(&wrong, self.oracle),
            guess: guess::guess(self, &sample),
        }
    }

    fn wrong_elements(&self) -> Vec<Vec<bool>> {
        let mut wrong = self.missed();
        for small::Missed { group, index, .. } in small::missed(self) {
            wrong[group][index] = true;
        }
        wrong
    }

    /// What misses the tolerance.
    fn missed(&self) -> Vec<Vec<bool>> {
        let groups = self.c.iter().zip(&self.oracle.groups);
        groups
            .map(|(output, answer)| {
                output
                    .par_iter()
                    .enumerate()
                    .map(|(i, bits)| !self.tolerance.accepts(*bits, answer.c(i)))
                    .collect()
            })
            .collect()
    }

    /// Up to [`guess::SAMPLE`] wrong elements spread evenly, the first among them.
    fn sample(&self, wrong: &[Vec<bool>]) -> Vec<Element> {
        let total: usize = wrong
            .iter()
            .map(|group| group.iter().filter(|w| **w).count())
            .sum();
        // A stride that shares no factor with tile sizes sees all columns.
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
        let columns = answer.group.n as usize;
        Element {
            group,
            row: index / columns,
            column: index % columns,
            bits: self.c[group][index],
            expected: answer.c(index),
        }
    }
}

#[cfg(test)]
mod tests;
