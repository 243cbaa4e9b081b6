use maud::{Markup, html};

use super::RankedRun;
use crate::present::percent;
use crate::table::{Column, Table, Tone, Value};
use dgx_core::rank::{EntrantKind, Row};

/// How close each cell came to being wrong: its largest error over the tolerance there.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let rows = ranked.ranking.rows.iter();
    let rows: Vec<&Row> = rows.filter(|r| r.kind != EntrantKind::Yardstick).collect();
    let worst = |row: &Row, shape: &str| ranked.run.verdict(&row.contender, shape)?.worst;
    let columns = rows.iter().map(|row| Column::of_contender(&row.contender));
    let mut table = Table::keyed("shape", columns);
    for shape in &ranked.run.header.shapes {
        let found = rows.iter().map(|row| margin(worst(row, &shape.name)));
        table.push_named(&shape.name, found);
    }
    if !table
        .rows
        .iter()
        .flatten()
        .any(|value| value.text.contains(['%', '×']))
    {
        return html! {};
    }
    html! {
        (table.html())
        p.note {
            "The largest error of a cell, over all data it was judged on, as a share of the tolerance at that element: \
             up to 100 % passes."
        }
    }
}

fn margin(worst: Option<f64>) -> Value {
    let Some(worst) = worst else {
        return "–".into();
    };
    // Far beyond the tolerance the exact figure means nothing.
    let text = match worst {
        w if w.is_finite() && w < 100.0 => percent(w),
        _ => "> 100×".to_owned(),
    };
    let value = Value::from(text)
        .number(worst)
        .heat(worst.clamp(0.0, 1.0) * 0.6);
    match worst > 1.0 {
        true => value.tone(Tone::Bad),
        false => value,
    }
}
