//! How well modelled times agree with measured ones: the error of each cell, the order of the
//! contenders, and the sign of each difference. Input is a run file and modelled times from any
//! source.

mod comparison;
mod document;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use dgx_core::domain::ContenderId;
use dgx_core::stats::kendall_tau;

pub(crate) use comparison::{ModelComparison, mark_seen, measured_on};
pub(crate) use document::Agreement;

/// Measured differences of at least this share count when signs are compared.
pub(crate) const NOTABLE: f64 = 0.02;

/// One contender on one shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelledCell {
    pub(crate) contender: ContenderId,
    pub(crate) shape: String,
    /// Microseconds.
    pub(crate) measured: f64,
    pub(crate) modelled: f64,
    /// The cause of most of the modelled time.
    pub(crate) bound: String,
    /// Whether the cell was examined while the model was built.
    pub(crate) seen: bool,
    /// A reason to doubt the modelled time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remark: Option<String>,
}

impl ModelledCell {
    /// The modelled time over the measured, less one.
    pub(crate) fn error(&self) -> f64 {
        self.modelled / self.measured - 1.0
    }
}

/// Errors of cells, as shares of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Errors {
    pub(crate) cells: usize,
    pub(crate) median: f64,
    /// Nine of ten cells have at most this error.
    pub(crate) p90: f64,
    pub(crate) worst: f64,
    /// Geometric mean of modelled over measured, less one.
    pub(crate) bias: f64,
}

impl Errors {
    /// The errors of some cells; `None` if there are none.
    pub(crate) fn of<'a>(cells: impl IntoIterator<Item = &'a ModelledCell>) -> Option<Self> {
        Self::over(cells.into_iter().map(ModelledCell::error))
    }

    /// From the ratios of modelled to measured times, each minus one.
    pub(crate) fn over(errors: impl Iterator<Item = f64>) -> Option<Self> {
        let errors: Vec<f64> = errors.collect();
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let logs: f64 = errors.iter().map(|error| error.ln_1p()).sum();
        let count = sizes.len();
        Some(Self {
            cells: count,
            worst: *sizes.last()?,
            median: (sizes[(count - 1) / 2] + sizes[count / 2]) / 2.0,
            p90: sizes[(9 * count).div_ceil(10) - 1],
            bias: (logs / count as f64).exp_m1(),
        })
    }
}

/// How good the model's order of a shape's contenders, or of their means, is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) shape: Option<String>,
    pub(crate) contenders: usize,
    /// `None` if all times are equal.
    pub(crate) tau: Option<f64>,
    /// The fastest contender by the model, and by measurement.
    pub(crate) picked: ContenderId,
    pub(crate) fastest: ContenderId,
    /// The cost of using `picked`, as a share of the time of `fastest`.
    pub(crate) regret: f64,
    /// Pairs that the model separates: by more than its median error on the run, as in tables.
    pub(crate) apart: usize,
    /// How many of them are in the right order.
    pub(crate) apart_right: usize,
}

/// What makes two contenders neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// One was made from the other.
    Design,
    /// One variant with two values of one parameter.
    Choice,
}

/// Two neighbours whose measured times differ by a notable share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    pub(crate) step: Step,
    pub(crate) from: ContenderId,
    pub(crate) to: ContenderId,
    pub(crate) shape: Option<String>,
    /// Time of `to` over that of `from`, less one.
    pub(crate) measured: f64,
    pub(crate) modelled: f64,
}

impl Difference {
    /// Whether the model names the faster of the two correctly.
    pub(crate) fn right(&self) -> bool {
        self.measured.signum() == self.modelled.signum() && self.modelled != 0.0
    }
}

/// Contenders with both times, on one shape or in the mean over shapes.
struct Field<'a> {
    shape: Option<&'a str>,
    entrants: Vec<(&'a ContenderId, f64, f64)>,
}

