//! Rules about what a kernel takes of an SM.

use super::judge::Case;
use super::ruling::{Finding, Found, Reason, Rule, Ruling, Wanted};
use crate::config::Gate;
use crate::domain::Bytes;
use crate::record::Resources;

/// Rounding in a recorded occupancy is not a regression.
const SLACK: f64 = 1e-6;

pub(super) fn judge(gate: &Gate, case: &Case, base: Option<Resources>) -> Vec<Finding> {
    let own = case.run.resources(case.contender);
    let both = own.zip(base);
    let mut findings = Vec::new();
    if let Some(limit) = gate.max_smem {
        findings.push(case.finding(Answer {
            rule: Rule::MaxSmem,
            wanted: Wanted::Smem(limit),
            found: own.map(|r| Found::Smem(r.smem)),
            ok: own.map(|r| r.smem <= limit),
            miss: own.map(|r| Reason::SmemOver(Bytes(r.smem.0.saturating_sub(limit.0)))),
        }));
    }
    if let Some(limit) = gate.max_registers {
        findings.push(case.finding(Answer {
            rule: Rule::MaxRegisters,
            wanted: Wanted::Registers(limit),
            found: own.map(|r| Found::Registers(r.registers)),
            ok: own.map(|r| r.registers <= limit),
            miss: own.map(|r| Reason::RegistersOver(r.registers.saturating_sub(limit))),
        }));
    }
    if let Some(least) = gate.min_occupancy {
        findings.push(case.finding(Answer {
            rule: Rule::MinOccupancy,
            wanted: Wanted::Occupancy(least),
            found: own.map(|r| Found::Occupancy(r.occupancy)),
            ok: own.map(|r| r.occupancy + SLACK >= least),
            miss: own.map(|r| Reason::OccupancyShort(least - r.occupancy)),
        }));
    }
    if gate.occupancy_not_worse {
        findings.push(case.finding(Answer {
            rule: Rule::OccupancyNotWorse,
            wanted: base.map_or(Wanted::Known, |b| Wanted::Occupancy(b.occupancy)),
            found: own.map(|r| Found::Occupancy(r.occupancy)),
            ok: both.map(|(own, base)| own.occupancy + SLACK >= base.occupancy),
            miss: both.map(|(own, base)| Reason::OccupancyShort(base.occupancy - own.occupancy)),
        }));
    }
    if gate.spills_not_worse {
        let more = |(own, base): (Resources, Resources)| {
            Reason::SpillsMore(own.spill_bytes.saturating_sub(base.spill_bytes))
        };
        findings.push(case.finding(Answer {
            rule: Rule::SpillsNotWorse,
            wanted: base.map_or(Wanted::Known, |b| Wanted::Spills(b.spill_bytes)),
            found: own.map(|r| Found::Spills(r.spill_bytes)),
            ok: both.map(|(own, base)| own.spill_bytes <= base.spill_bytes),
            miss: both.map(more),
        }));
    }
    findings
}

/// A plain answer to a rule; what is not on record is none.
struct Answer {
    rule: Rule,
    wanted: Wanted,
    found: Option<Found>,
    ok: Option<bool>,
    /// By how much it fails.
    miss: Option<Reason>,
}

impl Case<'_> {
    /// No answer is undecided.
    fn finding(&self, answer: Answer) -> Finding {
        let (ruling, reason) = match answer.ok {
            Some(true) => (Ruling::Passed, None),
            Some(false) => (Ruling::Failed, answer.miss),
            None => (Ruling::Undecided, Some(Reason::NotRecorded)),
        };
        Finding {
            ruling,
            wanted: answer.wanted,
            found: answer.found.unwrap_or(Found::Unknown),
            reason,
            ..self.plain(answer.rule, None)
        }
    }
}
