use maud::{Markup, html};

use super::Subject;
use crate::present::{interval, micros_title};
use dgx_core::domain::ContenderId;
use dgx_core::rank::{Cell, Comparison};

/// The colour of the slowest cell of all, of the pure colour.
const HOTTEST: f64 = 75.0;
/// Where everybody is about as fast, colours stay pale: this slowdown at least
/// is the end of the scale.
const LEAST_SPAN: f64 = 1.25;

/// A contender, and it over the reference.
type Entrant<'a> = (&'a ContenderId, Option<Comparison>);

/// Shape × contender: times, the best of each shape marked, slower ones warmer.
pub(super) fn section(subject: &Subject) -> Markup {
    let ranking = &subject.ranking;
    let entrants: Vec<Entrant> = ranking
        .rows
        .iter()
        .map(|row| {
            let reference = ranking.reference.as_ref().filter(|r| **r != row.contender);
            let over = reference.and_then(|r| ranking.compare(&subject.run, r, &row.contender));
            (&row.contender, over)
        })
        .collect();
    let slowest = slowest(subject);
    html! {
        (legend(slowest))
        div.scroll { table.fold {
            thead { tr {
                th.key data-sort { "shape" }
                @for (contender, _) in &entrants { th.n data-sort data-c=(contender) { (contender) } }
            } }
            tbody {
                @for (index, shape) in subject.run.header.shapes.iter().enumerate() {
                    @let best = best(subject, index);
                    tr data-s=(shape.name) {
                        td.key { (shape.name) }
                        @for entrant in &entrants { (cell(subject, entrant, &shape.name, best, slowest)) }
                    }
                }
            }
        } }
        p.note {
            (micros_title(&subject.run)) "; * fastest of the shape; the warmer a cell, the slower beside it. "
            span.screen { @match subject.run.timing().sampled() {
                true => "A cell that is pointed at or touched says its interval, its samples and the file they are in.",
                false => "A cell that is pointed at or touched says what binds it and the file it is from.",
            } }
        }
    }
}

/// ln of the largest slowdown beside the best of a shape.
fn slowest(subject: &Subject) -> f64 {
    let shapes = subject.run.header.shapes.len();
    let beside = (0..shapes).flat_map(|shape| {
        let best = best(subject, shape);
        let times = subject.ranking.cells.iter().skip(shape).step_by(shapes);
        times.filter_map(move |c| Some(c.time.as_ref()?.log.mean - best?))
    });
    beside.fold(LEAST_SPAN.ln(), f64::max)
}

/// What the colours mean, from the fastest to the slowest cell there is.
fn legend(slowest: f64) -> Markup {
    let steps = [0.0, 0.25, 0.5, 0.75, 1.0];
    html! {
        p.legend aria-label="Colours of the table" {
            "slower than the fastest of the shape by "
            @for step in steps {
                span.heat style=(format!("--h:{:.0}%", step * HOTTEST)) { (format!("{:.2}×", (slowest * step).exp())) }
            }
        }
    }
}

/// The least ln(µs) on the shape of this number.
fn best(subject: &Subject, shape: usize) -> Option<f64> {
    let shapes = subject.run.header.shapes.len();
    let on_shape = subject.ranking.cells.iter().skip(shape).step_by(shapes);
    on_shape
        .filter_map(|c| c.time.as_ref())
        .find(|t| t.best)
        .map(|t| t.log.mean)
}

fn cell(
    subject: &Subject,
    (contender, over): &Entrant,
    shape: &str,
    best: Option<f64>,
    slowest: f64,
) -> Markup {
    let Some(cell) = subject.ranking.cell(contender, shape) else {
        return html! { td data-c=(contender) {} };
    };
    let Some(time) = &cell.time else {
        let status = cell.status.map_or("–", |s| s.as_str());
        return html! { td.n.bad data-c=(contender) title=[cell.reason.as_deref()] { (status) } };
    };
    let slower = best.map_or(0.0, |b| time.log.mean - b);
    let heat = (slower / slowest).clamp(0.0, 1.0) * HOTTEST;
    html! {
        td.n.heat.best[time.best] data-c=(contender) style=(format!("--h:{heat:.0}%")) data-v=(time.log.mean) title=(source(subject, cell, over.as_ref())) {
            (time.estimate()) @if time.best { "*" }
        }
    }
}

/// Where a cell's number comes from.
fn source(subject: &Subject, cell: &Cell, over: Option<&Comparison>) -> String {
    let Some(time) = &cell.time else {
        return String::new();
    };
    let micros = time.micros();
    let bounds = match (micros.lower, micros.upper) {
        (Some(low), Some(high)) => format!("{:.2} µs [{low:.2} {high:.2}]", micros.estimate),
        _ => format!("{:.2} µs", micros.estimate),
    };
    let over = over.and_then(|c| c.shape(&cell.shape)).map(|e| {
        let ratio = e.ratio(dgx_core::stats::CONFIDENCE);
        format!(", {} over the reference", interval(&ratio))
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
