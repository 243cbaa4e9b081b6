//! A profile as terminal output.

use ptx_time::Activity;

use super::over::ReferenceCell;
use crate::present::{Column, Style, Table, percent, signed_percent, speedup};
use dgx_core::config::Round;
use dgx_core::domain::{Micros, Timing, counted};
use dgx_run::backend::cuda::StampedCalls;
use dgx_run::profile::stamps::MissingStamps;
use dgx_run::profile::{LaunchProfile, ProfiledCell, RoleShare, Stage, StageTime, activity_word};

/// The threshold that round 3 set: a smaller epilogue is not worth optimising.
const EPILOGUE_BAR: f64 = 0.05;
/// Smaller shares are not printed.
const LEAST: f64 = 0.0005;
/// Characters of the longest bar.
const BAR: f64 = 16.0;

/// The whole text. `over` stands beside the first profile; `modelled` says how far modelled times
/// can be trusted.
pub(super) fn text(
    profiles: &[&ProfiledCell],
    over: Option<&ReferenceCell>,
    lines: &[String],
    modelled: &str,
    style: &Style,
) -> String {
    let mut out = Vec::new();
    for profile in profiles {
        let (timing, target) = (profile.timing.as_str(), &profile.target);
        let whose = match profile.timing {
            Timing::Modelled => "for",
            _ => "on",
        };
        out.push(style.bold(format!(
            "{} on {}: {} µs, {timing} {whose} {target}",
            profile.contender, profile.shape, profile.micros
        )));
        let accuracy = match profile.timing {
            Timing::Modelled => modelled,
            _ => &profile.accuracy,
        };
        out.push(style.fold(accuracy, 0));
    }
    out.push(String::new());
    let first = profiles[0];
    let mut beside: Vec<Beside<'_>> = (profiles[1..].iter())
        .map(|p| (p.timing, p.micros, &p.stages[..]))
        .collect();
    let laid = over.filter(|over| !over.stages.is_empty());
    beside.extend(laid.map(|over| (over.timing, over.micros, &over.stages[..])));
    match beside.is_empty() {
        true => out.extend(bars(&first.stages, first.micros)),
        false => out.push(laid_over(first, &beside).render(style)),
    }
    out.extend(tail(first));
    out.push(String::new());
    out.extend(lines.iter().map(|line| style.fold(line, 0)));
    for profile in profiles {
        for launch in &profile.launches {
            out.push(String::new());
            out.push(style.fold(&about(launch, profile), 2));
            if profile.launches.len() > 1 {
                out.extend(bars(&launch.stages, launch.micros));
            }
            out.push(roles(launch).render(style));
        }
    }
    out.join("\n")
}

/// Another profile's kind of time, whole, and stages.
type Beside<'a> = (Timing, Micros, &'a [StageTime]);

