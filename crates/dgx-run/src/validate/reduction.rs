//! Mistakes inside the sum over K: blocks left out, scales or nibbles in the wrong order, a tile
//! used one step late. The sums of a few wrong elements are repeated with each mistake made on
//! purpose.

use super::guess::{Hypothesis, explained_share, few_of, holds};
use super::{Element, Evidence};
use crate::operator::{GroupOperands, SCALE_BLOCK, Tensor, decode_e2m1, decode_e4m3, silu};

/// Block sizes of kernels' steps along K.
const STEPS: [usize; 5] = [16, 32, 64, 128, 256];

/// All mistakes, made on demand.
pub(super) fn hypotheses<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    let redo = move || {
        let few = few_of(sample);
        let sums = few
            .iter()
            .map(|element| Terms::of(&evidence.operands.groups[element.group], element))
            .collect();
        RedoneSums {
            evidence,
            few,
            sums,
        }
    };
    std::iter::once_with(redo).flat_map(|redone| redone.all())
}

/// A few wrong elements and the terms of their sums.
struct RedoneSums<'e> {
    evidence: &'e Evidence<'e>,
    few: Vec<Element>,
    sums: Vec<Terms>,
}

impl<'e> RedoneSums<'e> {
    fn all(self) -> impl Iterator<Item = Hypothesis> + 'e {
        let shortest = self.sums.iter().map(Terms::count).min().unwrap_or(0);
        // A step of the whole K leaves nothing, which is zero.
        let mistakes = mistakes()
            .into_iter()
            .filter(move |(m, _)| m.step() < shortest);
        let redone = std::rc::Rc::new(self);
        let blocks = std::rc::Rc::clone(&redone);
        let each = mistakes.flat_map(move |(mistake, targets)| {
            let redone = std::rc::Rc::clone(&redone);
            targets
                .iter()
                .map(move |&target| redone.fit(mistake, target))
        });
        each.chain(std::iter::once_with(move || blocks.stretches()).flatten())
    }

    fn fit(&self, mistake: ReductionMistake, target: WrongTensor) -> Hypothesis {
        let explained = self.share(|terms| terms.with(mistake, target));
        Hypothesis::new(tell(mistake, target), explained, &self.few)
    }

    /// The share of the few elements whose value is `value` of their terms.
    fn share(&self, value: impl Fn(&Terms) -> f64) -> f64 {
        let pairs = self.few.iter().zip(&self.sums);
        let held = pairs.filter(|(element, terms)| holds(self.evidence, element, value(terms)));
        explained_share(held.map(|(element, _)| element), self.few.len())
    }

    /// Any stretch of K that is left out or counted twice, and any tail.
    fn stretches(&self) -> Vec<Hypothesis> {
        let Some(terms) = self.sums.iter().map(Terms::count).min() else {
            return Vec::new();
        };
        let prefixes: Vec<[Vec<f64>; 2]> = self.sums.iter().map(Terms::prefixes).collect();
        let share = |change: &dyn Fn(&[f64]) -> f64| {
            let pairs = self.few.iter().zip(&prefixes);
            let held = pairs.filter(|(element, [gate, up])| {
                let value = silu(change(gate)) * change(up);
                holds(self.evidence, element, value)
            });
            explained_share(held.map(|(element, _)| element), self.few.len())
        };
        let whole = |sums: &[f64]| sums[sums.len() - 1];
        let mut fits = Vec::new();
        for tail in (SCALE_BLOCK..terms).step_by(SCALE_BLOCK) {
            let blocks = tail / SCALE_BLOCK;
            let what = tell(ReductionMistake::DropLast(tail), WrongTensor::Both);
            let explained = share(&|sums| sums[sums.len() - 1 - blocks]);
            fits.push(Hypothesis::new(what, explained, &self.few));
        }
        for step in STEPS.into_iter().filter(|step| *step < terms) {
            for first in (0..terms - step + 1).step_by(step) {
                let (from, to) = (first / SCALE_BLOCK, (first + step) / SCALE_BLOCK);
                let part = move |sums: &[f64]| sums[to] - sums[from];
                let last = first + step - 1;
                let lacks = share(&|sums| whole(sums) - part(sums));
                let twice = share(&|sums| whole(sums) + part(sums));
                let what = format!("lacks {first} to {last} of K");
                fits.push(Hypothesis::new(what, lacks, &self.few));
                let what = format!("has {first} to {last} of K twice");
                fits.push(Hypothesis::new(what, twice, &self.few));
            }
        }
        // Reported once: the first of those that fit best.
        let best = fits
            .into_iter()
            .reduce(|best, fit| match fit.share > best.share {
                true => fit,
                false => best,
            });
        best.into_iter().collect()
    }
}

