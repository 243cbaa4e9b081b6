//! What the emulator counted: the cause behind modelled times.

use super::{Align, Column, Grid, Style};
use dgx_core::domain::{Counter, PANELS};
use dgx_core::rank::Ranking;
use dgx_core::record::Run;
use dgx_core::record::counters::Counts;

/// One line of the tables.
pub(crate) struct Counted {
    pub name: String,
    pub counts: Counts,
}

/// Every contender of an emulated run, summed over the shapes; empty for runs
/// without counters.
pub(crate) fn counters_of_run(run: &Run, ranking: &Ranking, style: &Style) -> String {
    let all = run.header.shapes.len();
    let rows = ranking.rows.iter().filter_map(|row| {
        let shapes = run.header.shapes.iter().map(|s| s.name.as_str());
        let (counts, counted) = run.summed_counts(&row.contender, shapes)?;
        let name = match counted == all {
            true => row.contender.to_string(),
            // Sums over fewer shapes are not to be compared unawares.
            false => format!("{} on {counted} of {all} shapes", row.contender),
        };
        Some(Counted { name, counts })
    });
    let rows: Vec<Counted> = rows.collect();
    let what = match all {
        1 => "one call".to_owned(),
        _ => format!("one call on each of {all} shapes, summed"),
    };
    counters_table(("contender", &what), &rows, false, style)
}

/// The counters of several rows, over as many tables as the width asks for.
/// With `ratio`, the second row over the first stands below.
pub(crate) fn counters_table(
    (kind, what): (&str, &str),
    rows: &[Counted],
    ratio: bool,
    style: &Style,
) -> String {
    let mut tables = Vec::new();
    for panel in &PANELS {
        let shown: Vec<Counter> = panel
            .counters
            .iter()
            .copied()
            .filter(|figure| rows.iter().any(|row| figure.value(&row.counts) > Some(0.0)))
            .collect();
        if shown.is_empty() {
            continue;
        }
        let title = match tables.is_empty() {
            true => format!("emulated, {what}: {}", panel.title),
            false => panel.title.to_owned(),
        };
        let grids = folded(kind, &shown, rows, ratio, style);
        tables.push(format!("{}\n{}", style.fold(&title, 2), grids.join("\n")));
    }
    tables.join("\n\n")
}

/// As few tables as hold all figures within the width.
fn folded(
    kind: &str,
    figures: &[Counter],
    rows: &[Counted],
    ratio: bool,
    style: &Style,
) -> Vec<String> {
    for parts in 1..=figures.len() {
        let size = figures.len().div_ceil(parts);
        let grids: Vec<Grid> = figures
            .chunks(size)
            .map(|some| grid(kind, some, rows, ratio))
            .collect();
        let fits = |g: &Grid| g.full_width() <= style.width;
        if parts == figures.len() || grids.iter().all(fits) {
            return grids.iter().map(|g| g.render(style)).collect();
        }
    }
    Vec::new()
}

fn grid(kind: &str, figures: &[Counter], rows: &[Counted], ratio: bool) -> Grid {
    let mut columns = vec![Column::new(kind, Align::Left, 9)];
    columns.extend(
        figures
            .iter()
            .map(|f| Column::new(f.title(), Align::Right, 9)),
    );
    let mut grid = Grid::new(columns);
    for row in rows {
        let value = |f: &Counter| f.value(&row.counts).map_or(String::new(), |v| f.text(v));
        let mut cells = vec![row.name.clone()];
        cells.extend(figures.iter().map(value));
        grid.push(cells);
    }
    if let ([base, candidate], true) = (rows, ratio) {
        let over = |f: &Counter| {
            let (Some(b), Some(c)) = (f.value(&base.counts), f.value(&candidate.counts)) else {
                return String::new();
            };
            match b > 0.0 {
                true => format!("×{:.2}", c / b),
                false => String::new(),
            }
        };
        let mut cells = vec!["second over first".to_owned()];
        cells.extend(figures.iter().map(over));
        grid.push(cells);
    }
    grid
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
        counters_of_run(&run, &Ranking::of(&run), &style)
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
        let text = counters_of_run(&run, &Ranking::of(&run), &Style::PLAIN);
        assert!(text.contains("two-pass on 8 of 9 shapes"), "{text}");
    }
}
