//! A gate's findings in words, for a terminal and for every export of them.

use super::{count, interval, percent, speedup, threshold};
use crate::table::{Align, Column, Style, Table, Tone, Value, maybe, row};
use dgx_core::gate::{
    self, Finding, Found, Gap, GateReport, Impossible, Note, Reason, Ruling, Wanted, Whose,
};
use dgx_core::rank::{GRAVE, Ranking};
use dgx_core::record::Run;

/// Every finding; Markdown has the reasons beside them.
pub(crate) fn gate_table(report: &GateReport) -> Table {
    let columns = vec![
        Column::new("", Align::Left, 0),
        Column::key("rule"),
        Column::key("contender"),
        Column::key("shape"),
        Column::left("wanted").wraps(),
        Column::left("found").wraps(),
        Column::left("ruling"),
        Column::new("reason", Align::Left, 0),
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
            wanted(&finding.wanted),
            found(&finding.found),
            Value::badge(tone, ruling_word(finding.ruling)),
            maybe(finding.reason.as_ref().map(reason)),
        ]
    });
    Table::new(columns).with(rows).without_empty_columns()
}

/// The report as a table and a last line that says the outcome.
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
        let reason = reason(f.reason.as_ref()?);
        let (place, ruling) = (place(f), ruling_word(f.ruling));
        let line = format!("{} {place}: {ruling}, {reason}", f.rule);
        Some(format!(" {}", style.fold(&line, 3)))
    });
    lines.collect::<Vec<_>>().join("\n")
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

/// The word for a ruling; a failure is to be seen.
pub(crate) fn ruling_word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Passed => "passed",
        Ruling::Failed => "FAILED",
        Ruling::Refused => "refused",
        Ruling::Undecided => "undecided",
    }
}

/// What a run lacks to be a whole one, if anything.
pub(crate) fn lacks(run: &Run, ranking: &Ranking) -> Option<String> {
    let gaps = gate::gaps(run, ranking);
    // Scripted times are called so in every table.
    let gaps = gaps.iter().filter(|g| !matches!(g, Gap::Scripted));
    let gaps: Vec<String> = gaps.map(gap).collect();
    (!gaps.is_empty()).then(|| gaps.join("; "))
}

