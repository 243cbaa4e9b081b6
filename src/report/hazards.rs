use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Subject;
use super::page::document;
use crate::domain::{Access, Hazard, Status};
use crate::present::hazards_summary;
use crate::sanitize::{Examined, found};

/// What the emulator found that results do not show, each once.
pub(super) fn section(subject: &Subject) -> Markup {
    let found = in_run(subject);
    if found.is_empty() {
        return html! {};
    }
    html! {
        p { "Found by the emulator, whatever the results were: what makes one right by luck, or wrong." }
        @for ((contender, _), (hazard, shapes)) in &found { (told(contender, hazard, shapes)) }
    }
}

/// A page of its own about what `dgx sanitize` was asked and found.
pub(crate) fn hazards_page(
    asked: &str,
    examined: &[Examined],
    schedules: usize,
    again: &dyn Fn(&Examined) -> String,
) -> String {
    let found = found(examined);
    let odd: Vec<_> = (examined.iter())
        .filter_map(|cell| Some((cell, cell.odd.as_ref()?)))
        .collect();
    let body = html! {
        header {
            h1 { "Right by luck?" }
            p.faint { code { (asked) } }
        }
        @for line in hazards_summary(examined, found.len(), schedules).lines() { p.lead { (line) } }
        section { h2 id="cells" { "Cells" } (cells(examined)) }
        @if !found.is_empty() {
            section { h2 id="hazards" { "Races and hazards" }
                @for one in &found { (told(one.contender.as_str(), one.hazard, &one.shapes)) }
            }
        }
        @if !odd.is_empty() {
            section { h2 id="schedules" { "Schedules that differ" }
                @for (cell, odd) in odd {
                    p { strong { (cell.contender) } " on " (cell.course.shape.name)
                        ", schedule " (odd.schedule) ": " (odd.what) br; code { (again(cell)) } }
                }
            }
        }
    };
    document("Right by luck?", body)
}

fn cells(examined: &[Examined]) -> Markup {
    html! {
        table {
            thead { tr {
                th { "contender" } th { "shape" } th { "SMs" } th { "verdict" } th { "hazards" } th { "reaches" }
            } }
            tbody { @for cell in examined { tr {
                td { (cell.contender) }
                td { (cell.course.shape.name) }
                td.n { (cell.course.sms) }
                td { @match cell.status {
                    Status::Ok => span.badge.good { "ok" },
                    Status::Unsupported => span.badge { "unsupported" },
                    status => span.badge.bad { (status) },
                } }
                td.n { @if !cell.hazards.is_empty() { (cell.hazards.len()) } }
                td.faint { (cell.course.reaches) }
            } } }
        }
    }
}

/// One hazard: both accesses, what is missing, and what is usually done.
fn told(contender: &str, hazard: &Hazard, shapes: &[&str]) -> Markup {
    html! {
        details open data-c=(contender) {
            summary {
                strong { (contender) } " " span.badge.bad { (hazard.kind) } " "
                (hazard.at) " " span.faint { "on " (shapes.join(", ")) }
            }
            table { tbody {
                (access(&hazard.here))
                @if let Some(there) = &hazard.there { (access(there)) }
                tr { td { "missing" } td colspan="2" { (hazard.missing) } }
                tr { td { "usual remedy" } td colspan="2" { (hazard.remedy) } }
            } }
        }
    }
}

fn access(access: &Access) -> Markup {
    html! {
        tr {
            td { (access.deed) }
            td { code { (access.chain()) } }
            td.faint { (access.who()) }
        }
    }
}

type Key<'s> = (&'s str, (&'s str, String, Option<String>));

fn in_run(subject: &Subject) -> BTreeMap<Key<'_>, (&Hazard, Vec<&str>)> {
    let mut found: BTreeMap<Key<'_>, (&Hazard, Vec<&str>)> = BTreeMap::new();
    for cell in &subject.ranking.cells {
        let verdict = subject.run.verdict(&cell.contender, &cell.shape);
        for hazard in verdict.iter().flat_map(|verdict| &verdict.hazards) {
            let key = (cell.contender.as_str(), hazard.key());
            let (_, shapes) = found.entry(key).or_insert((hazard, Vec::new()));
            shapes.push(&cell.shape);
        }
    }
    found
}
