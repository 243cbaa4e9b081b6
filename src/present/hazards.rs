use super::status_tone;
use crate::table::{Column, Style, Table, Value, indented, maybe, row};
use dgx_core::domain::{Access, ContenderHazard, Hazard, Joined, Status, counted, distinct};
use dgx_core::sanitize::{SanitizeReport, SanitizedCell};

/// Contenders that are correct only by luck, and why: a row for each cell, then every hazard once.
pub(crate) fn hazards_text(
    report: &SanitizeReport,
    schedules: usize,
    again: &dyn Fn(&SanitizedCell) -> String,
    style: &Style,
) -> String {
    let examined = &report.cells;
    let mut parts = match examined.is_empty() {
        true => Vec::new(),
        false => vec![examined_table(examined).render(style)],
    };
    let all = report.found();
    parts.extend(all.iter().map(|found| hazard_text(found, style)));
    for cell in examined.iter().filter(|cell| cell.deviation.is_some()) {
        parts.push(deviation(cell, again, style));
    }
    for cell in examined.iter().filter(|cell| cell.unwatched.0 > 0) {
        parts.push(format!(
            "{} on {}: {} of global memory was not watched for want of memory",
            cell.contender, cell.case.shape.name, cell.unwatched
        ));
    }
    parts.push(hazards_summary(report, all.len(), schedules));
    parts.join("\n\n")
}

/// A row for each cell.
pub(crate) fn examined_table(examined: &[SanitizedCell]) -> Table {
    let columns = vec![
        Column::key("contender"),
        Column::key("shape"),
        Column::right("SMs").weight(5),
        Column::left("verdict"),
        Column::right("hazards").weight(8),
        Column::left("reaches").weight(3),
    ];
    let rows = examined.iter().map(|cell| {
        let hazards = cell.hazards.len();
        row![
            &cell.contender,
            &cell.case.shape.name,
            cell.case.sms,
            Value::badge(status_tone(cell.status), cell.status),
            maybe((hazards > 0).then_some(hazards)),
            cell.case.reaches,
        ]
    });
    Table::new(columns).with(rows).without_empty_columns()
}

/// One hazard: both accesses, what is missing, and the usual remedy.
fn hazard_text(found: &ContenderHazard<'_>, style: &Style) -> String {
    let hazard = found.hazard;
    let head = format!(
        "{}: {} at {}, on {}",
        found.contender,
        style.bad(&hazard.kind),
        hazard.at,
        match found.shapes.as_slice() {
            [one] => (*one).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => String::new(),
        }
    );
    let lines = [
        style.fold(&head, 2),
        sides(hazard, style),
        cure(hazard, style),
    ];
    lines.join("\n")
}

fn sides(hazard: &Hazard, style: &Style) -> String {
    let sides = std::iter::once(&hazard.here).chain(&hazard.there);
    sides.map(|side| inside(&site(side), style)).joined("\n")
}

fn cure(
    Hazard {
        missing, remedy, ..
    }: &Hazard,
    style: &Style,
) -> String {
    let missing = inside(&format!("missing: {missing}"), style);
    let remedy = inside(&format!("usually: {remedy}"), style);
    format!("{missing}\n{remedy}")
}

/// The hazards of one cell by kind, each pair of lines once, those in the variant itself before
/// those in headers. At most `most` of each kind.
pub(crate) fn hazards_of_cell(hazards: &[Hazard], most: usize, style: &Style) -> Vec<String> {
    let mut pairs: Vec<Hazard> = Vec::new();
    for hazard in hazards {
        let same = |h: &&mut Hazard| h.kind == hazard.kind && h.pair() == hazard.pair();
        match pairs.iter_mut().find(same) {
            Some(known) => known.times += hazard.times,
            None => pairs.push(hazard.clone()),
        }
    }
    pairs.sort_by_key(|hazard| !hazard.here.is_in_variant());
    let text = |kind: &str| {
        let own = pairs.iter().filter(|hazard| hazard.kind == kind);
        of_kind(kind, &own.collect::<Vec<_>>(), most, style)
    };
    let kinds = distinct(pairs.iter().map(|hazard| hazard.kind.as_str()));
    kinds.into_iter().map(text).collect()
}

