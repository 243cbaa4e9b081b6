use std::collections::HashMap;

use super::Document;
use super::document::{CellExport, Change, RunOrigin, Standing};
use crate::domain::Micros;
use crate::present::interval;

/// The ranking and the shape matrix of each run as GitHub-flavoured tables,
/// and what changed from the first to the second. Every table says what its
/// times are: nobody takes one out of its page and loses that.
pub(crate) fn markdown(document: &Document) -> String {
    let mut parts = Vec::new();
    for (index, run) in document.runs.iter().enumerate() {
        let rows: Vec<&Standing> = document.ranking.iter().filter(|r| r.run == index).collect();
        let cells: Vec<&CellExport> = document.cells.iter().filter(|c| c.run == index).collect();
        parts.push(introduction(run, document.runs.len() > 1, index));
        // Within one run, speedups may be over another than its reference.
        let over = match document.runs.len() {
            1 => document.over.as_deref(),
            _ => run.over.as_deref(),
        };
        parts.push(ranking(run, over.unwrap_or("the baseline"), &rows));
        parts.push(matrix(run, &rows, &cells));
    }
    if let ([a, b], false) = (&document.runs[..], document.changes.is_empty()) {
        parts.push(changes(a, b, &document.changes));
    }
    parts.join("\n")
}

fn introduction(run: &RunOrigin, several: bool, index: usize) -> String {
    let label = match several {
        true => format!("{}, ", ["A", "B"][index.min(1)]),
        false => String::new(),
    };
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

fn ranking(run: &RunOrigin, over: &str, rows: &[&Standing]) -> String {
    let mut text = format!(
        "| rank | contender | verdict | over {} ({}) | claim |\n",
        escape(over),
        times(run)
    );
    text.push_str("|---|---|---|---|---|\n");
    for row in rows {
        let rank = match (row.rank, row.tied) {
            (Some(rank), true) => format!("{rank}="),
            (Some(rank), false) => rank.to_string(),
            (None, _) => "–".to_owned(),
        };
        let speedup = row.geomean_speedup;
        let speedup = speedup.map_or(String::new(), |q| interval(&q.interval()));
        let claim = row.claim.as_ref().map_or(String::new(), |c| {
            format!("{:.2}× {}", c.geomean, c.verdict)
        });
        let name = escape(&row.contender);
        text.push_str(&format!(
            "| {rank} | {name} | {} | {speedup} | {claim} |\n",
            row.status
        ));
    }
    text
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
        "| µs, {} | {} |\n|---|{}\n",
        times(run),
        titles.join(" | "),
        "---:|".repeat(names.len())
    );
    for shape in shapes {
        let cell = |name: &&str| match found.get(&(shape, *name)) {
            Some(cell) => cell
                .micros
                .map_or(cell.status.to_owned(), |m| Micros(m.estimate).to_string()),
            None => String::new(),
        };
        let cells: Vec<String> = names.iter().map(cell).collect();
        text.push_str(&format!("| {} | {} |\n", escape(shape), cells.join(" | ")));
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
            None => "",
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
