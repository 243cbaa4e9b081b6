use std::collections::HashMap;

use maud::{Markup, html};

use super::Subject;
use crate::present::{interval, speedup};
use dgx_core::domain::ContenderId;
use dgx_core::rank::{Pair, Row};
use dgx_core::stats::CONFIDENCE;

/// Who beats whom, by how much, and whether that is decided.
pub(super) fn section(subject: &Subject) -> Markup {
    let ranking = &subject.ranking;
    let rows: Vec<&Row> = ranking.rows.iter().filter(|r| r.place.is_some()).collect();
    let arm = |id: &ContenderId| subject.run.arm(id);
    let pairs: HashMap<(usize, usize), &Pair> =
        ranking.pairs.iter().map(|p| ((p.a, p.b), p)).collect();
    if pairs.is_empty() {
        return html! {};
    }
    html! {
        div.scroll { table.fold {
            thead { tr {
                th.key { "over →" }
                @for row in &rows { th.n data-c=(row.contender) { (row.contender) } }
            } }
            tbody { @for row in &rows { tr data-c=(row.contender) {
                td.key { (row.contender) }
                @for other in &rows { (cell(&row.contender, &other.contender, arm, &pairs)) }
            } } }
        } }
        p.note {
            "Speed of the row’s contender over the column’s, in geometric mean over the shapes: above 1 the row is faster. \
             Green is decidedly faster, red decidedly slower"
            @if subject.run.timing().sampled() { " (Holm-corrected over " (pairs.len()) " pairs)" }
            "; faint ones cannot be told apart."
        }
    }
}

fn cell(
    row: &ContenderId,
    column: &ContenderId,
    arm: impl Fn(&ContenderId) -> Option<usize>,
    pairs: &HashMap<(usize, usize), &Pair>,
) -> Markup {
    let place = arm(row).zip(arm(column));
    // The time of `a` over that of `b` is the speed of `b` over `a`.
    let straight = place.and_then(|(r, c)| pairs.get(&(c, r)));
    let turned = place.and_then(|(r, c)| pairs.get(&(r, c)));
    let (pair, sign) = match (straight, turned) {
        (Some(pair), _) => (pair, 1.0),
        (None, Some(pair)) => (pair, -1.0),
        (None, None) => return html! { td.n data-c=(column) {} },
    };
    let ratio = (sign * pair.ratio.mean).exp();
    let class = match (pair.differ, ratio > 1.0) {
        (false, _) => "faint",
        (true, true) => "good",
        (true, false) => "bad",
    };
    let (fast, slow) = if sign > 0.0 {
        (row, column)
    } else {
        (column, row)
    };
    let found = interval(&pair.ratio.ratio(CONFIDENCE));
    let p = pair.p.map_or(String::new(), |p| format!(", p = {p:.1e}"));
    html! {
        td class={ "n " (class) } data-c=(column) title={ (fast) " over " (slow) ": " (found) (p) } { (speedup(ratio)) }
    }
}
