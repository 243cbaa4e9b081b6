use super::{Align, Table, Value};
use dgx_core::domain::Joined;

impl Table {
    /// GitHub-flavoured Markdown. The title stands in the first heading, and units beside the
    /// others, so that a table keeps them when it is copied.
    pub(crate) fn markdown(&self) -> String {
        let table = self.only_if(|place| self.columns[place].axis.is_none());
        let heading = |(place, column): (usize, &super::Column)| match (place, &column.unit) {
            (0, _) if !self.title.is_empty() => escape(&self.title),
            (_, Some(unit)) => escape(&format!("{} ({unit})", column.heading())),
            _ => escape(&column.heading()),
        };
        let columns = table.columns.iter();
        let mut text = line(columns.clone().enumerate().map(heading));
        let rules = columns.map(|column| match column.align {
            Align::Left => "---|",
            Align::Right => "---:|",
        });
        text.push_str(&format!("|{}\n", rules.collect::<String>()));
        for row in &table.rows {
            text.push_str(&line(row.iter().map(written)));
        }
        text
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.joined(" | "))
}

fn written(value: &Value) -> String {
    let text = escape(&value.plain());
    match value.strong && !text.is_empty() {
        true => format!("**{text}**"),
        false => text,
    }
}

/// Sentences as list items.
pub(crate) fn list(sentences: &[String]) -> String {
    let item = |sentence: &String| format!("- {}\n", escape(sentence));
    sentences.iter().map(item).collect()
}

/// Escapes text for use inside a table.
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
