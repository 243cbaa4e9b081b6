//! Values that are nearly right: one common factor, sums with too few bits, or other small errors
//! of arithmetic. None of these points at an index.

use super::guess::{ENOUGH, Hypothesis, LEAST, TELLING, share_of_telling};
use super::reduction::Terms;
use super::{Element, Evidence};
use crate::operator::silu;

/// Elements, right and wrong, that are used to detect a factor or lost bits.
const JUDGED: usize = 256;
/// With fewer elements a factor could be chance.
const FEWEST: usize = 64;
/// Maximum relative error of rounding to fp16.
const FP16: f64 = 1.0 / 2048.0;
/// The error that the sums of a correct kernel may add to that.
const SUMS: f64 = 2e-4;
/// The minimum distance of a factor from 1, in usual deviations.
const CLEAR: f64 = 2.5;
/// Above this, fp16 rounds by a fixed share of a value.
const NORMAL: f64 = 0.1;

/// Right and wrong elements of the groups with wrong ones, evenly spread: wrong ones alone would be
/// biased by rounding.
fn judged(evidence: &Evidence<'_>, sample: &[Element]) -> Vec<Element> {
    let groups: std::collections::BTreeSet<usize> = sample.iter().map(|e| e.group).collect();
    let each = JUDGED / groups.len().max(1) + 1;
    let of_group = |group: usize| {
        let len = evidence.outputs[group].len();
        let stride = (len / each).max(1) | 1;
        (0..len)
            .step_by(stride)
            .map(move |index| evidence.element(group, index))
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// Every value is the right one times a factor other than 1.
pub(super) fn scaled(evidence: &Evidence<'_>, sample: &[Element]) -> Option<Hypothesis> {
    let mut all = judged(evidence, sample);
    all.retain(|e| e.expected.abs() > NORMAL && e.got().is_finite() && e.got() != 0.0);
    if all.len() < FEWEST {
        return None;
    }
    let ratio = |e: &Element| e.got() / e.expected;
    let middle = median(all.iter().map(ratio).collect());
    let deviation = |e: &Element| (ratio(e) / middle - 1.0).abs();
    let usual = median(all.iter().map(deviation).collect());
    let fits = all.iter().filter(|e| deviation(e) <= FP16 + SUMS).count();
    let clear = middle > 0.0 && (middle - 1.0).abs() > CLEAR * usual;
    let what = format!("is {middle:.4} times the right value");
    clear.then(|| Hypothesis::new(what, fits as f64 / all.len() as f64, &all))
}

/// With fewer bits the terms themselves are in doubt.
const FEW: f64 = 6.0;
/// Sums that keep more bits cannot be distinguished from right ones.
const MANY: f64 = 18.0;
/// As a share of a typical term of its sums: a missing term is not rounding.
const OF_A_TERM: f64 = 0.25;
/// Minimum correlation of partial sums and errors: there is none if an error follows the value
/// itself.
const TOGETHER: f64 = 0.35;

/// An element's error, and what its sums could have lost.
struct SumLoss {
    /// Error of C.
    error: f64,
    expected: f64,
    /// The change of C if its sums change by their largest partial sum, and by a typical term.
    by_peak: f64,
    by_term: f64,
}

impl SumLoss {
    fn of(evidence: &Evidence<'_>, element: &Element) -> Self {
        let terms = Terms::of(&evidence.operands.groups[element.group], element);
        let products = terms.products();
        let [gate, up] = products.each_ref().map(|of| of.iter().sum::<f64>());
        let each = |of: fn(&[f64]) -> f64| products.each_ref().map(|terms| of(terms));
        let (peaks, sizes) = (each(peak), each(typical));
        let sigmoid = 1.0 / (1.0 + (-gate).exp());
        let slope = sigmoid * (1.0 + gate * (1.0 - sigmoid));
        let change = |[g, u]: [f64; 2]| (slope * up * g).abs() + (silu(gate) * u).abs();
        Self {
            error: (element.got() - element.expected).abs(),
            expected: element.expected,
            by_peak: change(peaks),
            by_term: change(sizes),
        }
    }
}

/// The largest partial sum.
fn peak(terms: &[f64]) -> f64 {
    let mut sum = 0.0_f64;
    let sums = terms.iter().map(|term| {
        sum += term;
        sum.abs()
    });
    sums.fold(0.0, f64::max)
}

/// The size of a term.
fn typical(terms: &[f64]) -> f64 {
    let squares: f64 = terms.iter().map(|term| term * term).sum();
    (squares / terms.len().max(1) as f64).sqrt()
}

/// Errors that follow the partial sums, and are smaller than a term of them.
pub(super) fn few_bits(evidence: &Evidence<'_>, sample: &[Element]) -> Option<Hypothesis> {
    if sample.len() < LEAST || !evidence.is_gated() {
        return None;
    }
    let all = judged(evidence, sample);
    let lost = all.iter().map(|element| SumLoss::of(evidence, element));
    let beyond_fp16 = |lost: &SumLoss| {
        lost.error.is_finite()
            && lost.expected.abs() > TELLING
            && lost.error > FP16 * lost.expected.abs()
    };
    let lost: Vec<SumLoss> = lost.filter(beyond_fp16).collect();
    if lost.len() < FEWEST / 2 {
        return None;
    }
    let share = median(lost.iter().map(|l| l.error / l.by_peak).collect());
    let small = lost.iter().filter(|l| l.error < OF_A_TERM * l.by_term);
    let small = small.count() as f64 / lost.len() as f64;
    let grows = correlation(lost.iter().map(|l| {
        let of = |x: f64| (x / l.expected.abs()).ln();
        (of(l.error), of(l.by_peak))
    }));
    let bits = -share.log2();
    let likely = (FEW..MANY).contains(&bits) && grows > TOGETHER && small >= ENOUGH;
    let what = format!(
        "is off by less than a term of the sums, as if these were kept to about {bits:.0} bits: \
         low precision, not indexing"
    );
    likely.then(|| Hypothesis::new(what, small, &all))
}

/// Beyond rounding, but not another value.
const NEAR: f64 = 0.05;

/// No hypothesis fits, but it is nearly right: the arithmetic is at fault, not the indexing.
pub(super) fn near(evidence: &Evidence<'_>, sample: &[Element]) -> Option<Hypothesis> {
    let explained = share_of_telling(sample, |e| {
        let tells = e.expected.abs() > TELLING;
        tells.then(|| (e.got() / e.expected - 1.0).abs() < NEAR)
    });
    let errors = sample
        .iter()
        .map(|e| evidence.tolerance(e).error(e.found, e.expected));
    let middle = median(errors.collect());
    (explained >= ENOUGH).then(|| {
        let what = format!(
            "is within {:.0} % of the right value, {middle:.1} times the tolerance in the \
             median: the arithmetic, not the indexing",
            100.0 * NEAR
        );
        Hypothesis::new(what, explained, sample)
    })
}

/// The median; NaN if there are none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The correlation of two quantities, from -1 to 1.
fn correlation(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = pairs.clone().count() as f64;
    let (x, y) = pairs
        .clone()
        .fold((0.0, 0.0), |(x, y), (a, b)| (x + a / count, y + b / count));
    let [xx, yy, xy] = pairs.fold([0.0; 3], |[xx, yy, xy], (a, b)| {
        let (a, b) = (a - x, b - y);
        [xx + a * a, yy + b * b, xy + a * b]
    });
    xy / (xx * yy).sqrt()
}
