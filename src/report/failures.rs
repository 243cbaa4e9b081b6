use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Subject;
use crate::domain::Status;

/// Everything that is not ok, with the whole story of each; what its variant
/// declares is folded.
pub(super) fn section(subject: &Subject) -> Markup {
    let stories = stories(subject);
    html! {
        @for ((contender, status, story), shapes) in &stories {
            @let declared = declared(subject, contender, *status);
            details open[!declared] data-c=(contender) {
                summary {
                    strong { (contender) } " " span class={ "badge " (if declared { "doubt" } else { "bad" }) } { (status) } " "
                    span.faint { (places(subject, shapes)) @if declared { ", as declared" } }
                }
                pre { (story) }
            }
        }
    }
}

fn declared(subject: &Subject, contender: &str, status: Status) -> bool {
    let mut contenders = subject.run.header.contenders.iter();
    contenders.any(|c| c.id.as_str() == contender && c.expect == status)
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

type Story = (String, Status, String);

fn stories(subject: &Subject) -> BTreeMap<Story, Vec<String>> {
    let mut stories: BTreeMap<Story, Vec<String>> = BTreeMap::new();
    for cell in &subject.ranking.cells {
        let timeless = cell.time.is_none() && cell.reason.is_some();
        let Some(status) = cell.status.filter(|s| !s.may_be_timed() || timeless) else {
            continue;
        };
        if status == Status::Unsupported {
            continue;
        }
        let verdict = subject.run.verdict(&cell.contender, &cell.shape);
        let detail = verdict.and_then(|v| v.detail.clone());
        let story = detail.or(cell.reason.clone());
        let mut story = story.unwrap_or_else(|| "no reason was recorded".to_owned());
        if let Some(printed) = verdict.and_then(|v| v.printed.as_ref()) {
            story.push_str(&format!("\n\nits kernels printed:\n{printed}"));
        }
        let key = (cell.contender.to_string(), status, story);
        stories.entry(key).or_default().push(cell.shape.clone());
    }
    stories
}

fn places(subject: &Subject, shapes: &[String]) -> String {
    match shapes.len() == subject.run.header.shapes.len() {
        true => "on every shape".to_owned(),
        false => format!("on {}", shapes.join(", ")),
    }
}
