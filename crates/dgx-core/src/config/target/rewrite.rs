//! Replaces numbers in target files and leaves the rest of the text unchanged.

use std::collections::HashSet;

use toml_edit::{DocumentMut, Item, Table, TomlError, Value};

use super::{GUIDE, device};
use crate::diagnostic::{InputError, SourceFile};
use crate::domain::Calibration;

/// The name of the source of fitted numbers; a number is appended if others are from an earlier
/// fit.
const SOURCE: &str = "fitted";
/// The tables whose numbers name their source.
const TABLES: [&str; 3] = ["limits", "peaks", "model"];
const CALIBRATION: &str = "calibration";

/// `target` with these numbers of its model, which are from `origin`. The stated error of its times
/// does not apply to them and is removed.
pub fn with_numbers<'n>(
    target: &SourceFile,
    numbers: impl IntoIterator<Item = (&'n str, f64)>,
    origin: &str,
) -> Result<SourceFile, InputError> {
    let mut text = parsed(target)?;
    let numbers: Vec<(&str, f64)> = numbers.into_iter().collect();
    let source = source_for(&text, origin, &numbers);
    if !numbers.is_empty() {
        text["sources"][&source] = toml_edit::value(origin);
    }
    for (name, value) in numbers {
        // Indexing the item itself would create a missing key.
        let model = text.get_mut("model").and_then(Item::as_table_like_mut);
        let figure = model.and_then(|model| model.get_mut(name));
        let figure = figure.ok_or_else(|| {
            let message = format!("{} has no model.{name}", target.path.display());
            InputError::new(message, GUIDE)
        })?;
        replace(&mut figure["value"], shortest(value));
        replace(&mut figure["from"], source.as_str().into());
    }
    text.remove(CALIBRATION);
    Ok(written(target, &text))
}

/// The name of the source of these numbers: that of a source with the same text, or one that no
/// remaining number uses.
fn source_for(text: &DocumentMut, origin: &str, numbers: &[(&str, f64)]) -> String {
    let mut kept: HashSet<&str> = HashSet::new();
    for table in TABLES {
        let figures = text.get(table).and_then(Item::as_table_like);
        for (name, figure) in figures.into_iter().flat_map(|figures| figures.iter()) {
            let replaced = table == "model" && numbers.iter().any(|number| number.0 == name);
            let from = figure.get("from").and_then(Item::as_str);
            kept.extend(from.filter(|_| !replaced));
        }
    }
    let says = |name: &str| text.get("sources")?.get(name)?.as_str();
    let mut name = SOURCE.to_owned();
    let mut count = 1;
    while kept.contains(name.as_str()) && says(&name) != Some(origin) {
        count += 1;
        name = format!("{SOURCE}-{count}");
    }
    name
}

/// `target` with the error of its modelled times.
pub fn with_calibration(
    target: &SourceFile,
    found: &Calibration,
) -> Result<SourceFile, InputError> {
    let mut text = parsed(target)?;
    if !text.contains_table(CALIBRATION) {
        let mut table = Table::new();
        let why = "\n# How far modelled times were from a measured run: shares of the measured.\n";
        table.decor_mut().set_prefix(why);
        text.insert(CALIBRATION, Item::Table(table));
    }
    let table = &mut text[CALIBRATION];
    replace(&mut table["run"], found.run.as_str().into());
    for (key, share) in [
        ("median", found.median),
        ("p90", found.p90),
        ("worst", found.worst),
    ] {
        // Rounded up, so that the stated error is never too small.
        replace(&mut table[key], shortest((share * 1e3).ceil() / 1e3));
    }
    replace(&mut table["cells"], i64::from(found.cells).into());
    match found.operators.is_empty() {
        true => {
            let table = table.as_table_like_mut();
            table.and_then(|table| table.remove("operators"));
        }
        false => {
            let names = found.operators.iter().collect::<toml_edit::Array>();
            replace(&mut table["operators"], names.into());
        }
    }
    replace(&mut table["digest"], device(target)?.digest().into());
    Ok(written(target, &text))
}

fn parsed(target: &SourceFile) -> Result<DocumentMut, InputError> {
    target.text.parse().map_err(|why: TomlError| {
        let message = format!("cannot rewrite {}: {why}", target.path.display());
        InputError::new(message, GUIDE)
    })
}

