//! Applies a gate's rules to a run, against one of its own contenders or
//! against another run.

use super::choice::{ComparedWith, GateError, chosen};
use super::gap::Gap;
use super::ruling::{Finding, GateNote, GateReport, Rule, Ruling, RunRole};
use super::speed::SpeedRuling;
use super::{completeness, counters, resources, speed};
use crate::claims::{self, ClaimVerdict};
use crate::config::Gate;
use crate::domain::{ContenderId, Status, Timing};
use crate::number::{interval, speedup, threshold};
use crate::rank::{
    ComparedSide, Comparison, Margin, Ranking, SystematicError, compare_runs, limit, mismatch,
    same_card,
};
use crate::record::Run;
use crate::record::schema::ContenderRecord;
use crate::stats::LogEstimate;

/// The report of a run that has only itself as a baseline: a run compared with itself always
/// passes.
pub fn nothing_compared(run: &Run) -> GateReport {
    let path = run.path.display().to_string();
    GateReport {
        over: path.clone(),
        run: path,
        across_devices: None,
        incomplete: Vec::new(),
        findings: Vec::new(),
        notes: Vec::new(),
    }
}

/// One contender to be judged.
pub(super) struct JudgedContender<'a> {
    pub run: &'a Run,
    pub ranking: &'a Ranking,
    pub contender: &'a ContenderId,
    pub over: ComparedWith<'a>,
}

/// Judges the contenders that the gate names: by default all but the baseline, and over an earlier
/// run all that both have.
pub fn judge(
    run: &Run,
    ranking: &Ranking,
    gate: &Gate,
    over: ComparedWith,
    across_devices: bool,
) -> Result<GateReport, GateError> {
    let mut report = GateReport {
        run: run.path.display().to_string(),
        over: describe(over),
        across_devices: None,
        incomplete: gaps(RunRole::Run, run, ranking).collect(),
        findings: Vec::new(),
        notes: Vec::new(),
    };
    if run.timing() == Timing::Modelled {
        let device = &run.header.device;
        let known = device.calibrated_for(&run.operator.name);
        report.notes.push(GateNote::Modelled {
            device: device.name.clone(),
            error: device.model_error(),
            others: (!known).then(|| device.compared_operators().join(", ")),
        });
    }
    report.notes.extend(foreign(RunRole::Run, run));
    if let ComparedWith::Contender(_) = over {
        report.notes.extend(loose(run).map(GateNote::Loose));
    }
    report.notes.extend(exempt(run, gate, over));
    if let ComparedWith::Run(base, base_ranking) = over {
        add_differences(&mut report, run, (base, base_ranking), across_devices)?;
        let lacking = completeness::lacking(run, base, base_ranking, gate)?;
        report.findings.extend(lacking);
    }
    for contender in &chosen(run, gate, over)? {
        let case = JudgedContender {
            run,
            ranking,
            contender,
            over,
        };
        if let ComparedWith::Run(base, _) = over
            && base.contender(contender).is_none()
        {
            report.notes.push(GateNote::New(contender.clone()));
            continue;
        }
        report.findings.extend(case.judge(gate));
    }
    Ok(report)
}

/// Adds how the runs themselves differ.
fn add_differences(
    report: &mut GateReport,
    run: &Run,
    (base, base_ranking): (&Run, &Ranking),
    across_devices: bool,
) -> Result<(), GateError> {
    if let Some(difference) = mismatch(base, run) {
        if !(across_devices && difference.is_of_devices()) {
            return Err(GateError::Mismatched(difference));
        }
        report.across_devices = Some(difference);
    }
    if (&base.tool, base.tally.process_count()) != (&run.tool, run.tally.process_count()) {
        report.notes.extend(foreign(RunRole::Baseline, base));
    }
    let of_base = gaps(RunRole::Baseline, base, base_ranking);
    report.incomplete.extend(of_base);
    let looser = run.header.settings.looser_than(&base.header.settings);
    if !looser.is_empty() && run.tool.is_none() && base.tool.is_none() {
        report.incomplete.push((RunRole::Run, Gap::Looser(looser)));
    }
    if same_card(base, run) == Some(false) {
        report.notes.push(GateNote::OtherCard);
    }
    Ok(())
}

fn gaps(whose: RunRole, run: &Run, ranking: &Ranking) -> impl Iterator<Item = (RunRole, Gap)> {
    let gaps = completeness::gaps(run, ranking).into_iter();
    gaps.map(move |gap| (whose, gap))
}

/// Tolerances and data that differ from the defaults of rounds.
pub fn loose(run: &Run) -> Option<Vec<String>> {
    let recorded = run.tool.is_some() || run.timing() == Timing::Recorded;
    let validated = !recorded && !run.header.settings.time_only;
    let loose = run
        .header
        .settings
        .looser_than_default(run.operator.outputs[0].tolerance());
    (validated && !loose.is_empty()).then_some(loose)
}

