use maud::{Markup, html};

use super::Subject;
use crate::domain::ContenderId;
use crate::present::interval;
use crate::rank::Cell;

/// How much slower than the best of its shape a cell may be before it is as
/// red as it gets.
const HOTTEST: f64 = 2.5;

/// Shape × contender: times, the best of each shape marked, slower ones warmer.
pub fn section(subject: &Subject) -> Markup {
    let entrants: Vec<&ContenderId> = subject.ranking.rows.iter().map(|r| &r.contender).collect();
    html! {
        div.scroll { table {
            thead { tr {
                th data-sort { "shape" }
                @for contender in &entrants { th.n data-sort { (contender) } }
            } }
            tbody {
                @for shape in &subject.run.header.shapes {
                    tr {
                        td { (shape.name) }
                        @for contender in &entrants { (cell(subject, contender, &shape.name)) }
                    }
                }
            }
        } }
        p.note {
            "Microseconds; * fastest of the shape; the warmer a cell, the slower beside it. "
            "Hold the pointer on a cell for its interval and samples."
        }
    }
}

fn best(subject: &Subject, shape: &str) -> Option<f64> {
    let on_shape = subject.ranking.cells.iter().filter(|c| c.shape == shape);
    on_shape
        .filter_map(|c| c.time.as_ref())
        .find(|t| t.best)
        .map(|t| t.log.mean)
}

fn cell(subject: &Subject, contender: &ContenderId, shape: &str) -> Markup {
    let Some(cell) = subject.ranking.cell(contender, shape) else {
        return html! { td {} };
    };
    let Some(time) = &cell.time else {
        let status = cell.status.map_or("–", |s| s.as_str());
        return html! { td.n.bad title=[cell.reason.as_deref()] { (status) } };
    };
    let slower = best(subject, shape).map_or(0.0, |b| time.log.mean - b);
    let heat = (slower / HOTTEST.ln()).clamp(0.0, 1.0) * 70.0;
    html! {
        td.n.heat.best[time.best] style=(format!("--h:{heat:.0}%")) data-v=(time.log.mean) title=(source(subject, cell)) {
            (time.estimate()) @if time.best { "*" }
        }
    }
}

/// Where a cell's number comes from.
fn source(subject: &Subject, cell: &Cell) -> String {
    let Some(time) = &cell.time else {
        return String::new();
    };
    let micros = time.micros();
    let bounds = match (micros.lower, micros.upper) {
        (Some(low), Some(high)) => format!("{:.2} µs [{low:.2} {high:.2}]", micros.estimate),
        _ => format!("{:.2} µs", micros.estimate),
    };
    let reference = subject
        .ranking
        .reference
        .as_ref()
        .filter(|r| **r != cell.contender);
    let over = reference.and_then(|r| {
        let comparison = subject.ranking.compare(&subject.run, r, &cell.contender)?;
        let ratio = comparison
            .shape(&cell.shape)?
            .ratio(crate::stats::CONFIDENCE);
        Some(format!(", {} over {r}", interval(&ratio)))
    });
    let samples = match time.samples {
        0 => String::new(),
        n => format!(", {n} samples ({} far out)", time.outliers),
    };
    let roofline = time.roofline.map_or(String::new(), |r| {
        format!(", {} of the roofline", crate::present::percent(r))
    });
    let bound = time
        .bound
        .as_ref()
        .map_or(String::new(), |b| format!(", bound by {b}"));
    format!(
        "{} on {}: {bounds}{}{samples}{roofline}{bound}; {}",
        cell.contender,
        cell.shape,
        over.unwrap_or_default(),
        subject.file()
    )
}
