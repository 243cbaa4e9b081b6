use maud::{Markup, html};

use super::Subject;
use dgx_core::domain::{Counter, PANELS};
use dgx_core::record::counters::Counts;

/// What the emulator counted, contender by contender; nothing for other runs.
pub(super) fn section(subject: &Subject) -> Markup {
    let run = &subject.run;
    let all = run.header.shapes.len();
    let rows: Vec<(String, Counts)> = subject
        .ranking
        .rows
        .iter()
        .filter_map(|row| {
            let shapes = run.header.shapes.iter().map(|s| s.name.as_str());
            let (counts, counted) = run.summed_counts(&row.contender, shapes)?;
            let name = match counted == all {
                true => row.contender.to_string(),
                false => format!("{} ({counted} of {all} shapes)", row.contender),
            };
            Some((name, counts))
        })
        .collect();
    if rows.is_empty() {
        return html! {};
    }
    html! {
        p { "One call on each shape, summed, as the emulator executed it." }
        @for panel in &PANELS {
            @let shown = shown(panel.counters, &rows);
            @if !shown.is_empty() { h3 { (panel.title) } (table(&shown, &rows)) }
        }
        p.note {
            "Counted, not modelled: times come from a replay of what the warps did. Instructions are of PTX, \
             and mma-flops include padding."
        }
    }
}

/// Figures that anybody has anything of.
fn shown(figures: &[Counter], rows: &[(String, Counts)]) -> Vec<Counter> {
    let used = |figure: &Counter| rows.iter().any(|(_, c)| figure.value(c) > Some(0.0));
    figures.iter().copied().filter(used).collect()
}

fn table(figures: &[Counter], rows: &[(String, Counts)]) -> Markup {
    html! {
        div.scroll { table {
            thead { tr {
                th data-sort { "contender" }
                @for figure in figures { th.n data-sort { (figure) } }
            } }
            tbody { @for (name, counts) in rows { tr data-c=(name) {
                td { (name) }
                @for figure in figures {
                    @let value = figure.value(counts);
                    td.n data-v=[value] { (value.map_or(String::new(), |v| figure.text(v))) }
                }
            } } }
        } }
    }
}
