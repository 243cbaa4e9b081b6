use super::{Align, Column, Grid, Style};
use crate::domain::{Access, Found, Status, counted};
use crate::sanitize::{Examined, Inquest};

/// Who is right by luck, and why: a row for each cell, then every hazard once.
pub(crate) fn hazards_text(
    inquest: &Inquest,
    schedules: usize,
    again: &dyn Fn(&Examined) -> String,
    style: &Style,
) -> String {
    let examined = &inquest.examined;
    let mut parts = match examined.is_empty() {
        true => Vec::new(),
        false => vec![table(examined, style).render(style)],
    };
    let all = inquest.found();
    parts.extend(all.iter().map(|found| told(found, style)));
    for cell in examined.iter().filter(|cell| cell.odd.is_some()) {
        parts.push(odd(cell, again, style));
    }
    for cell in examined.iter().filter(|cell| cell.unwatched.0 > 0) {
        parts.push(format!(
            "{} on {}: {} of global memory was not watched for want of memory",
            cell.contender, cell.course.shape.name, cell.unwatched
        ));
    }
    parts.push(hazards_summary(inquest, all.len(), schedules));
    parts.join("\n\n")
}

fn table(examined: &[Examined], style: &Style) -> Grid {
    let mut grid = Grid::new(vec![
        Column::new("contender", Align::Left, 9),
        Column::new("shape", Align::Left, 9),
        Column::new("SMs", Align::Right, 5),
        Column::new("verdict", Align::Left, 9),
        Column::new("hazards", Align::Right, 8),
        Column::new("reaches", Align::Left, 3),
    ]);
    for cell in examined {
        let course = &cell.course;
        grid.push(vec![
            cell.contender.to_string(),
            course.shape.name.clone(),
            course.sms.to_string(),
            match cell.status {
                Status::Ok => style.good("ok"),
                Status::Unsupported => style.doubtful("unsupported"),
                status => style.bad(status),
            },
            match cell.hazards.len() {
                0 => String::new(),
                some => some.to_string(),
            },
            course.reaches.to_owned(),
        ]);
    }
    grid.without_empty_columns()
}

/// One hazard: both accesses, what is missing, and what is usually done.
fn told(found: &Found<'_>, style: &Style) -> String {
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
    let mut lines = vec![style.fold(&head, 2)];
    let sides = std::iter::once(&hazard.here).chain(&hazard.there);
    lines.extend(sides.map(|side| indented(&site(side), style)));
    lines.push(indented(&format!("missing: {}", hazard.missing), style));
    lines.push(indented(&format!("usually: {}", hazard.remedy), style));
    lines.join("\n")
}

fn site(access: &Access) -> String {
    format!("{access} ({})", access.who())
}

fn indented(text: &str, style: &Style) -> String {
    let narrower = Style {
        width: style.width.saturating_sub(2),
        ..*style
    };
    let folded = narrower.fold(text, 2);
    let lines: Vec<String> = folded.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

fn odd(cell: &Examined, again: &dyn Fn(&Examined) -> String, style: &Style) -> String {
    let Some(odd) = &cell.odd else {
        return String::new();
    };
    let head = format!(
        "{} on {}, schedule {}: {}",
        cell.contender, cell.course.shape.name, odd.schedule, odd.what
    );
    format!("{}\n  again: {}", style.fold(&head, 2), again(cell))
}

/// How many were found, and who does not do what it declares.
pub(crate) fn hazards_summary(inquest: &Inquest, hazards: usize, schedules: usize) -> String {
    let Inquest { examined, left } = inquest;
    let mut text = format!(
        "{} in {}, each in {}.",
        counted(hazards, "hazard"),
        counted(examined.len(), "cell"),
        counted(schedules, "schedule")
    );
    if !left.is_empty() {
        let names = left
            .iter()
            .map(|(contender, course)| format!("{contender} on {}", course.shape.name));
        let names: Vec<String> = names.collect();
        let cells = counted(left.len(), "cell");
        text.push_str(&format!(
            "\nInterrupted: {cells} not examined: {}",
            names.join(", ")
        ));
    }
    let surprises = inquest.surprises();
    if surprises.is_empty() && left.is_empty() && examined.iter().any(|c| c.expect != Status::Ok) {
        text.push_str(" Every contender does what it declares.");
    }
    for (contender, what) in surprises {
        let what = what.lines().next().unwrap_or_default();
        text.push_str(&format!(
            "\n{contender} does not do what it declares: {what}"
        ));
    }
    text
}
