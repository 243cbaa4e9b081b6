use super::{Align, Column, Grid, Style, interval, model_error, percent, speedup};
use crate::claims::{self, ClaimVerdict};
use crate::domain::{Micros, Status, Timing, counted};
use crate::rank::{Kind, Ranking, Row};
use crate::record::Run;

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
        Column::new("claim", Align::Left, 6),
        Column::new("roofline", Align::Right, 4),
        Column::new("bound by", Align::Left, 3),
        Column::new("regs", Align::Right, 2),
        Column::new("smem", Align::Right, 3),
        Column::new(over_yardstick, Align::Right, 7),
    ]);
    for row in &ranking.rows {
        grid.push(cells(run, ranking, row, style));
    }
    grid.without_empty_columns()
}

/// Times that were not measured stand in a column that says so, and stays.
fn mean_column(run: &Run) -> Column {
    let title = mean_title(run.timing(), model_error(&run.header.device).as_deref());
    let weight = if run.timing() == Timing::Measured {
        1
    } else {
        9
    };
    Column::new(title, Align::Right, weight)
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
        speedup_text(ranking, row),
        claim_text(run, ranking, row, style),
        row.roofline.map_or(String::new(), percent),
        bound_text(ranking, row),
        resources.map_or(String::new(), |r| r.registers.to_string()),
        resources.map_or(String::new(), |r| r.smem.to_string()),
        row.over_yardstick
            .map_or(String::new(), |e| speedup(e.mean.exp())),
    ]
}

fn verdict(run: &Run, row: &Row, style: &Style) -> String {
    match row.status {
        _ if row.kind == Kind::Yardstick => style.dim("yardstick"),
        Some(Status::Ok) => style.good("ok"),
        Some(Status::Unsupported) => style.doubtful("unsupported"),
        Some(Status::NotValidated) => style.doubtful("not validated"),
        Some(status) => style.bad(status),
        None if run.timing() == Timing::Recorded => style.dim("unchecked"),
        None => style.doubtful("pending"),
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

fn speedup_text(ranking: &Ranking, row: &Row) -> String {
    if ranking.reference.as_ref() == Some(&row.contender) {
        let role = match row.kind {
            Kind::Baseline => "baseline",
            _ => "reference",
        };
        return format!("1.00× {role}");
    }
    let text = row
        .speedup_interval()
        .map_or(String::new(), |i| interval(&i));
    let ranked = row.place.is_some() || row.kind == Kind::Yardstick;
    match (text.is_empty(), ranked) {
        (false, false) => format!("{text} on {}", counted(row.valid_shapes, "shape")),
        _ => text,
    }
}

fn claim_text(run: &Run, ranking: &Ranking, row: &Row, style: &Style) -> String {
    let Some(result) = claims::judge(run, ranking, &row.contender) else {
        return String::new();
    };
    let claimed = format!("{:.2}×", result.claim.geomean);
    let verdict = match result.verdict {
        ClaimVerdict::Met => style.good("met"),
        ClaimVerdict::Missed => style.doubtful("missed"),
        ClaimVerdict::Reversed => style.bad("reversed"),
        ClaimVerdict::Untested => style.dim("untested"),
    };
    format!("{claimed} {verdict}")
}
