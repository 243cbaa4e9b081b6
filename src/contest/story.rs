//! Juries, lineages and the history of the rounds, for a terminal.

use super::dispatch_table::DispatchTable;
use super::jury::{Outcome, Recount};
use super::lineage::Node;
use super::rounds::{RoundHistory, RoundResult};
use crate::present::{claim_tone, gate_outcome, interval, speedup};
use crate::table::{Column, Style, Table, Value, maybe, row};
use dgx_core::domain::{ContenderId, Joined};

/// The recount: a column per juror, with differing announced totals beside.
pub(crate) fn recount_table(recount: &Recount) -> Table {
    let jurors = recount.jurors.iter();
    let jurors = jurors.map(|juror| Column::left(juror).weight(8));
    let sums = [Column::right("mean").weight(7), Column::right("votes")];
    let mut table = Table::keyed("candidate", jurors.chain(sums));
    for tally in &recount.tallies {
        let totals = tally.totals.iter().enumerate();
        let totals = totals.map(|(juror, total)| match tally.misannounced(juror) {
            Some(announced) => format!("{total:.2} (announced {announced:.2})").into(),
            None => format!("{total:.2}").into(),
        });
        let sums = row![format!("{:.2}", tally.mean), tally.votes];
        table.push_named(&tally.candidate, totals.chain(sums));
    }
    table
}

/// Promises beside results.
pub(crate) fn outcome_table(outcomes: &[Outcome]) -> Table {
    let columns = vec![
        Column::left("design"),
        Column::left("claim").weight(8),
        Column::left("found"),
        Column::left("over").weight(4),
        Column::left("verdict"),
        Column::left("contender").weight(3),
    ];
    let rows = outcomes.iter().map(|outcome| {
        let over = outcome.over.as_ref();
        let other = |id: &&ContenderId| id.as_str() != outcome.candidate;
        row![
            &outcome.candidate,
            claim_range(outcome.claimed),
            found(outcome),
            maybe(over.filter(|_| outcome.measured.is_some())),
            Value::badge(claim_tone(outcome.verdict), outcome.verdict),
            maybe(outcome.contender.as_ref().filter(other)),
        ]
    });
    Table::new(columns).with(rows).without_empty_columns()
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
        // Correct, but the contender of the claim is not in the run.
        (None, Some(status)) if status.may_be_timed() => "not compared".to_owned(),
        (None, Some(status)) => status.to_string(),
        (None, None) if outcome.contender.is_none() => "not built".to_owned(),
        (None, None) => "not measured".to_owned(),
    }
}

/// The tree of changes, each with its gain over its parent.
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
    let drawn = names.iter().zip(&lines).map(|(name, line)| {
        let pad = " ".repeat(width - name.chars().count());
        format!("{name}{pad}  {line}").trim_end().to_owned()
    });
    drawn.joined("\n")
}

/// One or two lines on the gain of calling the best contender per shape.
pub(crate) fn dispatch_note(dispatch: &DispatchTable, style: &Style) -> String {
    let switched: Vec<String> = dispatch
        .choices
        .iter()
        .filter(|c| c.contender != dispatch.single)
        .map(|c| format!("{} on {}", c.contender, c.shape.name))
        .collect();
    let text = match switched.is_empty() {
        true => format!(
            "No contender is significantly faster than {} on any shape.",
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
pub(crate) fn history(chapters: &[RoundHistory], style: &Style) -> String {
    chapters.iter().map(|c| chapter(c, style)).joined("\n\n")
}

fn chapter(chapter: &RoundHistory, style: &Style) -> String {
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

fn findings(found: &RoundResult, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    let run = &found.evidence.run;
    let origin = format!("{} {}", run.path.display(), dgx_core::rank::describe(run));
    lines.push(style.dim(format!(" {}", style.narrower(1).fold(&origin, 3))));
    for (path, why) in &found.evidence.skipped {
        let line = format!("{} does not count, {}", path.display(), why.join("; "));
        lines.push(format!(" {}", style.narrower(1).fold(&line, 3)));
    }
    if !found.outcomes.is_empty() {
        lines.push(outcome_table(&found.outcomes).render(style));
    }
    let failed = found.evidence.ranking.rows.iter().filter(|r| {
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
            let word = "no design promoted";
            (word, style.doubtful(word), format!(": {}", why_none(found)))
        }
    };
    let line = style.narrower(1).fold(&format!("{word}{rest}"), 3);
    lines.push(format!(" {}", line.replacen(word, &coloured, 1)));
    lines
}

fn why_none(found: &RoundResult) -> String {
    if !found.evidence.departures.is_empty() {
        return format!(
            "the run does not count, {}",
            found.evidence.departures.join("; ")
        );
    }
    match (&found.gate, found.evidence.ranking.challenger()) {
        (_, None) => "no contender was right on every shape".to_owned(),
        (Some(report), Some(_)) => gate_outcome(report),
        (None, Some(_)) => "no contender was significantly faster than the baseline".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::rank::Ranking;
    use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

    #[test]
    fn a_tree_of_changes() {
        let mut field = Synthetic::round4();
        field
            .entries
            .push(SyntheticContender::ok("tma-store", 0.75).child_of("sequential"));
        field
            .entries
            .push(SyntheticContender::ok("orphan", 0.9).child_of("nobody-here"));
        let run = field.run();
        let ranking = Ranking::of(&run);
        let tree = lineage_tree(&crate::contest::lineage::lineage(&run, &ranking));
        let table = crate::contest::dispatch_table::dispatch_table(&run, &ranking).unwrap();
        let note = dispatch_note(&table, &Style::PLAIN);
        insta::assert_snapshot!(format!("{tree}\n\n{note}"));
    }
}
