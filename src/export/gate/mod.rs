//! A gate's report for programs, for test collectors and for pull requests.

use serde::Serialize;
use serde_json::json;

use super::escape_markdown as escape;
use crate::domain::Interval;
use crate::gate::{Finding, GateReport, Ruling};
use crate::present::{found, gate_gaps, gate_notes, gate_outcome, reason, ruling_word, wanted};

#[cfg(test)]
mod tests;

/// A finding as programs read it.
#[derive(Serialize)]
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

/// The report with its exit code.
pub(crate) fn json(report: &GateReport) -> String {
    let value = json!({
        "version": 1,
        "outcome": gate_outcome(report),
        "exit": report.exit() as u8,
        "run": report.run,
        "over": report.over,
        "across_devices": report.across_devices.as_ref().map(ToString::to_string),
        "incomplete": gate_gaps(report),
        "findings": report.findings.iter().map(FindingExport::of).collect::<Vec<_>>(),
        "notes": gate_notes(report),
    });
    format!("{value:#}\n")
}

/// JUnit XML: a test case per finding; what cannot be judged is an error, and
/// so is half a run.
pub(crate) fn junit(report: &GateReport) -> String {
    let gaps = usize::from(!report.incomplete.is_empty());
    let errors = report.count(Ruling::Refused) + report.count(Ruling::Undecided) + gaps;
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!(
        "<testsuites>\n  <testsuite name=\"dgx gate over {}\" tests=\"{}\" failures=\"{}\" errors=\"{errors}\">\n",
        xml_text(&report.over),
        report.findings.len() + gaps,
        report.count(Ruling::Failed),
    ));
    if gaps > 0 {
        xml.push_str(&format!(
            "    <testcase classname=\"run\" name=\"complete\">\n      \
             <error type=\"incomplete\" message=\"{}\"/>\n    </testcase>\n",
            xml_text(&gate_gaps(report).join("; "))
        ));
    }
    for finding in &report.findings {
        let name = match &finding.shape {
            Some(shape) => format!("{} {shape}", finding.rule),
            None => finding.rule.to_string(),
        };
        let (class, name) = (xml_text(finding.contender.as_str()), xml_text(&name));
        let open = format!("    <testcase classname=\"{class}\" name=\"{name}\"");
        let element = match finding.ruling {
            Ruling::Passed => {
                xml.push_str(&format!("{open}/>\n"));
                continue;
            }
            Ruling::Failed => "failure",
            Ruling::Refused | Ruling::Undecided => "error",
        };
        let words = finding.reason.as_ref().map(reason);
        let message = format!(
            "wanted {}, found {}: {}",
            wanted(&finding.wanted),
            found(&finding.found),
            words.as_deref().unwrap_or(ruling_word(finding.ruling))
        );
        xml.push_str(&format!(
            "{open}>\n      <{element} type=\"{}\" message=\"{}\"/>\n    </testcase>\n",
            ruling_word(finding.ruling).to_lowercase(),
            xml_text(&message)
        ));
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn xml_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
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
    text.push_str(
        "| | rule | contender | shape | wanted | found | |\n|---|---|---|---|---|---|---|\n",
    );
    for finding in &report.findings {
        let mark = match finding.ruling {
            Ruling::Passed => "✅",
            Ruling::Failed => "❌",
            Ruling::Refused | Ruling::Undecided => "⚠️",
        };
        text.push_str(&format!(
            "| {mark} {} | {} | {} | {} | {} | {} | {} |\n",
            ruling_word(finding.ruling).to_lowercase(),
            finding.rule,
            escape(finding.contender.as_str()),
            escape(finding.shape.as_deref().unwrap_or("")),
            escape(&wanted(&finding.wanted)),
            escape(&found(&finding.found)),
            escape(&finding.reason.as_ref().map_or(String::new(), reason)),
        ));
    }
    for note in gate_notes(report) {
        text.push_str(&format!("\n{}\n", escape(&note)));
    }
    text
}
