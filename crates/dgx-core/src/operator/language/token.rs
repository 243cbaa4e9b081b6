use crate::expr::{Cursor, ExprError, Language, Token, word_len};

/// A number as it is written, and whether it is whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumberToken {
    pub value: f64,
    pub whole: bool,
}

static LANGUAGE: Language = Language {
    article: "a",
    noun: "value",
    split: "name parts of it with `let`",
    flatten: "name a part of it with `let`",
    compare: "write `a < b and b < c`",
    depth: 100,
};

/// Longest first, so that `//` is not read as `/`.
const SYMBOLS: [&str; 22] = [
    "...", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "@", "<", ">", "(", ")", "[",
    "]", ",", ":", ".", "=",
];

/// Symbols of other languages, with the ones used here.
const ELSEWHERE: [(&str, &str); 6] = [
    ("**", "write pow(x, y), or x * x"),
    ("&", "write `and`"),
    ("|", "write `or`"),
    ("!", "write `!=`, or turn the comparison around"),
    ("?", "write where(condition, x, y)"),
    ("^", "write pow(x, y)"),
];

/// Whole numbers up to here are exact.
const MOST_WHOLE: f64 = (1_u64 << 53) as f64;

pub(super) fn tokens(text: &str) -> Result<Cursor<'_, NumberToken>, ExprError> {
    Cursor::new(text, &LANGUAGE, |rest, at, next| {
        let fraction = next == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        match next.is_ascii_digit() || fraction {
            true => number(rest, at),
            false => symbol(rest, at, next),
        }
    })
}

fn number(rest: &str, at: usize) -> Result<(Token<NumberToken>, usize), ExprError> {
    let mut len = word_len(rest);
    if rest[len..].starts_with('.') {
        len += 1 + word_len(&rest[len + 1..]);
    }
    // The sign of an exponent is part of the number: 1e-5.
    if rest[..len].ends_with(['e', 'E']) && rest[len..].starts_with(['-', '+']) {
        len += 1 + word_len(&rest[len + 1..]);
    }
    let written = &rest[..len];
    let whole = written.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    match written.replace('_', "").parse::<f64>() {
        Ok(value) if value.is_finite() && (!whole || value <= MOST_WHOLE) => {
            Ok((Token::Number(NumberToken { value, whole }), len))
        }
        _ => Err(ExprError::new(
            at..at + len,
            format!("`{written}` is not a number"),
            "write 3, 0.5 or 1e-5; whole numbers up to 2^53; `inf` for infinity",
        )),
    }
}

fn symbol(rest: &str, at: usize, next: char) -> Result<(Token<NumberToken>, usize), ExprError> {
    let elsewhere = ELSEWHERE
        .iter()
        .find(|(symbol, _)| rest.starts_with(symbol));
    let known = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    match (elsewhere, known) {
        (Some(_), Some(&"!=")) => Ok((Token::Symbol("!="), 2)),
        (None, Some(symbol)) => Ok((Token::Symbol(symbol), symbol.len())),
        (found, _) => {
            let (symbol, remedy) = match found {
                Some((symbol, remedy)) => ((*symbol).to_owned(), *remedy),
                None => (
                    next.to_string(),
                    "use + - * / // % @, comparisons, `and` and `or`",
                ),
            };
            let message = format!("`{symbol}` does not belong in a value");
            Err(ExprError::new(at..at + symbol.len(), message, remedy))
        }
    }
}