fn of_kind(kind: &str, pairs: &[&Hazard], most: usize, style: &Style) -> String {
    let times: u64 = pairs.iter().map(|hazard| hazard.times).sum();
    let often = counted(times as usize, "time");
    let sites = match pairs.iter().any(|hazard| hazard.there.is_some()) {
        true => counted(pairs.len(), "pair") + " of lines",
        false => counted(pairs.len(), "line"),
    };
    let mut lines = vec![format!("{}: {sites}, met {often}", style.bad(kind))];
    let mut before: Option<&Hazard> = None;
    for hazard in pairs.iter().take(most) {
        let often = counted(hazard.times as usize, "time");
        let head = format!("{often}, first at {}", hazard.at);
        lines.push(inside(&head, style));
        lines.push(indented(&sides(hazard, &style.narrower(2))));
        let same = |b: &Hazard| (&b.missing, &b.remedy) == (&hazard.missing, &hazard.remedy);
        if !before.is_some_and(same) {
            lines.push(indented(&cure(hazard, &style.narrower(2))));
        }
        before = Some(hazard);
    }
    if pairs.len() > most {
        lines.push(format!("  … and {} more: -v shows all", pairs.len() - most));
    }
    lines.join("\n")
}

fn site(access: &Access) -> String {
    format!("{access} ({})", access.threads())
}

/// Wrapped, two spaces in.
fn inside(text: &str, style: &Style) -> String {
    indented(&style.narrower(2).fold(text, 2))
}

fn deviation(
    cell: &SanitizedCell,
    again: &dyn Fn(&SanitizedCell) -> String,
    style: &Style,
) -> String {
    let Some(deviation) = &cell.deviation else {
        return String::new();
    };
    let head = format!(
        "{} on {}, schedule {}: {}",
        cell.contender, cell.case.shape.name, deviation.schedule, deviation.what
    );
    format!("{}\n  again: {}", style.fold(&head, 2), again(cell))
}

/// How many were found, and which contenders do not have the status they declare.
pub(crate) fn hazards_summary(report: &SanitizeReport, hazards: usize, schedules: usize) -> String {
    let SanitizeReport { cells, left } = report;
    let mut text = format!(
        "{} in {}, each in {}.",
        counted(hazards, "hazard"),
        counted(cells.len(), "cell"),
        counted(schedules, "schedule")
    );
    if !left.is_empty() {
        let names = left
            .iter()
            .map(|(contender, case)| format!("{contender} on {}", case.shape.name));
        let names = names.joined(", ");
        let cells = counted(left.len(), "cell");
        text.push_str(&format!("\nInterrupted: {cells} not examined: {names}"));
    }
    let unexpected = report.unexpected();
    if unexpected.is_empty() && left.is_empty() && cells.iter().any(|c| c.expect != Status::Ok) {
        text.push_str(" Every contender has the status it declares.");
    }
    for (contender, what) in unexpected {
        let what = what.lines().next().unwrap_or_default();
        text.push_str(&format!(
            "\n{contender} does not have the status it declares: {what}"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hazard(kind: &str, lines: [&str; 2], at: usize) -> Hazard {
        let access = |deed: &str, line: &str| Access {
            deed: deed.to_owned(),
            lines: line.rsplit(" > ").map(str::to_owned).collect(),
            ptx_line: at as u32,
            kernel: "k".to_owned(),
            cta: Some([0, 0, 0]),
            warp: 2,
            lanes: u32::MAX,
        };
        Hazard {
            kind: kind.to_owned(),
            at: format!("shared tile+{at:#x}"),
            here: access("a thread reads", lines[0]),
            there: Some(access("a thread writes", lines[1])),
            missing: "no barrier between them".to_owned(),
            remedy: "__syncthreads()".to_owned(),
            times: 4,
        }
    }

    /// One mistake occurs at many addresses, from many places of unrolled code.
    #[test]
    fn a_pair_of_lines_is_told_once_and_kinds_stand_apart() {
        let header = ["dgx/ring.cuh:7", "dgx/ring.cuh:9"];
        let mut all = vec![hazard("race", header, 0)];
        let own = ["mine.cu:40 > dgx/tile.cuh:9", "mine.cu:31"];
        all.extend((0..40).map(|at| hazard("race", own, at)));
        let deeper = ["mine.cu:40 > dgx/tile.cuh:11", "mine.cu:31"];
        all.extend((40..44).map(|at| hazard("race", deeper, at)));
        for line in 50..55 {
            all.push(hazard(
                "race",
                [&format!("mine.cu:{line}"), "mine.cu:31"],
                line,
            ));
        }
        all.push(hazard("proxy-fence", own, 3));
        let few = hazards_of_cell(&all, 3, &Style::PLAIN);
        insta::assert_snapshot!(few.join("\n\n"));
        let whole = hazards_of_cell(&all, usize::MAX, &Style::PLAIN).join("\n");
        assert!(
            whole.contains("mine.cu:54") && !whole.contains("-v"),
            "{whole}"
        );
    }
}
