//! Rules about the resources that a kernel takes on an SM.

use super::judge::JudgedContender;
use super::ruling::{Finding, Rule, Ruling};
use crate::config::Gate;
use crate::domain::Bytes;
use crate::number::percent;
use crate::record::Resources;

/// Rounding in a recorded occupancy is not a regression.
const SLACK: f64 = 1e-6;

pub(super) fn judge(gate: &Gate, case: &JudgedContender, base: Option<Resources>) -> Vec<Finding> {
    let own = case.run.resources(case.contender);
    let both = own.zip(base);
    let mut findings = Vec::new();
    if let Some(limit) = gate.max_smem {
        findings.push(case.finding(ResourceCheck {
            rule: Rule::MaxSmem,
            wanted: Some(format!("≤ {limit}")),
            found: own.map(|r| r.smem.to_string()),
            ok: own.map(|r| r.smem <= limit),
            miss: own.map(|r| format!("{} over", Bytes(r.smem.0.saturating_sub(limit.0)))),
        }));
    }
    if let Some(limit) = gate.max_registers {
        findings.push(case.finding(ResourceCheck {
            rule: Rule::MaxRegisters,
            wanted: Some(format!("≤ {limit}")),
            found: own.map(|r| r.registers.to_string()),
            ok: own.map(|r| r.registers <= limit),
            miss: own.map(|r| format!("{} over", r.registers.saturating_sub(limit))),
        }));
    }
    if let Some(least) = gate.min_occupancy {
        findings.push(case.finding(ResourceCheck {
            rule: Rule::MinOccupancy,
            wanted: Some(format!("≥ {}", percent(least))),
            found: own.map(|r| percent(r.occupancy)),
            ok: own.map(|r| r.occupancy + SLACK >= least),
            miss: own.map(|r| format!("{} short", percent(least - r.occupancy))),
        }));
    }
    if gate.occupancy_not_worse {
        findings.push(
            case.finding(ResourceCheck {
                rule: Rule::OccupancyNotWorse,
                wanted: base.map(|b| format!("≥ {}", percent(b.occupancy))),
                found: own.map(|r| percent(r.occupancy)),
                ok: both.map(|(own, base)| own.occupancy + SLACK >= base.occupancy),
                miss: both.map(|(own, base)| {
                    format!("{} short", percent(base.occupancy - own.occupancy))
                }),
            }),
        );
    }
    if gate.spills_not_worse {
        let more = |(own, base): (Resources, Resources)| {
            let more = own.spill_bytes.saturating_sub(base.spill_bytes);
            format!("{more} B more")
        };
        findings.push(case.finding(ResourceCheck {
            rule: Rule::SpillsNotWorse,
            wanted: base.map(|b| format!("≤ {} B", b.spill_bytes)),
            found: own.map(|r| format!("{} B", r.spill_bytes)),
            ok: both.map(|(own, base)| own.spill_bytes <= base.spill_bytes),
            miss: both.map(more),
        }));
    }
    findings
}

/// A plain answer to a rule; a missing record is no answer.
struct ResourceCheck {
    rule: Rule,
    /// `None` if the baseline has no such figure.
    wanted: Option<String>,
    found: Option<String>,
    ok: Option<bool>,
    /// By how much it fails.
    miss: Option<String>,
}

impl JudgedContender<'_> {
    /// No answer means undecided.
    fn finding(&self, answer: ResourceCheck) -> Finding {
        let (ruling, reason) = match answer.ok {
            Some(true) => (Ruling::Passed, None),
            Some(false) => (Ruling::Failed, answer.miss),
            None => {
                let why = "the run file does not record it".to_owned();
                (Ruling::Undecided, Some(why))
            }
        };
        Finding {
            ruling,
            wanted: answer.wanted.unwrap_or("known".to_owned()),
            found: answer.found.unwrap_or("unknown".to_owned()),
            reason,
            ..self.plain(answer.rule, None)
        }
    }
}
