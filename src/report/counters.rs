use maud::{Markup, html};

use super::RankedRun;
use crate::present::counters_of_run;

/// The emulator's counters, contender by contender; empty for other runs.
pub(super) fn section(subject: &RankedRun) -> Markup {
    let tables = counters_of_run(&subject.run, &subject.ranking);
    html! {
        @for table in &tables { h3 { (table.title) } (table.html()) }
        @if !tables.is_empty() { p.note {
            "Counted, not modelled: times come from a replay of what the warps did. Instructions are of PTX, \
             and mma-flops include padding."
        } }
    }
}
