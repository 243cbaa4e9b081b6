use maud::{Markup, html};

use super::Subject;
use super::plot::{Scale, range};
use super::ranking::ruler;
use crate::contest::jury::{foresight, recount};
use crate::present::interval;
use dgx_core::claims::{ClaimResult, ClaimVerdict};
use dgx_core::config::Round;
use dgx_core::diagnostic::SourceFile;

/// Promise against finding, drawn; and the jury, where the round had one.
pub(super) fn section(subject: &Subject) -> Markup {
    let rows = subject.ranking.rows.iter();
    let claims: Vec<(&str, ClaimResult)> = rows
        .filter_map(|r| Some((r.contender.as_str(), subject.claim(&r.contender)?)))
        .collect();
    let numbers = claims.iter().flat_map(|(_, c)| {
        let measured = c.measured.map(|m| m.estimate);
        [Some(c.claim.geomean), measured].into_iter().flatten()
    });
    let jury = jury(subject);
    let Some((low, high)) = range(numbers.chain([1.0])).filter(|_| !claims.is_empty()) else {
        return jury;
    };
    let (low, high) = (low * 0.95, high * 1.05);
    let scale = Scale::log((low, high), (10.0, 190.0));
    html! {
        div.scroll { table {
            thead { tr {
                th.key data-sort { "contender" } th.n data-sort { "claim" } th data-sort { "over" } th.n data-sort { "found" }
                th { "claim (bar) and finding (dot)" (ruler(&scale, low, high)) } th data-sort { "verdict" } th { "why it was claimed" }
            } }
            tbody { @for (name, result) in &claims { tr data-c=(name) {
                td.key { (name) }
                td.n data-v=(result.claim.geomean) { (format!("{:.2}×", result.claim.geomean)) }
                td { (result.claim.over) }
                td.n data-v=[result.measured.map(|m| m.estimate)] { (result.measured.as_ref().map_or("untested".to_owned(), interval)) }
                td { (drawn(result, &scale)) }
                td { (badge(result.verdict)) }
                td.wrap { (result.claim.why.as_deref().unwrap_or("")) }
            } } }
        } }
        (jury)
    }
}

pub(super) fn badge(verdict: ClaimVerdict) -> Markup {
    let class = match verdict {
        ClaimVerdict::Met => "good",
        ClaimVerdict::Missed => "doubt",
        ClaimVerdict::Reversed => "bad",
        ClaimVerdict::Untested => "faint",
    };
    html! { span class={ "badge " (class) } { (verdict.as_str()) } }
}

fn drawn(result: &ClaimResult, scale: &Scale) -> Markup {
    let claimed = scale.at(result.claim.geomean);
    html! {
        svg viewBox="0 0 200 20" role="img" aria-label={ "claimed " (result.claim.geomean) } {
            line.ref x1=(scale.at(1.0)) x2=(scale.at(1.0)) y1="0" y2="20" {}
            line.claim x1=(claimed) x2=(claimed) y1="2" y2="18" {}
            @if let Some(measured) = result.measured {
                circle.mark cx=(scale.at(measured.estimate)) cy="10" r="3.5" {}
            }
        }
    }
}

/// The jury of the round the run was made from.
fn jury(subject: &Subject) -> Markup {
    let config = &subject.run.header.config;
    let file = SourceFile {
        path: config.path.clone().into(),
        text: config.text.as_str().into(),
    };
    let Ok(round) = Round::from_source(file) else {
        return html! {};
    };
    let Some(recount) = round.jury.as_ref().map(recount) else {
        return html! {};
    };
    let tau = foresight(&round, &recount, &subject.run, &subject.ranking);
    html! {
        h3 { "The jury" }
        div.scroll { table {
            thead { tr {
                th data-sort { "candidate" }
                @for juror in &recount.jurors { th.n data-sort { (juror) } }
                th.n data-sort { "mean" } th.n data-sort { "votes" }
            } }
            tbody { @for tally in &recount.tallies { tr {
                td { (tally.candidate) }
                @for (i, total) in tally.totals.iter().enumerate() {
                    td.n data-v=(total) {
                        (format!("{total:.2}"))
                        @if let Some(announced) = tally.misannounced(i) { span.doubt { (format!(" (announced {announced:.2})")) } }
                    }
                }
                td.n { (format!("{:.2}", tally.mean)) } td.n { (tally.votes) }
            } } }
        } }
        @if let Some((tau, count)) = tau {
            p { "Kendall’s τ between the jury’s scores and the speeds of " (count) " candidates: " strong { (format!("{tau:+.2}")) } "." }
        }
    }
}