/// A field for each shape of a run in the order of its cells; the last is the geometric mean of the
/// contenders that have a time on all shapes.
fn fields(cells: &[ModelledCell]) -> Vec<Field<'_>> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut sums: BTreeMap<&ContenderId, (usize, f64, f64)> = BTreeMap::new();
    for cell in cells {
        let entrant = (&cell.contender, cell.measured, cell.modelled);
        let shape = Some(cell.shape.as_str());
        match fields.iter_mut().find(|field| field.shape == shape) {
            Some(field) => field.entrants.push(entrant),
            None => fields.push(Field {
                shape,
                entrants: vec![entrant],
            }),
        }
        let (count, measured, modelled) = sums.entry(&cell.contender).or_default();
        *count += 1;
        *measured += cell.measured.ln();
        *modelled += cell.modelled.ln();
    }
    let shapes = fields.len();
    let mean = |sum: f64| (sum / shapes as f64).exp();
    let whole = sums.into_iter().filter(|(_, sums)| sums.0 == shapes);
    let entrants: Vec<_> = whole
        .map(|(id, (_, measured, modelled))| (id, mean(measured), mean(modelled)))
        .collect();
    if shapes > 1 && !entrants.is_empty() {
        fields.push(Field {
            shape: None,
            entrants,
        });
    }
    fields
}

/// How the cells of one run are ordered.
fn orders(cells: &[ModelledCell]) -> Vec<Order> {
    let error = Errors::of(cells).map_or(0.0, |errors| errors.median);
    let fields = fields(cells);
    fields
        .iter()
        .filter_map(|field| field.order(error))
        .collect()
}

impl Field<'_> {
    /// Times closer than this error of the model are ties.
    fn order(&self, error: f64) -> Option<Order> {
        let least = |time: fn(&(&ContenderId, f64, f64)) -> f64| {
            let entrants = self.entrants.iter();
            entrants.min_by(|a, b| time(a).total_cmp(&time(b)))
        };
        let fastest = least(|entrant| entrant.1)?;
        let picked = least(|entrant| entrant.2)?;
        let (measured, modelled): (Vec<f64>, Vec<f64>) =
            self.entrants.iter().map(|e| (e.1, e.2)).unzip();
        let pairs = (self.entrants.iter().enumerate())
            .flat_map(|(index, a)| self.entrants[index + 1..].iter().map(move |b| (a, b)));
        let apart = pairs.filter(|(a, b)| (b.2 / a.2).ln().abs() > error.ln_1p());
        let apart: Vec<bool> = apart.map(|(a, b)| (b.2 > a.2) == (b.1 > a.1)).collect();
        Some(Order {
            shape: self.shape.map(str::to_owned),
            contenders: self.entrants.len(),
            apart: apart.len(),
            apart_right: apart.iter().filter(|&&right| right).count(),
            tau: kendall_tau(&measured, &modelled),
            picked: picked.0.clone(),
            fastest: fastest.0.clone(),
            regret: picked.1 / fastest.1 - 1.0,
        })
    }

    fn times(&self, id: &ContenderId) -> Option<(f64, f64)> {
        let entrant = self.entrants.iter().find(|entrant| entrant.0 == id)?;
        Some((entrant.1, entrant.2))
    }
}

