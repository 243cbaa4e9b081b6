//! The findings of `dgx debug` in words.

use super::{Commands, hazards_of_cell, percent, status_tone};
use crate::table::{Column, Style, Table, Value, indented, row};
use dgx_core::domain::{BackendKind, Hazard, Joined, Shape, Status, Verdict};
use dgx_core::speech::{self, Level};
use dgx_run::backend::emu::STILL_RUNNING;
use dgx_run::debug::{CapturedCall, Diagnosis};
use dgx_run::validate::{Element, ErrorMap, Neighbours, OutputName, Tolerance, WrongOutput};

/// Lines shown of the kernels' output; a sweep's run file has all of it.
const PRINTED: usize = 60;
/// Seconds to suggest if the time was up before a hang was proved.
const PATIENCE: u32 = 600;
/// Pairs of lines shown of each kind of hazard.
const PAIRS: usize = 3;
/// Charts shown, and groups listed.
const CHARTS: usize = 3;
const GROUPS: usize = 8;

/// Context that a diagnosis does not contain.
pub(crate) struct DebugContext<'a> {
    pub shape: &'a Shape,
    pub tolerance: Tolerance,
    /// Rows and columns of a tile, if the variant gives them.
    pub tile: (Option<usize>, Option<usize>),
    pub commands: Commands<'a>,
}

/// Everything known, section by section: the verdict, its likely cause, then the evidence.
pub(crate) fn account_text(
    account: &Diagnosis,
    context: &DebugContext<'_>,
    style: &Style,
) -> String {
    let verdict = &account.verdict;
    let call = account.call.as_ref();
    let wrong = call.filter(|_| verdict.status == Status::Wrong);
    let wrong_output = wrong.and_then(|call| Some((call, call.wrong_output.as_ref()?)));
    let mut parts = vec![headline(account, style)];
    parts.extend(hazards(account, style));
    if let Some((call, wrong_output)) = wrong_output {
        parts.extend(pattern(account, wrong_output, style));
        parts.extend(mismatch_sections(call, wrong_output, context, style));
    }
    parts.extend(wrong.and_then(|call| writers(call, style)));
    // The compiler's log is printed by itself.
    if !matches!(verdict.status, Status::Wrong | Status::CompileError) {
        parts.extend(details(account, style));
    }
    parts.extend(strays(account, style));
    parts.extend(data(account, style));
    parts.extend(printed(account));
    parts.join("\n\n")
}

/// The hypotheses that explain the wrong elements.
fn pattern(account: &Diagnosis, wrong_output: &WrongOutput, style: &Style) -> Option<String> {
    let hazards = !account.verdict.hazards.is_empty();
    let title = match hazards {
        true => "What it looks like",
        false => "Likely cause",
    };
    let known = !wrong_output.fits.is_empty();
    (known || !hazards).then(|| section(title, &folded(&fits(wrong_output), style)))
}

fn headline(account: &Diagnosis, style: &Style) -> String {
    let verdict = &account.verdict;
    let word = style.toned(status_tone(verdict.status), verdict.status);
    let on = match account.backend {
        BackendKind::Emu => format!("emulated as {}", account.device.name),
        _ => format!("on {}", account.device.name),
    };
    // Hazards follow, kind by kind.
    let why = match verdict.status {
        Status::Racy => "",
        _ => own_reason(verdict),
    };
    let why = match why {
        "" => String::new(),
        why => format!("\n{}", indented(&folded(&event_first(why), style))),
    };
    let worst = match (verdict.status, verdict.worst) {
        (Status::Ok, Some(worst)) => {
            format!(": the worst error is {} of the tolerance", percent(worst))
        }
        _ => String::new(),
    };
    format!("{} {on}{worst}{why}", style.bold(word))
}

