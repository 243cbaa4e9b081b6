use std::collections::HashMap;

use super::Document;
use super::document::{CellExport, Change, RunOrigin, Standing};
use crate::domain::{Bytes, Counter, Micros};
use crate::present::{interval, percent, speedup};

/// The ranking, the shape matrix and the counters of each run as
/// GitHub-flavoured tables, and what changed from the first to the second. Every table says what its
/// times are: nobody takes one out of its page and loses that.
pub(crate) fn markdown(document: &Document) -> String {
    let mut parts = Vec::new();
    for (index, run) in document.runs.iter().enumerate() {
        let rows: Vec<&Standing> = document.ranking.iter().filter(|r| r.run == index).collect();
        let cells: Vec<&CellExport> = document.cells.iter().filter(|c| c.run == index).collect();
        parts.push(introduction(run));
        // Within one run, speedups may be over another than its reference.
        let over = match document.runs.len() {
            1 => document.over.as_deref(),
            _ => run.over.as_deref(),
        };
        parts.push(ranking(run, over.unwrap_or("the baseline"), &rows));
        parts.push(matrix(run, &rows, &cells));
        parts.extend(Some(counters(&rows)).filter(|text| !text.is_empty()));
    }
    if let ([a, b], false) = (&document.runs[..], document.changes.is_empty()) {
        parts.push(changes(a, b, &document.changes));
    }
    parts.join("\n")
}

fn introduction(run: &RunOrigin) -> String {
    let label = run
        .label
        .map_or(String::new(), |label| format!("{label}, "));
    let card = run
        .uuid
        .as_ref()
        .map_or(String::new(), |u| format!(", {}", escape(u)));
    format!(
        "**{label}{}**: {} {} ({}, {}){card}, `{}`\n{}",
        escape(&run.name),
        escape(&run.question),
        escape(&run.device),
        escape(&run.backend),
        run.timing.as_str(),
        run.file.replace('`', "'"),
        run.belief.as_deref().map_or(String::new(), |sentence| {
            format!("\n{}\n", escape(sentence))
        })
    )
}

/// What times of a run are: `modelled for NVIDIA H200, ±3.5 %`.
fn times(run: &RunOrigin) -> String {
    let timing = run.timing.as_str();
    match &run.model_error {
        Some(error) => format!("{timing} for {}, {error}", escape(&run.device)),
        None => timing.to_owned(),
    }
}

