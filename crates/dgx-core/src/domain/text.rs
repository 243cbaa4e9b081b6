//! Helpers for the text of messages.

use std::ffi::OsStr;
use std::fmt::Display;

/// `1 shape`, `2 shapes`.
pub fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Words as one text.
pub trait Joined: Iterator<Item: Display> + Sized {
    /// All of them, with `separator` between each two.
    fn joined(self, separator: &str) -> String {
        let words: Vec<String> = self.map(|word| word.to_string()).collect();
        words.join(separator)
    }
}

impl<I: Iterator<Item: Display>> Joined for I {}

/// Each value once, in the order of first occurrence.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// The first `most` words, and the number of the others as so many `more`: `a, b, 3 more`.
pub fn first_few(mut words: Vec<String>, most: usize, more: &str) -> String {
    let others = words.len().saturating_sub(most);
    words.truncate(most);
    words.extend((others > 0).then(|| format!("{others} {more}")));
    words.join(", ")
}

/// Quoted as one word of a shell, so that printed commands can be pasted.
pub fn typed(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,%+@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A number in readable form: 1e308 has three hundred digits, and so has 1e-308.
pub fn short(value: f64) -> String {
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
}
