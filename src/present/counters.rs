//! The emulator's counters, which explain modelled times.

use crate::table::{Column, Style, Table, maybe};
use dgx_core::domain::{Counter, Joined, PANELS};
use dgx_core::rank::Ranking;
use dgx_core::record::Run;
use dgx_core::record::counters::Counts;

/// One line of the tables.
pub(crate) struct CounterRow {
    pub name: String,
    pub counts: Counts,
}

/// Every contender of an emulated run, summed over the shapes; empty for runs without counters.
pub(crate) fn counters_of_run(run: &Run, ranking: &Ranking) -> Vec<Table> {
    let what = match run.header.shapes.len() {
        1 => "one call".to_owned(),
        all => format!("one call on each of {all} shapes, summed"),
    };
    counters_tables(("contender", &what), &counted(run, ranking), false)
}

/// The same in one table: a row for each counter.
pub(crate) fn all_counters(run: &Run, ranking: &Ranking) -> Table {
    let all: Vec<Counter> = Counter::all().collect();
    let table = table("contender", &all, &counted(run, ranking), false);
    let title = "emulated, one call on each shape";
    table.transposed("counter").titled(title)
}

fn counted(run: &Run, ranking: &Ranking) -> Vec<CounterRow> {
    let all = run.header.shapes.len();
    let rows = ranking.rows.iter().filter_map(|row| {
        let shapes = run.header.shapes.iter().map(|s| s.name.as_str());
        let (counts, counted) = run.summed_counts(&row.contender, shapes)?;
        let name = match counted == all {
            true => row.contender.to_string(),
            // Marks sums over fewer shapes, so that they are not compared by mistake.
            false => format!("{} on {counted} of {all} shapes", row.contender),
        };
        Some(CounterRow { name, counts })
    });
    rows.collect()
}

/// A table for each kind of counter. With `ratio`, the second row over the
/// first stands below.
pub(crate) fn counters_tables(
    (kind, what): (&str, &str),
    rows: &[CounterRow],
    ratio: bool,
) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for panel in &PANELS {
        let table = table(kind, panel.counters, rows, ratio);
        let title = match tables.is_empty() {
            true => format!("emulated, {what}: {}", panel.title),
            false => panel.title.to_owned(),
        };
        if table.columns.len() > 1 {
            tables.push(table.titled(title));
        }
    }
    tables
}

/// The counters that are not zero in all rows.
fn table(kind: &str, counters: &[Counter], rows: &[CounterRow], ratio: bool) -> Table {
    let used = |c: &&Counter| rows.iter().any(|row| c.value(&row.counts) > Some(0.0));
    let counters: Vec<&Counter> = counters.iter().filter(used).collect();
    let titles = counters.iter().map(|c| Column::right(c.title()));
    let mut table = Table::keyed(kind, titles);
    for row in rows {
        let value = |c: &&Counter| {
            let value = c.value(&row.counts);
            maybe(value.map(|v| c.text(v))).number(value)
        };
        table.push_named(&row.name, counters.iter().map(value));
    }
    if let ([base, candidate], true) = (rows, ratio) {
        let over = |c: &&Counter| {
            let base = c.value(&base.counts).filter(|base| *base > 0.0);
            let both = base.zip(c.value(&candidate.counts));
            maybe(both.map(|(b, c)| format!("×{:.2}", c / b)))
        };
        table.push_named("second over first", counters.iter().map(over));
    }
    table
}

/// Tables below each other.
pub(crate) fn rendered(tables: &[Table], style: &Style) -> String {
    tables
        .iter()
        .map(|table| table.render(style))
        .joined("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::Status;
    use dgx_core::record::synthetic::Synthetic;

    fn shown(field: &Synthetic, width: usize) -> String {
        let run = field.run();
        let style = Style {
            width,
            ..Style::PLAIN
        };
        rendered(&counters_of_run(&run, &Ranking::of(&run)), &style)
    }

    #[test]
    fn every_counter_is_shown_within_any_usual_width() {
        let field = Synthetic::round4().modelled();
        for width in [80, 100, 140] {
            let text = shown(&field, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            let words = Counter::all().flat_map(|c| c.as_str().split('-'));
            let zero = ["double", "atomics", "early", "reads", "local"];
            for word in words.filter(|w| !zero.contains(w)) {
                assert!(text.contains(word), "{width}: no {word}\n{text}");
            }
        }
    }

    #[test]
    fn measured_runs_have_none_and_partial_sums_say_so() {
        assert_eq!(shown(&Synthetic::round4(), 100), "");
        let mut field = Synthetic::round4().modelled();
        field.entries[3].status = Status::Hung;
        let text = shown(&field, 100);
        assert!(!text.contains("single-gemm"), "{text}");
        let mut run = Synthetic::round4().modelled().run();
        run.header.shapes.push(dgx_core::domain::Shape {
            name: "more".to_owned(),
            groups: run.header.shapes[0].groups.clone(),
        });
        let text = rendered(&counters_of_run(&run, &Ranking::of(&run)), &Style::PLAIN);
        assert!(text.contains("two-pass on 8 of 9 shapes"), "{text}");
    }
}
