//! What a wrong output looks like. Each hypothesis is a value the element
//! would have if one thing had gone wrong; one that fits nearly every wrong
//! element of a sample is told.

use half::f16;

use super::{Element, Evidence, POISON, reduction, scales};
use crate::operator::silu;

/// Wrong elements that hypotheses are held against.
pub(super) const SAMPLE: usize = 512;
/// Share of the sample a hypothesis must explain: wrong kernels are seldom
/// wrong in one way alone.
const ENOUGH: f64 = 0.95;
/// A hypothesis is computed as a kernel would not: allow it some more error.
const SLACK: f64 = 4.0;
/// Fewer wrong elements than this fit anything.
const LEAST: usize = 4;

/// Reads on from the place: "every element" + "equals A·B1ᵀ: …".
pub(super) fn guess(evidence: &Evidence<'_>, sample: &[Element]) -> Option<String> {
    let found = by_bits(sample)
        .map(str::to_owned)
        .or_else(|| by_formula(evidence, sample).map(str::to_owned))
        .or_else(|| by_factor(sample))
        .or_else(|| by_displacement(evidence, sample))
        .or_else(|| reduction::guess(evidence, sample))
        .or_else(|| scales::guess(evidence, sample))?;
    Some(found)
}

/// Whether `explains` holds for nearly all of the sample.
pub(super) fn nearly_all(sample: &[Element], explains: impl Fn(&Element) -> bool) -> bool {
    let explained = sample.iter().filter(|element| explains(element)).count();
    explained as f64 >= ENOUGH * sample.len() as f64
}

/// Whether the element holds `value`, give or take rounding.
pub(super) fn holds(evidence: &Evidence<'_>, element: &Element, value: f64) -> bool {
    evidence.tolerance.error(element.bits, value) <= SLACK
}

fn by_bits(sample: &[Element]) -> Option<&'static str> {
    if nearly_all(sample, |e| e.bits == POISON) {
        return Some("was never written");
    }
    let nan = |e: &Element| e.bits != POISON && f16::from_bits(e.bits).is_nan();
    if nearly_all(sample, nan) {
        return Some("is NaN");
    }
    if nearly_all(sample, |e| f16::from_bits(e.bits).is_infinite()) {
        return Some("is infinite");
    }
    if nearly_all(sample, |e| e.got() == 0.0) {
        return Some("is zero");
    }
    None
}

type Formula = fn(f64, f64) -> f64;

/// What comes out when a part of the formula is left out or mistaken.
const FORMULAS: [(Formula, &str); 9] = [
    (|gate, _| gate, "equals A·B1ᵀ: no gate, no second GEMM"),
    (|_, up| up, "equals A·B2ᵀ: no gate, no first GEMM"),
    (
        |gate, up| gate * up,
        "equals (A·B1ᵀ)⊙(A·B2ᵀ): silu is missing",
    ),
    (
        |gate, up| silu(up) * gate,
        "equals silu(A·B2ᵀ)⊙(A·B1ᵀ): B1 and B2 are swapped",
    ),
    (
        |gate, _| silu(gate),
        "equals silu(A·B1ᵀ): the second GEMM is missing",
    ),
    (
        |gate, up| up / (1.0 + (-gate).exp()),
        "has a sigmoid in place of silu",
    ),
    (|gate, up| gate.max(0.0) * up, "has relu in place of silu"),
    (
        |gate, up| silu(gate) + up,
        "has the products added, not multiplied",
    ),
    (|gate, up| -silu(gate) * up, "has the wrong sign"),
];

fn by_formula(evidence: &Evidence<'_>, sample: &[Element]) -> Option<&'static str> {
    if sample.len() < LEAST {
        return None;
    }
    FORMULAS.iter().find_map(|(formula, name)| {
        let fits = nearly_all(sample, |element| {
            let (gate, up) = products(evidence, element);
            holds(evidence, element, formula(gate, up))
        });
        fits.then_some(*name)
    })
}

fn products(evidence: &Evidence<'_>, element: &Element) -> (f64, f64) {
    let answer = &evidence.oracle.groups[element.group];
    let index = element.row * answer.group.n as usize + element.column;
    (f64::from(answer.gate[index]), f64::from(answer.up[index]))
}

/// Below this, rounding to fp16 and the tolerance hide what the factor is.
const TELLING: f64 = 0.01;

/// One factor for all: a scale forgotten or applied twice.
fn by_factor(sample: &[Element]) -> Option<String> {
    let telling = |e: &&Element| e.expected.abs() > TELLING && e.got().is_finite();
    let mut factors: Vec<f64> = sample
        .iter()
        .filter(telling)
        .map(|e| e.got() / e.expected)
        .collect();
    if factors.len() < LEAST.max(sample.len() / 4) {
        return None;
    }
    factors.sort_by(f64::total_cmp);
    let middle = factors[factors.len() / 2];
    let fits = |e: &Element| !telling(&e) || (e.got() / e.expected / middle - 1.0).abs() < 0.01;
    (middle != 0.0 && nearly_all(sample, fits))
        .then(|| format!("is off by a factor of {middle:.3}"))
}

/// Distances at which kernels misplace rows and columns.
const DISTANCES: [isize; 8] = [1, 2, 8, 16, 32, 64, 128, 256];

/// The right value of another place: rows or columns shifted, groups mixed up.
fn by_displacement(evidence: &Evidence<'_>, sample: &[Element]) -> Option<String> {
    for distance in DISTANCES.into_iter().flat_map(|d| [d, -d]) {
        for (rows, columns, noun) in [(distance, 0, "row"), (0, distance, "column")] {
            if displaced(sample, |e| holds_of(evidence, e, e.group, rows, columns)) {
                return Some(format!("holds the value of {noun} {distance:+}"));
            }
        }
    }
    let elsewhere = |e: &Element, other| match e.group == other {
        true => Some(false),
        false => holds_of(evidence, e, other, 0, 0),
    };
    (0..evidence.oracle.groups.len())
        .find(|other| displaced(sample, |e| elsewhere(e, *other)))
        .map(|other| format!("holds the values of group {other}"))
}

/// Whether nearly all elements that can tell say yes, and half of them can tell.
fn displaced(sample: &[Element], tells: impl Fn(&Element) -> Option<bool>) -> bool {
    let telling: Vec<bool> = sample.iter().filter_map(tells).collect();
    let yes = telling.iter().filter(|yes| **yes).count();
    telling.len() >= LEAST.max(sample.len() / 2) && yes as f64 >= ENOUGH * telling.len() as f64
}

/// Whether the element holds the right value of that place, if there is one.
fn holds_of(
    evidence: &Evidence<'_>,
    element: &Element,
    group: usize,
    rows: isize,
    columns: isize,
) -> Option<bool> {
    let answer = &evidence.oracle.groups[group];
    let (m, n) = (answer.group.m as usize, answer.group.n as usize);
    let row = element.row.checked_add_signed(rows).filter(|r| *r < m)?;
    let column = element
        .column
        .checked_add_signed(columns)
        .filter(|c| *c < n)?;
    Some(holds(evidence, element, answer.c(row * n + column)))
}
