use super::Subject;
use crate::present::{self, belief, interval, percent};
use dgx_core::claims::ClaimVerdict;
use dgx_core::domain::{Status, Timing, counted};
use dgx_core::rank::{Kind, describe};

/// What ran where, when.
pub(super) fn place(subject: &Subject) -> String {
    let header = &subject.run.header;
    format!(
        "{} · {} × {} on {} · {} · {}",
        header.name,
        counted(header.contenders.len(), "contender"),
        counted(header.shapes.len(), "shape"),
        describe(&subject.run),
        header.started,
        subject.file()
    )
}

/// The run in three sentences: who won, who was right, how sure. Of half a run
/// that comes first.
pub(super) fn sentences(subject: &Subject) -> Vec<String> {
    let lacks = present::lacks(&subject.run, &subject.ranking);
    let lacks = lacks.map(|lacks| format!("This run is not complete: {lacks}."));
    let told = [winner(subject), rightness(subject), certainty(subject)];
    lacks.into_iter().chain(told).collect()
}

fn winner(subject: &Subject) -> String {
    let ranking = &subject.ranking;
    let ranked = ranking.rows.iter().filter(|r| r.place.is_some()).count();
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
        true => format!("{name} is the fastest of {ranked}: {over}."),
        false => format!(
            "{name} leads {ranked} contenders ({over}), tied with {}.",
            tied.join(", ")
        ),
    }
}

fn rightness(subject: &Subject) -> String {
    let rows = || {
        subject
            .ranking
            .rows
            .iter()
            .filter(|r| r.kind != Kind::Yardstick)
    };
    let all = rows().count();
    let right = rows().filter(|r| r.status == Some(Status::Ok)).count();
    let untimed = rows().filter(|r| r.status == Some(Status::Ok) && r.place.is_none());
    let untimed = match untimed.count() {
        0 => String::new(),
        n => format!(" ({n} not timed)"),
    };
    let failed: Vec<String> = rows()
        .filter_map(|r| {
            Some(format!(
                "{} is {}",
                r.contender,
                r.status.filter(|s| !s.may_be_timed())?
            ))
        })
        .collect();
    let shown = match failed.len() {
        0 => String::new(),
        n if n > 4 => format!("; {} and {} more failed", failed[..3].join(", "), n - 3),
        _ => format!("; {}", failed.join(", ")),
    };
    let verdicts: Vec<ClaimVerdict> = rows()
        .filter_map(|r| Some(subject.claim(&r.contender)?.verdict))
        .collect();
    let count = |v: ClaimVerdict| verdicts.iter().filter(|x| **x == v).count();
    let claims = match verdicts.is_empty() {
        true => String::new(),
        false => {
            use ClaimVerdict::{Met, Missed, Reversed, Untested};
            let told: Vec<String> = [Met, Missed, Reversed, Untested]
                .into_iter()
                .filter(|v| count(*v) > 0)
                .map(|v| format!("{} {v}", count(v)))
                .collect();
            let noun = if verdicts.len() == 1 {
                "claim"
            } else {
                "claims"
            };
            format!("; of {} {noun}, {}", verdicts.len(), told.join(", "))
        }
    };
    let recorded = subject.run.timing() == Timing::Recorded && rows().all(|r| r.status.is_none());
    match recorded || subject.run.header.settings.time_only {
        true => format!("Nothing here was checked against an oracle{claims}."),
        false => {
            format!("{right} of {all} contenders are right on every shape{untimed}{shown}{claims}.")
        }
    }
}

fn certainty(subject: &Subject) -> String {
    let run = &subject.run;
    match run.timing() {
        Timing::Modelled => belief(run).unwrap_or_default(),
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
            let tell = match &subject.ranking.detectable {
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
