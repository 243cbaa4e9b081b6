use super::{Align, Column, Grid, Style, interval, model_error, percent, speedup};
use dgx_core::claims::{self, ClaimVerdict};
use dgx_core::domain::{Claim, ContenderId, Interval, Micros, Status, Timing, counted};
use dgx_core::rank::{Kind, Ranking, Row};
use dgx_core::record::Run;

/// The ranked table of a run.
pub(crate) fn ranking_table(run: &Run, ranking: &Ranking, style: &Style) -> Grid {
    let reference = ranking.reference.as_ref();
    let over = reference.map_or("speedup".to_owned(), |r| format!("over {r}"));
    let yardstick = run.header.yardstick.as_ref();
    let over_yardstick = yardstick.map_or(String::new(), |y| format!("over {y}"));
    let mut grid = Grid::new(vec![
        Column::key("rank"),
        Column::key("contender"),
        Column::new("verdict", Align::Left, 9),
        mean_column(run),
        Column::new(over, Align::Left, 8),
        Column::new(over_yardstick, Align::Right, 7),
        Column::new("roofline", Align::Right, 4),
        Column::new("bound by", Align::Left, 3),
        Column::new("regs", Align::Right, 2),
        Column::new("smem", Align::Right, 3),
        Column::new(CLAIM, Align::Left, 6),
    ]);
    for row in &ranking.rows {
        grid.push(cells(run, ranking, row, style));
    }
    grid.without_empty_columns()
}

/// Times that were not measured stand in a column that says so.
fn mean_column(run: &Run) -> Column {
    let title = mean_title(run.timing(), model_error(&run.header.device).as_deref());
    Column::new(title, Align::Right, 9)
}

/// What a column of mean times is headed by; below it, how far they are off.
pub(crate) fn mean_title(timing: Timing, error: Option<&str>) -> String {
    match (timing, error) {
        (Timing::Measured, _) => "mean µs".to_owned(),
        (timing, Some(error)) => format!("{} µs\n{error}", timing.as_str()),
        (timing, None) => format!("{} µs", timing.as_str()),
    }
}

fn cells(run: &Run, ranking: &Ranking, row: &Row, style: &Style) -> Vec<String> {
    let name = row.contender.to_string();
    let winner = row.place.is_some_and(|p| p.rank == 1);
    let resources = row.resources.as_ref();
    vec![
        row.place.map_or("–".to_owned(), |p| p.to_string()),
        if winner { style.bold(name) } else { name },
        verdict(run, row, style),
        mean_micros(run, ranking, row).map_or(String::new(), |mean| mean.to_string()),
        speedup_text(run, ranking, row),
        row.over_yardstick
            .map_or(String::new(), |e| speedup(e.mean.exp())),
        row.roofline.map_or(String::new(), percent),
        bound_text(ranking, row),
        resources.map_or(String::new(), |r| r.registers.to_string()),
        resources.map_or(String::new(), |r| r.smem.to_string()),
        claim_text(run, ranking, row, style),
    ]
}

fn verdict(run: &Run, row: &Row, style: &Style) -> String {
    let word = verdict_word(run, row);
    match row.status {
        _ if row.kind == Kind::Yardstick => style.dim(word),
        Some(Status::Ok) => style.good(word),
        Some(Status::Unsupported | Status::NotValidated) => style.doubtful(word),
        Some(_) => style.bad(word),
        None if run.timing() == Timing::Recorded => style.dim(word),
        None => style.doubtful(word),
    }
}

/// What became of a contender, as tables say it.
pub(crate) fn verdict_word(run: &Run, row: &Row) -> &'static str {
    match row.status {
        _ if row.kind == Kind::Yardstick => "yardstick",
        Some(Status::NotValidated) => "not validated",
        Some(status) => status.as_str(),
        None if run.timing() == Timing::Recorded => "unchecked",
        None => "pending",
    }
}

/// Geometric mean of its times, where it has one on every shape.
pub(crate) fn mean_micros(run: &Run, ranking: &Ranking, row: &Row) -> Option<Micros> {
    let logs: Vec<f64> = ranking
        .cells_of(&row.contender)
        .iter()
        .filter_map(|c| Some(c.time.as_ref()?.log.mean))
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (logs.len() == run.header.shapes.len()).then(|| Micros(mean.exp()))
}

