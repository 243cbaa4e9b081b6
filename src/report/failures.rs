use std::collections::BTreeMap;

use maud::{Markup, html};

use super::RankedRun;
use crate::present::{Commands, Folders, failures};
use dgx_core::domain::{Status, counted};

/// Everything that is not ok: the reason, the details, and the command that helps. Declared
/// failures and the kernels' output are folded.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let run = &ranked.run;
    // A page travels, like its run file.
    let folders = Folders::of(&run.header);
    let commands = Commands::for_run(run, &folders);
    let failures = failures(run, &ranked.ranking);
    html! {
        @for failure in failures.iter().filter(|f| f.status != Status::Unsupported) {
            @let declared = failure.is_declared();
            details open[!declared] data-c=(failure.row.contender) {
                summary {
                    strong { (failure.row.contender) } " " span class={ "badge " (if declared { "doubt" } else { "bad" }) } { (failure.status) } " "
                    span.faint { (places(ranked, &failure.shapes)) @if declared { ", as declared" } }
                }
                p.why { (failure.reason()) }
                @if let Some(detail) = failure.detail.filter(|d| d.trim() != failure.reason().trim()) { pre { (detail) } }
                @if let Some(printed) = failure.printed { (output(printed)) }
                @if let Some(step) = failure.next(&commands) { p { "next: " code { (step) } } }
            }
        }
    }
}

/// Lines shown of the kernels' output; the run file has the rest.
const PRINTED: usize = 64;

fn output(printed: &str) -> Markup {
    let lines: Vec<&str> = printed.lines().collect();
    let rest = lines.len().saturating_sub(PRINTED);
    html! {
        details {
            summary { "its kernels printed " (counted(lines.len(), "line")) }
            pre.printed { (lines[..lines.len() - rest].join("\n")) }
            @if rest > 0 { p.faint { (counted(rest, "line")) " more in the run file; " code { "dgx debug" } " shows them by thread" } }
        }
    }
}

/// Shapes that contenders do not support, with the reason.
pub(super) fn unsupported(ranked: &RankedRun) -> Markup {
    let mut refused: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in &ranked.ranking.cells {
        if cell.status == Some(Status::Unsupported) {
            let reason = cell.reason.as_deref().unwrap_or("no reason was recorded");
            let text = format!("{}: {reason}", cell.shape);
            let contender = cell.contender.as_str();
            refused.entry(contender).or_default().push(text);
        }
    }
    html! {
        @for (contender, shapes) in &refused {
            details data-c=(contender) {
                summary { strong { (contender) } span.faint { " on " (shapes.len()) " of " (ranked.run.header.shapes.len()) " shapes" } }
                ul { @for text in shapes { li { (text) } } }
            }
        }
    }
}

/// The compiler's remarks on sources that it accepted.
pub(super) fn remarks(ranked: &RankedRun) -> Markup {
    let contenders = ranked.run.header.contenders.iter();
    let remarks: Vec<(String, Vec<&str>)> = contenders
        .map(|c| (c.id.to_string(), ranked.run.remarks(&c.id)))
        .filter(|(_, remarks)| !remarks.is_empty())
        .collect();
    html! {
        @if !remarks.is_empty() {
            ul { @for (contender, list) in &remarks { @for remark in list {
                li data-c=(contender) { strong { (contender) } ": " (remark) }
            } } }
        }
    }
}

fn places(ranked: &RankedRun, shapes: &[&str]) -> String {
    match shapes.len() == ranked.run.header.shapes.len() {
        true => "on every shape".to_owned(),
        false => format!("on {}", shapes.join(", ")),
    }
}