/// The notable differences between neighbours, on each shape and in the mean.
fn differences(
    cells: &[ModelledCell],
    neighbours: &[(Step, ContenderId, ContenderId)],
) -> Vec<Difference> {
    let mut found = Vec::new();
    for field in fields(cells) {
        for (step, from, to) in neighbours {
            let (Some(a), Some(b)) = (field.times(from), field.times(to)) else {
                continue;
            };
            let difference = Difference {
                step: *step,
                from: from.clone(),
                to: to.clone(),
                shape: field.shape.map(str::to_owned),
                measured: b.0 / a.0 - 1.0,
                modelled: b.1 / a.1 - 1.0,
            };
            if difference.measured.ln_1p().abs() >= NOTABLE.ln_1p() {
                found.push(difference);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(contender: &str, shape: &str, measured: f64, modelled: f64) -> ModelledCell {
        ModelledCell {
            contender: ContenderId::from_text(contender),
            shape: shape.to_owned(),
            measured,
            modelled,
            bound: String::new(),
            seen: true,
            remark: None,
        }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn errors_are_told_by_their_middle_their_tail_and_their_lean() {
        let of = |modelled: &[f64]| {
            let cells: Vec<ModelledCell> =
                modelled.iter().map(|m| cell("a", "s", 100.0, *m)).collect();
            Errors::of(&cells)
        };
        assert_eq!(of(&[]), None);
        let one = of(&[90.0]).unwrap();
        for value in [one.median, one.p90, one.worst] {
            near(value, 0.1);
        }
        near(one.bias, -0.1);
        // Ten of them, off by 1 % to 10 %, by turns either way.
        let ten: Vec<f64> = (1..=10)
            .map(|i| 100.0 + f64::from(i * (1 - 2 * (i % 2))))
            .collect();
        let ten = of(&ten).unwrap();
        near(ten.median, 0.055);
        near(ten.p90, 0.09);
        near(ten.worst, 0.10);
        assert_eq!(ten.cells, 10);
        near(of(&[50.0, 200.0]).unwrap().bias, 0.0);
    }

    #[test]
    fn orders_are_of_each_shape_and_of_the_mean_of_those_in_all() {
        let cells = [
            cell("a", "s", 10.0, 10.0),
            cell("b", "s", 11.0, 9.0),
            cell("c", "s", 20.0, 30.0),
            cell("a", "t", 10.0, 9.0),
            cell("b", "t", 12.0, 11.0),
        ];
        let orders = orders(&cells);
        assert_eq!(orders.len(), 3);
        near(orders[0].tau.unwrap(), 1.0 / 3.0);
        // Off by 10 % in the median: 10.0 and 9.0 are apart, and the wrong way round.
        assert_eq!((orders[0].apart, orders[0].apart_right), (3, 2));
        assert_eq!(orders[0].picked, ContenderId::from_text("b"));
        assert_eq!(orders[0].fastest, ContenderId::from_text("a"));
        near(orders[0].regret, 0.1);
        assert_eq!((orders[1].tau, orders[1].regret), (Some(1.0), 0.0));
        // c is not in all shapes.
        assert_eq!((orders[2].shape.as_ref(), orders[2].contenders), (None, 2));
        // √(10·9) against √(9·11): a is faster by the model, and by measurement.
        assert_eq!((orders[2].tau, orders[2].regret), (Some(1.0), 0.0));
    }

    #[test]
    fn of_one_shape_there_is_no_mean_and_of_one_contender_no_order() {
        let orders = orders(&[cell("a", "s", 10.0, 12.0)]);
        assert_eq!(orders.len(), 1);
        assert_eq!((orders[0].tau, orders[0].regret), (None, 0.0));
    }

    #[test]
    fn only_notable_differences_have_a_sign_that_counts() {
        let cells = [
            cell("a", "s", 100.0, 100.0),
            cell("b", "s", 101.0, 90.0),
            cell("c", "s", 90.0, 100.0),
            cell("d", "s", 80.0, 99.0),
        ];
        let id = ContenderId::from_text;
        let pairs = [
            (id("a"), id("b")),
            (id("a"), id("c")),
            (id("c"), id("d")),
            (id("a"), id("x")),
        ];
        let pairs = pairs.map(|(from, to)| (Step::Design, from, to));
        let found = differences(&cells, &pairs);
        let directions: Vec<_> = found.iter().map(|d| (d.to.as_str(), d.right())).collect();
        assert_eq!(directions, [("c", false), ("d", true)]);
        near(found[0].measured, -0.1);
    }
}