/// Lines of the verdict that neither its reason nor its hazards contain.
fn details(account: &Diagnosis, style: &Style) -> Option<String> {
    let verdict = &account.verdict;
    let detail = verdict.detail.as_deref()?;
    let explanations = verdict
        .hazards
        .iter()
        .map(Hazard::explanation)
        .joined("\n\n");
    let rest = detail.strip_prefix(&explanations).unwrap_or(detail);
    let reason = verdict.reason.as_deref().unwrap_or_default();
    let new = |line: &&str| !reason.contains(line.trim());
    let rest: Vec<&str> = rest.lines().filter(new).collect();
    (!rest.is_empty()).then(|| section("Details", &folded(&rest.join("\n"), style)))
}

/// Its hazards, which may be the cause of a failure; each kind under its own heading.
fn hazards(account: &Diagnosis, style: &Style) -> Vec<String> {
    let most = match speech::level() >= Level::Verbose {
        true => usize::MAX,
        false => PAIRS,
    };
    hazards_of_cell(&account.verdict.hazards, most, style)
}

/// Reads outside of all buffers: not a fault, and rarely intended.
fn strays(account: &Diagnosis, style: &Style) -> Option<String> {
    let call = account.call.as_ref()?;
    let strays = &call.kept.search.as_ref()?.strays;
    let lines = folded(&strays.join("\n"), style);
    (!strays.is_empty()).then(|| section("Reads outside of all buffers", &lines))
}

/// The verdict on each distribution alone; equal ones share a line.
fn data(account: &Diagnosis, style: &Style) -> Option<String> {
    let whole = alike(&account.verdict);
    let mut lines: Vec<(Vec<String>, String)> = Vec::new();
    for (distribution, verdict) in &account.others {
        let status = verdict.status;
        let words = match own_reason(verdict) {
            _ if alike(verdict) == whole => format!("{status}, the same"),
            "" => status.to_string(),
            why => format!("{status}: {why}"),
        };
        let name = distribution.to_string();
        match lines.iter_mut().find(|(_, other)| *other == words) {
            Some((names, _)) => names.push(name),
            None => lines.push((vec![name], words)),
        }
    }
    let line = |(names, words): &(Vec<String>, String)| format!("{}: {words}", names.join(", "));
    let lines: Vec<String> = lines.iter().map(line).collect();
    let lines = folded(&lines.join("\n"), style);
    (!lines.is_empty()).then(|| section("Each kind of data alone", &lines))
}

fn printed(account: &Diagnosis) -> Option<String> {
    let by_call = account.call.as_ref().map(|call| &call.kept.printed);
    let printed = by_call.filter(|text| !text.is_empty());
    let printed = printed.or(account.verdict.printed.as_ref())?;
    let lines: Vec<&str> = printed.lines().collect();
    let mut shown = lines[..lines.len().min(PRINTED)].join("\n");
    if lines.len() > PRINTED {
        shown.push_str(&format!("\n… and {} lines more", lines.len() - PRINTED));
    }
    Some(section("What its kernels printed", &shown))
}

/// Whether the time was up before a hang was proved: the emulator reports it, or reports nothing
/// because its process was ended.
fn proves_nothing(account: &Diagnosis) -> bool {
    let detail = account.verdict.detail.as_deref();
    detail.is_none_or(|detail| detail.contains(STILL_RUNNING))
}

/// The command that most likely helps next.
pub(crate) fn next_command(
    account: &Diagnosis,
    context: &DebugContext<'_>,
    style: &Style,
) -> Option<String> {
    let verdict = &account.verdict;
    let reason = verdict.reason.as_deref();
    let again = || {
        let cell = context.commands.cell(&verdict.contender, &verdict.shape);
        format!("dgx debug {cell}")
    };
    let step = match verdict.status {
        Status::Ok | Status::Unsupported | Status::NotValidated => return None,
        // The compiler's message is complete.
        Status::CompileError => return None,
        Status::Wrong => {
            let call = account.call.as_ref();
            call.and_then(|call| call.wrong_output.as_ref())?;
            format!("{} --dump c,expected dump", again())
        }
        // A card reports only that it was lost; the emulator reports where.
        Status::Crashed | Status::Hung if account.backend != BackendKind::Emu => {
            format!("{} --backend emu", again())
        }
        Status::Hung if proves_nothing(account) => {
            format!("{} --timeout {PATIENCE}", again())
        }
        // The detail names lines of the PTX.
        Status::Crashed | Status::Hung => format!("{} --emit ptx out", again()),
        Status::LaunchError | Status::Racy => {
            let (contender, shape) = (&verdict.contender, &verdict.shape);
            context
                .commands
                .next(contender, shape, verdict.status, reason)?
        }
    };
    Some(style.dim(format!("next: {step}")))
}