/// The columns of the screen, but those in which nobody has anything.
fn ranking(run: &RunOrigin, over: &str, rows: &[&Standing]) -> String {
    type Cell = fn(&Standing) -> String;
    let over = format!("over {} ({})", escape(over), times(run));
    let mean = format!("{} µs", run.timing.as_str());
    let columns: [(&str, Cell); 13] = [
        ("rank", |row| match (row.rank, row.tied) {
            (Some(rank), true) => format!("{rank}="),
            (Some(rank), false) => rank.to_string(),
            (None, _) => "–".to_owned(),
        }),
        ("contender", |row| escape(&row.contender)),
        ("verdict", |row| row.status.to_owned()),
        (&mean, |row| shown(row.mean_micros.map(Micros))),
        (&over, |row| {
            shown(row.geomean_speedup.map(|q| interval(&q.interval())))
        }),
        ("claim", |row| {
            let claim = row.claim.as_ref();
            shown(claim.map(|c| format!("{:.2}× {}", c.geomean, c.verdict)))
        }),
        ("roofline", |row| {
            shown(row.roofline.map(|r| percent(r.estimate)))
        }),
        ("bound by", |row| {
            escape(row.bound_by.as_deref().unwrap_or_default())
        }),
        ("clock MHz", |row| {
            shown(row.clock_mhz.map(|mhz| format!("{mhz:.0}")))
        }),
        ("regs", |row| shown(row.registers)),
        ("spills", |row| {
            shown(row.spill_bytes.filter(|b| *b > 0).map(|b| Bytes(b.into())))
        }),
        ("smem", |row| {
            shown(row.smem.map(|bytes| Bytes(bytes.estimate as u64)))
        }),
        ("over the yardstick", |row| {
            shown(row.over_yardstick.map(|q| speedup(q.estimate)))
        }),
    ];
    let used: Vec<&(&str, Cell)> = columns
        .iter()
        .filter(|(_, cell)| rows.iter().any(|row| !cell(row).is_empty()))
        .collect();
    let titles: Vec<&str> = used.iter().map(|(title, _)| *title).collect();
    let mut text = format!(
        "| {} |\n|{}\n",
        titles.join(" | "),
        "---|".repeat(used.len())
    );
    for row in rows {
        let cells: Vec<String> = used.iter().map(|(_, cell)| cell(row)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn matrix(run: &RunOrigin, rows: &[&Standing], cells: &[&CellExport]) -> String {
    let mut shapes: Vec<&str> = Vec::new();
    let mut found: HashMap<(&str, &str), &CellExport> = HashMap::new();
    for cell in cells {
        if !shapes.contains(&cell.shape.as_str()) {
            shapes.push(&cell.shape);
        }
        found.insert((&cell.shape, &cell.contender), cell);
    }
    let names: Vec<&str> = rows.iter().map(|r| r.contender.as_str()).collect();
    let titles: Vec<String> = names.iter().map(|n| escape(n)).collect();
    let mut text = format!(
        "| µs, {}; **fastest contender** | {} |\n|---|{}\n",
        times(run),
        titles.join(" | "),
        "---:|".repeat(names.len())
    );
    for shape in shapes {
        let cell = |name: &&str| match found.get(&(shape, *name)) {
            Some(cell) => match cell.micros.map(|m| Micros(m.estimate)) {
                Some(micros) if cell.best => format!("**{micros}**"),
                Some(micros) => micros.to_string(),
                None => cell.status.to_owned(),
            },
            None => String::new(),
        };
        let cells: Vec<String> = names.iter().map(cell).collect();
        text.push_str(&format!("| {} | {} |\n", escape(shape), cells.join(" | ")));
    }
    text
}

/// What the emulator counted, if it did: one row for each counter somebody has
/// something of.
fn counters(rows: &[&Standing]) -> String {
    let counted: Vec<&&Standing> = rows.iter().filter(|row| row.counters.is_some()).collect();
    let value = |row: &Standing, counter: Counter| {
        let counters = row.counters.as_ref()?;
        counters.get(counter.as_str()).copied()
    };
    let used = |counter: &Counter| counted.iter().any(|row| value(row, *counter) > Some(0.0));
    if counted.is_empty() {
        return String::new();
    }
    let titles: Vec<String> = counted.iter().map(|row| escape(&row.contender)).collect();
    let mut text = format!(
        "| emulated, one call on each shape | {} |\n|---|{}\n",
        titles.join(" | "),
        "---:|".repeat(counted.len())
    );
    for counter in Counter::all().filter(used) {
        let cells = counted.iter().map(|row| value(row, counter));
        let cells = cells.map(|v| shown(v.map(|v| counter.text(v))));
        let cells: Vec<String> = cells.collect();
        text.push_str(&format!("| {counter} | {} |\n", cells.join(" | ")));
    }
    text
}

fn changes(a: &RunOrigin, b: &RunOrigin, changes: &[Change]) -> String {
    let timing = match a.timing == b.timing {
        true if times(a) == times(b) => times(a),
        true => a.timing.as_str().to_owned(),
        false => format!("{} over {}", b.timing.as_str(), a.timing.as_str()),
    };
    let mut text =
        format!("| contender | shape | B over A ({timing}) | differs |\n|---|---|---|---|\n");
    for change in changes {
        let shape = change.shape.as_deref().map_or("*all*".to_owned(), escape);
        let differs = match change.differs {
            Some(true) => "yes",
            Some(false) => "no",
            None => change.finding,
        };
        text.push_str(&format!(
            "| {} | {shape} | {} | {differs} |\n",
            escape(&change.contender),
            interval(&change.speedup.interval())
        ));
    }
    text
}

/// Text that stays text inside a table cell.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' => out.push(' '),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}
