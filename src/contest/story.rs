//! Juries, lineages and the history of the rounds, for a terminal.

use super::dispatch::Dispatch;
use super::jury::{Outcome, Recount};
use super::lineage::Node;
use super::rounds::{Chapter, Found};
use crate::present::{Align, Column, Grid, Style, gate_outcome, interval, speedup};
use dgx_core::claims::ClaimVerdict;

/// The recount: a column per juror, totals that were announced otherwise shown
/// beside.
pub(crate) fn recount_table(recount: &Recount) -> Grid {
    let mut columns = vec![Column::new("candidate", Align::Left, 9)];
    columns.extend(
        recount
            .jurors
            .iter()
            .map(|j| Column::new(j, Align::Left, 8)),
    );
    columns.push(Column::new("mean", Align::Right, 7));
    columns.push(Column::new("votes", Align::Right, 9));
    let mut grid = Grid::new(columns);
    for tally in &recount.tallies {
        let mut row = vec![tally.candidate.clone()];
        row.extend(tally.totals.iter().enumerate().map(|(juror, total)| {
            match tally.misannounced(juror) {
                Some(announced) => format!("{total:.2} (announced {announced:.2})"),
                None => format!("{total:.2}"),
            }
        }));
        row.push(format!("{:.2}", tally.mean));
        row.push(tally.votes.to_string());
        grid.push(row);
    }
    grid
}

/// Promise beside finding.
pub(crate) fn outcome_table(outcomes: &[Outcome], style: &Style) -> Grid {
    let mut grid = Grid::new(vec![
        Column::new("design", Align::Left, 9),
        Column::new("claim", Align::Left, 8),
        Column::new("found", Align::Left, 9),
        Column::new("over", Align::Left, 4),
        Column::new("verdict", Align::Left, 9),
        Column::new("contender", Align::Left, 3),
    ]);
    for outcome in outcomes {
        grid.push(vec![
            outcome.candidate.clone(),
            claim_range(outcome.claimed),
            found(outcome),
            match &outcome.measured {
                Some(_) => outcome
                    .over
                    .as_ref()
                    .map_or(String::new(), |o| o.to_string()),
                None => String::new(),
            },
            verdict(outcome, style),
            match &outcome.contender {
                Some(id) if id.as_str() != outcome.candidate => id.to_string(),
                _ => String::new(),
            },
        ]);
    }
    grid.without_empty_columns()
}

/// `1.50–1.80×`, or one number where both ends are the same.
pub(crate) fn claim_range(claimed: Option<(f64, f64)>) -> String {
    match claimed {
        None => String::new(),
        Some((low, high)) if low == high => format!("{low:.2}×"),
        Some((low, high)) => format!("{low:.2}–{high:.2}×"),
    }
}

fn found(outcome: &Outcome) -> String {
    match (&outcome.measured, outcome.status) {
        (Some(measured), _) => interval(measured),
        _ if outcome.contender.is_some() && outcome.contender == outcome.over => {
            "the baseline".to_owned()
        }
        // Right, and what it is claimed to be faster than is not in the run.
        (None, Some(status)) if status.may_be_timed() => "not compared".to_owned(),
        (None, Some(status)) => status.to_string(),
        (None, None) if outcome.contender.is_none() => "not built".to_owned(),
        (None, None) => "not measured".to_owned(),
    }
}

fn verdict(outcome: &Outcome, style: &Style) -> String {
    let text = outcome.verdict.as_str();
    match outcome.verdict {
        ClaimVerdict::Met => style.good(text),
        ClaimVerdict::Missed => style.doubtful(text),
        ClaimVerdict::Reversed => style.bad(text),
        ClaimVerdict::Untested => style.dim(text),
    }
}

/// The tree of changes, each with what it brought over its parent.
pub(crate) fn lineage_tree(nodes: &[Node]) -> String {
    let mut open: Vec<bool> = Vec::new();
    let mut lines = Vec::new();
    let mut names = Vec::new();
    for node in nodes {
        open.truncate(node.depth);
        let mut indent: String = open
            .iter()
            .skip(1)
            .map(|more| if *more { "│  " } else { "   " })
            .collect();
        if node.depth > 0 {
            indent.push_str(if node.last { "└─ " } else { "├─ " });
        }
        open.push(!node.last);
        names.push(format!(" {indent}{}", node.contender));
        lines.push(
            match (&node.over_parent, &node.parent, &node.absent_parent) {
                (Some(comparison), Some(parent), _) => {
                    let ratio = comparison.geomean.ratio(dgx_core::stats::CONFIDENCE);
                    format!("{} over {parent}", interval(&ratio))
                }
                (None, Some(parent), _) => format!("cannot be compared with {parent}"),
                (_, None, Some(absent)) => {
                    format!("a change to {absent}, which is not in this run")
                }
                _ => String::new(),
            },
        );
    }
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let joined = names.iter().zip(&lines).map(|(name, line)| {
        let pad = " ".repeat(width - name.chars().count());
        format!("{name}{pad}  {line}").trim_end().to_owned()
    });
    joined.collect::<Vec<_>>().join("\n")
}

