//! A gate's findings in words, for a terminal and for every export of them.

use super::{modelled_otherwise, percent};
use crate::table::{Column, Style, Table, Tone, Value, maybe, row};
use dgx_core::domain::{Joined, first_few};
use dgx_core::gate::{self, Finding, Gap, GateNote, GateReport, Impossible, Ruling, RunRole};
use dgx_core::rank::{GRAVE, Ranking};
use dgx_core::record::Run;

/// Every finding; in Markdown with the reasons beside them.
pub(crate) fn gate_table(report: &GateReport) -> Table {
    let columns = vec![
        Column::left("").weight(0),
        Column::key("rule"),
        Column::key("contender"),
        Column::key("shape"),
        Column::left("wanted").wraps(),
        Column::left("found").wraps(),
        Column::left("ruling"),
        Column::left("reason").weight(0),
    ];
    let rows = report.findings.iter().map(|finding| {
        let (sign, tone) = match finding.ruling {
            Ruling::Passed => ("✅", Tone::Good),
            Ruling::Failed => ("❌", Tone::Bad),
            Ruling::Refused | Ruling::Undecided => ("⚠️", Tone::Doubtful),
        };
        row![
            sign,
            &finding.rule,
            &finding.contender,
            maybe(finding.shape.as_ref()),
            &finding.wanted,
            &finding.found,
            Value::badge(tone, ruling_word(finding.ruling)),
            maybe(finding.reason.as_ref()),
        ]
    });
    Table::new(columns).with(rows).without_empty_columns()
}

