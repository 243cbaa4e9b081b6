//! Makes the text of run files, kernels and workers harmless on input, one JSON line at a time.

use serde_json::Value;

use crate::printable::{harmful, printable};

/// The parsed line with every string made harmless.
pub fn parse<T: serde::de::DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    if !suspicious(line) {
        return serde_json::from_slice(line);
    }
    let mut value: Value = serde_json::from_slice(line)?;
    scrub(&mut value);
    serde_json::from_value(value)
}

/// Whether a line may hold a control character: escaped, or raw beyond ASCII.
/// JSON forbids raw ones below 0x20.
fn suspicious(line: &[u8]) -> bool {
    if plain(line) {
        return false;
    }
    let escaped = line
        .windows(2)
        .any(|w| w[0] == b'\\' && matches!(w[1], b'u' | b'b' | b'f' | b'r'));
    // The first bytes of DEL, C1, the Arabic mark, the general marks, and tags.
    let first = |b: &u8| matches!(b, 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3);
    escaped || line.iter().any(first)
}

/// Whether a line is ASCII without escapes, and so harmless. A fold instead of a search, because it
/// handles many bytes at a time.
pub fn plain(line: &[u8]) -> bool {
    let escaped = |b: &u8| *b == b'\\' || *b >= 0x7f;
    !line.iter().fold(false, |found, b| found | escaped(b))
}

fn scrub(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(harmful) => *text = printable(text),
        Value::Array(items) => items.iter_mut().for_each(scrub),
        Value::Object(map) => {
            // Keys that carry text are names of constants and counters.
            if map.keys().any(|k| k.chars().any(harmful)) {
                let old = std::mem::take(map);
                map.extend(old.into_iter().map(|(k, v)| (printable(&k), v)));
            }
            map.values_mut().for_each(scrub);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_visible_and_plain_text_stays() {
        let line = br#"{"a":"red \u001b[31m","b":["two\nlines \u00b5s"]}"#;
        let value: Value = parse(line).unwrap();
        assert_eq!(value["a"], "red \\u{1b}[31m");
        assert_eq!(value["b"][0], "two\nlines µs");
        let value: Value = parse("{\"a\":\"\u{9b}2J \u{202e}x\"}".as_bytes()).unwrap();
        assert_eq!(value["a"], "\\u{9b}2J \\u{202e}x");
    }
}
