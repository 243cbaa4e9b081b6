use super::Table;
use dgx_core::domain::Joined;

impl Table {
    /// One line of titles, then one line of texts for each row.
    pub(crate) fn csv(&self) -> String {
        let titles = self.columns.iter().map(|column| field(&column.title));
        let titles = titles.joined(",") + "\n";
        let line = |row: &Vec<super::Value>| {
            let fields = row.iter().map(|value| field(&value.text));
            fields.joined(",") + "\n"
        };
        titles + &self.rows.iter().map(line).collect::<String>()
    }
}

/// A field of a CSV line.
pub(crate) fn field(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        let fields = ["a,b", "x\"y", "pipelined[STAGES=2]"].map(field);
        assert_eq!(fields, ["\"a,b\"", "\"x\"\"y\"", "pipelined[STAGES=2]"]);
    }
}