/// Why a run is not whole.
pub(crate) fn gap(gap: &Gap) -> String {
    match gap {
        Gap::NotEnded => "it did not end".to_owned(),
        Gap::Stopped(why) => {
            let why = why.as_deref().unwrap_or("no reason is given");
            format!("it was stopped: {why}")
        }
        Gap::Unjudged { cells, of } => format!("{cells} of {of} cells have no verdict"),
        Gap::Untimed { cells, of } => format!("{cells} of {of} cells are right and have no time"),
        Gap::Thin {
            processes,
            blocks,
            shapes,
        } => format!(
            "{processes} processes of {blocks} blocks or more were required; fewer timed {}",
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

/// Times that no device of the kind reaches.
pub(crate) fn impossible(cells: &[Impossible]) -> String {
    let one = |cell: &Impossible| {
        let (contender, shape) = (&cell.contender, &cell.shape);
        format!(
            "{contender} on {shape} took {:.2} µs, where the device needs {:.2} µs at least",
            cell.time.0, cell.least.0
        )
    };
    let mut list: Vec<String> = cells.iter().take(NAMED).map(one).collect();
    if cells.len() > NAMED {
        list.push(format!("{} more", cells.len() - NAMED));
    }
    format!("impossible times: {}", list.join(", "))
}

/// Shapes named before the rest is counted.
const NAMED: usize = 8;

fn named<N: std::fmt::Display>(shapes: &[(String, N)]) -> String {
    let mut list: Vec<String> = (shapes.iter().take(NAMED))
        .map(|(name, has)| format!("{name} ({has})"))
        .collect();
    if shapes.len() > NAMED {
        list.push(format!("{} more shapes", shapes.len() - NAMED));
    }
    list.join(", ")
}

/// What keeps a gate from judging the run as a whole.
pub(crate) fn gate_gaps(report: &GateReport) -> Vec<String> {
    let word = |(whose, lacks): &(Whose, Gap)| match whose {
        Whose::Run => gap(lacks),
        Whose::Baseline => format!("of the baseline run, {}", gap(lacks)),
    };
    report.incomplete.iter().map(word).collect()
}

pub(crate) fn gate_notes(report: &GateReport) -> Vec<String> {
    let word = |note: &Note| match note {
        Note::OtherCard => format!(
            "The runs come from two cards of one kind. Intervals cover one card, so a loss of \
             up to {} between them is undecided.",
            percent(GRAVE)
        ),
        Note::New(contender) => {
            format!("{contender} is new: the baseline run does not have it")
        }
        Note::Exempt {
            contender,
            declared,
        } => format!("{contender} is declared {declared}: not judged"),
        Note::Loose(how) => loose(how),
        Note::Modelled { device, error } => match error {
            Some(error) => format!(
                "All times are modelled for {device}, not measured: off by {} in the median.",
                percent(*error)
            ),
            None => format!(
                "All times are modelled for {device}, uncalibrated: their error is \
                 unknown, so designs are not ranked by them."
            ),
        },
        Note::Foreign {
            whose,
            tool,
            processes,
        } => match whose {
            Whose::Run => foreign(tool, *processes),
            Whose::Baseline => format!("The baseline run: {}", foreign(tool, *processes)),
        },
    };
    report.notes.iter().map(word).collect()
}

/// That a run was validated less strictly than usual.
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

pub(crate) fn wanted(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Ok => "ok".to_owned(),
        Wanted::OkEverywhere => "ok on every shape".to_owned(),
        Wanted::OkOn(shapes) => format!("ok on the {shapes} where it was ok"),
        Wanted::Speedup(least) => format!("≥ {}", threshold(*least)),
        Wanted::SpeedupEverywhere(least) => format!("≥ {} on every shape", threshold(*least)),
        Wanted::Within(share) if *share > 0.0 => format!("within {}", percent(*share)),
        Wanted::Within(_) => "no slower".to_owned(),
        Wanted::Smem(most) => format!("≤ {most}"),
        Wanted::Registers(most) => format!("≤ {most}"),
        Wanted::Occupancy(least) => format!("≥ {}", percent(*least)),
        Wanted::Spills(most) => format!("≤ {most} B"),
        Wanted::Count { factor, base } => format!("≤ {factor}× {}", count(*base)),
        Wanted::CountEverywhere { factor } => format!("≤ {factor}×"),
        Wanted::Claim { speedup, over } => format!("{speedup:.2}× over {over}"),
        Wanted::Known => "known".to_owned(),
        Wanted::AsInBaseline => "as in the baseline run".to_owned(),
        Wanted::AnotherRun => "another run".to_owned(),
    }
}

pub(crate) fn found(found: &Found) -> String {
    match found {
        Found::Ok => "ok".to_owned(),
        Found::Status(status) => status.to_string(),
        Found::NeverChecked => "never checked".to_owned(),
        Found::Pending => "pending".to_owned(),
        Found::Speedup(ratio) => interval(ratio),
        Found::LeastSpeedup {
            speedup: least,
            shape,
        } => format!("≥ {} (on {shape})", speedup(*least)),
        Found::NoSpeedup => "none".to_owned(),
        Found::Untested => "untested".to_owned(),
        Found::Smem(bytes) => bytes.to_string(),
        Found::Registers(registers) => registers.to_string(),
        Found::Occupancy(share) => percent(*share),
        Found::Spills(bytes) => format!("{bytes} B"),
        Found::Count(value) => count(*value),
        Found::MostCount { factor, shape } => format!("≤ {factor:.3}× (on {shape})"),
        Found::Unknown => "unknown".to_owned(),
        Found::Absent => "absent".to_owned(),
        Found::OtherGroups => "other groups".to_owned(),
        Found::Itself => "itself".to_owned(),
    }
}

pub(crate) fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Said(words) => words.clone(),
        Reason::NotValid {
            who: contender,
            lacks,
            of,
        } if lacks == of => {
            format!("{contender} is valid on no shape")
        }
        Reason::NotValid {
            who: contender,
            lacks,
            of,
        } => {
            format!("{contender} is not valid on {lacks} of {of} shapes")
        }
        Reason::OneProcess => {
            "from one process: differences between processes are not in the interval".to_owned()
        }
        Reason::OneBlock => "one block has no interval: measure longer".to_owned(),
        Reason::TooFine {
            threshold: asked,
            effect,
        } => format!(
            "{} is {} from equal, and this run detects differences of {} or more",
            threshold(*asked),
            percent(asked.ln().abs().exp_m1()),
            percent(*effect)
        ),
        Reason::NoControl(effect) => format!(
            "without an A/A arm (the baseline timed twice) the run shows no difference below {}",
            percent(*effect)
        ),
        Reason::Holds(asked) => {
            format!(
                "the interval contains {}: measure longer",
                threshold(*asked)
            )
        }
        Reason::Short(by) => format!("{} short", speedup(*by)),
        Reason::Slower { loss, other_card } => {
            let card = if *other_card { ", on another card" } else { "" };
            format!("{} slower{card}", percent(*loss))
        }
        Reason::Open(loss) => format!(
            "a loss of {} cannot be ruled out: measure longer",
            percent(*loss)
        ),
        Reason::Model(error) => format!(
            "nearer than the {} by which modelled times are off: measure it on a GPU",
            percent(*error)
        ),
        Reason::Uncalibrated => {
            "modelled times for this device were never compared with a GPU: measure it".to_owned()
        }
        Reason::SmemOver(by) => format!("{by} over"),
        Reason::RegistersOver(by) => format!("{by} over"),
        Reason::OccupancyShort(by) => format!("{} short", percent(*by)),
        Reason::SpillsMore(by) => format!("{by} B more"),
        Reason::NotRecorded => "the run file does not record it".to_owned(),
        Reason::Times(factor) => format!("{factor:.3}× the baseline's"),
        Reason::BaselineHasNone => "the baseline has none".to_owned(),
        Reason::NoCounter => {
            "one of the two has no such counter; only emulated runs count".to_owned()
        }
        Reason::Claim(verdict) => verdict.to_string(),
        Reason::NotThere => "missing cells cannot be judged".to_owned(),
        Reason::Alone => "it was judged by its own rules, without another run".to_owned(),
    }
}
