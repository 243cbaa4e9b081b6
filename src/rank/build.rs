//! From a run to its ranking.

use rayon::prelude::*;

use super::cell::cells;
use super::{Cell, Kind, Pair, Ranking, Row};
use crate::claims;
use crate::domain::{ContenderId, Status};
use crate::record::Run;
use crate::stats::{
    Arm, CONFIDENCE, Contrast, RESAMPLES, SEED, bootstrap, detectable, holm, log_ratios, places,
};

impl Ranking {
    /// Judges a run. The same file always gives the same ranking.
    pub fn of(run: &Run) -> Self {
        let mut ranking = Self {
            reference: None,
            baseline_valid: false,
            rows: Vec::new(),
            cells: cells(run),
            pairs: Vec::new(),
            detectable: None,
            shape_detectable: Vec::new(),
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
        ranking.judge_claims(run);
        ranking
    }

    /// Contenders that are valid and timed on every shape: only these can be
    /// ranked, because a mean over other shapes is a mean of another thing.
    fn complete(&self, run: &Run) -> Vec<ContenderId> {
        let contenders = run.header.contenders.iter().map(|c| &c.id);
        contenders
            .filter(|id| self.valid_shapes(id) == run.header.shapes.len())
            .cloned()
            .collect()
    }

    fn valid_shapes(&self, contender: &ContenderId) -> usize {
        let mine = |c: &&Cell| c.contender == *contender && c.time.is_some();
        self.cells.iter().filter(mine).count()
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
            c if run.is_yardstick(c) => Kind::Yardstick,
            c if *c == run.header.baseline => Kind::Baseline,
            _ => Kind::Contender,
        };
        let over = |base: Option<&ContenderId>| {
            let base = base.filter(|b| *b != contender)?;
            Some(self.compare(run, base, contender)?.geomean)
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
            claim: None,
        }
    }

    /// The status that speaks for all of a contender's cells.
    fn gravest(&self, contender: &ContenderId) -> Option<Status> {
        const GRAVITY: [Status; 7] = [
            Status::Wrong,
            Status::Crashed,
            Status::Hung,
            Status::LaunchError,
            Status::CompileError,
            Status::Unsupported,
            Status::Ok,
        ];
        let mine = self.cells.iter().filter(|c| c.contender == *contender);
        let statuses: Vec<Option<Status>> = mine.map(|c| c.status).collect();
        let known = GRAVITY.into_iter().find(|s| statuses.contains(&Some(*s)))?;
        let unknown = statuses.contains(&None);
        (known != Status::Ok || !unknown).then_some(known)
    }

    fn mean_roofline(&self, contender: &ContenderId) -> Option<f64> {
        let mine = self.cells.iter().filter(|c| c.contender == *contender);
        let shares: Option<Vec<f64>> = mine
            .filter_map(|c| c.time.as_ref())
            .map(|t| t.roofline)
            .collect();
        let shares = shares.filter(|s| !s.is_empty())?;
        let logs = shares.iter().map(|s| s.ln()).sum::<f64>();
        Some((logs / shares.len() as f64).exp())
    }

    fn pairs(&self, run: &Run, complete: &[ContenderId]) -> Vec<Pair> {
        let mut names = Vec::new();
        for (i, a) in complete.iter().enumerate() {
            names.extend(complete[i + 1..].iter().map(|b| (a, b)));
        }
        let mut pairs: Vec<Pair> = names
            .into_par_iter()
            .filter_map(|(a, b)| {
                let ratio = self.compare(run, a, b)?.geomean;
                Some(Pair {
                    a: a.clone(),
                    b: b.clone(),
                    ratio,
                    p: ratio.p_value(),
                    // Modelled times are exact, anything but equality is a
                    // difference; one measured block tells nobody apart.
                    differ: ratio.blocks == 0 && ratio.mean.abs() > 1e-9,
                })
            })
            .collect();
        let sampled: Vec<usize> = (0..pairs.len()).filter(|&i| pairs[i].p.is_some()).collect();
        let raw: Vec<f64> = sampled.iter().filter_map(|&i| pairs[i].p).collect();
        for (&index, p) in sampled.iter().zip(holm(&raw)) {
            pairs[index].p = Some(p);
            // Two arms of one contender may differ by the noise: a difference
            // below it is one of order or place, not of the designs.
            pairs[index].differ =
                p < 1.0 - CONFIDENCE && pairs[index].ratio.mean.abs() > self.noise().ln_1p();
        }
        pairs
    }

    /// What this run cannot tell from nothing, as a share.
    pub(crate) fn noise(&self) -> f64 {
        self.detectable.as_ref().map_or(0.0, |d| d.noise)
    }

    fn differ(&self, a: &ContenderId, b: &ContenderId) -> bool {
        let both = |p: &&Pair| (p.a == *a && p.b == *b) || (p.a == *b && p.b == *a);
        self.pairs.iter().find(both).is_none_or(|p| p.differ)
    }

    /// Sorts the rows (ranked and yardstick by speed, the rest after, as
    /// entered) and gives out places.
    fn order(&mut self, run: &Run, complete: &[ContenderId]) {
        let speed = |row: &Row| match &self.reference {
            Some(reference) if row.contender == *reference => Some(0.0),
            _ => row.speedup.map(|s| s.mean),
        };
        let all = run.header.shapes.len();
        let in_order = |row: &Row| {
            let standing = complete.contains(&row.contender)
                || (row.kind == Kind::Yardstick && row.valid_shapes == all);
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
            .filter(|&i| complete.contains(&self.rows[i].contender))
            .collect();
        let name = |i: usize| &self.rows[ranked[i]].contender;
        let places = places(ranked.len(), |a, b| self.differ(name(a), name(b)));
        for (&index, place) in ranked.iter().zip(places) {
            self.rows[index].place = Some(place);
        }
    }

    fn judge_claims(&mut self, run: &Run) {
        let results: Vec<_> = self
            .rows
            .iter()
            .map(|row| claims::judge(run, self, &row.contender))
            .collect();
        for (row, claim) in self.rows.iter_mut().zip(results) {
            row.claim = claim;
        }
    }

    fn detect(&mut self, run: &Run) {
        let baseline = &run.header.baseline;
        let (first, control) = (Arm::first(baseline), Arm::control(baseline));
        let contrasts: Vec<Contrast> = run
            .header
            .shapes
            .iter()
            .map(|s| log_ratios(&run.blocks, &s.name, &first, &control))
            .collect();
        let timed: Vec<Contrast> = contrasts
            .iter()
            .filter(|c| !c.is_empty())
            .cloned()
            .collect();
        let Some(estimates) = bootstrap(&timed, RESAMPLES, SEED) else {
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
