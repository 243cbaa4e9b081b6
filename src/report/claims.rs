use maud::{Markup, html};

use super::RankedRun;
use super::plot::{Scale, range};
use super::ranking::ruler;
use crate::contest::jury::{foresight, recount};
use crate::contest::story::recount_table;
use crate::present::{claim_tone, interval};
use crate::table::{Column, Table, Value, maybe, row};
use dgx_core::claims::ClaimResult;

/// Promises against results, drawn; and the jury, if the round had one.
pub(super) fn section(ranked: &RankedRun) -> Markup {
    let rows = ranked.ranking.rows.iter();
    let claims: Vec<(&str, ClaimResult)> = rows
        .filter_map(|r| Some((r.contender.as_str(), ranked.claim(&r.contender)?)))
        .collect();
    let numbers = claims.iter().flat_map(|(_, c)| {
        let measured = c.measured.map(|m| m.estimate);
        [Some(c.claim.geomean), measured].into_iter().flatten()
    });
    let jury = jury(ranked);
    let Some((low, high)) = range(numbers.chain([1.0])).filter(|_| !claims.is_empty()) else {
        return jury;
    };
    let (low, high) = (low * 0.95, high * 1.05);
    let scale = Scale::log((low, high), (10.0, 190.0));
    let columns = vec![
        Column::key("contender"),
        Column::right("claim"),
        Column::left("over"),
        Column::right("found"),
        Column::drawn("claim (bar) and finding (dot)", ruler(&scale, low, high)),
        Column::left("verdict"),
        Column::left("why it was claimed").wraps(),
    ];
    let rows = claims.iter().map(|(name, result)| {
        let ClaimResult {
            claim,
            measured,
            verdict,
            ..
        } = result;
        let found = measured.as_ref();
        row![
            name,
            Value::from(format!("{:.2}×", claim.geomean)).number(claim.geomean),
            &claim.over,
            Value::from(found.map_or("untested".to_owned(), interval))
                .number(found.map(|m| m.estimate)),
            Value::drawing(drawn(result, &scale)),
            Value::badge(claim_tone(*verdict), verdict),
            maybe(claim.why.as_ref()),
        ]
    });
    html! { (Table::new(columns).with(rows).html()) (jury) }
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
fn jury(ranked: &RankedRun) -> Markup {
    let Ok(round) = ranked.run.header.config.round() else {
        return html! {};
    };
    let Some(recount) = round.jury.as_ref().map(recount) else {
        return html! {};
    };
    let tau = foresight(&round, &recount, &ranked.run, &ranked.ranking);
    html! {
        h3 { "The jury" }
        (recount_table(&recount).html())
        @if let Some((tau, count)) = tau {
            p { "Kendall’s τ between the jury’s scores and the speeds of " (count) " candidates: " strong { (format!("{tau:+.2}")) } "." }
        }
    }
}