/// Stage by stage: the first, and how the others differ from it.
fn laid_over(first: &ProfiledCell, beside: &[Beside<'_>]) -> Table {
    let mut columns = vec![
        Column::left("stage"),
        Column::right(format!("{} µs", first.timing.as_str())),
        Column::right("share".to_owned()).weight(8),
    ];
    for (timing, ..) in beside {
        columns.extend([
            Column::right(format!("{} µs", timing.as_str())),
            Column::right("share".to_owned()).weight(7),
            Column::right("differs µs".to_owned()).weight(8),
        ]);
    }
    let mut grid = Table::new(columns);
    let of = |stages: &[StageTime], stage: Stage| {
        let found = stages.iter().find(|part| part.stage == stage);
        found.map_or(0.0, |part| part.micros.0)
    };
    let mut push = |name: &str, own: f64, others: Vec<f64>| {
        let mut row = vec![
            name.to_owned(),
            Micros(own).to_string(),
            percent(own / first.micros.0),
        ];
        for (other, (_, whole, _)) in others.into_iter().zip(beside) {
            let sign = if other < own { "−" } else { "+" };
            row.extend([
                Micros(other).to_string(),
                percent(other / whole.0),
                format!("{sign}{}", Micros((other - own).abs())),
            ]);
        }
        grid.push(row);
    };
    for stage in Stage::ALL {
        let others: Vec<f64> = beside.iter().map(|(.., s)| of(s, stage)).collect();
        let own = of(&first.stages, stage);
        if own > 0.0 || others.iter().any(|other| *other > 0.0) {
            push(stage.words().0, own, others);
        }
    }
    let wholes = beside.iter().map(|(_, whole, _)| whole.0).collect();
    push("whole", first.micros.0, wholes);
    grid
}

/// The loss from SMs that have no CTA while others still work.
fn tail(profile: &ProfiledCell) -> Option<String> {
    let launches = profile.launches.iter();
    let idle: f64 = launches.map(|l| l.idle * l.micros.0).sum();
    let share = idle / profile.micros.0;
    (share > LEAST).then(|| {
        let share = percent(share);
        format!(
            "tail       {:>10} {share:>6}  SMs without a CTA (not in the sum)",
            ""
        )
    })
}

/// The cost of stamps, and the warps that are missing.
pub(super) fn stamped(device: &str, calls: &StampedCalls, lost: MissingStamps) -> String {
    let middle = |all: &[Micros]| {
        let mut all = all.to_vec();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all[all.len() / 2]
    };
    let (plain, stamped) = (middle(&calls.plain), middle(&calls.stamped));
    let mut told = format!(
        "Measured on {device} by timestamps that the kernels write, which cost {}: {plain} µs without them, \
         {stamped} µs with them (medians of {} calls each). The stages are those of the last call.",
        signed_percent(stamped.0 / plain.0 - 1.0),
        calls.stamped.len(),
    );
    if lost.silent > 0 {
        told += &format!(" {} of {} warps wrote nothing.", lost.silent, lost.all);
    }
    if lost.full > 0 {
        told += &format!(
            " {} of {} warps had more to write than there is room for: later stages count \
             as issuing or epilogue, so the stages are unreliable.",
            lost.full, lost.all
        );
    }
    told
}

/// The share below which an epilogue is not worth optimising, and its source.
pub(super) struct EpilogueThreshold {
    share: f64,
    says: String,
}

impl EpilogueThreshold {
    /// A pitch about the epilogue needs an epilogue of at least the share it promises to save;
    /// without such a pitch, the threshold of round 3.
    pub(super) fn of(round: &Round) -> Self {
        let about = |text: &str| text.to_lowercase().contains("epilogue");
        let pitches = round.pitches.iter();
        let promised = pitches
            .filter(|pitch| about(&pitch.design) || about(&pitch.idea))
            .find_map(|pitch| Some((pitch, pitch.claim?.1)))
            .filter(|(_, most)| *most > 1.0);
        match promised {
            Some((pitch, most)) => Self {
                share: 1.0 - 1.0 / most,
                says: format!(
                    "the {} that {} needs for its {}",
                    percent(1.0 - 1.0 / most),
                    pitch.design,
                    speedup(most)
                ),
            },
            None => Self {
                share: EPILOGUE_BAR,
                says: format!(
                    "the {} from which it is worth hiding",
                    percent(EPILOGUE_BAR)
                ),
            },
        }
    }
}

/// The epilogue's share of the time, and whether that is much.
pub(super) fn epilogue(profile: &ProfiledCell, bar: &EpilogueThreshold) -> String {
    let share = profile.share(Stage::Epilogue);
    let side = match share < bar.share {
        true => "below",
        false => "above",
    };
    format!(
        "The epilogue is {} of the time, {side} {}: without it the call would be at most {} as \
         fast.",
        percent(share),
        bar.says,
        speedup(1.0 / (1.0 - share).max(0.01))
    )
}

fn bars(stages: &[StageTime], whole: Micros) -> Vec<String> {
    let shown = stages.iter().filter(|part| part.micros.0 > 0.0);
    shown
        .map(|part| {
            let (name, what) = part.stage.words();
            let share = part.micros.0 / whole.0;
            let bar = "█".repeat((share * BAR).round() as usize);
            let (micros, share) = (part.micros.to_string(), percent(share));
            format!("{name:<10} {micros:>7} µs {share:>6}  {bar:<16} {what}")
        })
        .collect()
}

fn about(launch: &LaunchProfile, profile: &ProfiledCell) -> String {
    let (clock_mhz, timing) = (profile.clock_mhz, profile.timing.as_str());
    let rounds = match launch.rounds {
        1 => String::new(),
        n => format!(", {n} one after the other"),
    };
    let idle = match launch.idle > 0.0 {
        true => format!(
            "; SMs without a CTA: {} of their time",
            percent(launch.idle)
        ),
        false => String::new(),
    };
    let unsure = match launch.homeless > 0.01 {
        true => format!(
            "; {} of what warps did has no instruction in the cubin",
            percent(launch.homeless)
        ),
        false => String::new(),
    };
    format!(
        "{}, {timing}: {} µs at {clock_mhz:.0} MHz, {} on {} of {} SMs{rounds}{idle}; tensor cores busy \
         {} of it{unsure}. What its warps' time goes to:",
        launch.kernel,
        launch.micros,
        counted(launch.ctas as usize, "CTA"),
        launch.active_sms,
        launch.sms,
        percent(launch.tensor),
    )
}

/// How warps spend their time, line by line; one column per role.
fn roles(launch: &LaunchProfile) -> Table {
    let mut columns = vec![Column::left("")];
    columns.extend(launch.roles.iter().map(|role| {
        let title = format!("{} × {}", role.warps, role.role.word());
        Column::right(title).weight(8)
    }));
    let mut grid = Table::new(columns);
    let mut row = |name: &str, share: &dyn Fn(&RoleShare) -> f64| {
        let shares: Vec<f64> = launch.roles.iter().map(share).collect();
        if shares.iter().all(|share| *share < LEAST) {
            return;
        }
        let words = shares.into_iter().map(|share| match share < LEAST {
            true => String::new(),
            false => percent(share),
        });
        grid.push([name.to_owned()].into_iter().chain(words).collect());
    };
    for activity in Activity::ALL {
        row(activity_word(activity), &|role| {
            role.spent[activity as usize]
        });
    }
    row("ended", &|role| role.ended);
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::ContenderId;
    use dgx_run::profile::ProfileLabels;
    use ptx_time::CallTimes;

    fn profile(stages: &[(Stage, f64)]) -> ProfiledCell {
        let labels = ProfileLabels {
            contender: &ContenderId::from_text("x"),
            shape: "s",
            timing: Timing::Measured,
            target: "t",
            accuracy: String::new(),
            sms: 1,
        };
        let mut profile = ProfiledCell::new(labels, CallTimes::default(), &[]);
        let part = |&(stage, micros): &(Stage, f64)| StageTime {
            stage,
            micros: Micros(micros),
        };
        profile.stages = stages.iter().map(part).collect();
        profile.micros = Micros(stages.iter().map(|s| s.1).sum());
        profile
    }

    #[test]
    fn stages_of_both_stand_side_by_side() {
        let first = profile(&[(Stage::Launch, 4.0), (Stage::Computing, 36.0)]);
        let other = [
            StageTime {
                stage: Stage::Computing,
                micros: Micros(30.0),
            },
            StageTime {
                stage: Stage::Epilogue,
                micros: Micros(2.0),
            },
        ];
        let grid = laid_over(&first, &[(Timing::Modelled, Micros(32.0), &other)]);
        insta::assert_snapshot!(grid.render(&Style::PLAIN));
    }

    #[test]
    fn stamps_say_what_they_cost_and_leave_out() {
        let calls = StampedCalls {
            stamps: Vec::new(),
            last: Micros(11.0),
            stamped: vec![Micros(10.4); 3],
            plain: vec![Micros(10.0); 3],
        };
        let lost = MissingStamps {
            silent: 0,
            full: 2,
            all: 8,
        };
        let said = stamped("NVIDIA H200", &calls, lost);
        assert!(
            said.contains("which cost +4.0 %: 10.0 µs without them"),
            "{said}"
        );
        assert!(said.contains("2 of 8 warps had more"), "{said}");
    }

    #[test]
    fn an_epilogue_is_held_against_its_bar() {
        let bar = EpilogueThreshold {
            share: EPILOGUE_BAR,
            says: "the 5.0 % from which it is worth hiding".to_owned(),
        };
        let small = profile(&[(Stage::Computing, 97.0), (Stage::Epilogue, 3.0)]);
        let said = epilogue(&small, &bar);
        assert!(said.starts_with("The epilogue is 3.0 % of the time, below the 5.0 % from"));
        let large = profile(&[(Stage::Computing, 90.0), (Stage::Epilogue, 10.0)]);
        assert!(epilogue(&large, &bar).contains("above"), "{said}");
    }
}
