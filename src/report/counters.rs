use maud::{Markup, html};

use super::RankedRun;
use crate::present::counters_of_run;

/// The emulator's counters, contender by contender; empty for other runs.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let tables = counters_of_run(&ranked.run, &ranked.ranking);
    html! {
        @for table in &tables { h3 { (table.title) } (table.html()) }
        @if !tables.is_empty() { p.note {
            "Counted, not modelled: times come from a replay of what the warps did. Instructions are of PTX, \
             and mma-flops include padding."
        } }
    }
}
