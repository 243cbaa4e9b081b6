use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Subject;
use crate::domain::Status;

/// Everything that is not ok, with the whole story of each.
pub(super) fn section(subject: &Subject) -> Markup {
    let stories = stories(subject);
    let remarks: Vec<(String, Vec<&str>)> = subject
        .run
        .header
        .contenders
        .iter()
        .map(|c| (c.id.to_string(), subject.run.remarks(&c.id)))
        .filter(|(_, remarks)| !remarks.is_empty())
        .collect();
    if stories.is_empty() && remarks.is_empty() {
        return html! {};
    }
    html! {
        @for ((contender, status, story), shapes) in &stories {
            details open {
                summary {
                    strong { (contender) } " " span.badge.bad { (status) } " "
                    span.faint { (places(subject, shapes)) }
                }
                pre { (story) }
            }
        }
        @if !remarks.is_empty() {
            h3 { "Remarks of the compiler" }
            ul { @for (contender, list) in &remarks { @for remark in list {
                li { strong { (contender) } ": " (remark) }
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
