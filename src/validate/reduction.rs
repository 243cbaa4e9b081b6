//! Mistakes inside the sum over K: blocks left out, scales or nibbles taken in
//! the wrong order, a tile used one step late. The sums of a few wrong
//! elements are done again, with each mistake made on purpose.

use super::guess::{holds, nearly_all};
use super::{Element, Evidence};
use crate::operator::{GroupOperands, SCALE_BLOCK, decode_e2m1, decode_e4m3, silu};

/// Redone sums cost K multiplications for every hypothesis.
const SAMPLE: usize = 32;
/// Sizes of the blocks that kernels step along K.
const STEPS: [usize; 5] = [16, 32, 64, 128, 256];

pub(super) fn guess(evidence: &Evidence<'_>, sample: &[Element]) -> Option<String> {
    let stride = sample.len().div_ceil(SAMPLE);
    let few: Vec<Element> = sample.iter().step_by(stride).copied().collect();
    if few.len() < 4 {
        return None;
    }
    let sums: Vec<Terms> = few
        .iter()
        .map(|element| Terms::of(&evidence.operands.groups[element.group], element))
        .collect();
    mistakes().into_iter().find_map(|(mistake, targets)| {
        let target = targets.iter().find(|target| {
            let terms = few.iter().zip(&sums);
            let redone: Vec<(Element, f64)> = terms
                .map(|(element, terms)| (*element, terms.with(mistake, **target)))
                .collect();
            nearly_all(&few, |element| {
                let value = redone.iter().find(|(e, _)| e == element);
                value.is_some_and(|(_, value)| holds(evidence, element, *value))
            })
        })?;
        Some(tell(mistake, *target))
    })
}

/// What the mistake was made on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    A,
    B1,
    B2,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    DropLast(usize),
    DropFirst(usize),
    /// A's block of the step before is used.
    Late(usize),
    /// Scales 0 and 1, 2 and 3, … exchanged.
    ScalesExchanged,
    /// Scales taken one block on.
    ScalesShifted,
    ScalesIgnored,
    NibblesExchanged,
}

fn mistakes() -> Vec<(Mistake, &'static [Target])> {
    const SUMS: &[Target] = &[Target::Both, Target::B1, Target::B2];
    const TENSORS: &[Target] = &[Target::A, Target::B1, Target::B2, Target::Both];
    let mut all = Vec::new();
    for step in STEPS {
        all.push((Mistake::DropLast(step), SUMS));
        all.push((Mistake::DropFirst(step), SUMS));
        all.push((Mistake::Late(step), SUMS));
    }
    all.push((Mistake::ScalesExchanged, TENSORS));
    all.push((Mistake::ScalesShifted, TENSORS));
    all.push((Mistake::ScalesIgnored, TENSORS));
    all.push((Mistake::NibblesExchanged, TENSORS));
    all
}

fn tell(mistake: Mistake, target: Target) -> String {
    let sum = match target {
        Target::B1 => "A·B1ᵀ",
        Target::B2 => "A·B2ᵀ",
        _ => "both products",
    };
    let tensor = match target {
        Target::A => "A",
        Target::B1 => "B1",
        Target::B2 => "B2",
        Target::Both => "B1 and B2",
    };
    match mistake {
        Mistake::DropLast(step) => format!("lacks the last {step} of K in {sum}"),
        Mistake::DropFirst(step) => format!("lacks the first {step} of K in {sum}"),
        Mistake::Late(step) => format!("has A one K block of {step} late in {sum}"),
        Mistake::ScalesExchanged => format!("has neighbouring scales of {tensor} exchanged"),
        Mistake::ScalesShifted => format!("has the scales of {tensor} one block off"),
        Mistake::ScalesIgnored => format!("ignores the scales of {tensor}"),
        Mistake::NibblesExchanged => format!("has the nibbles of {tensor} exchanged"),
    }
}

/// A row of a packed tensor, elements and scales apart.
#[derive(Clone)]
struct Row {
    elements: Vec<f64>,
    scales: Vec<f64>,
}

impl Row {
    fn of(packed: &[u8], scales: &[u8], row: usize, k: usize) -> Self {
        let (width, scale_width) = (k / 2, k / SCALE_BLOCK);
        let bytes = &packed[row * width..][..width];
        let pairs = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        let codes = &scales[row * scale_width..][..scale_width];
        Self {
            elements: pairs.map(decode_e2m1).collect(),
            scales: codes.iter().map(|code| decode_e4m3(*code)).collect(),
        }
    }

    /// The row's values with a mistake in how it is read.
    fn values(&self, mistake: Option<Mistake>) -> Vec<f64> {
        let blocks = self.scales.len();
        let value = |i: usize| {
            let block = i / SCALE_BLOCK;
            match mistake {
                Some(Mistake::ScalesExchanged) => {
                    self.elements[i] * self.scales[(block ^ 1).min(blocks - 1)]
                }
                Some(Mistake::ScalesShifted) => {
                    self.elements[i] * self.scales[(block + 1).min(blocks - 1)]
                }
                Some(Mistake::ScalesIgnored) => self.elements[i],
                Some(Mistake::NibblesExchanged) => self.elements[i ^ 1] * self.scales[block],
                _ => self.elements[i] * self.scales[block],
            }
        };
        (0..self.elements.len()).map(value).collect()
    }
}

/// What one element of C is made of.
pub(super) struct Terms {
    a: Row,
    b1: Row,
    b2: Row,
}

impl Terms {
    pub(super) fn of(operands: &GroupOperands, element: &Element) -> Self {
        let k = operands.group.k as usize;
        Self {
            a: Row::of(&operands.a, &operands.sfa, element.row, k),
            b1: Row::of(&operands.b1, &operands.sfb1, element.column, k),
            b2: Row::of(&operands.b2, &operands.sfb2, element.column, k),
        }
    }

    /// What the two sums over K add up: of A·B1ᵀ and of A·B2ᵀ.
    pub(super) fn products(&self) -> [Vec<f64>; 2] {
        let a = self.a.values(None);
        [&self.b1, &self.b2].map(|b| a.iter().zip(b.values(None)).map(|(x, y)| x * y).collect())
    }

    /// C's element with `mistake` made on `target`.
    fn with(&self, mistake: Mistake, target: Target) -> f64 {
        let on = |tensor: Target| {
            let both = target == Target::Both && tensor != Target::A;
            (target == tensor || both).then_some(mistake)
        };
        let a = self.a.values(on(Target::A));
        let gate = sum(&a, &self.b1.values(on(Target::B1)), on(Target::B1));
        let up = sum(&a, &self.b2.values(on(Target::B2)), on(Target::B2));
        silu(gate) * up
    }
}

fn sum(a: &[f64], b: &[f64], mistake: Option<Mistake>) -> f64 {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    let k = a.len();
    match mistake {
        Some(Mistake::DropLast(step)) => dot(&a[..k - step], b),
        Some(Mistake::DropFirst(step)) => dot(&a[step..], &b[step..]),
        // The first step has nothing before it and uses its own block.
        Some(Mistake::Late(step)) => dot(&a[..step], b) + dot(a, &b[step..]),
        _ => dot(a, b),
    }
}
