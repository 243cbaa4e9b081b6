//! Applies a gate's rules to a run, against one of its own contenders or
//! against another run.

use thiserror::Error;

use super::ruling::{Finding, GateReport, Rule, Ruling};
use super::{counters, resources, speed};
use crate::claims::ClaimVerdict;
use crate::config::Gate;
use crate::domain::{ContenderId, Status};
use crate::present::{self, interval, speedup};
use crate::rank::{Comparison, Ranking, Side, compare_runs, mismatch};
use crate::record::Run;
use crate::record::schema::Timing;
use crate::stats::Detectable;

/// What a run is held against.
#[derive(Clone, Copy)]
pub enum Over<'a> {
    Contender(&'a ContenderId),
    /// Each contender against itself in an earlier run.
    Run(&'a Run, &'a Ranking),
}

#[derive(Debug, Error)]
pub enum GateError {
    #[error("`{0}` is not a contender of {1}")]
    NoContender(String, String),
    #[error("no contender is left to judge: {0}")]
    Nobody(String),
    #[error("the two runs have no shape in common")]
    NoCommonShape,
    #[error("the two runs come from different devices: {0}")]
    Devices(String),
}

impl GateError {
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoContender(..) => "`dgx compare` and the table of the sweep list the names",
            Self::Nobody(_) => "name one with --contender, or sweep more than the baseline",
            Self::NoCommonShape => "compare runs of the same round",
            Self::Devices(_) => {
                "times of different devices say little about a design; \
                 --across-devices compares them all the same, labelled"
            }
        }
    }
}

/// One contender under judgement.
pub struct Case<'a> {
    pub run: &'a Run,
    pub ranking: &'a Ranking,
    pub contender: &'a ContenderId,
}

/// Judges the contenders the gate names (all but the baseline by default).
pub fn judge(
    run: &Run,
    ranking: &Ranking,
    gate: &Gate,
    over: Over,
    across_devices: bool,
) -> Result<GateReport, GateError> {
    let mut report = GateReport {
        run: run.path.display().to_string(),
        over: describe(over),
        across_devices: None,
        findings: Vec::new(),
        notes: Vec::new(),
    };
    if let Over::Run(base, base_ranking) = over {
        if let Some(difference) = mismatch(base, run) {
            if !across_devices {
                return Err(GateError::Devices(difference.to_string()));
            }
            report.across_devices = Some(difference.to_string());
        }
        report
            .findings
            .extend(completeness(run, ranking, base, base_ranking, gate)?);
    }
    let contenders = select(run, gate, over)?;
    for contender in &contenders {
        let case = Case {
            run,
            ranking,
            contender,
        };
        if let Over::Run(base, _) = over
            && base.contender(contender).is_none()
        {
            report.notes.push(format!(
                "{contender} is new: the baseline run has nothing to hold it against"
            ));
            continue;
        }
        report.findings.extend(case.judge(gate, over));
    }
    Ok(report)
}

fn describe(over: Over) -> String {
    match over {
        Over::Contender(id) => id.to_string(),
        Over::Run(run, _) => run.path.display().to_string(),
    }
}

/// The contenders the rules are about.
fn select(run: &Run, gate: &Gate, over: Over) -> Result<Vec<ContenderId>, GateError> {
    let base = match over {
        Over::Contender(id) => Some(id),
        Over::Run(..) => None,
    };
    let records = &run.header.contenders;
    if gate.contenders.is_empty() {
        // A design that declares its failure is in the round to show it.
        let judged = records
            .iter()
            .filter(|c| Some(&c.id) != base && c.expect == Status::Ok);
        let ids: Vec<ContenderId> = judged.map(|c| c.id.clone()).collect();
        return match ids.is_empty() {
            true => Err(GateError::Nobody(
                "the run has only its baseline".to_owned(),
            )),
            false => Ok(ids),
        };
    }
    let mut chosen = Vec::new();
    for name in &gate.contenders {
        let named = |c: &&crate::record::schema::ContenderRecord| {
            c.id.as_str() == name || c.variant == *name
        };
        let ids: Vec<ContenderId> = records.iter().filter(named).map(|c| c.id.clone()).collect();
        if ids.is_empty() {
            let file = run.path.display().to_string();
            return Err(GateError::NoContender(name.clone(), file));
        }
        chosen.extend(ids.into_iter().filter(|id| Some(id) != base));
    }
    Ok(chosen)
}

