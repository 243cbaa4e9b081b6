//! Rewrites the errors of serde's parsers in plain words.

/// The message of a parser, without its position.
pub fn plain(message: &str) -> String {
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some(key) = message.strip_prefix("duplicate field ") {
        return format!("the key {key} occurs twice");
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return format!("unknown key {rest}");
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown value {rest}");
    }
    if let Some((_, rest)) = message.split_once(": ")
        && ["invalid type: ", "invalid value: "]
            .iter()
            .any(|kind| message.starts_with(kind))
        && let Some((found, wanted)) = rest.rsplit_once(", expected ")
    {
        return format!("found {found}, expected {}", kind(wanted));
    }
    match message {
        "expected value" | "expected ident" => "this is not JSON".to_owned(),
        cut if cut.starts_with("EOF while parsing") => "the text ends too early".to_owned(),
        other => other.to_owned(),
    }
}

/// A message of `serde_json` about one line, which the caller names: of the position only the
/// column is left.
pub fn plain_in_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&position) {
        Some(message) => format!("{}, column {}", plain(message), error.column()),
        None => plain(&text),
    }
}

fn kind(wanted: &str) -> String {
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        "a boolean" => "true or false".to_owned(),
        table if table.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_plain_words() {
        let said = [
            ("missing field `m`", "the key `m` is missing"),
            ("duplicate field `m`", "the key `m` occurs twice"),
            (
                "unknown field `x`, expected one of `m`, `n`",
                "unknown key `x`, expected one of `m`, `n`",
            ),
            (
                "unknown variant `gpu`, expected `cuda` or `emu`",
                "unknown value `gpu`, expected `cuda` or `emu`",
            ),
            (
                "invalid type: string \"a, expected b\", expected u64",
                "found string \"a, expected b\", expected a whole number of at least 0",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "found integer `-1`, expected a whole number of at least 0",
            ),
            (
                "invalid type: null, expected struct Header",
                "found null, expected a table",
            ),
            ("EOF while parsing an object", "the text ends too early"),
            (
                "unclosed array, expected `]`",
                "unclosed array, expected `]`",
            ),
        ];
        for (message, words) in said {
            assert_eq!(plain(message), words);
        }
    }

    #[test]
    fn only_the_column_is_left_of_a_position() {
        let of = |text: &str| serde_json::from_str::<Vec<u32>>(text).unwrap_err();
        assert_eq!(
            plain_in_line(&of("[1, -2]")),
            "found integer `-2`, expected a whole number of at least 0, column 6"
        );
        assert_eq!(plain_in_line(&of("nonsense")), "this is not JSON, column 2");
    }
}
