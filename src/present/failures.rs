use std::collections::BTreeMap;

use super::Style;
use crate::domain::{ContenderId, Status, typed};
use crate::rank::{Ranking, Row};
use crate::record::Run;

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
pub(crate) fn failed(run: &Run, ranking: &Ranking) -> Vec<Failed> {
    let rows = ranking.rows.iter();
    let of_row = |row| {
        grouped(ranking, row)
            .into_iter()
            .map(move |group| (row, group))
    };
    rows.flat_map(of_row)
        .map(|(row, ((status, reason), shapes))| one(run, row, status, reason, &shapes))
        .collect()
}

/// The same for the screen. Empty where nothing failed.
pub(crate) fn failures(run: &Run, ranking: &Ranking, style: &Style) -> String {
    let lines = failed(run, ranking);
    let lines: Vec<String> = lines.iter().map(|failed| line(failed, style)).collect();
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

fn one(run: &Run, row: &Row, status: Status, reason: Option<&str>, shapes: &[&str]) -> Failed {
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
    let met = Met {
        of: &run.path.display().to_string(),
        round: &run.header.config.path,
        folders: &run.header.folders(),
    };
    let next = surprising.then(|| next_step(&row.contender, shapes[0], status, Some(reason), &met));
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

/// Where a failure was met.
pub(crate) struct Met<'a> {
    /// The run, or the round.
    pub of: &'a str,
    /// The file of that round.
    pub round: &'a str,
    /// Folders of variants that were named; none for the usual one.
    pub folders: &'a [String],
}

impl Met<'_> {
    /// One cell as the words of a command.
    pub(crate) fn cell(&self, contender: &ContenderId, shape: &str) -> String {
        let (contender, of) = (contender.typed(), typed(self.of));
        format!("{contender} {of} --shape {}{}", typed(shape), self.flags())
    }

    fn flags(&self) -> String {
        let flag = |folder: &String| format!(" --variants {}", typed(folder));
        self.folders.iter().map(flag).collect()
    }
}

/// The command that helps with a failure, ready to be pasted. None where
/// nothing is to be done.
pub(crate) fn next_step(
    contender: &ContenderId,
    shape: &str,
    status: Status,
    reason: Option<&str>,
    met: &Met<'_>,
) -> Option<String> {
    let (cell, flags) = (met.cell(contender, shape), met.flags());
    Some(match status {
        Status::Ok | Status::NotValidated => return None,
        // What the shape or the machine lacks; the reason says it.
        Status::Unsupported => return None,
        Status::Wrong | Status::Crashed | Status::Hung => format!("dgx debug {cell}"),
        Status::Racy => format!("dgx sanitize {}{flags}", contender.typed()),
        Status::CompileError => format!("dgx check {}{flags}", typed(met.round)),
        // The source is at fault, not what the device has.
        Status::LaunchError if reason.is_some_and(|why| why.contains("declare it")) => {
            format!("dgx check {}{flags}", typed(met.round))
        }
        Status::LaunchError => format!("dgx explain {cell}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_may_be_called_like_what_became_of_it() {
        use crate::record::synthetic::{Entry, Synthetic};
        let mut field = Synthetic::round4();
        for status in [Status::LaunchError, Status::Hung, Status::Wrong] {
            field
                .entries
                .push(Entry::failed(status.as_str(), status, "so it is"));
        }
        let run = field.run();
        let told = failures(&run, &Ranking::of(&run), &Style::PLAIN);
        for word in ["launch-error", "hung", "wrong"] {
            let line = format!(" {word}  {word} on every shape (as declared): so it is");
            assert!(told.lines().any(|told| told == line), "{told}");
        }
    }

    #[test]
    fn the_next_command_is_the_one_for_that_failure_and_can_be_pasted() {
        let id = ContenderId::from_text("x[STAGES=2]");
        let folders = ["my variants".to_owned()];
        let met = |folders| Met {
            of: "results/r.jsonl",
            round: "r.toml",
            folders,
        };
        let elsewhere = next_step(&id, "s", Status::Racy, None, &met(&folders)).unwrap();
        assert_eq!(
            elsewhere,
            "dgx sanitize x:STAGES=2 --variants 'my variants'"
        );
        let step = |status| next_step(&id, "a b", status, None, &met(&[]));
        let wrong = step(Status::Wrong).unwrap();
        assert_eq!(wrong, "dgx debug x:STAGES=2 results/r.jsonl --shape 'a b'");
        assert!(
            step(Status::LaunchError)
                .unwrap()
                .starts_with("dgx explain x:")
        );
        assert_eq!(step(Status::Racy).unwrap(), "dgx sanitize x:STAGES=2");
        let undeclared = Some("there is no kernel `k` in it: declare it extern \"C\" __global__");
        let status = Status::LaunchError;
        let source = next_step(&id, "s", status, undeclared, &met(&[])).unwrap();
        assert_eq!(source, "dgx check r.toml");
        assert_eq!(step(Status::CompileError).unwrap(), "dgx check r.toml");
        for status in Status::ALL {
            let harmless = matches!(
                status,
                Status::Ok | Status::NotValidated | Status::Unsupported
            );
            assert_eq!(step(status).is_none(), harmless, "{status}");
        }
    }
}
