use std::collections::HashMap;

use maud::{Markup, html};

use super::RankedRun;
use crate::present::{interval, speedup};
use crate::table::{Column, Table, Tone, Value};
use dgx_core::domain::ContenderId;
use dgx_core::rank::{Pair, Row};
use dgx_core::stats::CONFIDENCE;

/// Every contender over every other, and whether they differ.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let ranking = &ranked.ranking;
    let rows: Vec<&Row> = ranking.rows.iter().filter(|r| r.place.is_some()).collect();
    let arm = |id: &ContenderId| ranked.run.arm(id);
    let pairs: HashMap<(usize, usize), &Pair> =
        ranking.pairs.iter().map(|p| ((p.a, p.b), p)).collect();
    if pairs.is_empty() {
        return html! {};
    }
    let columns = rows.iter().map(|row| Column::of_contender(&row.contender));
    let mut table = Table::keyed("contender", columns);
    for row in &rows {
        let others = rows.iter().map(|other| [&row.contender, &other.contender]);
        table.push_named(&row.contender, others.map(|pair| value(pair, arm, &pairs)));
    }
    html! {
        (table.html())
        p.note {
            "Speed of the row’s contender over the column’s, in geometric mean over the shapes: above 1 the row is faster. \
             Green is decidedly faster, red decidedly slower"
            @if ranked.run.timing().sampled() { " (Holm-corrected over " (pairs.len()) " pairs)" }
            "; faint ones do not differ significantly."
        }
    }
}

fn value(
    [row, column]: [&ContenderId; 2],
    arm: impl Fn(&ContenderId) -> Option<usize>,
    pairs: &HashMap<(usize, usize), &Pair>,
) -> Value {
    let place = arm(row).zip(arm(column));
    // The time of `a` over that of `b` is the speed of `b` over `a`.
    let straight = place.and_then(|(r, c)| pairs.get(&(c, r)));
    let turned = place.and_then(|(r, c)| pairs.get(&(r, c)));
    let (pair, sign, [fast, slow]) = match (straight, turned) {
        (Some(pair), _) => (pair, 1.0, [row, column]),
        (None, Some(pair)) => (pair, -1.0, [column, row]),
        (None, None) => return Value::default(),
    };
    let ratio = (sign * pair.ratio.mean).exp();
    let tone = match (pair.differ, ratio > 1.0) {
        (false, _) => Tone::Faint,
        (true, true) => Tone::Good,
        (true, false) => Tone::Bad,
    };
    let found = interval(&pair.ratio.ratio(CONFIDENCE));
    let p = pair.p.map_or(String::new(), |p| format!(", p = {p:.1e}"));
    let hint = format!("{fast} over {slow}: {found}{p}");
    Value::from(speedup(ratio))
        .tone(tone)
        .number(ratio)
        .hint(hint)
}
