//! A gate's report for a terminal, for programs, for test collectors and for
//! pull requests.

use serde_json::json;

use super::ruling::{Finding, GateReport, Ruling};
use crate::export::escape_markdown as escape;
use crate::present::{Align, Column, Grid, Style};

/// The report as a table and a last line that says the outcome.
pub fn text(report: &GateReport, style: &Style) -> String {
    let mut grid = Grid::new(vec![
        Column::new("rule", Align::Left, 9),
        Column::new("contender", Align::Left, 9),
        Column::new("shape", Align::Left, 8),
        Column::new("wanted", Align::Left, 5),
        Column::new("found", Align::Left, 9),
        Column::new("ruling", Align::Left, 9),
    ]);
    for finding in &report.findings {
        let ruling = finding.ruling.as_str();
        grid.push(vec![
            finding.rule.to_string(),
            finding.contender.to_string(),
            finding.shape.clone().unwrap_or_default(),
            finding.wanted.clone(),
            finding.found.clone(),
            match finding.ruling {
                Ruling::Passed => style.good(ruling),
                Ruling::Failed => style.bad(ruling),
                Ruling::Refused | Ruling::Undecided => style.doubtful(ruling),
            },
        ]);
    }
    let mut parts = vec![format!("gate  {} over {}", report.run, report.over)];
    if let Some(devices) = &report.across_devices {
        parts.push(style.doubtful(format!("ACROSS DEVICES: {devices}")));
    }
    if !report.findings.is_empty() {
        parts.push(grid.without_empty_columns().render(style));
    }
    let reasons = reasons(report, style);
    if !reasons.is_empty() {
        parts.push(reasons);
    }
    parts.extend(report.notes.iter().map(|n| style.fold(n, 2)));
    parts.push(style.bold(style.fold(&outcome(report), 2)));
    parts.join("\n\n")
}

fn reasons(report: &GateReport, style: &Style) -> String {
    let told = report.findings.iter().filter_map(|f| {
        let reason = f.reason.as_ref()?;
        let place = place(f);
        let line = format!("{} {}: {}, {reason}", f.rule, place, f.ruling.as_str());
        Some(format!(" {}", style.fold(&line, 3)))
    });
    told.collect::<Vec<_>>().join("\n")
}

fn place(finding: &Finding) -> String {
    match &finding.shape {
        Some(shape) => format!("{} on {shape}", finding.contender),
        None => finding.contender.to_string(),
    }
}

/// One line: what happened, in numbers.
pub fn outcome(report: &GateReport) -> String {
    let all = report.findings.len();
    let failed = report.count(Ruling::Failed);
    let open = report.count(Ruling::Refused) + report.count(Ruling::Undecided);
    if !report.incomplete.is_empty() {
        return format!("gate incomplete: {}", report.incomplete.join("; "));
    }
    match (all, failed, open) {
        (0, _, _) => "gate inconclusive: nothing was asked".to_owned(),
        (_, 0, 0) => format!("gate passed: {all} of {all} checks"),
        (_, 0, _) => format!("gate inconclusive: {open} of {all} checks cannot be judged"),
        (_, _, 0) => format!("gate failed: {failed} of {all} checks"),
        _ => format!("gate failed: {failed} of {all} checks, {open} more cannot be judged"),
    }
}

/// The report with its exit code.
pub fn json(report: &GateReport) -> String {
    let value = json!({
        "version": 1,
        "outcome": outcome(report),
        "exit": report.exit() as u8,
        "run": report.run,
        "over": report.over,
        "across_devices": report.across_devices,
        "incomplete": report.incomplete,
        "findings": report.findings,
        "notes": report.notes,
    });
    format!("{value:#}\n")
}

/// JUnit XML: a test case per finding; what cannot be judged is an error, and
/// so is half a run.
pub fn junit(report: &GateReport) -> String {
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
            xml_text(&report.incomplete.join("; "))
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
        let message = format!(
            "wanted {}, found {}: {}",
            finding.wanted,
            finding.found,
            finding.reason.as_deref().unwrap_or(finding.ruling.as_str())
        );
        xml.push_str(&format!(
            "{open}>\n      <{element} type=\"{}\" message=\"{}\"/>\n    </testcase>\n",
            finding.ruling.as_str().to_lowercase(),
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
pub fn markdown(report: &GateReport) -> String {
    let mut text = format!("### {}\n\n", outcome(report));
    text.push_str(&format!(
        "`{}` over `{}`\n\n",
        report.run.replace('`', "'"),
        report.over.replace('`', "'")
    ));
    if let Some(devices) = &report.across_devices {
        text.push_str(&format!("**Across devices:** {}\n\n", escape(devices)));
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
            finding.ruling.as_str().to_lowercase(),
            finding.rule,
            escape(finding.contender.as_str()),
            escape(finding.shape.as_deref().unwrap_or("")),
            escape(&finding.wanted),
            escape(&finding.found),
            escape(finding.reason.as_deref().unwrap_or("")),
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("\n{}\n", escape(note)));
    }
    text
}
