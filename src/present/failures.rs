use std::collections::BTreeMap;

use super::{Commands, status_tone};
use crate::table::{Style, Tone};
use dgx_core::domain::{Joined, Status};
use dgx_core::rank::{Ranking, Row};
use dgx_core::record::Run;

/// Characters shown of the kernels' output; the report has the rest.
const QUOTED: usize = 60;

/// A failure, once for all shapes on which it is the same.
pub(crate) struct Failure<'r> {
    pub row: &'r Row,
    pub status: Status,
    timed: bool,
    /// On the first shape.
    reason: Option<&'r str>,
    pub shapes: Vec<&'r str>,
    /// Of the first shapes that have them.
    pub detail: Option<&'r str>,
    pub printed: Option<&'r str>,
}

/// Every failure, and every remark on cells that have a time.
pub(crate) fn failures<'r>(run: &'r Run, ranking: &'r Ranking) -> Vec<Failure<'r>> {
    let rows = ranking.rows.iter();
    rows.flat_map(|row| of_row(run, ranking, row)).collect()
}

fn of_row<'r>(run: &'r Run, ranking: &'r Ranking, row: &'r Row) -> Vec<Failure<'r>> {
    let mut groups: BTreeMap<_, (_, Vec<&str>)> = BTreeMap::new();
    for cell in ranking.cells_of(&row.contender) {
        let noted = cell.reason.is_some();
        if let Some(status) = cell.status.filter(|s| !s.may_be_timed() || noted) {
            let reason = cell.reason.as_deref();
            let key = (status, cell.time.is_some(), reason.map(rule));
            let (_, shapes) = groups.entry(key).or_insert((reason, Vec::new()));
            shapes.push(&cell.shape);
        }
    }
    let failure = |((status, timed, _), (reason, shapes)): (_, (_, Vec<&'r str>))| {
        let verdicts = || {
            let shapes = shapes.iter();
            shapes.filter_map(|shape| run.verdict(&row.contender, shape))
        };
        Failure {
            row,
            status,
            timed,
            reason,
            detail: verdicts().find_map(|verdict| verdict.detail.as_deref()),
            printed: verdicts().find_map(|verdict| verdict.printed.as_deref()),
            shapes,
        }
    };
    groups.into_iter().map(failure).collect()
}

/// A reason without the numbers of its shape: `requires m <= 8, but m = 14` is one failure on all
/// shapes that violate the rule.
fn rule(reason: &str) -> &str {
    let rule = reason.starts_with("requires ");
    let end = reason.find(", but ").filter(|_| rule);
    &reason[..end.unwrap_or(reason.len())]
}

impl Failure<'_> {
    pub(crate) fn reason(&self) -> &str {
        self.reason.unwrap_or("no reason recorded")
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.status == self.row.expect
    }

    /// How it failed.
    fn word(&self) -> &'static str {
        match self.status.may_be_timed() {
            true if self.timed => "timed",
            true => "not timed",
            false => self.status.as_str(),
        }
    }

    fn place(&self, run: &Run) -> String {
        match self.shapes.len() {
            n if n == run.header.shapes.len() => "on every shape".to_owned(),
            n if n > 3 => format!("on {n} shapes ({}, …)", self.shapes[0]),
            _ => format!("on {}", self.shapes.join(", ")),
        }
    }

    /// The contender, how it failed, on which shapes, why, and the first wrong element.
    pub(crate) fn text(&self, run: &Run) -> String {
        let (contender, word) = (&self.row.contender, self.word());
        let expected = match self.row.expect {
            _ if self.status.may_be_timed() => String::new(),
            _ if self.is_declared() => " (as declared)".to_owned(),
            Status::Ok => String::new(),
            _ if self.status == Status::Unsupported => String::new(),
            expect => format!(" (declared {expect})"),
        };
        // The whole compiler output is in the report; a table shows its first line.
        let reason = self.reason().lines().next().unwrap_or_default();
        let mut text = format!("{contender} {word} {}{expected}: {reason}", self.place(run));
        for more in [
            self.detail.and_then(first_wrong).map(str::to_owned),
            self.printed.map(quoted),
        ] {
            text.extend(more.map(|more| format!("; {more}")));
        }
        text
    }

    /// The command that helps, unless the failure was declared.
    pub(crate) fn next(&self, commands: &Commands<'_>) -> Option<String> {
        let surprising = !self.is_declared() && !self.status.may_be_timed();
        let reason = self.reason().lines().next();
        surprising
            .then(|| commands.next(&self.row.contender, self.shapes[0], self.status, reason))?
    }
}

/// The failures on a terminal. Empty if nothing failed.
pub(crate) fn failure_lines(
    run: &Run,
    ranking: &Ranking,
    commands: &Commands<'_>,
    style: &Style,
) -> String {
    let failures = failures(run, ranking);
    let lines = failures.iter().map(|f| line(f, run, commands, style));
    lines.joined("\n")
}

fn line(failure: &Failure<'_>, run: &Run, commands: &Commands<'_>, style: &Style) -> String {
    let word = failure.word();
    let tone = match failure.status.may_be_timed() {
        true => Tone::Doubtful,
        false => status_tone(failure.status),
    };
    let folded = style.narrower(2).fold(&failure.text(run), 2);
    let mut out = format!(" {}", folded.replace('\n', "\n "));
    if let Some(step) = failure.next(commands) {
        out.push_str(&format!("\n   {}", style.dim(format!("next: {step}"))));
    }
    // Searched after the name, which may contain the same word.
    let (name, rest) = out.split_at(1 + failure.row.contender.as_str().len());
    let coloured = format!("  {}", style.toned(tone, word));
    format!("{name}{}", rest.replacen(&format!(" {word}"), &coloured, 1))
}

/// The line of a verdict's detail with the first wrong element.
pub(crate) fn first_wrong(detail: &str) -> Option<&str> {
    detail.lines().find(|line| line.starts_with("first: "))
}

/// The first line of the kernels' output, and the number of further ones.
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
    fn a_rule_that_many_shapes_break_is_one_failure() {
        let broken = |m: u32| format!("requires m <= 8, but m = {m}");
        assert_eq!(rule(&broken(9)), rule(&broken(300)));
        assert_ne!(rule(&broken(9)), rule("requires m >= n, but m = 9, n = 64"));
        assert_eq!(rule("3 wrong, but small"), "3 wrong, but small");
    }

    #[test]
    fn a_contender_may_be_called_like_its_status() {
        use crate::present::Folders;
        use dgx_core::record::synthetic::{Synthetic, SyntheticContender};
        let mut field = Synthetic::round4();
        for status in [Status::LaunchError, Status::Hung, Status::Wrong] {
            field.entries.push(SyntheticContender::failed(
                status.as_str(),
                status,
                "so it is",
            ));
        }
        let run = field.run();
        let folders = Folders::default();
        let commands = Commands::for_run(&run, &folders);
        let printed = failure_lines(&run, &Ranking::of(&run), &commands, &Style::PLAIN);
        for word in ["launch-error", "hung", "wrong"] {
            let line = format!(" {word}  {word} on every shape (as declared): so it is");
            assert!(printed.lines().any(|printed| printed == line), "{printed}");
        }
    }
}
