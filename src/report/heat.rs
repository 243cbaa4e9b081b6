use std::collections::HashMap;

use maud::{Markup, html};

use super::RankedRun;
use crate::present::{interval, matrix_table, percent};
use dgx_core::domain::ContenderId;
use dgx_core::rank::{Cell, Comparison, Timed};

/// The share of the pure colour in the slowest cell of all.
const HOTTEST: f64 = 0.75;
/// If all are about equally fast, colours stay pale: the scale ends at this slowdown or a larger
/// one.
const LEAST_SPAN: f64 = 1.25;

/// Shape × contender: times, the best of each shape marked, slower ones warmer.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let (run, ranking) = (&ranked.run, &ranked.ranking);
    let reference = ranking.reference.as_ref();
    let over: HashMap<&ContenderId, Comparison> = (ranking.rows.iter())
        .map(|row| &row.contender)
        .filter(|id| reference.is_some_and(|r| r != *id))
        .filter_map(|id| Some((id, ranking.compare(run, reference?, id)?)))
        .collect();
    let slowest = slowest(ranked);
    let shapes = run.header.shapes.iter().enumerate();
    let best: HashMap<&str, Option<f64>> = shapes
        .map(|(place, shape)| (shape.name.as_str(), best(ranked, place)))
        .collect();
    let table = matrix_table(run, ranking, |cell, value| {
        let Some(time) = &cell.time else {
            return value.hint(cell.reason.as_deref().unwrap_or_default());
        };
        let best = best.get(cell.shape.as_str()).copied().flatten();
        let slower = best.map_or(0.0, |best| time.log.mean - best);
        value
            .heat((slower / slowest).clamp(0.0, 1.0) * HOTTEST)
            .number(time.log.mean)
            .hint(source(ranked, cell, time, over.get(&cell.contender)))
    });
    html! {
        (legend(slowest))
        (table.html())
        p.note {
            (table.title) "; the warmer a cell, the slower beside it. "
            span.screen { @match run.timing().sampled() {
                true => "A cell that is pointed at or touched says its interval, its samples and the file they are in.",
                false => "A cell that is pointed at or touched says what binds it and the file it is from.",
            } }
        }
    }
}

/// ln of the largest slowdown against the best of a shape.
fn slowest(ranked: &RankedRun) -> f64 {
    let shapes = ranked.run.header.shapes.len();
    let beside = (0..shapes).flat_map(|shape| {
        let best = best(ranked, shape);
        let times = ranked.ranking.cells.iter().skip(shape).step_by(shapes);
        times.filter_map(move |c| Some(c.time.as_ref()?.log.mean - best?))
    });
    beside.fold(LEAST_SPAN.ln(), f64::max)
}

/// The meaning of the colours, from the fastest to the slowest cell.
fn legend(slowest: f64) -> Markup {
    let steps = [0.0, 0.25, 0.5, 0.75, 1.0];
    html! {
        p.legend aria-label="Colours of the table" {
            "slower than the fastest of the shape by "
            @for step in steps {
                span.heat style=(format!("--h:{:.0}%", step * HOTTEST * 100.0)) { (format!("{:.2}×", (slowest * step).exp())) }
            }
        }
    }
}

/// The lowest ln(µs) on the shape of this number.
fn best(ranked: &RankedRun, shape: usize) -> Option<f64> {
    let shapes = ranked.run.header.shapes.len();
    let on_shape = ranked.ranking.cells.iter().skip(shape).step_by(shapes);
    on_shape
        .filter_map(|c| c.time.as_ref())
        .find(|t| t.best)
        .map(|t| t.log.mean)
}

/// The source of a cell's number.
fn source(ranked: &RankedRun, cell: &Cell, time: &Timed, over: Option<&Comparison>) -> String {
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
        n => format!(", {n} samples ({} outliers)", time.outliers),
    };
    let roofline = time.roofline.map_or(String::new(), |r| {
        format!(", {} of the roofline", percent(r))
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
        ranked.file()
    )
}
