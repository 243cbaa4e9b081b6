use super::RunExport;
use super::run::RunOrigin;
use crate::table::{Table, escape_markdown as escape, markdown_list as list};

/// The screen's contents as GitHub-flavoured Markdown: of each run its tables, failures and notes,
/// and the second run compared with the first.
pub(crate) fn markdown(document: &RunExport) -> String {
    let mut parts = Vec::new();
    for run in &document.runs {
        parts.push(introduction(run));
        parts.extend(run.tables.iter().map(Table::markdown));
        parts.extend([list(&run.failures), list(&run.notes)]);
    }
    parts.extend(document.tables.iter().map(Table::markdown));
    parts.push(list(&document.notes));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn introduction(run: &RunOrigin) -> String {
    let label = run
        .label
        .map_or(String::new(), |label| format!("{label}, "));
    let card = run
        .uuid
        .as_ref()
        .map_or(String::new(), |u| format!(", {u}"));
    let accuracy = run.accuracy.as_deref();
    let accuracy = accuracy.map_or(String::new(), |text| format!("\n{}\n", escape(text)));
    format!(
        "**{label}{}**: {} {} ({}, {}){}, `{}`\n{accuracy}",
        escape(&run.name),
        escape(&run.question),
        escape(&run.device),
        escape(&run.backend),
        run.timing.as_str(),
        escape(&card),
        run.file.replace('`', "'"),
    )
}