/// The tensor with the mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WrongTensor {
    A,
    B1,
    B2,
    Both,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ReductionMistake {
    DropLast(usize),
    DropFirst(usize),
    /// A's block of the step before is used.
    Late(usize),
    /// Scales 0 and 1, 2 and 3, … swapped.
    ScalesExchanged,
    /// Scales of the next block.
    ScalesShifted,
    ScalesIgnored,
    NibblesExchanged,
    /// One nibble of each byte used for both.
    NibbleTwice {
        high: bool,
    },
    /// The sign bit of e2m1.
    SignsIgnored,
    /// The only subnormal of e2m1, 0.5, read as 0.
    HalvesLost,
}

impl ReductionMistake {
    /// The K step of the mistake.
    fn step(self) -> usize {
        match self {
            Self::DropLast(step) | Self::DropFirst(step) | Self::Late(step) => step,
            _ => 0,
        }
    }
}

fn mistakes() -> Vec<(ReductionMistake, &'static [WrongTensor])> {
    const SUMS: &[WrongTensor] = &[WrongTensor::Both, WrongTensor::B1, WrongTensor::B2];
    const TENSORS: &[WrongTensor] = &[
        WrongTensor::A,
        WrongTensor::B1,
        WrongTensor::B2,
        WrongTensor::Both,
        WrongTensor::All,
    ];
    let mut all = Vec::new();
    for step in STEPS {
        all.push((ReductionMistake::DropLast(step), SUMS));
        all.push((ReductionMistake::DropFirst(step), SUMS));
        all.push((ReductionMistake::Late(step), SUMS));
    }
    all.push((ReductionMistake::ScalesExchanged, TENSORS));
    all.push((ReductionMistake::ScalesShifted, TENSORS));
    all.push((ReductionMistake::ScalesIgnored, TENSORS));
    all.push((ReductionMistake::NibblesExchanged, TENSORS));
    all.push((ReductionMistake::NibbleTwice { high: false }, TENSORS));
    all.push((ReductionMistake::NibbleTwice { high: true }, TENSORS));
    all.push((ReductionMistake::SignsIgnored, TENSORS));
    all.push((ReductionMistake::HalvesLost, TENSORS));
    all
}

fn tell(mistake: ReductionMistake, target: WrongTensor) -> String {
    let sum = match target {
        WrongTensor::B1 => "A·B1ᵀ",
        WrongTensor::B2 => "A·B2ᵀ",
        _ => "both products",
    };
    let tensor = match target {
        WrongTensor::A => "A",
        WrongTensor::B1 => "B1",
        WrongTensor::B2 => "B2",
        WrongTensor::Both => "B1 and B2",
        WrongTensor::All => "A, B1 and B2",
    };
    match mistake {
        ReductionMistake::DropLast(step) => format!("lacks the last {step} of K in {sum}"),
        ReductionMistake::DropFirst(step) => format!("lacks the first {step} of K in {sum}"),
        ReductionMistake::Late(step) => format!("has A one K block of {step} late in {sum}"),
        ReductionMistake::ScalesExchanged => {
            format!("has neighbouring scales of {tensor} exchanged")
        }
        ReductionMistake::ScalesShifted => format!("has the scales of {tensor} one block off"),
        ReductionMistake::ScalesIgnored => format!("ignores the scales of {tensor}"),
        ReductionMistake::NibblesExchanged => format!("has the nibbles of {tensor} exchanged"),
        ReductionMistake::NibbleTwice { high: false } => {
            format!("has the low nibbles of {tensor} for the high ones too")
        }
        ReductionMistake::NibbleTwice { high: true } => {
            format!("has the high nibbles of {tensor} for the low ones too")
        }
        ReductionMistake::SignsIgnored => format!("ignores the signs of {tensor}'s elements"),
        ReductionMistake::HalvesLost => {
            format!("takes 0.5 in {tensor} for 0: e2m1's least value is lost")
        }
    }
}

