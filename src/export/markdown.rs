use std::collections::HashMap;

use super::document::{Agreement, CellExport, RunOrigin, Standing};
use super::{Document, Quantity};
use crate::present::{
    CLAIM, Over, agree_word, claim_words, interval, mean_title, percent, signed_percent, speedup,
};
use dgx_core::domain::{Bytes, Counter, Micros};

/// What is on the screen as GitHub-flavoured Markdown: of each run the ranking,
/// the shape matrix, what was counted, what failed and the notes, and how the
/// second compares with the first. Every table says what its times are: nobody
/// takes one out of its page and loses that.
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
        parts.push(ranking(run, over, &rows));
        parts.push(matrix(run, &rows, &cells));
        parts.push(counters(&rows));
        parts.push(list(&run.failures));
        parts.push(list(&run.notes));
    }
    if !document.changes.is_empty() {
        parts.push(changes(document));
    }
    if let ([a, b], Some(agreed)) = (&document.runs[..], &document.agreement) {
        parts.push(agreement(agreed, &between(a, b)));
    }
    parts.push(list(&document.notes));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn list(sentences: &[String]) -> String {
    let item = |sentence: &String| format!("- {}\n", escape(sentence));
    sentences.iter().map(item).collect()
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
fn ranking(run: &RunOrigin, over: Option<&str>, rows: &[&Standing]) -> String {
    type Cell<'a> = &'a dyn Fn(&Standing) -> String;
    let over_title = over.map_or("speedup".to_owned(), |over| {
        format!("over {}", escape(over))
    });
    let over_title = format!("{over_title} ({})", times(run));
    let mean = mean_title(run.timing, run.model_error.as_deref()).replace('\n', " ");
    let yardstick = run.yardstick.as_deref().unwrap_or_default();
    let over_yardstick = format!("over {}", escape(yardstick));
    let over = Over {
        reference: over,
        baseline: &run.baseline,
    };
    let speedup_text = |row: &Standing| {
        let unranked = row.rank.is_none() && row.contender != yardstick;
        let speedup = row.geomean_speedup.map(|q| q.interval());
        let unranked_on = unranked.then_some(row.valid_shapes);
        over.text(&row.contender, speedup, unranked_on)
    };
    let columns: [(&str, Cell); 13] = [
        ("rank", &|row: &Standing| match (row.rank, row.tied) {
            (Some(rank), true) => format!("{rank}="),
            (Some(rank), false) => rank.to_string(),
            (None, _) => "–".to_owned(),
        }),
        ("contender", &|row: &Standing| escape(&row.contender)),
        ("verdict", &|row: &Standing| row.verdict.to_owned()),
        (&mean, &|row: &Standing| shown(row.mean_micros.map(Micros))),
        (&over_title, &speedup_text),
        (CLAIM, &|row: &Standing| {
            shown(row.claim.as_ref().map(|c| {
                let found = c.measured.map(|m| m.estimate);
                escape(&claim_words(c.geomean, &c.over, found)) + " " + c.verdict
            }))
        }),
        ("roofline", &|row: &Standing| {
            shown(row.roofline.map(|r| percent(r.estimate)))
        }),
        ("bound by", &|row: &Standing| {
            escape(row.bound_by.as_deref().unwrap_or_default())
        }),
        ("clock MHz", &|row: &Standing| {
            shown(row.clock_mhz.map(|mhz| format!("{mhz:.0}")))
        }),
        ("regs", &|row: &Standing| shown(row.registers)),
        ("spills", &|row: &Standing| {
            shown(row.spill_bytes.filter(|b| *b > 0).map(|b| Bytes(b.into())))
        }),
        ("smem", &|row: &Standing| {
            shown(row.smem.map(|bytes| Bytes(bytes.estimate as u64)))
        }),
        (&over_yardstick, &|row: &Standing| {
            shown(row.over_yardstick.map(|q| speedup(q.estimate)))
        }),
    ];
    let used: Vec<_> = columns
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

/// The second over the first: on each shape, and in the mean.
fn changes(document: &Document) -> String {
    let micros = |run: usize, contender: &str, shape: Option<&str>| {
        let cells = document.cells.iter();
        let mut cells = cells.filter(|c| c.run == run && c.contender == contender);
        let found = cells.find(|c| Some(c.shape.as_str()) == shape)?.micros?;
        Some(Micros(found.estimate))
    };
    let (names, timing, second) = match &document.runs[..] {
        [a, b] => (["A", "B"].map(str::to_owned), between(a, b), 1),
        one => {
            let change = &document.changes[0];
            let names = [&change.over, &change.contender].map(|name| escape(name));
            (names, shown(one.first().map(times)), 0)
        }
    };
    let [first, other] = &names;
    let mut text = format!(
        "| contender | shape | {first} µs | {other} µs | {other} over {first} ({timing}) | time | \
         finding | differs |\n|---|---|---:|---:|---|---:|---|---|\n"
    );
    for change in &document.changes {
        let shape = change.shape.as_deref();
        let cells = [
            escape(&change.contender),
            shape.map_or("geometric mean".to_owned(), escape),
            shown(micros(0, &change.over, shape)),
            shown(micros(second, &change.contender, shape)),
            interval(&change.speedup.interval()),
            signed_percent(change.time),
            change.finding.to_owned(),
            match change.differs {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => String::new(),
            },
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// What the times of two runs are.
fn between(a: &RunOrigin, b: &RunOrigin) -> String {
    match a.timing == b.timing {
        true if times(a) == times(b) => times(a),
        true => a.timing.as_str().to_owned(),
        false => format!("{} over {}", b.timing.as_str(), a.timing.as_str()),
    }
}

/// Each run within itself.
fn agreement(agreement: &Agreement, timing: &str) -> String {
    let over = escape(&agreement.over);
    let mut text = format!(
        "Within each run\n\n| contender | A over {over} ({timing}) | B over {over} | change | ranks | agree |\n\
         |---|---|---|---:|---|---|\n"
    );
    for entry in &agreement.contenders {
        let reference = entry.contender == agreement.over;
        let speedup = |q: &Quantity| match reference {
            true => "1.00×".to_owned(),
            false => interval(&q.interval()),
        };
        let cells = [
            escape(&entry.contender),
            speedup(&entry.speedups[0]),
            speedup(&entry.speedups[1]),
            match reference {
                true => String::new(),
                false => signed_percent(entry.change),
            },
            entry.ranks.join(", "),
            agree_word(entry.agrees, entry.edited).to_owned(),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
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
