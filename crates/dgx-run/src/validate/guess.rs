//! Explains a wrong output. Each hypothesis is the value an element would have after one particular
//! mistake; a hypothesis that fits nearly every wrong element of a sample is reported.

use std::collections::BTreeSet;

use super::{Element, Evidence, elsewhere, nearly, overflow, reduction, scales, small};
use crate::operator::{Oracle, silu};
use dgx_core::operator::{ElementType, Operator};

/// Wrong elements that hypotheses are tested on.
pub(super) const SAMPLE: usize = 512;
/// Share of the sample that a hypothesis must explain: wrong kernels seldom have a single mistake.
pub(super) const ENOUGH: f64 = 0.95;
/// A hypothesis is computed differently from a kernel: allow it some more error.
const SLACK: f64 = 4.0;
/// Fewer wrong elements than this fit any hypothesis.
pub(super) const LEAST: usize = 4;

/// Wrong elements whose sums are recomputed: each costs K multiplications for every hypothesis.
const REDONE: usize = 32;

/// Below this share a hypothesis is not worth reporting, even in detail.
const WORTH: f64 = 0.3;
/// Maximum number of hypotheses reported for one output.
const TOLD: usize = 4;

/// A hypothesis, and how much of the sample it explains.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Begins with a verb: "is what a known mistake gives: …".
    pub what: String,
    /// Of the wrong elements that it was tested on and that can show it.
    pub share: f64,
    /// How many it was tested on.
    pub of: usize,
}

impl Hypothesis {
    pub(super) fn new(what: impl Into<String>, share: f64, sample: &[Element]) -> Self {
        Self {
            what: what.into(),
            share,
            of: sample.len(),
        }
    }

    /// With the operator's names for A, B1 and B2 of a gated product.
    fn with_names_of(self, operator: &Operator) -> Self {
        let product = operator.product();
        let places = product.map(|product| [&[product.left][..], &product.rights].concat());
        let named = |word: &str| {
            let place = ["A", "B1", "B2"].iter().position(|name| *name == word)?;
            let input = *places.as_ref()?.get(place)?;
            Some(operator.inputs[input].name.to_uppercase())
        };
        let pieces = self
            .what
            .split_inclusive(|c: char| !c.is_ascii_alphanumeric());
        let what = pieces.map(|piece| {
            let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let name = named(word).unwrap_or_else(|| word.to_owned());
            name + &piece[word.len()..]
        });
        Self {
            what: what.collect(),
            ..self
        }
    }
}

/// A few elements of the sample, evenly spread, whose sums are recomputed. Empty if there are too
/// few.
pub(super) fn few_of(sample: &[Element]) -> Vec<Element> {
    let stride = sample.len().div_ceil(REDONE).max(1);
    let few: Vec<Element> = sample.iter().step_by(stride).copied().collect();
    match few.len() < LEAST {
        true => Vec::new(),
        false => few,
    }
}

/// Continues the description of the place: "every element" + "is what a known mistake
/// gives: …".
pub(super) fn guess(evidence: &Evidence<'_>, sample: &[Element]) -> Option<String> {
    let mut fits = hypotheses(evidence, sample);
    let found = fits.find(|fit| fit.share >= ENOUGH);
    let found = found.or_else(|| nearly::few_bits(evidence, sample));
    found.map(|fit| fit.what)
}

/// All hypotheses that fit, the best first: those that explain nearly all elements, or else a good
/// part.
pub(super) fn fits(
    evidence: &Evidence<'_>,
    sample: &[Element],
    earlier: Option<&Oracle>,
) -> Vec<Hypothesis> {
    let stale = earlier.and_then(|earlier| stale(evidence, sample, earlier));
    let anywhere = elsewhere::anywhere(evidence, sample);
    let all = hypotheses(evidence, sample).chain(stale).chain(anywhere);
    let mut fits: Vec<Hypothesis> = all.filter(|fit| fit.share >= WORTH).collect();
    // Of equally good ones, the simpler come first.
    fits.sort_by(|a, b| b.share.total_cmp(&a.share));
    if fits.first().is_some_and(|best| best.share >= ENOUGH) {
        fits.retain(|fit| fit.share >= ENOUGH);
    } else if evidence.is_gated()
        && let Some(nearly) =
            nearly::few_bits(evidence, sample).or_else(|| nearly::near(evidence, sample))
    {
        // Nearly right values also match a few values of any other hypothesis.
        fits = vec![nearly];
    }
    let mut seen = BTreeSet::new();
    fits.retain(|fit| seen.insert(fit.what.clone()));
    fits.truncate(TOLD);
    fits
}

