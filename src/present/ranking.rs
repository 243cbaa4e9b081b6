use super::{interval, model_error, percent, speedup, times};
use crate::table::{Column, Table, Tone, Value, maybe, row};
use dgx_core::claims::{self, ClaimVerdict};
use dgx_core::domain::{Bytes, ContenderId, Micros, Status, Timing, counted};
use dgx_core::rank::{EntrantKind, Ranking, Row};
use dgx_core::record::Run;

/// The ranked table of a run.
pub(crate) fn ranking_table(run: &Run, ranking: &Ranking) -> Table {
    let yardstick = run.header.yardstick.as_ref();
    let over_yardstick = yardstick.map_or(String::new(), |y| format!("over {y}"));
    let columns = vec![
        Column::key("rank"),
        Column::key("contender"),
        Column::left("verdict"),
        Column::right(mean_title(run)),
        Column::left(over_title(ranking)).weight(8).unit(times(run)),
        Column::right(&over_yardstick).weight(7),
        Column::right("roofline").weight(4),
        Column::left("bound by").weight(3),
        Column::right("clock MHz").weight(0),
        Column::right("regs").weight(2),
        Column::right("spills").weight(0),
        Column::right("smem").weight(3),
        Column::right("occupancy").weight(0),
        Column::left("claim").weight(6).wraps(),
    ];
    let rows = ranking.rows.iter().map(|row| values(run, ranking, row));
    Table::new(columns).with(rows).without_empty_columns()
}

/// The heading of speedups.
pub(crate) fn over_title(ranking: &Ranking) -> String {
    let reference = ranking.reference.as_ref();
    reference.map_or("speedup".to_owned(), |r| format!("over {r}"))
}

/// The column of times that were not measured says so; below that stands their error.
fn mean_title(run: &Run) -> String {
    match (run.timing(), model_error(run)) {
        (Timing::Measured, _) => "mean µs".to_owned(),
        (timing, Some(error)) => format!("{} µs\n{error}", timing.as_str()),
        (timing, None) => format!("{} µs", timing.as_str()),
    }
}

fn values(run: &Run, ranking: &Ranking, row: &Row) -> Vec<Value> {
    let resources = row.resources.as_ref();
    let record = run.contender(&row.contender);
    let mean = mean_micros(run, ranking, row);
    let over_yardstick = row.over_yardstick.map(|e| e.mean.exp());
    let bytes = resources.map(|r| r.smem.0 as f64);
    let occupancy = resources.map(|r| r.occupancy);
    let spills = resources.map(|r| Bytes(r.spill_bytes.into()));
    row![
        row.place.map_or("–".to_owned(), |p| p.to_string()),
        Value::from(&row.contender)
            .strong_if(row.place.is_some_and(|p| p.rank == 1))
            .hint(record.map_or("", |c| &c.summary)),
        verdict(run, row),
        maybe(mean).number(mean.map(|mean| mean.0)),
        Value::from(speedup_text(run, ranking, row))
            .number(row.speedup.map(|e| e.mean.exp()))
            .hint(counted(row.valid_shapes, "shape")),
        maybe(over_yardstick.map(speedup)).number(over_yardstick),
        maybe(row.roofline.map(percent)).number(row.roofline),
        bound_text(ranking, row),
        maybe(mean_clock(ranking, &row.contender).map(|mhz| format!("{mhz:.0}"))),
        maybe(resources.map(|r| r.registers)),
        maybe(spills.filter(|spills| spills.0 > 0)),
        maybe(resources.map(|r| r.smem)).number(bytes),
        maybe(occupancy.map(percent)).number(occupancy),
        claim(run, ranking, row),
    ]
}

fn verdict(run: &Run, row: &Row) -> Value {
    let (word, tone) = match row.status {
        _ if row.kind == EntrantKind::Yardstick => ("yardstick", Tone::Faint),
        Some(status) => (status.as_str(), status_tone(status)),
        None if run.timing() == Timing::Recorded => ("unchecked", Tone::Faint),
        None => ("pending", Tone::Doubtful),
    };
    let unexpected = row.unexpected().then(|| format!("expected {}", row.expect));
    Value::badge(tone, word).below(unexpected)
}

/// The tone that makes a status visible.
pub(crate) fn status_tone(status: Status) -> Tone {
    match status {
        Status::Ok => Tone::Good,
        Status::Unsupported | Status::NotValidated => Tone::Doubtful,
        _ => Tone::Bad,
    }
}

