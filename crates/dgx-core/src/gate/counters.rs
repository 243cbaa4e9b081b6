//! Rules about the emulator's counters. Counters repeat exactly, so there is no interval, and no
//! difference is too small.

use super::choice::ComparedWith;
use super::judge::JudgedContender;
use super::ruling::{Finding, Rule, Ruling};
use crate::config::Gate;
use crate::domain::Counter;
use crate::number::count;

/// Rounding in a factor such as 1.02 is not a regression.
const SLACK: f64 = 1e-9;

pub(super) fn judge(gate: &Gate, case: &JudgedContender, over: ComparedWith) -> Vec<Finding> {
    let rules = gate.counters.iter();
    rules
        .flat_map(|(counter, factor)| case.counter(*counter, *factor, over))
        .collect()
}

impl JudgedContender<'_> {
    /// One finding for each shape that does not pass, or a single one if all pass.
    fn counter(&self, counter: Counter, factor: f64, over: ComparedWith) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut worst = (0.0, None);
        for shape in &self.run.header.shapes {
            if let ComparedWith::Run(base, _) = over
                && base.shape(&shape.name) != Some(shape)
            {
                continue;
            }
            let own = self.run.counts(self.contender, &shape.name);
            let base = match over {
                ComparedWith::Contender(id) => self.run.counts(id, &shape.name),
                ComparedWith::Run(run, _) => run.counts(self.contender, &shape.name),
            };
            let own = own.and_then(|c| counter.value(c));
            let base = base.and_then(|c| counter.value(c));
            let finding = self.held(counter, factor, &shape.name, own, base);
            if finding.ruling == Ruling::Passed {
                let more = ratio(own.unwrap_or(0.0), base.unwrap_or(0.0));
                if worst.1.is_none() || more > worst.0 {
                    worst = (more, Some(shape.name.clone()));
                }
            } else {
                findings.push(finding);
            }
        }
        if let (true, (more, Some(shape))) = (findings.is_empty(), worst) {
            findings.push(Finding {
                wanted: format!("≤ {factor}×"),
                found: format!("≤ {more:.3}× (on {shape})"),
                ..self.plain(Rule::MaxCounter(counter), None)
            });
        }
        findings
    }

    fn held(
        &self,
        counter: Counter,
        factor: f64,
        shape: &str,
        own: Option<f64>,
        base: Option<f64>,
    ) -> Finding {
        let mut finding = self.plain(Rule::MaxCounter(counter), Some(shape));
        let wanted = base.map(|base| format!("≤ {factor}× {}", count(base)));
        finding.wanted = wanted.unwrap_or("known".to_owned());
        finding.found = own.map_or("unknown".to_owned(), count);
        match own.zip(base) {
            Some((own, base)) if own <= base * factor * (1.0 + SLACK) => {}
            Some((own, base)) => {
                finding.ruling = Ruling::Failed;
                finding.reason = Some(match base > 0.0 {
                    true => format!("{:.3}× the baseline's", own / base),
                    false => "the baseline has none".to_owned(),
                });
            }
            None => {
                finding.ruling = Ruling::Undecided;
                let why = "one of the two has no such counter; only emulated runs count";
                finding.reason = Some(why.to_owned());
            }
        }
        finding
    }
}

fn ratio(own: f64, base: f64) -> f64 {
    if base > 0.0 { own / base } else { 1.0 }
}
