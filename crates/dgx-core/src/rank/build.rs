//! Builds the ranking of a run.

use std::collections::HashSet;

use rayon::prelude::*;

use super::cell::cells;
use super::{EntrantKind, Index, Pair, Ranking, Row, SystematicError};
use crate::domain::{ContenderId, Status};
use crate::record::Run;
use crate::stats::{CONFIDENCE, Contrast, Estimates, detectable, holm, places};

impl Ranking {
    /// Judges a run. The same file always gives the same ranking.
    pub fn of(run: &Run) -> Self {
        let mut ranking = Self {
            reference: None,
            baseline_valid: false,
            rows: Vec::new(),
            cells: cells(run),
            pairs: Vec::new(),
            tie_margin: tie_margin(run),
            detectable: None,
            shape_detectable: Vec::new(),
            index: Index::of(run),
        };
        let complete = ranking.complete(run);
        ranking.baseline_valid = complete.contains(&run.header.baseline);
        ranking.reference = if ranking.baseline_valid {
            Some(run.header.baseline.clone())
        } else {
            complete.first().cloned()
        };
        ranking.detect(run);
        ranking.rows = ranking.rows(run);
        ranking.pairs = ranking.pairs(run, &complete);
        ranking.order(run, &complete);
        ranking
    }

    /// Contenders that are valid and timed on every shape: only these can be ranked, because means
    /// over different shapes cannot be compared.
    fn complete(&self, run: &Run) -> Vec<ContenderId> {
        let contenders = run.header.contenders.iter().map(|c| &c.id);
        contenders
            .filter(|id| self.valid_shapes(id) == run.header.shapes.len())
            .cloned()
            .collect()
    }

    fn valid_shapes(&self, contender: &ContenderId) -> usize {
        let timed = self.cells_of(contender).iter().filter(|c| c.time.is_some());
        timed.count()
    }

    fn rows(&self, run: &Run) -> Vec<Row> {
        let entrants: Vec<&ContenderId> = run.entrants().collect();
        entrants
            .into_par_iter()
            .map(|contender| self.fresh_row(run, contender))
            .collect()
    }

    fn fresh_row(&self, run: &Run, contender: &ContenderId) -> Row {
        let record = run.contender(contender);
        let kind = match contender {
            c if run.is_yardstick(c) => EntrantKind::Yardstick,
            c if *c == run.header.baseline => EntrantKind::Baseline,
            _ => EntrantKind::Contender,
        };
        let over = |base: Option<&ContenderId>| {
            let base = base.filter(|b| *b != contender)?;
            Some(self.paired(run, base, contender)?.1.geomean)
        };
        Row {
            contender: contender.clone(),
            kind,
            place: None,
            status: self.gravest(contender),
            expect: record.map_or(Status::Ok, |r| r.expect),
            valid_shapes: self.valid_shapes(contender),
            speedup: over(self.reference.as_ref()),
            over_yardstick: over(run.header.yardstick.as_ref()),
            roofline: self.mean_roofline(contender),
            resources: run.resources(contender),
        }
    }

    /// The gravest status of a contender's cells.
    fn gravest(&self, contender: &ContenderId) -> Option<Status> {
        const GRAVITY: [Status; 9] = [
            Status::Wrong,
            Status::Crashed,
            Status::Hung,
            Status::Racy,
            Status::LaunchError,
            Status::CompileError,
            Status::Unsupported,
            Status::NotValidated,
            Status::Ok,
        ];
        let mine = self.cells_of(contender).iter();
        let statuses: Vec<Option<Status>> = mine.map(|c| c.status).collect();
        let known = GRAVITY.into_iter().find(|s| statuses.contains(&Some(*s)))?;
        let unknown = statuses.contains(&None);
        (known != Status::Ok || !unknown).then_some(known)
    }

    fn mean_roofline(&self, contender: &ContenderId) -> Option<f64> {
        let shares: Option<Vec<f64>> = self
            .cells_of(contender)
            .iter()
            .filter_map(|c| c.time.as_ref())
            .map(|t| t.roofline)
            .collect();
        let shares = shares.filter(|s| !s.is_empty())?;
        let logs = shares.iter().map(|s| s.ln()).sum::<f64>();
        Some((logs / shares.len() as f64).exp())
    }

    fn pairs(&self, run: &Run, complete: &[ContenderId]) -> Vec<Pair> {
        let behind = |i: usize| complete[i + 1..].iter().map(move |b| (&complete[i], b));
        let mut pairs: Vec<Pair> = (0..complete.len())
            .into_par_iter()
            .flat_map_iter(behind)
            .filter_map(|(a, b)| {
                let ratio = self.paired(run, a, b)?.1.geomean;
                Some(Pair {
                    a: run.arm(a)?,
                    b: run.arm(b)?,
                    ratio,
                    p: ratio.p_value(),
                    // One measured block distinguishes nothing.
                    differ: ratio.blocks == 0 && ratio.mean.abs() > self.tie_margin,
                })
            })
            .collect();
        let sampled: Vec<usize> = (0..pairs.len()).filter(|&i| pairs[i].p.is_some()).collect();
        let raw: Vec<f64> = sampled.iter().filter_map(|&i| pairs[i].p).collect();
        for (&index, p) in sampled.iter().zip(holm(&raw)) {
            pairs[index].p = Some(p);
            // Two arms of one contender may differ by the noise: a smaller difference comes from
            // order or place, not from the designs.
            pairs[index].differ =
                p < 1.0 - CONFIDENCE && pairs[index].ratio.mean.abs() > self.noise().ln_1p();
        }
        pairs
    }

