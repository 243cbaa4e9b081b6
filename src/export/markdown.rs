use super::Document;
use crate::domain::{Interval, Micros};
use crate::present::interval;

/// The ranking and the shape matrix as GitHub-flavoured tables.
pub fn markdown(document: &Document) -> String {
    let mut text = String::new();
    for run in &document.runs {
        text.push_str(&format!(
            "**{}**: {} {}, `{}`\n\n",
            escape(&run.name),
            escape(&run.question),
            escape(&run.device),
            run.file.replace('`', "'")
        ));
    }
    text.push_str(&ranking(document));
    text.push('\n');
    text.push_str(&matrix(document));
    text
}

fn ranking(document: &Document) -> String {
    let over = document.over.as_deref().unwrap_or("the baseline");
    let mut text = format!(
        "| rank | contender | verdict | over {} | claim |\n",
        escape(over)
    );
    text.push_str("|---|---|---|---|---|\n");
    for row in &document.ranking {
        let rank = match (row.rank, row.tied) {
            (Some(rank), true) => format!("{rank}="),
            (Some(rank), false) => rank.to_string(),
            (None, _) => "–".to_owned(),
        };
        let speedup = row.geomean_speedup.map_or(String::new(), |q| {
            interval(&Interval {
                estimate: q.estimate,
                lower: q.lower,
                upper: q.upper,
            })
        });
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

fn matrix(document: &Document) -> String {
    let mut shapes: Vec<&str> = Vec::new();
    for cell in &document.cells {
        if !shapes.contains(&cell.shape.as_str()) {
            shapes.push(&cell.shape);
        }
    }
    let names: Vec<&str> = document
        .ranking
        .iter()
        .map(|r| r.contender.as_str())
        .collect();
    let mut text = format!(
        "| µs | {} |\n|---|{}\n",
        names
            .iter()
            .map(|n| escape(n))
            .collect::<Vec<_>>()
            .join(" | "),
        "---:|".repeat(names.len())
    );
    for shape in shapes {
        let cell = |name: &&str| {
            let found = document
                .cells
                .iter()
                .find(|c| c.contender == *name && c.shape == shape);
            match found {
                Some(cell) => cell
                    .micros
                    .map_or(cell.status.to_owned(), |m| Micros(m.estimate).to_string()),
                None => String::new(),
            }
        };
        let cells: Vec<String> = names.iter().map(cell).collect();
        text.push_str(&format!("| {} | {} |\n", escape(shape), cells.join(" | ")));
    }
    text
}

/// Text that stays text inside a table cell.
pub fn escape(text: &str) -> String {
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
