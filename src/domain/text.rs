//! Text from variants, compilers, configs and run files reaches terminals and
//! pages. Whatever could move a cursor, recolour a screen, reorder a line or
//! hide in it is made visible here, once.

use std::ffi::OsStr;

/// Controls other than newline and tab, and the marks that reorder a line or
/// take no room in it.
pub(crate) fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// `text` with harmful characters written out, ESC as `\u{1b}`.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match harmful(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// `text` as part of one line: its own ends of line are written out as well.
pub(crate) fn printable_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', " ")
}

/// `1 shape`, `2 shapes`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// As one word of a shell: commands that are printed can be pasted.
pub(crate) fn typed(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,%+@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A number as one would write it: 1e308 has three hundred digits, and so has
/// 1e-308.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    match value.is_finite() && (size >= 1e16 || (size < 1e-6 && size > 0.0)) {
        true => format!("{value:e}"),
        false => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_one_word() {
        assert_eq!(typed("results/a-1.jsonl"), "results/a-1.jsonl");
        assert_eq!(typed("it's here.jsonl"), r"'it'\''s here.jsonl'");
        assert_eq!(typed("x[A=1]"), "'x[A=1]'");
        assert_eq!(typed(""), "''");
    }

    #[test]
    fn what_would_act_on_a_terminal_is_written_out() {
        assert_eq!(
            printable("a\u{1b}[31m\u{9b}2J\r\u{7}\u{202e}b"),
            "a\\u{1b}[31m\\u{9b}2J\\u{d}\\u{7}\\u{202e}b"
        );
        assert_eq!(printable("µs, 2×\n\tdone"), "µs, 2×\n\tdone");
        assert_eq!(printable_line("two\nlines"), "two\\nlines");
    }
}