/// A row of a packed tensor, elements and scales apart.
#[derive(Clone)]
struct Row {
    elements: Vec<f64>,
    scales: Vec<f64>,
}

impl Row {
    fn of(tensor: &Tensor, row: usize) -> Self {
        let depth = tensor.columns();
        let (width, scale_width) = (depth / 2, depth / SCALE_BLOCK);
        let bytes = &tensor.elements[row * width..][..width];
        let pairs = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        let codes = &tensor.scales[row * scale_width..][..scale_width];
        Self {
            elements: pairs.map(decode_e2m1).collect(),
            scales: codes.iter().map(|code| decode_e4m3(*code)).collect(),
        }
    }

    /// The row's values with a mistake in how it is read.
    fn values(&self, mistake: Option<ReductionMistake>) -> Vec<f64> {
        let blocks = self.scales.len();
        let value = |i: usize| {
            let block = i / SCALE_BLOCK;
            match mistake {
                Some(ReductionMistake::ScalesExchanged) => {
                    self.elements[i] * self.scales[(block ^ 1).min(blocks - 1)]
                }
                Some(ReductionMistake::ScalesShifted) => {
                    self.elements[i] * self.scales[(block + 1).min(blocks - 1)]
                }
                Some(ReductionMistake::ScalesIgnored) => self.elements[i],
                Some(ReductionMistake::NibblesExchanged) => {
                    self.elements[i ^ 1] * self.scales[block]
                }
                Some(ReductionMistake::NibbleTwice { high }) => {
                    self.elements[i & !1 | usize::from(high)] * self.scales[block]
                }
                Some(ReductionMistake::SignsIgnored) => self.elements[i].abs() * self.scales[block],
                Some(ReductionMistake::HalvesLost) if self.elements[i].abs() == 0.5 => 0.0,
                _ => self.elements[i] * self.scales[block],
            }
        };
        (0..self.elements.len()).map(value).collect()
    }
}

/// The terms of one element of C.
pub(super) struct Terms {
    a: Row,
    b1: Row,
    b2: Row,
}

impl Terms {
    pub(super) fn of(operands: &GroupOperands, element: &Element) -> Self {
        Self {
            a: Row::of(operands.left(), element.row),
            b1: Row::of(operands.gate(), element.column),
            b2: Row::of(operands.up(), element.column),
        }
    }

    fn count(&self) -> usize {
        self.a.elements.len()
    }

    /// For both products: the sums of the first 0, 1, 2, … blocks of a scale.
    fn prefixes(&self) -> [Vec<f64>; 2] {
        self.products().map(|terms| {
            let mut sums = vec![0.0];
            for block in terms.chunks(SCALE_BLOCK) {
                sums.push(sums[sums.len() - 1] + block.iter().sum::<f64>());
            }
            sums
        })
    }

    /// The terms of the two sums over K: of A·B1ᵀ and of A·B2ᵀ.
    pub(super) fn products(&self) -> [Vec<f64>; 2] {
        let a = self.a.values(None);
        [&self.b1, &self.b2].map(|b| a.iter().zip(b.values(None)).map(|(x, y)| x * y).collect())
    }

    /// C's element with `mistake` made on `target`.
    fn with(&self, mistake: ReductionMistake, target: WrongTensor) -> f64 {
        let on = |tensor: WrongTensor| {
            let both = target == WrongTensor::Both && tensor != WrongTensor::A;
            let meant = target == tensor || target == WrongTensor::All || both;
            meant.then_some(mistake)
        };
        let a = self.a.values(on(WrongTensor::A));
        let gate = sum(
            &a,
            &self.b1.values(on(WrongTensor::B1)),
            on(WrongTensor::B1),
        );
        let up = sum(
            &a,
            &self.b2.values(on(WrongTensor::B2)),
            on(WrongTensor::B2),
        );
        silu(gate) * up
    }
}

fn sum(a: &[f64], b: &[f64], mistake: Option<ReductionMistake>) -> f64 {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    let terms = a.len();
    match mistake {
        Some(ReductionMistake::DropLast(step)) => dot(&a[..terms - step], b),
        Some(ReductionMistake::DropFirst(step)) => dot(&a[step..], &b[step..]),
        // The first step has no predecessor and uses its own block.
        Some(ReductionMistake::Late(step)) => dot(&a[..step], b) + dot(a, &b[step..]),
        _ => dot(a, b),
    }
}