fn written(target: &SourceFile, text: &DocumentMut) -> SourceFile {
    SourceFile {
        path: target.path.clone(),
        text: text.to_string().into(),
    }
}

/// Replaces the value and keeps the spaces and comments around it.
pub fn replace(item: &mut Item, value: Value) {
    let decor = item.as_value().map(|old| old.decor().clone());
    *item = Item::Value(value);
    if let (Some(new), Some(decor)) = (item.as_value_mut(), decor) {
        *new.decor_mut() = decor;
    }
}

/// A number in its shortest form.
fn shortest(number: f64) -> Value {
    let text = match number.abs() {
        large if large >= 1e7 => format!("{number:e}"),
        _ => format!("{number}"),
    };
    text.parse().unwrap_or_else(|_| number.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::target::source;

    #[test]
    fn numbers_change_and_comments_stay() {
        let h200 = source("h200").unwrap();
        let numbers = [("mufu_latency", 17.25), ("l2_bandwidth", 8.1e12)];
        let fitted = with_numbers(&h200, numbers, "somewhere").unwrap();
        for line in [
            "mufu_latency = { value = 17.25, from = \"fitted-2\" }",
            "l2_bandwidth = { value = 8.1e12, from = \"fitted-2\" }",
            "fitted-2 = \"somewhere\"",
        ] {
            assert!(fitted.text.lines().any(|l| l == line), "{}", fitted.text);
        }
        let comments = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
        assert!(comments(&fitted.text) >= comments(&h200.text) - 1);
        let model = device(&fitted).unwrap().model.unwrap();
        assert_eq!((model.mufu_latency, model.l2_bandwidth), (17.25, 8.1e12));
        assert!(device(&fitted).unwrap().calibration.is_none());
        assert!(with_numbers(&h200, [("no_such", 1.0)], "x").is_err());
    }

    #[test]
    fn a_number_that_is_kept_keeps_its_origin() {
        let h200 = source("h200").unwrap();
        let before = device(&h200).unwrap();
        let origin = |text: &SourceFile, name: &str| {
            let origins = device(text).unwrap().origins;
            origins[&format!("model.{name}")].clone()
        };
        let first = with_numbers(&h200, [("mufu_latency", 17.25)], "first").unwrap();
        let again = with_numbers(&first, [("mufu_interval", 8.5)], "first").unwrap();
        let other = with_numbers(&again, [("mufu_latency", 18.0)], "other").unwrap();
        assert_eq!(origin(&again, "mufu_latency"), "first");
        assert_eq!(origin(&other, "mufu_latency"), "other");
        assert_eq!(origin(&other, "mufu_interval"), "first");
        assert_eq!(
            origin(&other, "shared_latency"),
            before.origins["model.shared_latency"]
        );
        // No number is left from the fit before.
        let all = before.model.unwrap();
        let fitted = ptx_machine::Machine::NAMES
            .iter()
            .filter(|name| **name != "sms");
        let fitted = fitted.filter_map(|name| Some((*name, all.number(name)?)));
        let all = with_numbers(&h200, fitted, "new").unwrap();
        assert!(all.text.contains("\nfitted = \"new\"\n") && !all.text.contains("fitted-2"));
    }

    #[test]
    fn what_a_comparison_found_is_written_and_read() {
        let found = Calibration {
            device: "NVIDIA H200".to_owned(),
            run: "final".to_owned(),
            median: 0.031_01,
            p90: 0.1,
            worst: 0.2,
            cells: 104,
            operators: vec!["softmax".to_owned()],
        };
        let h200 = source("h200").unwrap();
        let bare = with_numbers(&h200, [], "x").unwrap();
        for target in [h200, bare] {
            let rewritten = with_calibration(&target, &found).unwrap();
            let read = device(&rewritten).unwrap().calibration.unwrap();
            assert_eq!((read.median, read.cells), (0.032, 104));
            assert_eq!((read.run.as_str(), read.worst), ("final", 0.2));
            assert_eq!(read.operators, ["softmax"]);
            let usual = Calibration {
                operators: Vec::new(),
                ..found.clone()
            };
            let again = with_calibration(&rewritten, &usual).unwrap();
            assert!(!again.text.contains("softmax"));
        }
    }
}
