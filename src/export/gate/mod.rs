//! A gate's report for programs, for test collectors and for pull requests.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::junit::{Case, Fault, Outcome};
use super::pretty;
use crate::present::{gate_gaps, gate_notes, gate_outcome, gate_table, ruling_word};
use crate::table::escape_markdown as escape;
use dgx_core::domain::Interval;
use dgx_core::gate::{Finding, GateReport, Ruling};

#[cfg(test)]
mod tests;

/// The JSON that `dgx gate --export-json` writes.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "dgx gate export")]
pub(crate) struct GateExport {
    version: u32,
    /// The last line on the screen.
    outcome: String,
    /// The exit code.
    exit: u8,
    run: String,
    /// What the run was compared with.
    over: String,
    across_devices: Option<String>,
    /// Why the run could not be judged as a whole.
    incomplete: Vec<String>,
    findings: Vec<FindingExport>,
    notes: Vec<String>,
}

/// A finding, for programs.
#[derive(Serialize, JsonSchema)]
struct FindingExport {
    rule: String,
    contender: String,
    shape: Option<String>,
    ruling: String,
    wanted: String,
    found: String,
    speedup: Option<Interval>,
    reason: Option<String>,
}

impl FindingExport {
    fn of(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.to_string(),
            contender: finding.contender.to_string(),
            shape: finding.shape.clone(),
            ruling: ruling_word(finding.ruling).to_lowercase(),
            wanted: finding.wanted.clone(),
            found: finding.found.clone(),
            speedup: finding.speedup,
            reason: finding.reason.clone(),
        }
    }
}

/// The schema of the export.
pub(crate) fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<GateExport>()
}

/// The report with its exit code.
pub(crate) fn json(report: &GateReport) -> String {
    pretty(&GateExport {
        version: 1,
        outcome: gate_outcome(report),
        exit: report.exit() as u8,
        run: report.run.clone(),
        over: report.over.clone(),
        across_devices: report.across_devices.as_ref().map(ToString::to_string),
        incomplete: gate_gaps(report),
        findings: report.findings.iter().map(FindingExport::of).collect(),
        notes: gate_notes(report),
    })
}

/// JUnit XML: a test case per finding; an undecided one is an error, and so is half a run.
pub(crate) fn junit(report: &GateReport) -> String {
    let mut cases = Vec::new();
    if !report.incomplete.is_empty() {
        cases.push(Case {
            class: "run".to_owned(),
            name: "complete".to_owned(),
            outcome: Outcome::Error(Fault {
                kind: "incomplete".to_owned(),
                message: gate_gaps(report).join("; "),
                ..Fault::default()
            }),
        });
    }
    cases.extend(report.findings.iter().map(case));
    let suite = format!("dgx gate over {}", report.over);
    super::junit::report("dgx gate", &suite, &cases)
}

fn case(finding: &Finding) -> Case {
    let word = ruling_word(finding.ruling);
    let why = finding.reason.as_deref().unwrap_or(word);
    let fault = Fault {
        kind: word.to_lowercase(),
        message: format!("wanted {}, found {}: {why}", finding.wanted, finding.found),
        ..Fault::default()
    };
    Case {
        class: finding.contender.to_string(),
        name: match &finding.shape {
            Some(shape) => format!("{} {shape}", finding.rule),
            None => finding.rule.to_string(),
        },
        outcome: match finding.ruling {
            Ruling::Passed => Outcome::Passed,
            Ruling::Failed => Outcome::Failed(fault),
            Ruling::Refused | Ruling::Undecided => Outcome::Error(fault),
        },
    }
}

/// A summary for a pull request, in GitHub's Markdown.
pub(crate) fn markdown(report: &GateReport) -> String {
    let mut text = format!("### {}\n\n", gate_outcome(report));
    text.push_str(&format!(
        "`{}` over `{}`\n\n",
        report.run.replace('`', "'"),
        report.over.replace('`', "'")
    ));
    if let Some(devices) = &report.across_devices {
        text.push_str(&format!(
            "**Across devices:** {}\n\n",
            escape(&devices.to_string())
        ));
    }
    text.push_str(&gate_table(report).markdown());
    for note in gate_notes(report) {
        text.push_str(&format!("\n{}\n", escape(&note)));
    }
    text
}
