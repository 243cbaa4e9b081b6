use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    RankedRun, agreement, claims, counters, environment, failures, filter, hazards, heat, history,
    kernels, lineage, margin, pairs, ranking, roofline, samples, summary,
};
use crate::agreement::Agreement;
use dgx_core::domain::Timing;
use dgx_core::rank::mismatch;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page. The last run is shown in full; the others are for comparison, oldest first.
pub(crate) fn page(runs: &[RankedRun], modelled: Option<&Agreement>) -> String {
    let Some(ranked) = runs.last() else {
        return String::new();
    };
    let title = format!("{}: {}", ranked.run.header.name, ranked.run.header.question);
    document(&title, body(runs, ranked, modelled))
}

/// A page with this body.
pub(super) fn document(title: &str, body: Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "dgx " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

fn body(runs: &[RankedRun], ranked: &RankedRun, modelled: Option<&Agreement>) -> Markup {
    let how = match ranked.run.timing() {
        Timing::Measured => "How it was measured",
        Timing::Modelled => "How it was emulated and modelled",
        Timing::Recorded | Timing::Scripted => "Where it comes from",
    };
    // Failures come before the ranking.
    let sections: Vec<(&str, &str, Markup)> = vec![
        ("failures", "Failures", failures::section(ranked)),
        ("hazards", "Races and hazards", hazards::section(ranked)),
        ("ranking", "Ranking", ranking::section(ranked)),
        ("shapes", "Shapes", heat::section(ranked)),
        ("pairs", "Pair by pair", pairs::section(ranked)),
        ("roofline", "Roofline", roofline::section(ranked)),
        ("kernels", "Kernels of a call", kernels::section(ranked)),
        ("counters", "Counters", counters::section(ranked)),
        ("samples", "Samples", samples::section(ranked)),
        ("lineage", "Lineage and dispatch", lineage::section(ranked)),
        ("claims", "Claims", claims::section(ranked)),
        (
            "margin",
            "Errors against the tolerance",
            margin::section(ranked),
        ),
        (
            "unsupported",
            "Unsupported shapes",
            failures::unsupported(ranked),
        ),
        (
            "remarks",
            "Remarks of the compiler",
            failures::remarks(ranked),
        ),
        ("history", "Runs compared", history::section(runs)),
        (
            "modelled",
            "Modelled against measured",
            agreement::section(modelled),
        ),
        ("environment", how, environment::section(runs)),
    ];
    let filled: Vec<_> = sections
        .iter()
        .filter(|(_, _, m)| !m.0.is_empty())
        .collect();
    html! {
        header {
            h1 { (ranked.run.header.question) }
            p.faint { (summary::place(ranked)) }
            @if let Some(label) = across(runs) { p.bad { strong { (label) } } }
        }
        @for sentence in summary::sentences(ranked) { p.lead { (sentence) } }
        (filter::bar(ranked))
        nav { @for (id, title, _) in &filled { a href={ "#" (id) } { (title) } } }
        @for (id, title, markup) in &filled {
            section { h2 id=(id) { (title) } (markup) }
        }
    }
}

fn across(runs: &[RankedRun]) -> Option<String> {
    let last = runs.last()?;
    let others = runs.iter().filter_map(|s| mismatch(&s.run, &last.run));
    let first = others.into_iter().next()?;
    Some(format!(
        "Across devices: {first}. Ratios compare devices as well as designs."
    ))
}
