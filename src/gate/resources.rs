//! Rules about what a kernel takes of an SM.

use super::judge::Case;
use super::ruling::{Finding, Rule, Ruling};
use crate::config::Gate;
use crate::domain::Bytes;
use crate::present::percent;
use crate::record::Resources;

/// Rounding in a recorded occupancy is not a regression.
const SLACK: f64 = 1e-6;

pub fn judge(gate: &Gate, case: &Case, base: Option<Resources>) -> Vec<Finding> {
    let own = case.run.resources(case.contender);
    let mut findings = Vec::new();
    if let Some(limit) = gate.max_smem {
        let (wanted, ok) = (format!("≤ {limit}"), own.map(|r| r.smem <= limit));
        let found = own.map(|r| r.smem.to_string());
        let over = own.map(|r| format!("{} over", Bytes(r.smem.0.saturating_sub(limit.0))));
        findings.push(case.finding(Rule::MaxSmem, ok, wanted, found, over));
    }
    if let Some(limit) = gate.max_registers {
        let (wanted, ok) = (format!("≤ {limit}"), own.map(|r| r.registers <= limit));
        let found = own.map(|r| r.registers.to_string());
        let over = own.map(|r| format!("{} over", r.registers.saturating_sub(limit)));
        findings.push(case.finding(Rule::MaxRegisters, ok, wanted, found, over));
    }
    if let Some(least) = gate.min_occupancy {
        let (wanted, ok) = (
            format!("≥ {}", percent(least)),
            own.map(|r| r.occupancy + SLACK >= least),
        );
        let found = own.map(|r| percent(r.occupancy));
        let short = own.map(|r| format!("{} short", percent(least - r.occupancy)));
        findings.push(case.finding(Rule::MinOccupancy, ok, wanted, found, short));
    }
    let both = own.zip(base);
    if gate.occupancy_not_worse {
        let wanted = base.map_or("known".to_owned(), |b| {
            format!("≥ {}", percent(b.occupancy))
        });
        let ok = both.map(|(own, base)| own.occupancy + SLACK >= base.occupancy);
        let found = own.map(|r| percent(r.occupancy));
        let short = both.map(|(o, b)| format!("{} short", percent(b.occupancy - o.occupancy)));
        findings.push(case.finding(Rule::OccupancyNotWorse, ok, wanted, found, short));
    }
    if gate.spills_not_worse {
        let wanted = base.map_or("known".to_owned(), |b| format!("≤ {} B", b.spill_bytes));
        let ok = both.map(|(own, base)| own.spill_bytes <= base.spill_bytes);
        let found = own.map(|r| format!("{} B", r.spill_bytes));
        let more =
            both.map(|(o, b)| format!("{} B more", o.spill_bytes.saturating_sub(b.spill_bytes)));
        findings.push(case.finding(Rule::SpillsNotWorse, ok, wanted, found, more));
    }
    findings
}

impl Case<'_> {
    /// A rule with a plain answer; no answer is undecided.
    fn finding(
        &self,
        rule: Rule,
        ok: Option<bool>,
        wanted: String,
        found: Option<String>,
        shortfall: Option<String>,
    ) -> Finding {
        let (ruling, reason) = match ok {
            Some(true) => (Ruling::Passed, None),
            Some(false) => (Ruling::Failed, shortfall),
            None => (
                Ruling::Undecided,
                Some("the run file does not record it".to_owned()),
            ),
        };
        Finding {
            rule,
            contender: self.contender.clone(),
            shape: None,
            ruling,
            wanted,
            found: found.unwrap_or_else(|| "unknown".to_owned()),
            speedup: None,
            reason,
        }
    }
}
