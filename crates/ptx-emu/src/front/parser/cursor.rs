//! A position in the token stream.

use super::{MAX_DEPTH, ParseError};
use crate::front::ast::Position;
use crate::front::lexer::{Lines, Spanned, Token, tokenize};

/// Longest piece of text quoted in an error.
const QUOTE: usize = 60;

/// A position in the token stream.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    at: usize,
    depth: u32,
}

pub(super) struct Cursor<'a> {
    text: &'a str,
    lines: Lines,
    tokens: Vec<Spanned>,
    at: usize,
    depth: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, ParseError> {
        let lines = Lines::new(text);
        let tokens = tokenize(text).map_err(|offset| ParseError {
            position: lines.position(offset),
            expected: "a token".into(),
            found: quote(&text[offset..]),
        })?;
        Ok(Self {
            text,
            lines,
            tokens,
            at: 0,
            depth: 0,
        })
    }

    pub(super) fn peek(&self) -> Option<Token> {
        self.peek_nth(0)
    }

    pub(super) fn peek_nth(&self, ahead: usize) -> Option<Token> {
        self.tokens
            .get(self.at + ahead)
            .map(|spanned| spanned.token)
    }

    /// Text of the next token, empty at the end.
    pub(super) fn peek_text(&self) -> &'a str {
        self.tokens
            .get(self.at)
            .map_or("", |spanned| &self.text[spanned.start..spanned.end])
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn offset(&self) -> usize {
        self.tokens
            .get(self.at)
            .map_or(self.text.len(), |spanned| spanned.start)
    }

    /// End of the token just read.
    pub(super) fn last_end(&self) -> usize {
        self.at
            .checked_sub(1)
            .map_or(0, |last| self.tokens[last].end)
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        &self.text[start..end.max(start)]
    }

    pub(super) fn position(&self) -> Position {
        self.lines.position(self.offset())
    }

    /// Takes the next token, whatever it is.
    pub(super) fn advance(&mut self) -> &'a str {
        let text = self.peek_text();
        self.at = (self.at + 1).min(self.tokens.len());
        text
    }

    pub(super) fn eat(&mut self, token: Token) -> Option<&'a str> {
        (self.peek() == Some(token)).then(|| self.advance())
    }

    pub(super) fn expect(&mut self, token: Token, what: &str) -> Result<&'a str, ParseError> {
        self.eat(token).ok_or_else(|| self.error(what))
    }

    /// Takes `.word` if it is next.
    pub(super) fn eat_dot(&mut self, word: &str) -> bool {
        let next = self.peek() == Some(Token::Dot) && self.peek_text()[1..] == *word;
        if next {
            self.advance();
        }
        next
    }

    /// The word after the dot, if a dotted word is next.
    pub(super) fn peek_dot(&self) -> Option<&'a str> {
        (self.peek() == Some(Token::Dot)).then(|| &self.peek_text()[1..])
    }

    pub(super) fn error(&self, expected: &str) -> ParseError {
        ParseError {
            position: self.position(),
            expected: expected.into(),
            found: match self.at_end() {
                true => "the end of the text".into(),
                false => quote(self.peek_text()),
            },
        }
    }

    /// Enters a nesting level; [`Cursor::leave`] returns from it.
    pub(super) fn enter(&mut self) -> Result<(), ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(&format!("at most {MAX_DEPTH} levels of nesting")));
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// This position, to return to.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            depth: self.depth,
        }
    }

    pub(super) fn back_to(&mut self, mark: Mark) {
        (self.at, self.depth) = (mark.at, mark.depth);
    }

    /// Skips the brace that closes the current block; false if there is none.
    pub(super) fn skip_block(&mut self) -> bool {
        let mut open = 1;
        while open > 0 {
            match self.peek() {
                Some(Token::LeftBrace) => open += 1,
                Some(Token::RightBrace) => open -= 1,
                Some(_) => {}
                None => return false,
            }
            self.advance();
        }
        true
    }

    /// Runs `inner` one nesting level deeper.
    pub(super) fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        self.enter()?;
        let result = inner(self);
        self.leave();
        result
    }

    /// `item, item, …` up to and including `close`; may be empty.
    pub(super) fn list<T>(
        &mut self,
        close: Token,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut items = Vec::new();
        if self.eat(close).is_some() {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close).is_some() {
                return Ok(items);
            }
            self.expect(Token::Comma, what)?;
        }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        self.expect(Token::Word, what)
    }

    /// An unsigned integer literal that fits 32 bits.
    pub(super) fn u32(&mut self, what: &str) -> Result<u32, ParseError> {
        let error = self.error(what);
        let text = self.expect(Token::Integer, what)?;
        integer(text)
            .and_then(|value| u32::try_from(value).ok())
            .ok_or(error)
    }
}

/// Value of an integer token; `None` when it does not fit 64 bits.
pub(super) fn integer(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches('U');
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

fn quote(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(QUOTE) {
        Some((cut, _)) => format!("`{}…`", &line[..cut]),
        None => format!("`{line}`"),
    }
}