fn mismatch_sections(
    call: &CapturedCall,
    wrong_output: &WrongOutput,
    context: &DebugContext<'_>,
    style: &Style,
) -> Vec<String> {
    let mismatch = &wrong_output.mismatch;
    let mut parts = vec![section(
        &format!(
            "First of {} wrong elements, of {} in all (call {}, {} data)",
            mismatch.wrong,
            mismatch.total,
            call.kept.call + 1,
            call.kept.distribution
        ),
        &elements(wrong_output, context.tolerance).render(style),
    )];
    let around = || wrong_output.patch.rows.iter().flatten();
    if around().any(|(element, _)| element.found.written) {
        let answer = &wrong_output.answers[mismatch.first.group];
        let whose = answer.whose().filter(|_| answer.is_matrix());
        let whose = whose.map(|whose| format!(", in {whose}"));
        parts.push(section(
            &format!(
                "Around the first{}: got over expected, * is wrong",
                whose.unwrap_or_default()
            ),
            &patch(&wrong_output.patch, answer).render(style),
        ));
    }
    parts.push(section("Where", &places(wrong_output, context)));
    parts
}

/// The first line of a verdict's reason, without the hazard at its end.
fn own_reason(verdict: &Verdict) -> &str {
    let reason = verdict.reason.as_deref().unwrap_or_default();
    let first = verdict.hazards.first().map(|hazard| format!("; {hazard}"));
    let own = first.and_then(|hazard| reason.split_once(&hazard));
    let own = own.map_or(reason, |(own, _)| own);
    own.lines().next().unwrap_or_default()
}

/// A fault of the emulator with its event first and its place below.
fn event_first(reason: &str) -> String {
    match reason.split_once("]: ") {
        Some((place, event)) if place.contains(" [seed ") => format!("{event}\nat {place}]"),
        _ => reason.to_owned(),
    }
}

