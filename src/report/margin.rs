use maud::{Markup, html};

use super::Subject;
use crate::present::percent;
use dgx_core::rank::{Kind, Row};

/// How near each cell came to being wrong: its largest error over the
/// tolerance there.
pub(super) fn section(subject: &Subject) -> Markup {
    let rows = || {
        let rows = subject.ranking.rows.iter();
        rows.filter(|r| r.kind != Kind::Yardstick)
    };
    let shapes = &subject.run.header.shapes;
    let known = |row: &Row| {
        shapes
            .iter()
            .any(|s| worst(subject, row, &s.name).is_some())
    };
    if !rows().any(known) {
        return html! {};
    }
    html! {
        div.scroll { table.fold {
            thead { tr {
                th.key data-sort { "shape" }
                @for row in rows() { th.n data-sort data-c=(row.contender) { (row.contender) } }
            } }
            tbody { @for shape in shapes { tr data-s=(shape.name) {
                td.key { (shape.name) }
                @for row in rows() { (cell(subject, row, &shape.name)) }
            } } }
        } }
        p.note {
            "The largest error of a cell, over all data it was judged on, as a share of the tolerance at that element: \
             up to 100 % passes."
        }
    }
}

fn worst(subject: &Subject, row: &Row, shape: &str) -> Option<f64> {
    subject.run.verdict(&row.contender, shape)?.worst
}

fn cell(subject: &Subject, row: &Row, shape: &str) -> Markup {
    let Some(worst) = worst(subject, row, shape) else {
        return html! { td.n data-c=(row.contender) { "–" } };
    };
    // Far beyond the tolerance the figure itself says nothing.
    let text = match worst {
        w if w.is_finite() && w < 100.0 => percent(w),
        _ => "> 100×".to_owned(),
    };
    html! {
        td.n.heat.bad[worst > 1.0] data-c=(row.contender) style=(format!("--h:{:.0}%", worst.clamp(0.0, 1.0) * 60.0)) data-v=(worst) { (text) }
    }
}