/// All hypotheses, made on demand: the cheap ones come first.
fn hypotheses<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    let factor = move || {
        let one = by_factor(sample);
        one.into_iter().chain(nearly::scaled(evidence, sample))
    };
    // Mistakes that are possible only in a gated product of block-scaled operands.
    let gated = evidence.is_gated();
    let of_powers = gated.then(|| by_power_of_two(evidence, sample));
    let of_sums = gated.then(|| reduction::hypotheses(evidence, sample));
    let of_scales = gated.then(|| scales::hypotheses(evidence, sample));
    by_bits(evidence, sample)
        .chain(by_mistake(evidence, sample))
        .chain(std::iter::once_with(factor).flatten())
        .chain(of_powers.into_iter().flatten())
        .chain(elsewhere::displaced(evidence, sample))
        .chain(of_sums.into_iter().flatten())
        .chain(of_scales.into_iter().flatten())
        .map(move |fit| match gated {
            true => fit.with_names_of(&evidence.operands.operator),
            false => fit,
        })
}

/// The mistakes of wrong kernels that the operator's file lists.
fn by_mistake<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    let operator = &evidence.operands.operator;
    let enough = sample.len() >= LEAST;
    let mistakes = operator.mistakes.iter().filter(move |_| enough);
    mistakes.filter_map(move |mistake| {
        let few = few_of(sample);
        let mut explained = Vec::new();
        for element in &few {
            if element.group % operator.outputs.len() != mistake.output {
                continue;
            }
            let value = evidence.on_operands(element.group, &mistake.value, |evaluator| {
                evaluator.element(element.row, element.column)
            })?;
            if holds(evidence, element, value) {
                explained.push(element);
            }
        }
        let share = explained_share(explained.into_iter(), few.len());
        Some(Hypothesis::new(
            format!("is what a known mistake gives: {}", mistake.name),
            share,
            &few,
        ))
    })
}

/// The share of the sample that `explains` accepts.
fn share(sample: &[Element], explains: impl Fn(&Element) -> bool) -> f64 {
    let explained = sample.iter().filter(|element| explains(element)).count();
    explained as f64 / sample.len().max(1) as f64
}

/// Of the explained elements, at least this share must not be zero: many mistakes produce a zero,
/// and zeros do not distinguish them.
const NOT_ZERO: f64 = 0.25;

/// The share of `of` elements that a hypothesis explains; 0 if too many of these are zero.
pub(super) fn explained_share<'e>(explained: impl Iterator<Item = &'e Element>, of: usize) -> f64 {
    let (mut all, mut telling) = (0, 0);
    for element in explained {
        all += 1;
        telling += usize::from(element.got() != 0.0);
    }
    match (telling as f64) < NOT_ZERO * all as f64 {
        true => 0.0,
        false => all as f64 / of.max(1) as f64,
    }
}

/// Like [`share`], of elements that can show it; `None` if too few can.
pub(super) fn share_of_telling(
    sample: &[Element],
    tells: impl Fn(&Element) -> Option<bool>,
) -> f64 {
    let telling = sample.iter().filter_map(|e| Some((e, tells(e)?)));
    let telling: Vec<(&Element, bool)> = telling.collect();
    let yes = telling.iter().filter(|(_, yes)| *yes).map(|(e, _)| *e);
    match telling.len() >= LEAST.max(sample.len() / 2) {
        true => explained_share(yes, telling.len()),
        false => 0.0,
    }
}

/// How much closer than the right value a hypothesis must come: one that changes nothing explains
/// nothing.
const NEARER: f64 = 0.5;

/// Whether the element has `value`, up to rounding, and not equally well the right one.
pub(super) fn holds(evidence: &Evidence<'_>, element: &Element, value: f64) -> bool {
    let error = |value| evidence.tolerance(element).error(element.found, value);
    let (off, right) = (error(value), error(element.expected));
    off <= SLACK && off <= NEARER * right
}