    /// The difference, as a share, that this run cannot detect: that of its baseline from itself,
    /// or the error of the model.
    pub fn noise(&self) -> f64 {
        let measured = self.detectable.as_ref().map(|d| d.noise);
        measured.unwrap_or(self.tie_margin.exp_m1())
    }

    /// Sorts the rows (ranked and yardstick by speed, the rest after, as entered) and assigns
    /// places.
    fn order(&mut self, run: &Run, complete: &[ContenderId]) {
        let speed = |row: &Row| match &self.reference {
            Some(reference) if row.contender == *reference => Some(0.0),
            _ => row.speedup.map(|s| s.mean),
        };
        let all = run.header.shapes.len();
        let whole: HashSet<&ContenderId> = complete.iter().collect();
        let in_order = |row: &Row| {
            let standing = whole.contains(&row.contender)
                || (row.kind == EntrantKind::Yardstick && row.valid_shapes == all);
            if standing { speed(row) } else { None }
        };
        let mut keyed: Vec<(Option<f64>, Row)> =
            self.rows.iter().map(|r| (in_order(r), r.clone())).collect();
        keyed.sort_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) => b.total_cmp(a),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        self.rows = keyed.into_iter().map(|(_, row)| row).collect();
        let ranked: Vec<usize> = (0..self.rows.len())
            .filter(|&i| whole.contains(&self.rows[i].contender))
            .collect();
        let alike = self.pairs.iter().filter(|p| !p.differ);
        let alike: HashSet<[usize; 2]> = alike.flat_map(|p| [[p.a, p.b], [p.b, p.a]]).collect();
        let numbers: Vec<Option<usize>> = ranked
            .iter()
            .map(|&i| run.arm(&self.rows[i].contender))
            .collect();
        let places = places(ranked.len(), |a, b| match (numbers[a], numbers[b]) {
            (Some(a), Some(b)) => !alike.contains(&[a, b]),
            _ => true,
        });
        for (&index, place) in ranked.iter().zip(places) {
            self.rows[index].place = Some(place);
        }
    }

    fn detect(&mut self, run: &Run) {
        let shapes = 0..run.header.shapes.len();
        let contrasts: Vec<Contrast> = shapes.map(|s| run.control(s)).collect();
        let timed: Vec<Contrast> = contrasts
            .iter()
            .filter(|c| !c.is_empty())
            .cloned()
            .collect();
        let Some(estimates) = Estimates::of(&timed) else {
            self.shape_detectable = vec![None; contrasts.len()];
            return;
        };
        self.detectable = detectable(estimates.geomean);
        let mut each = estimates.shapes.into_iter();
        self.shape_detectable = contrasts
            .iter()
            .map(|c| {
                if c.is_empty() {
                    None
                } else {
                    detectable(each.next()?)
                }
            })
            .collect();
    }
}

/// The distance within which times without intervals are ties: the error of the model, or, for
/// another tool's times from one process, the grave difference. Recorded times, and times modelled
/// for a device without calibration, tie only if they are equal.
fn tie_margin(run: &Run) -> f64 {
    const EQUAL: f64 = 1e-9;
    let known = run.header.device.calibration.as_ref();
    let error = known.map_or_else(
        || SystematicError::within(run).share(),
        |known| known.median,
    );
    error.ln_1p().max(EQUAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::synthetic::{Synthetic, SyntheticContender};

    fn places(field: &Synthetic, error: Option<f64>) -> Vec<String> {
        let mut run = field.run();
        let device = &mut run.header.device;
        device.calibration = device.calibration.take().zip(error).map(|(mut known, e)| {
            known.median = e;
            known
        });
        let ranking = Ranking::of(&run);
        let rows = ranking.rows.iter();
        rows.filter_map(|row| Some(format!("{} {}", row.place?, row.contender)))
            .collect()
    }

    #[test]
    fn modelled_times_within_the_models_error_are_ties() {
        let mut field = Synthetic::round4().modelled();
        field.entries.truncate(1);
        field.entries.push(SyntheticContender::ok("near", 0.98));
        assert_eq!(places(&field, Some(0.035)), ["1= near", "1= two-pass"]);
        assert_eq!(places(&field, Some(0.01)), ["1 near", "2 two-pass"]);
        assert_eq!(places(&field, None), ["1 near", "2 two-pass"]);
    }
}
