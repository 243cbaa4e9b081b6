use super::ExprError;
use super::cursor::{Cursor, Language, Token, word_len};

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 19] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ",", "(",
    ")",
];

static LANGUAGE: Language = Language {
    article: "an",
    noun: "expression",
    split: "name parts of it as constants",
    flatten: "name a part of it as a constant",
    compare: "write `a < b && b < c`",
    depth: 64,
};

pub(super) fn tokens(text: &str) -> Result<Cursor<'_, i64>, ExprError> {
    Cursor::new(text, &LANGUAGE, |rest, at, next| {
        match next.is_ascii_digit() {
            true => integer(rest, at),
            false => symbol(rest, at, next),
        }
    })
}

fn integer(rest: &str, at: usize) -> Result<(Token<i64>, usize), ExprError> {
    let len = word_len(rest);
    let digits = rest[..len].replace('_', "");
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    match parsed {
        Ok(value) => Ok((Token::Number(value), len)),
        Err(_) => Err(ExprError::new(
            at..at + len,
            format!("`{}` is not a 64-bit integer", &rest[..len]),
            "write a decimal or 0x integer below 2^63",
        )),
    }
}

fn symbol(rest: &str, at: usize, next: char) -> Result<(Token<i64>, usize), ExprError> {
    let known = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    let known = known.map(|symbol| (Token::Symbol(symbol), symbol.len()));
    known.ok_or_else(|| {
        ExprError::new(
            at..at + next.len_utf8(),
            format!("`{next}` does not belong in an expression"),
            "use + - * / %, comparisons, && || !, c ? x : y and parentheses",
        )
    })
}
