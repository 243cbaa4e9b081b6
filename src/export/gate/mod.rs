//! A gate's report for programs, for test collectors and for pull requests.

use quick_junit::NonSuccessKind::{self, Error, Failure};
use quick_junit::{Report, TestCase, TestCaseStatus, TestSuite};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::present::{
    found, gate_gaps, gate_notes, gate_outcome, gate_table, reason, ruling_word, wanted,
};
use crate::table::escape_markdown as escape;
use dgx_core::domain::Interval;
use dgx_core::gate::{Finding, GateReport, Ruling};

#[cfg(test)]
mod tests;

/// What `dgx gate --export-json` writes.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "dgx gate export")]
pub(crate) struct GateExport {
    version: u32,
    /// The last line of the screen.
    outcome: String,
    /// The exit code.
    exit: u8,
    run: String,
    /// What it was held against.
    over: String,
    across_devices: Option<String>,
    /// What kept the run from being judged as a whole.
    incomplete: Vec<String>,
    findings: Vec<FindingExport>,
    notes: Vec<String>,
}

/// A finding as programs read it.
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
            wanted: wanted(&finding.wanted),
            found: found(&finding.found),
            speedup: finding.speedup,
            reason: finding.reason.as_ref().map(reason),
        }
    }
}

/// What it says, for those who read it.
pub(crate) fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<GateExport>()
}

/// The report with its exit code.
pub(crate) fn json(report: &GateReport) -> String {
    let export = GateExport {
        version: 1,
        outcome: gate_outcome(report),
        exit: report.exit() as u8,
        run: report.run.clone(),
        over: report.over.clone(),
        across_devices: report.across_devices.as_ref().map(ToString::to_string),
        incomplete: gate_gaps(report),
        findings: report.findings.iter().map(FindingExport::of).collect(),
        notes: gate_notes(report),
    };
    // Plain structs of finite numbers and text always serialise.
    serde_json::to_string_pretty(&export).unwrap_or_default() + "\n"
}

/// JUnit XML: a test case per finding; what cannot be judged is an error, and
/// so is half a run.
pub(crate) fn junit(report: &GateReport) -> String {
    let mut suite = TestSuite::new(format!("dgx gate over {}", report.over));
    if !report.incomplete.is_empty() {
        let gaps = gate_gaps(report).join("; ");
        suite.add_test_case(case("run", "complete", Some((Error, "incomplete", gaps))));
    }
    for finding in &report.findings {
        let name = match &finding.shape {
            Some(shape) => format!("{} {shape}", finding.rule),
            None => finding.rule.to_string(),
        };
        let word = ruling_word(finding.ruling);
        let words = finding.reason.as_ref().map(reason);
        let message = format!(
            "wanted {}, found {}: {}",
            wanted(&finding.wanted),
            found(&finding.found),
            words.as_deref().unwrap_or(word)
        );
        let word = word.to_lowercase();
        let fault = match finding.ruling {
            Ruling::Passed => None,
            Ruling::Failed => Some((Failure, &*word, message)),
            Ruling::Refused | Ruling::Undecided => Some((Error, &*word, message)),
        };
        suite.add_test_case(case(finding.contender.as_str(), &name, fault));
    }
    let mut all = Report::new("dgx gate");
    all.add_test_suite(suite);
    all.to_string().expect("text is written to memory")
}

/// A test case, and what is wrong with it, of which kind, in words.
fn case(class: &str, name: &str, fault: Option<(NonSuccessKind, &str, String)>) -> TestCase {
    let status = fault.map_or_else(TestCaseStatus::success, |(severity, kind, message)| {
        let mut status = TestCaseStatus::non_success(severity);
        status.set_type(kind).set_message(message);
        status
    });
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
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
