use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Subject;
use crate::present::{Folders, Met};
use dgx_core::domain::{ContenderId, Status, counted};

/// Everything that is not ok: why, the whole story, and the command that helps;
/// what its variant declares is folded, and so is what its kernels printed.
pub(super) fn section(subject: &Subject) -> Markup {
    let stories = stories(subject);
    html! {
        @for (story, shapes) in &stories {
            @let declared = declared(subject, story);
            details open[!declared] data-c=(story.contender) {
                summary {
                    strong { (story.contender) } " " span class={ "badge " (if declared { "doubt" } else { "bad" }) } { (story.status) } " "
                    span.faint { (places(subject, shapes)) @if declared { ", as declared" } }
                }
                p.why { (story.reason) }
                @if let Some(detail) = &story.detail { pre { (detail) } }
                @if let Some(printed) = &story.printed { (said(printed)) }
                @if let Some(step) = next(subject, story, shapes).filter(|_| !declared) {
                    p { "next: " code { (step) } }
                }
            }
        }
    }
}

/// Lines of what kernels printed that are shown; the run file has the rest.
const PRINTED: usize = 64;

fn said(printed: &str) -> Markup {
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

fn next(subject: &Subject, story: &Story, shapes: &[String]) -> Option<String> {
    let run = &subject.run;
    // A page travels, as its run file does.
    let folders = Folders::of(&run.header);
    let (status, reason) = (story.status, Some(story.reason.as_str()));
    Met::in_run(run, &folders).next(&story.contender, shapes.first()?, status, reason)
}

fn declared(subject: &Subject, story: &Story) -> bool {
    let mut contenders = subject.run.header.contenders.iter();
    contenders.any(|c| c.id == story.contender && c.expect == story.status)
}

/// Shapes that contenders are not made for, and why not.
pub(super) fn unsupported(subject: &Subject) -> Markup {
    let mut refused: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in &subject.ranking.cells {
        if cell.status == Some(Status::Unsupported) {
            let reason = cell.reason.as_deref().unwrap_or("no reason was recorded");
            let told = format!("{}: {reason}", cell.shape);
            let contender = cell.contender.as_str();
            refused.entry(contender).or_default().push(told);
        }
    }
    html! {
        @for (contender, shapes) in &refused {
            details data-c=(contender) {
                summary { strong { (contender) } span.faint { " on " (shapes.len()) " of " (subject.run.header.shapes.len()) " shapes" } }
                ul { @for told in shapes { li { (told) } } }
            }
        }
    }
}

/// What the compiler remarked on what it took.
pub(super) fn remarks(subject: &Subject) -> Markup {
    let contenders = subject.run.header.contenders.iter();
    let remarks: Vec<(String, Vec<&str>)> = contenders
        .map(|c| (c.id.to_string(), subject.run.remarks(&c.id)))
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

/// What is told of a cell, once for all shapes where it is the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Story {
    contender: ContenderId,
    status: Status,
    reason: String,
    /// What there is to say beyond the reason.
    detail: Option<String>,
    printed: Option<String>,
}

fn stories(subject: &Subject) -> BTreeMap<Story, Vec<String>> {
    let mut stories: BTreeMap<Story, Vec<String>> = BTreeMap::new();
    for cell in &subject.ranking.cells {
        let noted = cell.reason.is_some();
        let Some(status) = cell.status.filter(|s| !s.may_be_timed() || noted) else {
            continue;
        };
        if status == Status::Unsupported {
            continue;
        }
        let verdict = subject.run.verdict(&cell.contender, &cell.shape);
        let reason = cell.reason.clone();
        let reason = reason.unwrap_or_else(|| "no reason was recorded".to_owned());
        let detail = verdict.and_then(|v| v.detail.clone());
        let story = Story {
            contender: cell.contender.clone(),
            status,
            detail: detail.filter(|detail| detail.trim() != reason.trim()),
            reason,
            printed: verdict.and_then(|v| v.printed.clone()),
        };
        stories.entry(story).or_default().push(cell.shape.clone());
    }
    stories
}

fn places(subject: &Subject, shapes: &[String]) -> String {
    match shapes.len() == subject.run.header.shapes.len() {
        true => "on every shape".to_owned(),
        false => format!("on {}", shapes.join(", ")),
    }
}