fn by_bits<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    type Looks = fn(&Element) -> bool;
    let operator = &evidence.operands.operator;
    let place = sample.first().map_or(0, |first| first.group);
    let output = &operator.outputs[place % operator.outputs.len()].tensor;
    let name = output.name.to_uppercase();
    let element = match output.element {
        ElementType::F16 => "fp16",
        other => other.name(),
    };
    let nan = match operator.inputs.iter().any(|t| t.element.scale().is_some()) {
        true => "is a number where a scale that goes in is NaN".to_owned(),
        false => format!("is a number where {name} is NaN"),
    };
    let looks: [(Looks, String); 8] = [
        (|e| !e.found.written, "was never written".to_owned()),
        (|e| e.expected.is_nan() && !e.got().is_nan(), nan),
        (
            |e| e.expected.abs() >= overflow(e.found.element) && e.got().is_finite(),
            format!("is finite where {name} is beyond {element} and so infinite"),
        ),
        (
            |e| {
                e.got() == 0.0
                    && e.expected != 0.0
                    && e.expected.abs() < small::normal(e.found.element)
            },
            format!("is zero where {name} is below the normal numbers of {element}"),
        ),
        (
            |e| e.got() == 0.0 && e.expected != 0.0 && e.expected.abs() < small::HIDDEN,
            format!("is zero where {name} is small, which the absolute tolerance does not excuse"),
        ),
        (|e| e.found.written && e.got().is_nan(), "is NaN".to_owned()),
        (|e| e.got().is_infinite(), "is infinite".to_owned()),
        (|e| e.got() == 0.0, "is zero".to_owned()),
    ];
    let looks = looks.into_iter();
    looks.map(|(looks, what)| Hypothesis::new(what, share(sample, looks), sample))
}

/// Powers of two that scales may be wrong by.
const POWERS: std::ops::RangeInclusive<i32> = 1..=8;

/// A product that is wrong by a power of two before the gate: scales whose exponent is read with
/// another bias, or applied twice.
fn by_power_of_two<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    type Scaled = fn(f64, f64, f64) -> f64;
    const SCALED: [(Scaled, &str); 2] = [
        (|gate, up, by| silu(gate * by) * up * by, "both products"),
        (|gate, up, by| silu(gate * by) * up, "A·B1ᵀ"),
    ];
    let enough = sample.len() >= LEAST;
    let powers = POWERS.filter(move |_| enough).flat_map(|p| [p, -p]);
    powers.flat_map(move |power| {
        SCALED.into_iter().map(move |(scaled, what)| {
            let explained = sample.iter().filter(|element| {
                let (gate, up) = products(evidence, element);
                holds(evidence, element, scaled(gate, up, 2f64.powi(power)))
            });
            let power = superscript(power);
            Hypothesis::new(
                format!("has {what} times 2{power}: a scale is off"),
                explained_share(explained, sample.len()),
                sample,
            )
        })
    })
}

/// Another row or column, by its distance.
pub(super) fn away(noun: &str, by: isize) -> String {
    let side = if by < 0 { "before" } else { "after" };
    match by.unsigned_abs() {
        1 => format!("the {noun} {side}"),
        far => format!("the {noun} {far} {side}"),
    }
}

fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    number.to_string().chars().map(raised).collect()
}

fn products(evidence: &Evidence<'_>, element: &Element) -> (f64, f64) {
    let answer = &evidence.oracle.groups[element.group];
    let index = element.row * answer.columns + element.column;
    (f64::from(answer.gate[index]), f64::from(answer.up[index]))
}

/// Below this, rounding to fp16 and the tolerance hide the factor.
pub(super) const TELLING: f64 = 0.01;

/// The deviation from 1 up to which a factor counts as 1.
const ONE: f64 = 0.005;

/// One factor for all: a scale forgotten or applied twice.
fn by_factor(sample: &[Element]) -> Option<Hypothesis> {
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
    let what = format!("is off by a factor of {middle:.3}");
    // A factor of 1 means nothing: it is noise around the right value.
    let telling = middle != 0.0 && (middle - 1.0).abs() > ONE;
    telling.then(|| Hypothesis::new(what, share(sample, fits), sample))
}

/// Whether the values are those that the call before should have left.
fn stale(evidence: &Evidence<'_>, sample: &[Element], earlier: &Oracle) -> Option<Hypothesis> {
    let explained = sample.iter().filter(|element| {
        let answer = &earlier.groups[element.group];
        let value = answer.c(element.row * answer.columns + element.column);
        holds(evidence, element, value)
    });
    let what = "holds what belongs to the call before: stale data";
    let explained = explained_share(explained, sample.len());
    (sample.len() >= LEAST).then(|| Hypothesis::new(what, explained, sample))
}