/// A verdict without the parts that differ between calls: its data and seed.
fn alike(verdict: &Verdict) -> (Status, String) {
    let own = own_reason(verdict);
    let own = match own.rsplit_once(" (") {
        Some((own, end)) if end.ends_with(" data)") => own,
        _ => own,
    };
    let words = match own.split_once(" [seed ") {
        Some((before, after)) => {
            before.to_owned() + after.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        None => own.to_owned(),
    };
    (verdict.status, words)
}

/// The writers of the first wrong element.
fn writers(call: &CapturedCall, style: &Style) -> Option<String> {
    let writers = call.kept.search.as_ref()?.writers.as_ref()?;
    let lines = folded(writers, style);
    Some(section("The first wrong element was written by", &lines))
}

fn elements(wrong_output: &WrongOutput, tolerance: Tolerance) -> Table {
    let matrices = wrong_output.answers.iter().all(|a| a.is_matrix() && a.only);
    let several = wrong_output.answers.len() > 1;
    let titles: &[&str] = match (matrices, several) {
        (true, true) => &["group", "row", "column"],
        (true, false) => &["row", "column"],
        (false, _) => &["element"],
    };
    let right = ["got", "expected", "error/tolerance"];
    let titles = titles.iter().chain(&right).copied();
    Table::new(titles.map(Column::right).collect()).with(wrong_output.elements.iter().map(
        |element| {
            let error = tolerance.error(element.found, element.expected);
            let mut row = match (matrices, several) {
                (true, true) => row![element.group, element.row, element.column],
                (true, false) => row![element.row, element.column],
                (false, _) => {
                    row![wrong_output.answers[element.group].element(element.row, element.column)]
                }
            };
            row.extend(row![
                got(element),
                element.number(element.expected),
                match error.is_finite() {
                    true => format!("{error:.3}"),
                    false => "–".to_owned(),
                },
            ]);
            row
        },
    ))
}

fn patch(patch: &Neighbours, answer: &OutputName) -> Table {
    let width = patch.rows.first().map_or(0, Vec::len);
    let matrix = answer.is_matrix();
    let title = |column: usize| match matrix {
        true => format!("column {}", patch.first_column + column),
        false => (patch.first_column + column).to_string(),
    };
    let columns = (0..width).map(|column| Column::right(title(column)));
    let mut table = Table::keyed("", columns);
    for (place, row) in patch.rows.iter().enumerate() {
        let above = row.iter().map(|(element, wrong)| match wrong {
            true => format!("*{}", got(element)),
            false => got(element),
        });
        let below = row.iter().map(|(e, _)| e.number(e.expected));
        let line = patch.first_row + place;
        let name = match matrix {
            true => format!("row {line}"),
            false => answer.line(line),
        };
        table.push_named(name, above.map(Value::from));
        table.push_named("", below.map(Value::from));
    }
    table
}

fn places(wrong_output: &WrongOutput, context: &DebugContext<'_>) -> String {
    let mut lines = vec![wrong_output.mismatch.place.clone()];
    if wrong_output.by_group.len() > 1 {
        lines.extend(by_group(wrong_output, context.shape));
    }
    // If everything is wrong, a chart shows nothing.
    let partly = || wrong_output.charts.iter().filter(|chart| !chart.is_full());
    let drawn = |chart: &ErrorMap| drawn(chart, &wrong_output.answers[chart.group], context);
    lines.extend(partly().take(CHARTS).map(drawn));
    let more = partly().count().saturating_sub(CHARTS);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines.join("\n")
}

fn by_group(wrong_output: &WrongOutput, shape: &Shape) -> Vec<String> {
    let answers = wrong_output.answers.iter().zip(&wrong_output.elements_of);
    let hit = (wrong_output.by_group.iter().zip(answers)).filter(|(wrong, _)| **wrong > 0);
    let mut lines: Vec<String> = hit
        .map(|(wrong, (answer, all))| {
            let whose = answer.whose().unwrap_or_default();
            let sizes = answer
                .group
                .map(|group| format!(" ({})", shape.groups[group]));
            format!("{whose}{}: {wrong} of {all}", sizes.unwrap_or_default())
        })
        .collect();
    let more = lines.len().saturating_sub(GROUPS);
    lines.truncate(GROUPS);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

/// `#` if all of a field is wrong, `+` if some, `.` if none; gaps between tiles.
fn drawn(chart: &ErrorMap, answer: &OutputName, context: &DebugContext<'_>) -> String {
    let (rows, columns) = chart.field;
    let (tile_rows, tile_columns) = context.tile;
    let begins = |at: usize, tile: Option<usize>| {
        at > 0 && tile.is_some_and(|tile| tile > 0 && at.is_multiple_of(tile))
    };
    let whose = match answer.extents.len() {
        2 => answer.whose(),
        0 | 1 => Some(answer.tensor.clone()),
        _ => Some(format!("{}, all axes but the last as rows", answer.tensor)),
    };
    let whose = whose.map(|whose| whose + ", ").unwrap_or_default();
    let mut lines = vec![format!(
        "{whose}a field is {rows} rows by {columns} columns: # all wrong, + some, . none"
    )];
    for (place, fields) in chart.rows.iter().enumerate() {
        if begins(place * rows, tile_rows) {
            lines.push(String::new());
        }
        let mut line = format!("{:>7} ", place * rows);
        for (place, (wrong, all)) in fields.iter().enumerate() {
            if begins(place * columns, tile_columns) {
                line.push(' ');
            }
            line.push(match wrong {
                0 => '.',
                some if some == all => '#',
                _ => '+',
            });
        }
        lines.push(line);
    }
    lines.join("\n")
}

fn fits(wrong_output: &WrongOutput) -> String {
    if wrong_output.fits.is_empty() {
        return "no known mistake".to_owned();
    }
    let lines = wrong_output.fits.iter().map(|fit| {
        let share = percent(fit.share);
        format!("{} ({share} of the {} examined)", fit.what, fit.of)
    });
    lines.joined("\n")
}

fn got(element: &Element) -> String {
    match element.found.written {
        false => "unwritten".to_owned(),
        true => element.number(element.got()),
    }
}

fn section(title: &str, body: &str) -> String {
    format!("{title}\n{}", indented(body))
}

/// Wraps each line to the width left inside a section.
fn folded(text: &str, style: &Style) -> String {
    let style = style.narrower(2);
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        let folded = style.fold(line, indent + 2);
        format!("{}{folded}", " ".repeat(indent))
    });
    lines.joined("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::Folders;
    use dgx_core::config::target::default_device;
    use dgx_core::domain::ContenderId;
    use dgx_core::record::synthetic::group;

    #[test]
    fn whoever_ran_out_of_time_is_given_more() {
        let note = |detail: Option<&str>| {
            let id = ContenderId::from_text("x");
            let account = Diagnosis {
                backend: BackendKind::Emu,
                device: default_device().clone(),
                verdict: Verdict {
                    detail: detail.map(str::to_owned),
                    ..Verdict::new(&id, "s", Status::Hung)
                },
                call: None,
                others: Vec::new(),
                folder: tempfile::tempdir().unwrap(),
            };
            let shape = Shape {
                name: "s".to_owned(),
                groups: Vec::new(),
            };
            let folders = Folders::default();
            next_command(&account, &context(&shape, &folders), &Style::PLAIN)
        };
        let slow = format!("{STILL_RUNNING} 3.0s of wall-clock time");
        let patient = Some("next: dgx debug x round.toml --shape s --timeout 600");
        assert_eq!(note(Some(&slow)).as_deref(), patient);
        assert_eq!(note(None).as_deref(), patient, "its process was ended");
        let proved = note(Some("hung: all CTAs poll"));
        assert!(proved.unwrap().ends_with("--emit ptx out"));
    }

    fn context<'a>(shape: &'a Shape, folders: &'a Folders) -> DebugContext<'a> {
        DebugContext {
            shape,
            tolerance: Tolerance {
                rtol: 1e-3,
                atol: 1e-3,
            },
            tile: (Some(16), Some(128)),
            commands: Commands {
                run: "round.toml".as_ref(),
                round: "round.toml",
                folders,
            },
        }
    }

    #[test]
    fn a_chart_shows_tiles_apart() {
        let chart = ErrorMap {
            group: 1,
            field: (8, 64),
            rows: vec![vec![(0, 512), (512, 512), (3, 512), (0, 512)]; 3],
        };
        let shape = Shape {
            name: "s".to_owned(),
            groups: vec![group(24, 256, 64); 2],
        };
        let folders = Folders::default();
        let context = context(&shape, &folders);
        let of = |extents: &[usize]| OutputName {
            tensor: "y".to_owned(),
            extents: extents.to_vec(),
            group: Some(1),
            only: true,
        };
        let text = drawn(&chart, &of(&[24, 256]), &context);
        let expected = "group 1, a field is 8 rows by 64 columns: # all wrong, + some, . none\n      \
                    0 .# +.\n      8 .# +.\n\n     16 .# +.";
        assert_eq!(text, expected);
        let text = drawn(&chart, &of(&[2, 12, 256]), &context);
        let begins = "y, all axes but the last as rows, a field is 8 rows by 64 columns";
        assert!(text.starts_with(begins), "{text}");
    }
}