/// Geometric mean of its times, if it has one on every shape.
pub(crate) fn mean_micros(run: &Run, ranking: &Ranking, row: &Row) -> Option<Micros> {
    let logs: Vec<f64> = ranking
        .cells_of(&row.contender)
        .iter()
        .filter_map(|c| Some(c.time.as_ref()?.log.mean))
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (logs.len() == run.header.shapes.len()).then(|| Micros(mean.exp()))
}

/// What limits its modelled times: on all shapes, or on most.
pub(crate) fn bound_text(ranking: &Ranking, row: &Row) -> String {
    let cells = ranking.cells_of(&row.contender);
    let times = cells.iter().filter_map(|cell| cell.time.as_ref());
    let words: Vec<&str> = times.filter_map(|time| time.bound.as_deref()).collect();
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    // The first of equally frequent ones.
    let most = words.iter().rev().max_by_key(|word| count(word));
    most.map_or(String::new(), |word| match count(word) == words.len() {
        true => (*word).to_owned(),
        false => format!("{word} {}/{}", count(word), words.len()),
    })
}

/// SM clock of its samples, in the mean over shapes.
pub(crate) fn mean_clock(ranking: &Ranking, contender: &ContenderId) -> Option<f64> {
    let times = ranking.cells_of(contender).iter();
    let times = times.filter_map(|cell| cell.time.as_ref());
    let clocks: Option<Vec<f64>> = times.map(|time| time.clock_mhz).collect();
    let clocks = clocks.filter(|clocks| !clocks.is_empty())?;
    Some(clocks.iter().sum::<f64>() / clocks.len() as f64)
}

/// For a contender without a rank, the number of shapes in its speedup.
fn speedup_text(run: &Run, ranking: &Ranking, row: &Row) -> String {
    if ranking.reference.as_ref() == Some(&row.contender) {
        return match run.header.baseline == row.contender {
            true => "1.00× baseline".to_owned(),
            false => "1.00× reference".to_owned(),
        };
    }
    let Some(speedup) = row.speedup_interval() else {
        return String::new();
    };
    match row.place.is_some() || row.kind == EntrantKind::Yardstick {
        true => interval(&speedup),
        false => format!(
            "{} on {}",
            interval(&speedup),
            counted(row.valid_shapes, "shape")
        ),
    }
}

/// `1.50× over sequential, found 1.10× missed`: claims of different rows are over different
/// contenders, so each names its own, with the speedup over it, both as coarse as the verdict. A
/// contender that is itself the one its variant's claim is over has no claim.
fn claim(run: &Run, ranking: &Ranking, row: &Row) -> Value {
    let result = claims::judge(run, ranking, &row.contender);
    let Some(result) = result.filter(|r| r.claim.over != row.contender.as_str()) else {
        return Value::default();
    };
    let found = result
        .measured
        .map(|m| format!(", found {:.2}×", m.estimate));
    let found = found.unwrap_or_default();
    let claimed = format!("{:.2}× over {}", result.claim.geomean, result.claim.over);
    Value::from(claimed + &found).with_badge(claim_tone(result.verdict), result.verdict)
}

pub(crate) fn claim_tone(verdict: ClaimVerdict) -> Tone {
    match verdict {
        ClaimVerdict::Met => Tone::Good,
        ClaimVerdict::Missed => Tone::Doubtful,
        ClaimVerdict::Reversed => Tone::Bad,
        ClaimVerdict::Untested => Tone::Faint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Style;
    use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

    /// Important columns are shown at every width, and dropped ones are listed.
    #[test]
    fn on_screens_of_any_width() {
        let mut field = Synthetic::round4();
        let claims = SyntheticContender::ok("pipelined[STAGES=2]", 0.61).claiming(1.4, "two-pass");
        field.entries.push(claims);
        let run = field.run();
        let ranking = Ranking::of(&run);
        let drawn = [60, 80, 100, 160].map(|width| {
            let style = Style {
                width,
                ..Style::PLAIN
            };
            let table = ranking_table(&run, &ranking).render(&style);
            for line in table.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            // The times stand beside the names.
            let first = table.split("\n\n").next().unwrap_or_default();
            assert!(first.contains("µs") && first.contains("verdict"), "{table}");
            table
        });
        insta::assert_snapshot!(drawn.join("\n\n\n"));
    }
}
