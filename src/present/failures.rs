use std::collections::BTreeMap;

use super::{Met, Style};
use dgx_core::domain::Status;
use dgx_core::rank::{Ranking, Row};
use dgx_core::record::Run;

/// Characters shown of what kernels printed; the report has the rest.
const QUOTED: usize = 60;

/// A failure in words, like ones on several shapes told once.
pub(crate) struct Failed {
    /// The contender, how it failed, where, why, and which element is wrong first.
    pub text: String,
    /// The command that helps, unless it fails as it said it would.
    pub next: Option<String>,
    status: Status,
    /// The word in `text` for how it failed.
    shown: &'static str,
}

/// Every failure with its reason.
pub(crate) fn failed(run: &Run, ranking: &Ranking, met: &Met<'_>) -> Vec<Failed> {
    let rows = ranking.rows.iter();
    let of_row = |row| {
        grouped(ranking, row)
            .into_iter()
            .map(move |group| (row, group))
    };
    rows.flat_map(of_row)
        .map(|(row, (failure, shapes))| one(run, met, row, failure, &shapes))
        .collect()
}

/// The same for the screen. Empty where nothing failed.
pub(crate) fn failures(run: &Run, ranking: &Ranking, met: &Met<'_>, style: &Style) -> String {
    let lines = failed(run, ranking, met);
    let lines: Vec<String> = lines.iter().map(|failed| line(failed, style)).collect();
    lines.join("\n")
}

/// What became of a cell, whether it was timed, and why.
type Failure<'r> = (Status, bool, Option<&'r str>);

fn grouped<'r>(ranking: &'r Ranking, row: &Row) -> BTreeMap<Failure<'r>, Vec<&'r str>> {
    let mut groups: BTreeMap<Failure, Vec<&str>> = BTreeMap::new();
    for cell in ranking.cells_of(&row.contender) {
        // What is right or was not looked at is told where there is something to say of its time.
        let noted = cell.reason.is_some();
        let Some(status) = cell.status.filter(|s| !s.may_be_timed() || noted) else {
            continue;
        };
        let key = (status, cell.time.is_some(), cell.reason.as_deref());
        groups.entry(key).or_default().push(&cell.shape);
    }
    groups
}

fn one(
    run: &Run,
    met: &Met<'_>,
    row: &Row,
    (status, timed, reason): Failure<'_>,
    shapes: &[&str],
) -> Failed {
    let where_ = match shapes.len() {
        n if n == run.header.shapes.len() => "on every shape".to_owned(),
        n if n > 3 => format!("on {n} shapes ({}, …)", shapes[0]),
        _ => format!("on {}", shapes.join(", ")),
    };
    let shown = match status.may_be_timed() {
        true if timed => "timed",
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
    let verdicts = || {
        let shapes = shapes.iter();
        shapes.filter_map(|shape| run.verdict(&row.contender, shape))
    };
    if let Some(first) = verdicts().find_map(|v| first_wrong(v.detail.as_deref()?)) {
        text.push_str(&format!("; {first}"));
    }
    let printed = verdicts().find_map(|verdict| verdict.printed.as_deref());
    if let Some(words) = printed {
        text.push_str(&format!("; {}", quoted(words)));
    }
    // A design that fails as it said it would needs no help.
    let surprising = status != row.expect && !status.may_be_timed();
    let next = surprising.then(|| met.next(&row.contender, shapes[0], status, Some(reason)));
    Failed {
        text,
        next: next.flatten(),
        status,
        shown,
    }
}

fn line(failed: &Failed, style: &Style) -> String {
    let shown = failed.shown;
    let coloured = match failed.status {
        Status::Unsupported | Status::Ok | Status::NotValidated => style.doubtful(shown),
        _ => style.bad(shown),
    };
    let mut out = String::new();
    for line in style.narrower(2).fold(&failed.text, 2).lines() {
        out.push(' ');
        out.push_str(line);
        out.push('\n');
    }
    if let Some(step) = &failed.next {
        out.push_str(&format!("   {}\n", style.dim(format!("next: {step}"))));
    }
    // Behind the name, which may be the same word.
    let name = failed.text.find(' ').unwrap_or(0);
    let (name, rest) = out.trim_end().split_at(1 + name);
    let rest = rest.replacen(&format!(" {shown}"), &format!("  {coloured}"), 1);
    format!("{name}{rest}")
}

/// The line of a verdict's detail that says which element is wrong first.
pub(crate) fn first_wrong(detail: &str) -> Option<&str> {
    detail.lines().find(|line| line.starts_with("first: "))
}

/// The first line that kernels printed, and how many more there are.
fn quoted(words: &str) -> String {
    let first = words.lines().next().unwrap_or_default();
    let quoted: String = first.chars().take(QUOTED).collect();
    match words.lines().count() {
        0 | 1 => format!("its kernels printed {quoted:?}"),
        2 => format!("its kernels printed {quoted:?} and a line more"),
        lines => format!(
            "its kernels printed {quoted:?} and {} lines more",
            lines - 1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_may_be_called_like_what_became_of_it() {
        use crate::present::Folders;
        use dgx_core::record::synthetic::{Entry, Synthetic};
        let mut field = Synthetic::round4();
        for status in [Status::LaunchError, Status::Hung, Status::Wrong] {
            field
                .entries
                .push(Entry::failed(status.as_str(), status, "so it is"));
        }
        let run = field.run();
        let folders = Folders::default();
        let met = Met::in_run(&run, &folders);
        let told = failures(&run, &Ranking::of(&run), &met, &Style::PLAIN);
        for word in ["launch-error", "hung", "wrong"] {
            let line = format!(" {word}  {word} on every shape (as declared): so it is");
            assert!(told.lines().any(|told| told == line), "{told}");
        }
    }
}
