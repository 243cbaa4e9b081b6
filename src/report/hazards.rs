use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Subject;
use crate::domain::{Access, Hazard};

/// What the emulator found that results do not show, each once.
pub(super) fn section(subject: &Subject) -> Markup {
    let found = found(subject);
    if found.is_empty() {
        return html! {};
    }
    html! {
        p { "Found by the emulator, whatever the results were: what makes one right by luck, or wrong." }
        @for ((contender, _), (hazard, shapes)) in &found {
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

fn found(subject: &Subject) -> BTreeMap<Key<'_>, (&Hazard, Vec<&str>)> {
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
