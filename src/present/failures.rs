use std::collections::BTreeMap;

use super::Style;
use crate::domain::Status;
use crate::rank::{Ranking, Row};
use crate::record::Run;

/// Characters shown of what kernels printed; the report has the rest.
const QUOTED: usize = 60;

/// Every failure with its reason, like ones on several shapes told once.
/// Empty where nothing failed.
pub(crate) fn failures(run: &Run, ranking: &Ranking, style: &Style) -> String {
    let mut lines = Vec::new();
    for row in &ranking.rows {
        for ((status, reason), shapes) in grouped(ranking, row) {
            lines.push(line(run, row, status, reason, &shapes, style));
        }
    }
    lines.join("\n")
}

type Failure<'r> = (Status, Option<&'r str>);

fn grouped<'r>(ranking: &'r Ranking, row: &Row) -> BTreeMap<Failure<'r>, Vec<&'r str>> {
    let mut groups: BTreeMap<Failure, Vec<&str>> = BTreeMap::new();
    for cell in ranking.cells_of(&row.contender) {
        // What is right or was not looked at is told where it could not be timed.
        let timeless = cell.time.is_none() && cell.reason.is_some();
        let Some(status) = cell.status.filter(|s| !s.may_be_timed() || timeless) else {
            continue;
        };
        let key = (status, cell.reason.as_deref());
        groups.entry(key).or_default().push(&cell.shape);
    }
    groups
}

fn line(
    run: &Run,
    row: &Row,
    status: Status,
    reason: Option<&str>,
    shapes: &[&str],
    style: &Style,
) -> String {
    let where_ = match shapes.len() {
        n if n == run.header.shapes.len() => "on every shape".to_owned(),
        n if n > 3 => format!("on {n} shapes ({}, …)", shapes[0]),
        _ => format!("on {}", shapes.join(", ")),
    };
    let shown = match status.may_be_timed() {
        true => "not timed",
        false => status.as_str(),
    };
    let expected = match (status, row.expect) {
        _ if status.may_be_timed() => String::new(),
        (_, expect) if status == expect => " (as declared)".to_owned(),
        (Status::Unsupported, _) => String::new(),
        (_, Status::Ok) => String::new(),
        (_, expect) => format!(" (declared {expect})"),
    };
    // The whole compiler output is in the report; a table shows its first line.
    let reason = reason.unwrap_or("no reason recorded");
    let reason = reason.lines().next().unwrap_or_default();
    let mut text = format!("{} {shown} {where_}{expected}: {reason}", row.contender);
    let printed = shapes
        .iter()
        .filter_map(|shape| run.verdict(&row.contender, shape))
        .find_map(|verdict| verdict.printed.as_deref());
    if let Some(first) = printed.and_then(|words| words.lines().next()) {
        let quoted: String = first.chars().take(QUOTED).collect();
        text.push_str(&format!("; its kernels printed {quoted:?}"));
    }
    let folded = Style {
        width: style.width.saturating_sub(2),
        ..*style
    }
    .fold(&text, 2);
    let coloured = match status {
        Status::Unsupported | Status::Ok | Status::NotValidated => style.doubtful(shown),
        _ => style.bad(shown),
    };
    let mut out = String::new();
    for line in folded.lines() {
        out.push(' ');
        out.push_str(line);
        out.push('\n');
    }
    out.trim_end()
        .replacen(&format!(" {shown}"), &format!("  {coloured}"), 1)
}