/// A design that declares its failure takes part to show it.
fn exempt(run: &Run, gate: &Gate, over: ComparedWith) -> Vec<GateNote> {
    let ComparedWith::Contender(base) = over else {
        // Over an earlier run only deteriorations count.
        return Vec::new();
    };
    let fails = |c: &&ContenderRecord| c.id != *base && c.expect != Status::Ok;
    let all = run.header.contenders.iter().filter(fails);
    all.filter(|_| gate.contenders.is_empty())
        .map(|c| GateNote::Exempt {
            contender: c.id.clone(),
            declared: c.expect,
        })
        .collect()
}

fn foreign(whose: RunRole, run: &Run) -> Option<GateNote> {
    Some(GateNote::Foreign {
        whose,
        tool: run.tool.clone()?,
        processes: run.tally.process_count(),
    })
}

fn describe(over: ComparedWith) -> String {
    match over {
        ComparedWith::Contender(id) => id.to_string(),
        ComparedWith::Run(run, _) => run.path.display().to_string(),
    }
}

/// A contender compared with the other side, shape by shape.
struct ShapeRatios<'a> {
    comparison: Option<Comparison>,
    /// The shapes to be judged.
    asked: Vec<&'a str>,
    /// Shapes on which the contender has no valid time.
    own_lacks: Vec<&'a str>,
    /// Shapes on which the other side has no valid time.
    other_lacks: Vec<&'a str>,
}

