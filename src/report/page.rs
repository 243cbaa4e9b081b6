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
pub(crate) fn page(subjects: &[RankedRun], modelled: Option<&Agreement>) -> String {
    let Some(subject) = subjects.last() else {
        return String::new();
    };
    let title = format!(
        "{}: {}",
        subject.run.header.name, subject.run.header.question
    );
    document(&title, body(subjects, subject, modelled))
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

fn body(subjects: &[RankedRun], subject: &RankedRun, modelled: Option<&Agreement>) -> Markup {
    let how = match subject.run.timing() {
        Timing::Measured => "How it was measured",
        Timing::Modelled => "How it was emulated and modelled",
        Timing::Recorded | Timing::Scripted => "Where it comes from",
    };
    // Failures come before the ranking.
    let sections: Vec<(&str, &str, Markup)> = vec![
        ("failures", "Failures", failures::section(subject)),
        ("hazards", "Races and hazards", hazards::section(subject)),
        ("ranking", "Ranking", ranking::section(subject)),
        ("shapes", "Shapes", heat::section(subject)),
        ("pairs", "Pair by pair", pairs::section(subject)),
        ("roofline", "Roofline", roofline::section(subject)),
        ("kernels", "Kernels of a call", kernels::section(subject)),
        ("counters", "Counters", counters::section(subject)),
        ("samples", "Samples", samples::section(subject)),
        ("lineage", "Lineage and dispatch", lineage::section(subject)),
        ("claims", "Claims", claims::section(subject)),
        (
            "margin",
            "Errors against the tolerance",
            margin::section(subject),
        ),
        (
            "unsupported",
            "Unsupported shapes",
            failures::unsupported(subject),
        ),
        (
            "remarks",
            "Remarks of the compiler",
            failures::remarks(subject),
        ),
        ("history", "Runs compared", history::section(subjects)),
        (
            "modelled",
            "Modelled against measured",
            agreement::section(modelled),
        ),
        ("environment", how, environment::section(subjects)),
    ];
    let filled: Vec<_> = sections
        .iter()
        .filter(|(_, _, m)| !m.0.is_empty())
        .collect();
    html! {
        header {
            h1 { (subject.run.header.question) }
            p.faint { (summary::place(subject)) }
            @if let Some(label) = across(subjects) { p.bad { strong { (label) } } }
        }
        @for sentence in summary::sentences(subject) { p.lead { (sentence) } }
        (filter::bar(subject))
        nav { @for (id, title, _) in &filled { a href={ "#" (id) } { (title) } } }
        @for (id, title, markup) in &filled {
            section { h2 id=(id) { (title) } (markup) }
        }
    }
}

fn across(subjects: &[RankedRun]) -> Option<String> {
    let last = subjects.last()?;
    let others = subjects.iter().filter_map(|s| mismatch(&s.run, &last.run));
    let first = others.into_iter().next()?;
    Some(format!(
        "Across devices: {first}. Ratios compare devices as well as designs."
    ))
}
