use std::cmp::Ordering;

use super::{Align, Column, Grid, Style, interval, percent, signed_percent};
use dgx_core::domain::ContenderId;
use dgx_core::rank::{Comparison, Dispute, Ranking, Repeat, Repeated, Spread, same_card};
use dgx_core::record::Run;
use dgx_core::stats::CONFIDENCE;

/// Most disputes that are spelt out; the rest are counted.
const SHOWN: usize = 4;

/// Each contender in both runs, its speedup over the reference and its rank.
pub(crate) fn repetition_table(repeat: &Repeat, style: &Style) -> String {
    let mut grid = Grid::new(vec![
        Column::new("contender", Align::Left, 9),
        Column::new(format!("A over {}", repeat.reference), Align::Left, 9),
        Column::new(format!("B over {}", repeat.reference), Align::Left, 9),
        Column::new("change", Align::Right, 8),
        Column::new("ranks", Align::Left, 8),
        Column::new("agree", Align::Left, 8),
    ]);
    for entry in &repeat.entries {
        let reference = entry.contender == repeat.reference;
        let shown = |i: usize| match reference {
            true => "1.00×".to_owned(),
            false => interval(&entry.speedups[i].ratio(CONFIDENCE)),
        };
        grid.push(vec![
            entry.contender.to_string(),
            shown(0),
            shown(1),
            match reference {
                true => String::new(),
                false => signed_percent(entry.change.mean.exp_m1()),
            },
            format!("{}, {}", entry.places[0], entry.places[1]),
            {
                let word = agree_word(entry.agrees(), entry.edited);
                match entry.agrees() {
                    Some(true) => style.good(word),
                    Some(false) if entry.edited => style.doubtful(word),
                    Some(false) => style.bad(word),
                    None => String::new(),
                }
            },
        ]);
    }
    grid.without_empty_columns().render(style)
}

/// Whether two runs agree on a contender, as tables say it.
pub(crate) fn agree_word(agrees: Option<bool>, edited: bool) -> &'static str {
    match agrees {
        Some(true) => "yes",
        Some(false) if edited => "no, edited",
        Some(false) => "no",
        None => "",
    }
}

/// What is said of two runs as a whole.
pub(crate) struct Agreed {
    /// How far their times lie apart.
    pub times: Option<String>,
    /// Each run within itself, where both can be read so.
    pub repeat: Option<Repeat>,
    /// Whether they rank alike, and how far their speedups lie apart.
    pub words: Vec<String>,
}

impl Agreed {
    /// Of the contenders compared; of one alone there are no ranks to agree on.
    pub(crate) fn of(
        sides: [(&Run, &Ranking); 2],
        compared: &[(&ContenderId, Comparison)],
        one: bool,
    ) -> Self {
        let [a, b] = sides.map(|(run, _)| run);
        let same_card = same_card(a, b);
        let hash = |run: &Run, id| run.contender(id).map(|c| c.hash.clone());
        let unedited = compared.iter().filter(|(id, _)| hash(a, id) == hash(b, id));
        let times = Spread::of(unedited.map(|(_, c)| (c.geomean, c.slack)));
        let repeat = Repeat::of(sides[0], sides[1]).filter(|_| !one);
        let words = repeat.as_ref().map(|repeat| {
            let what = format!("Speedups over {}", repeat.reference);
            let apart = repeat
                .spread()
                .map(|found| spread(&what, &found, same_card));
            repetition(repeat).into_iter().chain(apart).collect()
        });
        Self {
            times: times.map(|found| spread("Times", &found, same_card)),
            words: words.unwrap_or_default(),
            repeat,
        }
    }
}

/// How far two runs lie apart in `what`, and what that says of other cards.
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
        "{what} differ by {} in the median of {contenders} contenders and by {} at most{cards}; \
         for {beyond} of {contenders} that is more than both runs can tell.",
        percent(median),
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
    let told: Vec<String> = repeat.disputes.iter().take(SHOWN).map(dispute).collect();
    let rest = repeat.disputes.len().saturating_sub(SHOWN);
    let more = match rest {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    format!(
        "The tie groups differ in {} of {pairs} pairs: {}{more}.",
        repeat.disputes.len(),
        told.join("; ")
    )
}

fn dispute(dispute: &Dispute) -> String {
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
            "Without samples, geometric means over {reference} have no intervals to agree within."
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