impl JudgedContender<'_> {
    fn judge(&self, gate: &Gate) -> Vec<Finding> {
        let mut findings = Vec::new();
        if gate.correct {
            findings.extend(self.correct());
        }
        if gate.min_geomean.is_some() || gate.min_shape.is_some() || gate.not_slower {
            let beside = self.beside();
            let geomean = gate.min_geomean.map(|least| self.geomean(least, &beside));
            findings.extend(geomean.flatten());
            if let Some(floor) = gate.min_shape {
                findings.extend(self.shapes(floor, &beside));
            }
            if gate.not_slower {
                findings.extend(self.not_slower(&beside));
            }
        }
        let base = match self.over {
            ComparedWith::Contender(id) => self.run.resources(id),
            ComparedWith::Run(run, _) => run.resources(self.contender),
        };
        findings.extend(resources::judge(gate, self, base));
        findings.extend(counters::judge(gate, self, self.over));
        if gate.claims_met {
            findings.extend(self.claim());
        }
        findings
    }

    fn compare(&self) -> Option<Comparison> {
        match self.over {
            ComparedWith::Contender(base) => self.ranking.compare(self.run, base, self.contender),
            ComparedWith::Run(run, ranking) => {
                let base = ComparedSide::new(run, ranking, self.contender);
                let candidate = ComparedSide::new(self.run, self.ranking, self.contender);
                compare_runs(base, candidate)
            }
        }
    }

    /// Over a contender every shape is judged; over an earlier run only those timed there, since
    /// the others have nothing to be compared with.
    fn beside(&self) -> ShapeRatios<'_> {
        let timed = |ranking: &Ranking, id: &ContenderId, shape: &str| {
            ranking.cell(id, shape).is_some_and(|c| c.time.is_some())
        };
        let shapes = self.run.header.shapes.iter();
        let asked: Vec<&str> = shapes
            .filter(|shape| match self.over {
                ComparedWith::Contender(_) => true,
                ComparedWith::Run(base, ranking) => {
                    base.shape(&shape.name) == Some(shape)
                        && timed(ranking, self.contender, &shape.name)
                }
            })
            .map(|shape| shape.name.as_str())
            .collect();
        let without = |present: &dyn Fn(&str) -> bool| {
            let lacks = asked.iter().filter(|s| !present(s));
            lacks.copied().collect::<Vec<_>>()
        };
        ShapeRatios {
            comparison: self.compare(),
            own_lacks: without(&|s| timed(self.ranking, self.contender, s)),
            other_lacks: match self.over {
                ComparedWith::Contender(base) => without(&|s| timed(self.ranking, base, s)),
                ComparedWith::Run(..) => Vec::new(),
            },
            asked,
        }
    }

    /// Why there is no ratio on these shapes: because of the contender itself, or not.
    fn no_ratio(&self, rule: Rule, wanted: String, beside: &ShapeRatios) -> Finding {
        let of = beside.asked.len();
        let invalid = beside.own_lacks.iter().filter(|shape| self.invalid(shape));
        let (own, invalid) = (beside.own_lacks.len(), invalid.count());
        let reason = |who: String, is: &str, lacks: usize| match lacks == of {
            true => format!("{who} is {is} on no shape"),
            false => format!("{who} is not {is} on {lacks} of {of} shapes"),
        };
        let contender = || self.contender.to_string();
        let (ruling, reason) = match (invalid, own) {
            (0, 0) => {
                let lacks = beside.other_lacks.len();
                let reason = reason(describe(self.over), "valid", lacks);
                (Ruling::Undecided, reason)
            }
            (0, own) => (Ruling::Undecided, reason(contender(), "timed", own)),
            (_, own) => (Ruling::Failed, reason(contender(), "valid", own)),
        };
        Finding {
            ruling,
            wanted,
            found: "none".to_owned(),
            reason: Some(reason),
            ..self.plain(rule, None)
        }
    }

    /// Whether the verdict is a failure: a cell without a verdict is neither valid nor invalid.
    fn invalid(&self, shape: &str) -> bool {
        let status = self.run.status(self.contender, shape);
        status.is_some_and(|status| !matches!(status, Status::Ok | Status::NotValidated))
    }

    pub(super) fn plain(&self, rule: Rule, shape: Option<&str>) -> Finding {
        Finding::passed(rule, self.contender, shape)
    }

    /// One finding for each cell that is not ok, or a single one if all are. Over an earlier run
    /// only cells that were ok there are judged.
    fn correct(&self) -> Vec<Finding> {
        let asked = |shape: &&crate::domain::Shape| match self.over {
            ComparedWith::Contender(_) => true,
            ComparedWith::Run(base, _) => {
                base.shape(&shape.name) == Some(*shape)
                    && base.status(self.contender, &shape.name) == Some(Status::Ok)
            }
        };
        let asked: Vec<_> = self.run.header.shapes.iter().filter(asked).collect();
        let mut findings = Vec::new();
        for shape in &asked {
            let status = self.run.status(self.contender, &shape.name);
            let (ruling, found) = match status {
                Some(Status::Ok) => continue,
                Some(Status::NotValidated) => (Ruling::Undecided, "never checked"),
                Some(status) => (Ruling::Failed, status.as_str()),
                None if self.run.timing() == Timing::Recorded => {
                    (Ruling::Undecided, "never checked")
                }
                None => (Ruling::Undecided, "pending"),
            };
            let reason = self.run.reason(self.contender, &shape.name);
            findings.push(Finding {
                ruling,
                found: found.to_owned(),
                reason: reason.and_then(|r| r.lines().next()).map(str::to_owned),
                ..self.plain(Rule::Correct, Some(&shape.name))
            });
        }
        if findings.is_empty() && !asked.is_empty() {
            let wanted = match asked.len() == self.run.header.shapes.len() {
                true => "ok on every shape".to_owned(),
                false => format!("ok on the {} where it was ok", asked.len()),
            };
            findings.push(Finding {
                wanted,
                ..self.plain(Rule::Correct, None)
            });
        }
        // The same finding on every shape is reported once.
        let alike = |f: &Finding| f.found == findings[0].found && f.reason == findings[0].reason;
        if findings.len() == asked.len() && findings.iter().all(alike) {
            findings.truncate(1);
            findings.iter_mut().for_each(|f| f.shape = None);
        }
        findings
    }

    /// `None` if an earlier run has nothing to compare the contender with.
    fn geomean(&self, least: f64, beside: &ShapeRatios) -> Option<Finding> {
        let wanted = format!("≥ {}", threshold(least));
        if beside.asked.is_empty() {
            return None;
        }
        let whole = |c: &&Comparison| c.shapes.len() == beside.asked.len();
        let Some(comparison) = beside.comparison.as_ref().filter(whole) else {
            return Some(self.no_ratio(Rule::MinGeomean, wanted, beside));
        };
        let judged = self.at_least(&comparison.geomean, least, None);
        Some(self.judged(Rule::MinGeomean, None, wanted, judged))
    }

    fn shapes(&self, floor: f64, beside: &ShapeRatios) -> Vec<Finding> {
        let wanted = || format!("≥ {}", threshold(floor));
        if beside.asked.is_empty() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        if !beside.own_lacks.is_empty() || !beside.other_lacks.is_empty() {
            findings.push(self.no_ratio(Rule::MinShape, wanted(), beside));
        }
        let mut worst: Option<(&str, f64)> = None;
        let compared = beside.comparison.iter().flat_map(|c| &c.shapes);
        for (shape, estimate) in compared {
            let judged = self.at_least(estimate, floor, Some(shape));
            if worst.is_none_or(|(_, least)| estimate.mean < least) {
                worst = Some((shape, estimate.mean));
            }
            if judged.ruling != Ruling::Passed {
                findings.push(self.judged(Rule::MinShape, Some(shape), wanted(), judged));
            }
        }
        if let (true, Some((shape, least))) = (findings.is_empty(), worst) {
            findings.push(Finding {
                wanted: format!("≥ {} on every shape", threshold(floor)),
                found: format!("≥ {} (on {shape})", speedup(least.exp())),
                ..self.plain(Rule::MinShape, None)
            });
        }
        findings
    }

    /// The mean, and every shape that does not pass.
    fn not_slower(&self, beside: &ShapeRatios) -> Vec<Finding> {
        if beside.asked.is_empty() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        let whole = |c: &&Comparison| c.shapes.len() == beside.asked.len();
        let margin = self.margin(None);
        findings.push(match beside.comparison.as_ref().filter(whole) {
            Some(comparison) => {
                let judged = self.no_slower(&comparison.geomean, &margin, None);
                self.judged(Rule::NotSlower, None, speed::wanted(&margin), judged)
            }
            None => self.no_ratio(Rule::NotSlower, speed::wanted(&margin), beside),
        });
        for (shape, estimate) in beside.comparison.iter().flat_map(|c| &c.shapes) {
            let margin = self.margin(Some(shape));
            let judged = self.no_slower(estimate, &margin, Some(shape));
            if judged.ruling != Ruling::Passed {
                let wanted = speed::wanted(&margin);
                findings.push(self.judged(Rule::NotSlower, Some(shape), wanted, judged));
            }
        }
        findings
    }

    fn margin(&self, shape: Option<&str>) -> Margin {
        match self.over {
            ComparedWith::Contender(_) => {
                let own = limit(self.run, self.ranking, shape);
                Margin::of([own, None], self.systematic(), self.run.timing())
            }
            ComparedWith::Run(base, ranking) => {
                Margin::between((base, ranking), (self.run, self.ranking), shape)
            }
        }
    }

    fn at_least(&self, estimate: &LogEstimate, least: f64, shape: Option<&str>) -> SpeedRuling {
        let limit = limit(self.run, self.ranking, shape);
        let judge = || speed::judge(estimate, least, limit, self.run.timing(), self.systematic());
        let uncontrolled = speed::uncontrolled(estimate, least);
        uncontrolled
            .filter(|_| !self.controlled(shape))
            .unwrap_or_else(judge)
    }

    fn no_slower(
        &self,
        estimate: &LogEstimate,
        margin: &Margin,
        shape: Option<&str>,
    ) -> SpeedRuling {
        let uncontrolled = speed::uncontrolled(estimate, 1.0);
        uncontrolled
            .filter(|_| !self.controlled(shape))
            .unwrap_or_else(|| speed::not_slower(estimate, margin))
    }

    /// Whether every measured side has its A/A arm.
    fn controlled(&self, shape: Option<&str>) -> bool {
        let has = |run: &Run, ranking: &Ranking| {
            !run.timing().sampled() || limit(run, ranking, shape).is_some()
        };
        let other = match self.over {
            ComparedWith::Contender(_) => true,
            ComparedWith::Run(base, ranking) => has(base, ranking),
        };
        other && has(self.run, self.ranking)
    }

    /// Over an earlier run, both times of a design come from the same model.
    fn systematic(&self) -> SystematicError {
        match self.over {
            ComparedWith::Contender(_) => SystematicError::within(self.run),
            ComparedWith::Run(base, _) => SystematicError::between(base, self.run),
        }
    }

    fn judged(
        &self,
        rule: Rule,
        shape: Option<&str>,
        wanted: String,
        judged: SpeedRuling,
    ) -> Finding {
        Finding {
            ruling: judged.ruling,
            wanted,
            found: interval(&judged.ratio),
            speedup: Some(judged.ratio),
            reason: judged.reason,
            ..self.plain(rule, shape)
        }
    }

    fn claim(&self) -> Option<Finding> {
        let result = claims::judge(self.run, self.ranking, self.contender)?;
        if result.over.as_ref() == Some(self.contender) {
            return None;
        }
        let geomean = self.ranking.row(self.contender)?.speedup;
        let one_process_reason =
            geomean.and_then(|g| speed::one_process_reason(&g, self.run.timing()));
        let ruling = match result.verdict {
            _ if one_process_reason.is_some() => Ruling::Undecided,
            ClaimVerdict::Met => Ruling::Passed,
            ClaimVerdict::Missed | ClaimVerdict::Reversed => Ruling::Failed,
            ClaimVerdict::Untested => Ruling::Undecided,
        };
        Some(Finding {
            ruling,
            wanted: format!("{:.2}× over {}", result.claim.geomean, result.claim.over),
            found: (result.measured.as_ref()).map_or("untested".to_owned(), interval),
            speedup: result.measured,
            reason: one_process_reason
                .or((ruling != Ruling::Passed).then(|| result.verdict.to_string())),
            ..self.plain(Rule::ClaimsMet, None)
        })
    }
}