/// What binds its modelled times: on all shapes, or on most.
pub(crate) fn bound_text(ranking: &Ranking, row: &Row) -> String {
    let cells = ranking.cells_of(&row.contender);
    let times = cells.iter().filter_map(|cell| cell.time.as_ref());
    let words: Vec<&str> = times.filter_map(|time| time.bound.as_deref()).collect();
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    // The first of those that are as frequent.
    let most = words.iter().rev().max_by_key(|word| count(word));
    most.map_or(String::new(), |word| match count(word) == words.len() {
        true => (*word).to_owned(),
        false => format!("{word} {}/{}", count(word), words.len()),
    })
}

/// Whom speedups in a ranking are over, and whether that is the baseline.
pub(crate) struct Over<'a> {
    pub reference: Option<&'a str>,
    pub baseline: &'a str,
}

impl Over<'_> {
    /// A contender's speedup. One without a rank says how many shapes it is of.
    pub(crate) fn text(
        &self,
        contender: &str,
        speedup: Option<Interval>,
        unranked_on: Option<usize>,
    ) -> String {
        if self.reference == Some(contender) {
            return match self.baseline == contender {
                true => "1.00× baseline".to_owned(),
                false => "1.00× reference".to_owned(),
            };
        }
        let Some(text) = speedup.map(|speedup| interval(&speedup)) else {
            return String::new();
        };
        match unranked_on {
            Some(shapes) => format!("{text} on {}", counted(shapes, "shape")),
            None => text,
        }
    }
}

fn speedup_text(run: &Run, ranking: &Ranking, row: &Row) -> String {
    let over = Over {
        reference: ranking.reference.as_ref().map(ContenderId::as_str),
        baseline: run.header.baseline.as_str(),
    };
    let ranked = row.place.is_some() || row.kind == Kind::Yardstick;
    let unranked_on = (!ranked).then_some(row.valid_shapes);
    over.text(row.contender.as_str(), row.speedup_interval(), unranked_on)
}

/// What heads [`claim_words`].
pub(crate) const CLAIM: &str = "claim: found of claimed";

/// `1.10× of 1.50× over sequential`: whom a claim is over differs from row to
/// row, so it stands there with the speedup over that one, both as coarse as
/// the verdict on them is.
pub(crate) fn claim_words(claimed: f64, over: &str, found: Option<f64>) -> String {
    let found = found.map_or(String::new(), |found| format!("{found:.2}× of "));
    format!("{found}{claimed:.2}× over {over}")
}

fn claim_text(run: &Run, ranking: &Ranking, row: &Row, style: &Style) -> String {
    let Some(result) = claims::judge(run, ranking, &row.contender) else {
        return String::new();
    };
    let Claim { geomean, over, .. } = &result.claim;
    let words = claim_words(*geomean, over, result.measured.map(|m| m.estimate));
    let verdict = match result.verdict {
        ClaimVerdict::Met => style.good("met"),
        ClaimVerdict::Missed => style.doubtful("missed"),
        ClaimVerdict::Reversed => style.bad("reversed"),
        ClaimVerdict::Untested => style.dim("untested"),
    };
    format!("{words} {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::{Entry, Synthetic};

    /// What has weight is there at every width, and what is not is named.
    #[test]
    fn on_screens_of_any_width() {
        let mut field = Synthetic::round4();
        let claims = Entry::ok("pipelined[STAGES=2]", 0.61).claiming(1.4, "two-pass");
        field.entries.push(claims);
        let run = field.run();
        let ranking = Ranking::of(&run);
        let drawn = [60, 80, 100, 160].map(|width| {
            let style = Style {
                width,
                ..Style::PLAIN
            };
            let table = ranking_table(&run, &ranking, &style).render(&style);
            for line in table.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            // What it took stands beside who took it.
            let first = table.split("\n\n").next().unwrap_or_default();
            assert!(first.contains("µs") && first.contains("verdict"), "{table}");
            table
        });
        insta::assert_snapshot!(drawn.join("\n\n\n"));
    }
}