/// What the baseline run has and this one lacks cannot be judged, and a gate
/// that looked away would pass a contender that was dropped.
fn completeness(
    run: &Run,
    ranking: &Ranking,
    base: &Run,
    base_ranking: &Ranking,
    gate: &Gate,
) -> Result<Vec<Finding>, GateError> {
    let lacking = |contender: &ContenderId, shape: Option<&str>, found: &str| Finding {
        rule: Rule::Complete,
        contender: contender.clone(),
        shape: shape.map(str::to_owned),
        ruling: Ruling::Undecided,
        wanted: "as in the baseline run".to_owned(),
        found: found.to_owned(),
        speedup: None,
        reason: Some("what is not there cannot be judged".to_owned()),
    };
    let common = |s: &&crate::domain::Shape| run.shape(&s.name) == Some(*s);
    if base.header.shapes.iter().filter(common).count() == 0 {
        return Err(GateError::NoCommonShape);
    }
    let mut findings = Vec::new();
    for shape in base.header.shapes.iter().filter(|s| !common(s)) {
        let found = match run.shape(&shape.name) {
            Some(_) => "other groups",
            None => "absent",
        };
        findings.push(lacking(&run.header.baseline, Some(&shape.name), found));
    }
    let asked = |id: &ContenderId| {
        let named = |n: &String| id.as_str() == n || id.variant() == n;
        gate.contenders.is_empty() || gate.contenders.iter().any(named)
    };
    for row in base_ranking.rows.iter().filter(|r| r.place.is_some()) {
        let id = &row.contender;
        if asked(id) && run.contender(id).is_none() && ranking.row(id).is_none() {
            findings.push(lacking(id, None, "absent"));
        }
    }
    Ok(findings)
}

