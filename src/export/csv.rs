use super::{Document, Quantity};

const HEADER: &str = "contender,shape,status,timing,rank,micros,micros_lower,micros_upper,\
                      speedup,speedup_lower,speedup_upper,samples,outliers,roofline\n";

/// One line per cell, and one per contender for the geometric mean, whose
/// shape is `*`. Times are microseconds, speedups ratios over the reference.
pub fn csv(document: &Document) -> String {
    let mut text = HEADER.to_owned();
    for row in &document.ranking {
        let rank = row.rank.map_or(String::new(), |r| r.to_string());
        let roofline = row.roofline.map(|r| r.estimate);
        let fields = [
            quoted(&row.contender),
            "*".to_owned(),
            row.status.to_owned(),
            String::new(),
            rank,
            numbers(None),
            numbers(row.geomean_speedup.as_ref()),
            String::new(),
            String::new(),
            optional(roofline),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    for cell in &document.cells {
        let timing = serde_json::to_string(&cell.timing).unwrap_or_default();
        let fields = [
            quoted(&cell.contender),
            quoted(&cell.shape),
            cell.status.to_owned(),
            timing.trim_matches('"').to_owned(),
            String::new(),
            numbers(cell.micros.as_ref()),
            numbers(cell.speedup.as_ref()),
            cell.samples.to_string(),
            cell.outliers.to_string(),
            optional(cell.roofline),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}

fn numbers(quantity: Option<&Quantity>) -> String {
    quantity.map_or(",,".to_owned(), |q| {
        format!("{},{},{}", q.estimate, optional(q.lower), optional(q.upper))
    })
}

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

fn quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
