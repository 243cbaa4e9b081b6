use super::RankedRun;
use crate::present::{self, accuracy, interval, percent};
use dgx_core::claims::ClaimVerdict;
use dgx_core::domain::{Joined, Status, Timing, counted};
use dgx_core::rank::{EntrantKind, Row, describe};

/// The round, the device and the time.
pub(super) fn place(ranked: &RankedRun) -> String {
    let header = &ranked.run.header;
    format!(
        "{} · {} × {} on {} · {} · {}",
        header.name,
        counted(header.contenders.len(), "contender"),
        counted(header.shapes.len(), "shape"),
        describe(&ranked.run),
        header.started,
        ranked.file()
    )
}

/// The run in three sentences: the fastest, the correct ones, the certainty. If the run is
/// incomplete, that comes first.
pub(super) fn sentences(ranked: &RankedRun) -> Vec<String> {
    let lacks = present::lacks(&ranked.run, &ranked.ranking);
    let lacks = lacks.map(|lacks| format!("This run is not complete: {lacks}."));
    let rest = [winner(ranked), rightness(ranked), certainty(ranked)];
    lacks.into_iter().chain(rest).collect()
}

fn winner(ranked: &RankedRun) -> String {
    let ranking = &ranked.ranking;
    let count = ranking.rows.iter().filter(|r| r.place.is_some()).count();
    let Some(first) = ranking.winners().next() else {
        return present::unranked(ranking).unwrap_or_default();
    };
    let name = &first.contender;
    let reference = ranking.reference.as_ref();
    let over = match (first.speedup_interval(), reference) {
        (Some(i), Some(r)) => {
            format!(
                "{} over {r} in geometric mean over {} shapes",
                interval(&i),
                first.valid_shapes
            )
        }
        _ => "the baseline itself".to_owned(),
    };
    let tied: Vec<&str> = ranking
        .winners()
        .skip(1)
        .map(|r| r.contender.as_str())
        .collect();
    match tied.is_empty() {
        true => format!("{name} is the fastest of {count}: {over}."),
        false => format!(
            "{name} leads {count} contenders ({over}), tied with {}.",
            tied.join(", ")
        ),
    }
}

fn rightness(ranked: &RankedRun) -> String {
    let rows = ranked.ranking.rows.iter();
    let rows: Vec<&Row> = rows.filter(|r| r.kind != EntrantKind::Yardstick).collect();
    let claims = claims(ranked, &rows);
    let recorded = ranked.run.timing() == Timing::Recorded;
    let unchecked = recorded && rows.iter().all(|r| r.status.is_none());
    if unchecked || ranked.run.header.settings.time_only {
        return format!("Nothing here was checked against an oracle{claims}.");
    }
    let right = || rows.iter().filter(|r| r.status == Some(Status::Ok));
    let untimed = match right().filter(|r| r.place.is_none()).count() {
        0 => String::new(),
        n => format!(" ({n} not timed)"),
    };
    let failed = rows.iter().filter_map(|r| {
        let status = r.status.filter(|s| !s.may_be_timed())?;
        Some(format!("{} is {status}", r.contender))
    });
    let failed: Vec<String> = failed.collect();
    let failed = match failed.len() {
        0 => String::new(),
        n if n > 4 => format!("; {} and {} more failed", failed[..3].join(", "), n - 3),
        _ => format!("; {}", failed.join(", ")),
    };
    let (right, all) = (right().count(), rows.len());
    format!("{right} of {all} contenders are right on every shape{untimed}{failed}{claims}.")
}

/// How many claims were met, missed and so on.
fn claims(ranked: &RankedRun, rows: &[&Row]) -> String {
    let verdicts: Vec<ClaimVerdict> = (rows.iter())
        .filter_map(|r| Some(ranked.claim(&r.contender)?.verdict))
        .collect();
    use ClaimVerdict::{Met, Missed, Reversed, Untested};
    let counts = [Met, Missed, Reversed, Untested]
        .map(|verdict| (verdict, verdicts.iter().filter(|v| **v == verdict).count()));
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts = counts
        .map(|(verdict, n)| format!("{n} {verdict}"))
        .joined(", ");
    match verdicts.is_empty() {
        true => String::new(),
        false => format!("; of {}, {}", counted(verdicts.len(), "claim"), counts),
    }
}

fn certainty(ranked: &RankedRun) -> String {
    let run = &ranked.run;
    match run.timing() {
        Timing::Modelled => accuracy(run).unwrap_or_default(),
        Timing::Recorded => {
            "Times were taken down elsewhere, without samples and so without intervals.".to_owned()
        }
        Timing::Scripted => {
            "Times and outputs are scripted: nothing ran, and nothing is said about \
             any design."
                .to_owned()
        }
        Timing::Measured => {
            let (blocks, processes) = (run.tally.blocks(), run.tally.process_count());
            let tell = match &ranked.ranking.detectable {
                Some(d) => format!(
                    "differences of {} or more can be detected",
                    percent(d.effect)
                ),
                None => "the smallest detectable difference is unknown".to_owned(),
            };
            format!("Measured in {blocks} randomised blocks over {processes} processes; {tell}.")
        }
    }
}