/// The report as a table and a last line with the outcome.
pub(crate) fn gate_report(report: &GateReport, style: &Style) -> String {
    let judged = format!("{} over {}", report.run, report.over);
    let mut parts = vec![style.titled("gate", &judged)];
    if let Some(devices) = &report.across_devices {
        parts.push(style.doubtful(format!("ACROSS DEVICES: {devices}")));
    }
    if !report.findings.is_empty() {
        parts.push(gate_table(report).render(style));
    }
    parts.push(reasons(report, style));
    parts.extend(gate_notes(report).iter().map(|n| style.fold(n, 2)));
    parts.push(style.bold(style.fold(&gate_outcome(report), 2)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn reasons(report: &GateReport, style: &Style) -> String {
    let lines = report.findings.iter().filter_map(|f| {
        let reason = f.reason.as_ref()?;
        let (place, ruling) = (place(f), ruling_word(f.ruling));
        let line = format!("{} {place}: {ruling}, {reason}", f.rule);
        Some(format!(" {}", style.fold(&line, 3)))
    });
    lines.joined("\n")
}

fn place(finding: &Finding) -> String {
    match &finding.shape {
        Some(shape) => format!("{} on {shape}", finding.contender),
        None => finding.contender.to_string(),
    }
}

/// One line: what happened, in numbers.
pub(crate) fn gate_outcome(report: &GateReport) -> String {
    let all = report.findings.len();
    let failed = report.count(Ruling::Failed);
    let open = report.count(Ruling::Refused) + report.count(Ruling::Undecided);
    if !report.incomplete.is_empty() {
        return format!("gate incomplete: {}", gate_gaps(report).join("; "));
    }
    let outcome = match (all, failed, open) {
        (0, _, _) if report.exempt() > 0 => {
            return "gate inconclusive: every contender is declared to fail, so none is judged"
                .to_owned();
        }
        (0, _, _) => "gate inconclusive: there is no rule".to_owned(),
        (_, 0, 0) => format!("gate passed: {all} of {all} checks"),
        (_, 0, _) => format!("gate inconclusive: {open} of {all} checks are undecided"),
        (_, _, 0) => format!("gate failed: {failed} of {all} checks"),
        _ => format!("gate failed: {failed} of {all} checks, {open} more are undecided"),
    };
    match report.exempt() {
        0 => outcome,
        1 => format!("{outcome}; 1 contender is declared to fail and was not judged"),
        n => format!("{outcome}; {n} contenders are declared to fail and were not judged"),
    }
}

/// The word for a ruling; a failure is in capitals.
pub(crate) fn ruling_word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Passed => "passed",
        Ruling::Failed => "FAILED",
        Ruling::Refused => "refused",
        Ruling::Undecided => "undecided",
    }
}

/// What a run lacks to be complete, if anything.
pub(crate) fn lacks(run: &Run, ranking: &Ranking) -> Option<String> {
    let gaps = gate::gaps(run, ranking);
    // Every table already labels scripted times.
    let gaps = gaps.iter().filter(|g| !matches!(g, Gap::Scripted));
    let gaps: Vec<String> = gaps.map(gap).collect();
    (!gaps.is_empty()).then(|| gaps.join("; "))
}

/// Why a run is not complete.
pub(crate) fn gap(gap: &Gap) -> String {
    match gap {
        Gap::NotEnded => "it did not end".to_owned(),
        Gap::Stopped(why) => {
            let why = why.as_deref().unwrap_or("no reason is given");
            format!("it was stopped: {why}")
        }
        Gap::Unjudged { cells, of } => format!("{cells} of {of} cells have no verdict"),
        Gap::Untimed { cells, of } => format!("{cells} of {of} cells are ok but not timed"),
        Gap::Thin {
            processes,
            blocks,
            shapes,
        } => format!(
            "needed {processes} processes of {blocks} blocks or more; these had fewer: {}",
            named(shapes)
        ),
        Gap::Holes(shapes) => {
            let of: u64 = shapes.iter().map(|(_, missing)| missing).sum();
            format!(
                "{of} blocks are missing between others, so they were deleted: {}",
                named(shapes)
            )
        }
        Gap::Looser(how) => format!(
            "it was validated less strictly than the baseline run: {}; sweep the round as the \
             baseline was swept, or make a new baseline",
            how.join(", ")
        ),
        Gap::Shard { number, of } => {
            format!("it is shard {number} of {of}, not the whole round")
        }
        Gap::NotValidated => {
            "nothing in it was validated (--time-only), so no result was checked".to_owned()
        }
        Gap::Impossible(cells) => impossible(cells),
        Gap::Scripted => "its times are scripted, so they prove nothing".to_owned(),
    }
}

/// Times below the physical limit of the device.
pub(crate) fn impossible(cells: &[Impossible]) -> String {
    let one = |cell: &Impossible| {
        let (contender, shape) = (&cell.contender, &cell.shape);
        format!(
            "{contender} on {shape} took {:.2} µs, where the device needs {:.2} µs at least",
            cell.time.0, cell.least.0
        )
    };
    let list = first_few(cells.iter().map(one).collect(), NAMED, "more");
    format!("impossible times: {list}")
}

/// Shapes named before the rest is counted.
const NAMED: usize = 8;

fn named<N: std::fmt::Display>(shapes: &[(String, N)]) -> String {
    let one = |(name, has): &(String, N)| format!("{name} ({has})");
    first_few(shapes.iter().map(one).collect(), NAMED, "more shapes")
}

/// Why a gate cannot judge the run as a whole.
pub(crate) fn gate_gaps(report: &GateReport) -> Vec<String> {
    let word = |(whose, lacks): &(RunRole, Gap)| match whose {
        RunRole::Run => gap(lacks),
        RunRole::Baseline => format!("of the baseline run, {}", gap(lacks)),
    };
    report.incomplete.iter().map(word).collect()
}

pub(crate) fn gate_notes(report: &GateReport) -> Vec<String> {
    let word = |note: &GateNote| match note {
        GateNote::OtherCard => format!(
            "The runs come from two cards of one kind. Intervals cover one card, so a loss of \
             up to {} between them is undecided.",
            percent(GRAVE)
        ),
        GateNote::New(contender) => {
            format!("{contender} is new: the baseline run does not have it")
        }
        GateNote::Exempt {
            contender,
            declared,
        } => format!("{contender} is declared {declared}: not judged"),
        GateNote::Loose(how) => loose(how),
        GateNote::Modelled {
            device,
            error,
            others,
        } => match (error, others) {
            (Some(_), Some(others)) => modelled_otherwise(device, others),
            (Some(error), None) => format!(
                "All times are modelled for {device}, not measured: off by {} in the median.",
                percent(*error)
            ),
            (None, _) => format!(
                "All times are modelled for {device}, uncalibrated: their error is \
                 unknown, so designs are not ranked by them."
            ),
        },
        GateNote::Foreign {
            whose,
            tool,
            processes,
        } => match whose {
            RunRole::Run => foreign(tool, *processes),
            RunRole::Baseline => format!("The baseline run: {}", foreign(tool, *processes)),
        },
    };
    report.notes.iter().map(word).collect()
}

/// The remark that a run was validated less strictly than usual.
pub(crate) fn loose(how: &[String]) -> String {
    format!(
        "Validated less strictly than by default: {}.",
        how.join(", ")
    )
}

/// What a run of another tool lacks.
pub(crate) fn foreign(tool: &str, processes: usize) -> String {
    let timed = match processes {
        0 => "without samples, so without intervals".to_owned(),
        1 => "in one process".to_owned(),
        n => format!("in {n} processes, whose spread gives the intervals"),
    };
    let lone = match processes {
        0 | 1 => format!(
            " Intervals lack the differences between processes, so differences below {} decide \
             nothing; a folder with the files of several processes has one.",
            percent(GRAVE)
        ),
        _ => String::new(),
    };
    format!(
        "Timed by {tool}, {timed}.{lone} Nothing was checked against an oracle, no block pairs \
         contenders, and the baseline was not timed twice, so the smallest detectable difference \
         is unknown."
    )
}