impl Case<'_> {
    fn judge(&self, gate: &Gate, over: Over) -> Vec<Finding> {
        let mut findings = Vec::new();
        if gate.correct {
            findings.extend(self.correct());
        }
        let comparison = self.compare(over);
        if let Some(threshold) = gate.min_geomean {
            findings.push(self.geomean(threshold, comparison.as_ref(), over));
        }
        if let Some(floor) = gate.min_shape {
            findings.extend(self.shapes(floor, comparison.as_ref()));
        }
        let base = match over {
            Over::Contender(id) => self.run.resources(id),
            Over::Run(run, _) => run.resources(self.contender),
        };
        findings.extend(resources::judge(gate, self, base));
        findings.extend(counters::judge(gate, self, over));
        if gate.claims_met {
            findings.extend(self.claim());
        }
        findings
    }

    fn compare(&self, over: Over) -> Option<Comparison> {
        match over {
            Over::Contender(base) => self.ranking.compare(self.run, base, self.contender),
            Over::Run(run, ranking) => {
                let base = Side {
                    run,
                    ranking,
                    contender: self.contender,
                };
                let candidate = Side {
                    run: self.run,
                    ranking: self.ranking,
                    contender: self.contender,
                };
                compare_runs(base, candidate)
            }
        }
    }

    pub fn plain(&self, rule: Rule, shape: Option<&str>) -> Finding {
        Finding {
            rule,
            contender: self.contender.clone(),
            shape: shape.map(str::to_owned),
            ruling: Ruling::Passed,
            wanted: "ok".to_owned(),
            found: "ok".to_owned(),
            speedup: None,
            reason: None,
        }
    }

    /// One finding for each cell that is not ok, or one that all are.
    fn correct(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for shape in &self.run.header.shapes {
            let status = self.run.status(self.contender, &shape.name);
            let (ruling, found) = match status {
                Some(Status::Ok) => continue,
                Some(status) => (Ruling::Failed, status.to_string()),
                None if self.run.timing() == Timing::Recorded => {
                    (Ruling::Undecided, "never checked".to_owned())
                }
                None => (Ruling::Undecided, "pending".to_owned()),
            };
            let reason = self.run.reason(self.contender, &shape.name);
            findings.push(Finding {
                ruling,
                found,
                reason: reason.and_then(|r| r.lines().next()).map(str::to_owned),
                ..self.plain(Rule::Correct, Some(&shape.name))
            });
        }
        if findings.is_empty() {
            findings.push(Finding {
                wanted: "ok on every shape".to_owned(),
                ..self.plain(Rule::Correct, None)
            });
        }
        let same = |f: &Finding| (f.found == findings[0].found) && f.reason == findings[0].reason;
        // Alike on every shape is one finding, not eight.
        if findings.len() == self.run.header.shapes.len() && findings.iter().all(same) {
            findings.truncate(1);
            findings[0].shape = None;
        }
        findings
    }

    fn geomean(&self, threshold: f64, comparison: Option<&Comparison>, over: Over) -> Finding {
        let mut finding = Finding {
            wanted: format!("≥ {}", present::threshold(threshold)),
            ..self.plain(Rule::MinGeomean, None)
        };
        let base_shapes = match over {
            Over::Contender(_) => self.run.header.shapes.len(),
            Over::Run(base, _) => {
                let common = |s: &&crate::domain::Shape| base.shape(&s.name) == Some(*s);
                self.run.header.shapes.iter().filter(common).count()
            }
        };
        let Some(comparison) = comparison.filter(|c| c.shapes.len() == base_shapes) else {
            let valid = comparison.map_or(0, |c| c.shapes.len());
            finding.ruling = Ruling::Failed;
            finding.found = "none".to_owned();
            finding.reason = Some(format!(
                "both are valid on {valid} of {base_shapes} shapes, and a mean over some is not the mean"
            ));
            return finding;
        };
        let limit = self.ranking.detectable.as_ref();
        let judged = speed::judge(&comparison.geomean, threshold, limit, self.run.timing());
        finding.ruling = judged.ruling;
        finding.found = judged.found;
        finding.speedup = Some(judged.ratio);
        finding.reason = judged.reason;
        finding
    }

    fn shapes(&self, floor: f64, comparison: Option<&Comparison>) -> Vec<Finding> {
        let Some(comparison) = comparison else {
            return vec![Finding {
                ruling: Ruling::Failed,
                wanted: format!("≥ {}", present::threshold(floor)),
                found: "none".to_owned(),
                reason: Some("both are valid on no shape".to_owned()),
                ..self.plain(Rule::MinShape, None)
            }];
        };
        let mut findings = Vec::new();
        let mut worst: Option<(&str, f64)> = None;
        for (shape, estimate) in &comparison.shapes {
            let limit = self.shape_limit(shape);
            let judged = speed::judge(estimate, floor, limit, self.run.timing());
            if worst.is_none_or(|(_, least)| estimate.mean < least) {
                worst = Some((shape, estimate.mean));
            }
            if judged.ruling != Ruling::Passed {
                findings.push(Finding {
                    ruling: judged.ruling,
                    wanted: format!("≥ {}", present::threshold(floor)),
                    found: judged.found,
                    speedup: Some(judged.ratio),
                    reason: judged.reason,
                    ..self.plain(Rule::MinShape, Some(shape))
                });
            }
        }
        if let (true, Some((shape, least))) = (findings.is_empty(), worst) {
            findings.push(Finding {
                wanted: format!("≥ {} on every shape", present::threshold(floor)),
                found: format!("≥ {} (on {shape})", speedup(least.exp())),
                ..self.plain(Rule::MinShape, None)
            });
        }
        findings
    }

    fn shape_limit(&self, shape: &str) -> Option<&Detectable> {
        let index = self
            .run
            .header
            .shapes
            .iter()
            .position(|s| s.name == shape)?;
        self.ranking.shape_detectable.get(index)?.as_ref()
    }

    fn claim(&self) -> Option<Finding> {
        let result = self.ranking.row(self.contender)?.claim.as_ref()?;
        if result.over.as_ref() == Some(self.contender) {
            return None;
        }
        let ruling = match result.verdict {
            ClaimVerdict::Met => Ruling::Passed,
            ClaimVerdict::Missed | ClaimVerdict::Reversed => Ruling::Failed,
            ClaimVerdict::Untested => Ruling::Undecided,
        };
        Some(Finding {
            ruling,
            wanted: format!("{:.2}× over {}", result.claim.geomean, result.claim.over),
            found: result
                .measured
                .as_ref()
                .map_or("untested".to_owned(), interval),
            speedup: result.measured,
            reason: (ruling != Ruling::Passed).then(|| result.verdict.to_string()),
            ..self.plain(Rule::ClaimsMet, None)
        })
    }
}
