use maud::{Markup, html};

use super::RankedRun;
use super::plot::{Scale, across, decades, range, short, ticks};
use crate::present::{accuracy, interval, over_title, ranking_table};
use crate::table::{Column, Value};
use dgx_core::domain::{Interval, Timing};
use dgx_core::rank::{EntrantKind, Row};
use dgx_core::record::Run;

/// The ranked table, each interval drawn on one common axis.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let (run, ranking) = (&ranked.run, &ranked.ranking);
    let mut table = ranking_table(run, ranking);
    if let Some((scale, low, high)) = axis(ranked) {
        let column = Column::drawn(drawing(run.timing()), ruler(&scale, low, high));
        let rows = ranking.rows.iter();
        let drawings = rows.map(|row| Value::drawing(drawn(ranked, row, &scale)));
        table.insert_behind(&over_title(ranking), column, drawings.collect());
    }
    html! {
        (table.html())
        p.note { (label(run, ranking.pairs.len())) span.screen { " Click a heading to sort." } }
    }
}

fn drawing(timing: Timing) -> &'static str {
    match timing {
        Timing::Measured | Timing::Scripted => "interval (95 %)",
        Timing::Modelled | Timing::Recorded => "drawn",
    }
}

fn label(run: &Run, pairs: usize) -> String {
    match run.timing() {
        Timing::Measured => format!(
            "Contenders with the same rank (=) are tied (Holm-corrected over {pairs} pairs). \
             All times are measured."
        ),
        Timing::Modelled => format!(
            "Contenders with the same rank (=) are tied. {}",
            accuracy(run).unwrap_or_default()
        ),
        Timing::Recorded => "All times were recorded elsewhere, without samples.".to_owned(),
        Timing::Scripted => "All times are scripted: nothing ran.".to_owned(),
    }
}

/// The numbers of the axis below a column's heading.
pub(super) fn ruler(scale: &Scale, low: f64, high: f64) -> Markup {
    let round = match high / low > 4.0 {
        true => decades(low, high),
        false => ticks(low, high, 4),
    };
    html! {
        svg viewBox="0 0 200 20" role="img" aria-label="axis" { (across(1.0, scale, &round, |v| short(v) + "×")) }
    }
}

/// The axis of all intervals, and its ends.
fn axis(ranked: &RankedRun) -> Option<(Scale, f64, f64)> {
    let rows = ranked.ranking.rows.iter().filter_map(Row::speedup_interval);
    let ends = rows.flat_map(|i| [i.lower.unwrap_or(i.estimate), i.upper.unwrap_or(i.estimate)]);
    let (low, high) = range(ends.chain([1.0]))?;
    let (low, high) = (low * 0.97, high * 1.03);
    Some((Scale::log((low, high), (10.0, 190.0)), low, high))
}

fn drawn(ranked: &RankedRun, row: &Row, scale: &Scale) -> Markup {
    let found = match ranked.ranking.reference.as_ref() == Some(&row.contender) {
        true => Some(Interval::point(1.0)),
        false => row.speedup_interval(),
    };
    let class = match row.kind == EntrantKind::Yardstick {
        true => "yard",
        false => "mark",
    };
    html! {
        svg viewBox="0 0 200 20" role="img" aria-label=[found.as_ref().map(interval)] {
            line.ref x1=(scale.at(1.0)) x2=(scale.at(1.0)) y1="0" y2="20" {}
            @if let Some(i) = found {
                @if let (Some(low), Some(high)) = (i.lower, i.upper) {
                    line class=(class) x1=(scale.at(low)) x2=(scale.at(high)) y1="10" y2="10" stroke-width="3" {}
                }
                circle class=(class) cx=(scale.at(i.estimate)) cy="10" r="3.5" {}
            }
        }
    }
}
