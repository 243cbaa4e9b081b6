use std::cmp::Ordering;

use super::{between, interval, percent, signed_percent};
use crate::table::{Column, Table, Tone, Value, maybe, row};
use dgx_core::domain::{ContenderId, Joined, Timing, counted};
use dgx_core::rank::{Comparison, Disagreement, Ranking, Repeat, Repeated, Spread, same_card};
use dgx_core::record::Run;
use dgx_core::stats::{CONFIDENCE, LogEstimate};

/// Maximum number of disputes that are listed; the rest are counted.
const SHOWN: usize = 4;

/// Each contender in both runs, its speedup over the reference and its rank.
fn table(repeat: &Repeat, unit: &str) -> Table {
    let over = |run: &str| Column::left(format!("{run} over {}", repeat.reference));
    let columns = vec![
        Column::key("contender"),
        over("A").unit(unit),
        over("B"),
        Column::right("change").weight(8),
        Column::left("ranks").weight(8),
        Column::left("agree")
            .weight(8)
            .hint("The change is less than its own 95 % interval"),
    ];
    let rows = repeat.entries.iter().map(|entry| {
        let reference = entry.contender == repeat.reference;
        let speedup = |speedup: LogEstimate| match reference {
            true => Value::from("1.00×"),
            false => interval(&speedup.ratio(CONFIDENCE)).into(),
        };
        let [a, b] = entry.speedups.map(|e| speedup(e).number(e.mean.exp()));
        let change = signed_percent(entry.change.mean.exp_m1());
        row![
            &entry.contender,
            a,
            b,
            maybe((!reference).then_some(change)).number(entry.change.mean),
            format!("{}, {}", entry.places[0], entry.places[1]),
            match entry.agrees() {
                Some(true) => Value::from("yes").tone(Tone::Good),
                Some(false) if entry.edited => Value::from("no, edited").tone(Tone::Doubtful),
                Some(false) => Value::from("no").tone(Tone::Bad),
                None => Value::default(),
            },
        ]
    });
    let table = Table::new(columns).with(rows).titled("Within each run");
    table.without_empty_columns()
}

/// The caveat of a comparison of two runs; modelled times do not drift.
const UNPAIRED: &str = "No block pairs the two runs, so drift between them is in these ratios.";

/// Statements about two runs as a whole.
pub(crate) struct Repetition {
    pub drift: Option<&'static str>,
    /// How far their times differ.
    pub times: Option<String>,
    /// Each run ranked by itself, if both can be.
    pub repeat: Option<Repeat>,
    /// The same as a table.
    pub table: Option<Table>,
    /// Whether their rankings agree, and how far their speedups differ.
    pub words: Vec<String>,
}

impl Repetition {
    /// For the compared contenders; a single one has no ranks to agree on.
    pub(crate) fn of(
        sides: [(&Run, &Ranking); 2],
        compared: &[(&ContenderId, Comparison)],
        one: bool,
    ) -> Self {
        let [a, b] = sides.map(|(run, _)| run);
        let same_card = same_card(a, b);
        let hash = |run: &Run, id| run.contender(id).map(|c| c.hash.clone());
        let unedited = compared.iter().filter(|(id, _)| hash(a, id) == hash(b, id));
        // Benchmarks of another tool need not compute the same thing: neither their order nor their
        // mean means anything.
        let own = a.tool.is_none() && b.tool.is_none();
        let times = Spread::of(unedited.map(|(_, c)| (c.geomean, c.margin))).filter(|_| own);
        let repeat = Repeat::of(sides[0], sides[1]).filter(|_| !one && own);
        let words = repeat.as_ref().map(|repeat| {
            let what = format!("Speedups over {}", repeat.reference);
            let apart = repeat
                .spread()
                .map(|found| spread(&what, &found, same_card));
            repetition(repeat).into_iter().chain(apart).collect()
        });
        let modelled = [a, b].map(|run| run.timing() == Timing::Modelled);
        Self {
            drift: (modelled != [true, true]).then_some(UNPAIRED),
            times: times.map(|found| spread("Times", &found, same_card)),
            words: words.unwrap_or_default(),
            table: repeat.as_ref().map(|found| table(found, &between(a, b))),
            repeat,
        }
    }
}

/// How far two runs differ in `what`, and what that implies for other cards.
fn spread(what: &str, spread: &Spread, same_card: Option<bool>) -> String {
    let Spread {
        contenders,
        median,
        most,
        beyond,
    } = *spread;
    let cards = match same_card {
        Some(true) => ", on one card",
        Some(false) => ", between two cards",
        None => "",
    };
    let text = format!(
        "{what} differ by {} in the median of {} and by {} at most{cards}; for {beyond} of \
         {contenders} that is more than both runs can detect.",
        percent(median),
        counted(contenders, "contender"),
        percent(most)
    );
    match same_card {
        Some(false) => format!(
            "{text} A difference of that size between runs of two cards is no difference of designs."
        ),
        _ => text,
    }
}

/// Whether the runs agree, in two sentences: on the tie groups, and on the
/// geometric means.
fn repetition(repeat: &Repeat) -> [String; 2] {
    [ties(repeat), means(repeat)]
}

fn ties(repeat: &Repeat) -> String {
    let pairs = repeat.pairs();
    if repeat.disputes.is_empty() {
        return format!(
            "The tie groups agree: {pairs} of {pairs} pairs of contenders are ordered or tied alike in both runs."
        );
    }
    let listed = repeat.disputes.iter().take(SHOWN).map(dispute).joined("; ");
    let rest = repeat.disputes.len().saturating_sub(SHOWN);
    let more = match rest {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    format!(
        "The tie groups differ in {} of {pairs} pairs: {}{more}.",
        repeat.disputes.len(),
        listed
    )
}

fn dispute(dispute: &Disagreement) -> String {
    let [a, b] = &dispute.pair;
    let said = |order: Ordering| match order {
        Ordering::Less => format!("{a} is ahead of {b}"),
        Ordering::Greater => format!("{b} is ahead of {a}"),
        Ordering::Equal => format!("{a} and {b} are tied"),
    };
    match dispute.orders {
        [first, Ordering::Equal] => format!("{} in A, tied in B", said(first)),
        [first, second] => format!("{} in A, {} in B", said(first), said(second)),
    }
}

fn means(repeat: &Repeat) -> String {
    let judged: Vec<(&Repeated, bool)> = repeat
        .challengers()
        .filter_map(|e| Some((e, e.agrees()?)))
        .collect();
    let apart: Vec<String> = judged
        .iter()
        .filter(|(_, agrees)| !agrees)
        .map(|(e, _)| match e.edited {
            true => format!("{} (its source changed)", e.contender),
            false => e.contender.to_string(),
        })
        .collect();
    let reference = &repeat.reference;
    match (judged.len(), apart.len()) {
        (0, _) => format!(
            "Without samples there are no intervals, so whether geometric means over {reference} agree is unknown."
        ),
        (all, 0) => format!(
            "The geometric means over {reference} agree: {all} of {all} differ by less than the interval of their difference."
        ),
        (all, n) => format!(
            "The geometric means over {reference} differ by more than the interval of their difference for {n} of {all}: {}. By chance, one in twenty would.",
            apart.join(", ")
        ),
    }
}
