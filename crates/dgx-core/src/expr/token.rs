use std::ops::Range;

use super::{Binary, ExprError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Integer(i64),
    Name(String),
    Operator(Binary),
    Not,
    Question,
    Colon,
    Comma,
    Open,
    Close,
}

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: [(&str, Token); 19] = [
    ("&&", Token::Operator(Binary::And)),
    ("||", Token::Operator(Binary::Or)),
    ("==", Token::Operator(Binary::Equal)),
    ("!=", Token::Operator(Binary::NotEqual)),
    ("<=", Token::Operator(Binary::LessEqual)),
    (">=", Token::Operator(Binary::GreaterEqual)),
    ("<", Token::Operator(Binary::Less)),
    (">", Token::Operator(Binary::Greater)),
    ("+", Token::Operator(Binary::Add)),
    ("-", Token::Operator(Binary::Subtract)),
    ("*", Token::Operator(Binary::Multiply)),
    ("/", Token::Operator(Binary::Divide)),
    ("%", Token::Operator(Binary::Remainder)),
    ("!", Token::Not),
    ("?", Token::Question),
    (":", Token::Colon),
    (",", Token::Comma),
    ("(", Token::Open),
    (")", Token::Close),
];

pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExprError> {
    scan(text, Token::Name, |rest, at, next| {
        match next.is_ascii_digit() {
            true => integer(rest, at),
            false => symbol(rest, at, next),
        }
    })
}

/// Splits a text into tokens. Words are names; `other` reads all other tokens, from the rest of the
/// text, its place and its first character, and returns the length.
pub(crate) fn scan<T>(
    text: &str,
    name: impl Fn(String) -> T,
    other: impl Fn(&str, usize, char) -> Result<(T, usize), ExprError>,
) -> Result<Vec<(T, Range<usize>)>, ExprError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, len) = if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        } else if next.is_ascii_alphabetic() || next == '_' {
            let len = word_len(rest);
            (name(rest[..len].to_owned()), len)
        } else {
            other(rest, at, next)?
        };
        tokens.push((token, at..at + len));
        at += len;
    }
    Ok(tokens)
}

pub(crate) fn word_len(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len())
}

fn integer(rest: &str, at: usize) -> Result<(Token, usize), ExprError> {
    let len = word_len(rest);
    let digits = rest[..len].replace('_', "");
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    match parsed {
        Ok(value) => Ok((Token::Integer(value), len)),
        Err(_) => Err(ExprError::new(
            at..at + len,
            format!("`{}` is not a 64-bit integer", &rest[..len]),
            "write a decimal or 0x integer below 2^63",
        )),
    }
}

fn symbol(rest: &str, at: usize, next: char) -> Result<(Token, usize), ExprError> {
    SYMBOLS
        .iter()
        .find(|(symbol, _)| rest.starts_with(symbol))
        .map(|(symbol, token)| (token.clone(), symbol.len()))
        .ok_or_else(|| {
            ExprError::new(
                at..at + next.len_utf8(),
                format!("`{next}` does not belong in an expression"),
                "use + - * / %, comparisons, && || !, c ? x : y and parentheses",
            )
        })
}
