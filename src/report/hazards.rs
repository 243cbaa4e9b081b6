use maud::{Markup, html};

use super::RankedRun;
use super::page::document;
use crate::present::{examined_table, hazards_summary};
use dgx_core::domain::{Access, ContenderHazard, each_once};
use dgx_core::sanitize::{SanitizeReport, SanitizedCell};

/// The emulator's hazards, which results do not show, each once.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let cells = ranked.ranking.cells.iter();
    let found = each_once(cells.flat_map(|cell| {
        let verdict = ranked.run.verdict(&cell.contender, &cell.shape);
        let hazards = verdict.into_iter().flat_map(|verdict| &verdict.hazards);
        hazards.map(|hazard| (&cell.contender, cell.shape.as_str(), hazard))
    }));
    if found.is_empty() {
        return html! {};
    }
    html! {
        p { "Hazards found by the emulator. A correct result with a hazard is right by luck." }
        @for one in &found { (details(one)) }
    }
}

/// A separate page on a `dgx sanitize`: its command line and findings.
pub(crate) fn hazards_page(
    asked: &str,
    report: &SanitizeReport,
    schedules: usize,
    again: &dyn Fn(&SanitizedCell) -> String,
) -> String {
    let examined = &report.cells;
    let found = report.found();
    let deviations: Vec<_> = (examined.iter())
        .filter_map(|cell| Some((cell, cell.deviation.as_ref()?)))
        .collect();
    let body = html! {
        header {
            h1 { "Right by luck?" }
            p.faint { code { (asked) } }
        }
        @for line in hazards_summary(report, found.len(), schedules).lines() { p.lead { (line) } }
        section { h2 id="cells" { "Cells" } (examined_table(examined).html()) }
        @if !found.is_empty() {
            section { h2 id="hazards" { "Races and hazards" }
                @for one in &found { (details(one)) }
            }
        }
        @if !deviations.is_empty() {
            section { h2 id="schedules" { "Schedules that differ" }
                @for (cell, deviation) in deviations {
                    p { strong { (cell.contender) } " on " (cell.case.shape.name)
                        ", schedule " (deviation.schedule) ": " (deviation.what) br; code { (again(cell)) } }
                }
            }
        }
    };
    document("Right by luck?", body)
}

/// One hazard: both accesses, what is missing, and the usual remedy.
fn details(found: &ContenderHazard<'_>) -> Markup {
    let ContenderHazard {
        contender,
        hazard,
        shapes,
    } = found;
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
            td.faint { (access.threads()) }
        }
    }
}
