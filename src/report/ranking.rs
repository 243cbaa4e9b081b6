use maud::{Markup, html};

use super::Subject;
use super::plot::{Scale, across, decades, range, short, ticks};
use crate::present::{CLAIM, belief, claim_words, interval, percent, speedup, verdict_word};
use dgx_core::domain::{Claim, Interval, Status, Timing};
use dgx_core::rank::{Kind, Row};
use dgx_core::record::Run;

/// The ranked table, each interval drawn on one common axis.
pub(super) fn section(subject: &Subject) -> Markup {
    let ranking = &subject.ranking;
    let over = ranking
        .reference
        .as_ref()
        .map_or("–".to_owned(), ToString::to_string);
    let yardstick = subject.run.header.yardstick.as_ref();
    let scale = axis(subject);
    html! {
        div.scroll { table {
            thead { tr {
                th data-sort { "rank" } th.key data-sort { "contender" } th data-sort { "verdict" }
                th.n data-sort { "over " (over) }
                th { (drawing(subject.run.timing())) @if let Some((scale, low, high)) = &scale { (ruler(scale, *low, *high)) } }
                th data-sort { (CLAIM) }
                @if let Some(y) = yardstick { th.n data-sort { "over " (y) } }
                th.n data-sort { "roofline" } th.n data-sort { "regs" }
                th.n data-sort { "spills" } th.n data-sort { "smem" } th.n data-sort { "occupancy" }
            } }
            tbody { @for row in &ranking.rows { (line(subject, row, scale.as_ref().map(|s| &s.0))) } }
        } }
        p.note {
            (label(&subject.run, ranking.pairs.len())) span.screen { " Click a heading to sort." }
        }
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
            "Ranks that share a number with = cannot be told apart (Holm-corrected over {pairs} \
             pairs). All times are measured."
        ),
        Timing::Modelled => format!(
            "Ranks that share a number with = cannot be told apart. {}",
            belief(run).unwrap_or_default()
        ),
        Timing::Recorded => "All times were recorded elsewhere, without samples.".to_owned(),
        Timing::Scripted => "All times are scripted: nothing ran.".to_owned(),
    }
}

/// The numbers below a heading that drawings stand under.
pub(super) fn ruler(scale: &Scale, low: f64, high: f64) -> Markup {
    let round = match high / low > 4.0 {
        true => decades(low, high),
        false => ticks(low, high, 4),
    };
    html! {
        svg viewBox="0 0 200 20" role="img" aria-label="axis" { (across(1.0, scale, &round, |v| short(v) + "×")) }
    }
}

/// The axis all intervals are drawn on, and its ends.
fn axis(subject: &Subject) -> Option<(Scale, f64, f64)> {
    let rows = subject
        .ranking
        .rows
        .iter()
        .filter_map(Row::speedup_interval);
    let ends = rows.flat_map(|i| [i.lower.unwrap_or(i.estimate), i.upper.unwrap_or(i.estimate)]);
    let (low, high) = range(ends.chain([1.0]))?;
    let (low, high) = (low * 0.97, high * 1.03);
    Some((Scale::log((low, high), (10.0, 190.0)), low, high))
}

fn line(subject: &Subject, row: &Row, scale: Option<&Scale>) -> Markup {
    let reference = subject.ranking.reference.as_ref() == Some(&row.contender);
    let found = row.speedup_interval();
    let resources = row.resources.as_ref();
    let order = row.place.map_or(String::new(), |p| p.rank.to_string());
    let summary = subject
        .run
        .contender(&row.contender)
        .map(|c| c.summary.as_str());
    html! {
        tr data-c=(row.contender) {
            td.n data-v=(order) { (row.place.map_or("–".to_owned(), |p| p.to_string())) }
            td.key title=[summary] { @if row.place.is_some_and(|p| p.rank == 1) { strong { (row.contender) } } @else { (row.contender) } }
            td { (verdict(subject, row)) }
            td.n data-v=[found.map(|i| i.estimate)] title={ (row.valid_shapes) " shapes, " (subject.file()) } {
                @if reference { "1.00× " (if row.kind == Kind::Baseline { "baseline" } else { "reference" }) } @else { (found.as_ref().map_or(String::new(), interval)) }
            }
            td { @if let Some(scale) = scale { (drawn(found, reference, row.kind, scale)) } }
            td { (claim(subject, row)) }
            @if subject.run.header.yardstick.is_some() {
                td.n data-v=[row.over_yardstick.map(|e| e.mean.exp())] title=[row.over_yardstick_interval().map(|i| interval(&i))] {
                    (row.over_yardstick.map_or(String::new(), |e| speedup(e.mean.exp())))
                }
            }
            td.n data-v=[row.roofline] { (row.roofline.map_or(String::new(), percent)) }
            td.n { (resources.map_or(String::new(), |r| r.registers.to_string())) }
            td.n data-v=[resources.map(|r| r.spill_bytes)] { (resources.map_or(String::new(), |r| format!("{} B", r.spill_bytes))) }
            td.n data-v=[resources.map(|r| r.smem.0)] { (resources.map_or(String::new(), |r| r.smem.to_string())) }
            td.n data-v=[resources.map(|r| r.occupancy)] { (resources.map_or(String::new(), |r| percent(r.occupancy))) }
        }
    }
}

fn drawn(found: Option<Interval>, reference: bool, kind: Kind, scale: &Scale) -> Markup {
    let found = if reference {
        Some(Interval::point(1.0))
    } else {
        found
    };
    let class = if kind == Kind::Yardstick {
        "yard"
    } else {
        "mark"
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

fn verdict(subject: &Subject, row: &Row) -> Markup {
    let class = match row.status {
        _ if row.kind == Kind::Yardstick => "faint",
        Some(Status::Ok) => "good",
        Some(Status::Unsupported | Status::NotValidated) => "doubt",
        Some(_) => "bad",
        None if subject.run.timing() == Timing::Recorded => "faint",
        None => "doubt",
    };
    let text = verdict_word(&subject.run, row);
    html! {
        span class={ "badge " (class) } { (text) }
        @if row.unexpected() { " " span.bad { "expected " (row.expect) } }
    }
}

fn claim(subject: &Subject, row: &Row) -> Markup {
    let Some(result) = subject.claim(&row.contender) else {
        return html! {};
    };
    let Claim { geomean, over, .. } = &result.claim;
    let words = claim_words(*geomean, over, result.measured.map(|m| m.estimate));
    html! { (words) " " (super::claims::badge(result.verdict)) }
}