/// One or two lines on what calling the best per shape would bring.
pub(crate) fn dispatch_note(dispatch: &Dispatch, style: &Style) -> String {
    let switched: Vec<String> = dispatch
        .choices
        .iter()
        .filter(|c| c.contender != dispatch.single)
        .map(|c| format!("{} on {}", c.contender, c.shape.name))
        .collect();
    let text = match switched.is_empty() {
        true => format!(
            "Nobody is surely faster than {} on any shape.",
            dispatch.single
        ),
        false => format!(
            "Choosing per shape would be {} over {} alone: {}.",
            speedup(dispatch.gap),
            dispatch.single,
            switched.join(", ")
        ),
    };
    style.fold(&text, 2)
}

/// The whole history.
pub(crate) fn history(chapters: &[Chapter], style: &Style) -> String {
    let parts: Vec<String> = chapters.iter().map(|c| chapter(c, style)).collect();
    parts.join("\n\n")
}

fn chapter(chapter: &Chapter, style: &Style) -> String {
    let round = &chapter.round;
    let mut lines = vec![style.titled(&round.name, &round.question)];
    match &chapter.found {
        Some(found) => lines.extend(findings(found, style)),
        None => lines.push(style.dim(format!(
            " not run yet: dgx sweep {}",
            round.file.path.display()
        ))),
    }
    let stories = round
        .pitches
        .iter()
        .filter_map(|p| Some(format!(" {}: {}", p.design, p.outcome.as_ref()?)));
    lines.extend(stories.map(|s| format!(" {}", style.narrower(1).fold(s.trim(), 3))));
    lines.join("\n")
}

fn findings(found: &Found, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    let run = &found.run;
    let origin = format!("{} {}", run.path.display(), dgx_core::rank::describe(run));
    lines.push(style.dim(format!(" {}", style.narrower(1).fold(&origin, 3))));
    for (path, why) in &found.passed_over {
        let line = format!("{} does not count, {}", path.display(), why.join("; "));
        lines.push(format!(" {}", style.narrower(1).fold(&line, 3)));
    }
    if !found.outcomes.is_empty() {
        lines.push(outcome_table(&found.outcomes, style).render(style));
    }
    let failed = found.ranking.rows.iter().filter(|r| {
        r.status.is_some_and(|s| s != dgx_core::domain::Status::Ok)
            && !found
                .outcomes
                .iter()
                .any(|o| o.contender.as_ref() == Some(&r.contender))
    });
    for row in failed {
        let status = row.status.map_or(String::new(), |s| s.to_string());
        lines.push(format!(" {} was {status}", row.contender));
    }
    let (word, coloured, rest) = match &found.promoted {
        Some(p) => {
            let over = format!("{}: {} over {}", p.contender, interval(&p.speedup), p.over);
            let in_all = match p.since != p.over {
                true => format!(", {} over {} in all", speedup(p.total), p.since),
                false => String::new(),
            };
            let word = "promoted";
            (word, style.good(word), format!(" {over}{in_all}"))
        }
        None => {
            let word = "nobody promoted";
            (
                word,
                style.doubtful(word),
                format!(": {}", why_nobody(found)),
            )
        }
    };
    let line = style.narrower(1).fold(&format!("{word}{rest}"), 3);
    lines.push(format!(" {}", line.replacen(word, &coloured, 1)));
    lines
}

fn why_nobody(found: &Found) -> String {
    if !found.departures.is_empty() {
        return format!("the run does not count, {}", found.departures.join("; "));
    }
    match (&found.gate, found.ranking.challenger()) {
        (_, None) => "no contender was right on every shape".to_owned(),
        (Some(report), Some(_)) => gate_outcome(report),
        (None, Some(_)) => "nobody was surely faster than the baseline".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::rank::Ranking;
    use dgx_core::record::synthetic::{Entry, Synthetic};

    #[test]
    fn a_tree_of_changes() {
        let mut field = Synthetic::round4();
        field
            .entries
            .push(Entry::ok("tma-store", 0.75).child_of("sequential"));
        field
            .entries
            .push(Entry::ok("orphan", 0.9).child_of("nobody-here"));
        let run = field.run();
        let ranking = Ranking::of(&run);
        let tree = lineage_tree(&crate::contest::lineage::lineage(&run, &ranking));
        let table = crate::contest::dispatch::dispatch(&run, &ranking).unwrap();
        let note = dispatch_note(&table, &Style::PLAIN);
        insta::assert_snapshot!(format!("{tree}\n\n{note}"));
    }
}
