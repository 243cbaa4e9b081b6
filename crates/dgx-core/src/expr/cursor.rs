//! A text as tokens, and the place that a parser has reached in it: common to the expressions of
//! front matter and the values of operators.

use std::ops::Range;

use super::ExprError;

/// `1 + 1 + …` is a tree as deep as it is long.
const MAX_TOKENS: usize = 1000;
/// Comparisons bind looser than sums, tighter than `and`.
pub(crate) const COMPARISON: u8 = 3;

/// A number of type `N`, or something else.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<N> {
    Number(N),
    Name(String),
    Symbol(&'static str),
}

/// What distinguishes the messages of two languages.
#[derive(Debug)]
pub(crate) struct Language {
    /// What a text of it is: `an`, `expression`.
    pub article: &'static str,
    pub noun: &'static str,
    /// Remedies for a text that is too long, for one that is too deep, and for `a < b < c`.
    pub split: &'static str,
    pub flatten: &'static str,
    pub compare: &'static str,
    /// Maximum nesting: enough for any file, little enough for any stack.
    pub depth: usize,
}

pub(crate) struct Cursor<'a, N> {
    language: &'static Language,
    text: &'a str,
    tokens: Vec<(Token<N>, Range<usize>)>,
    at: usize,
    depth: usize,
}

impl<'a, N: Clone + PartialEq> Cursor<'a, N> {
    /// Splits a text into tokens. Words are names; `other` reads all other tokens, from the rest of
    /// the text, its place and its first character, and returns the length.
    pub(crate) fn new(
        text: &'a str,
        language: &'static Language,
        other: impl Fn(&str, usize, char) -> Result<(Token<N>, usize), ExprError>,
    ) -> Result<Self, ExprError> {
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            let rest = &text[at..];
            let (token, len) = if next.is_whitespace() {
                at += next.len_utf8();
                continue;
            } else if next.is_ascii_alphabetic() || next == '_' {
                let len = word_len(rest);
                (Token::Name(rest[..len].to_owned()), len)
            } else {
                other(rest, at, next)?
            };
            tokens.push((token, at..at + len));
            at += len;
        }
        if let Some((_, span)) = tokens.get(MAX_TOKENS) {
            let Language { article, noun, .. } = language;
            let words = tokens.len();
            let message = format!("{article} {noun} of {words} words, {MAX_TOKENS} at most");
            return Err(ExprError::new(span.clone(), message, language.split));
        }
        Ok(Self {
            language,
            text,
            tokens,
            at: 0,
            depth: 0,
        })
    }

    /// What `root` reads, which must be all of the text.
    pub(crate) fn whole<T>(
        mut self,
        root: impl Fn(&mut Self) -> Result<T, ExprError>,
    ) -> Result<T, ExprError> {
        let read = root(&mut self)?;
        let Some((_, span)) = self.tokens.get(self.at) else {
            return Ok(read);
        };
        let (rest, noun) = (&self.text[span.clone()], self.language.noun);
        let message = format!("`{rest}` is left over after the {noun}");
        let remedy = "remove it, or put an operator before it";
        Err(ExprError::new(span.clone(), message, remedy))
    }

    /// Counts a level of nesting, until [`Self::leave`].
    pub(crate) fn enter(&mut self) -> Result<(), ExprError> {
        self.depth += 1;
        match self.depth > self.language.depth {
            true => Err(self.too_deep(self.here())),
            false => Ok(()),
        }
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(crate) fn depth_limit(&self) -> usize {
        self.language.depth
    }

    pub(crate) fn too_deep(&self, span: Range<usize>) -> ExprError {
        let message = format!("nested more than {} deep", self.language.depth);
        ExprError::new(span, message, self.language.flatten)
    }

    pub(crate) fn peek(&self) -> Option<&Token<N>> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    /// Where the next token is, or the end of the text.
    pub(crate) fn here(&self) -> Range<usize> {
        let end = self.text.len();
        let next = self.tokens.get(self.at);
        next.map_or(end..end, |(_, span)| span.clone())
    }

    /// Where the last token ended.
    pub(crate) fn before(&self) -> usize {
        let last = self.at.checked_sub(1);
        last.map_or(0, |last| self.tokens[last].1.end)
    }

    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    pub(crate) fn take(&mut self, symbol: &'static str) -> bool {
        let found = self.peek() == Some(&Token::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, symbol: &'static str) -> Result<(), ExprError> {
        if self.take(symbol) {
            return Ok(());
        }
        let (message, remedy) = match self.peek() {
            Some(Token::Symbol("=")) => (
                "arguments have no names".to_owned(),
                "write the argument alone: sum(x, -1)".to_owned(),
            ),
            _ => (
                format!("`{symbol}` is missing here"),
                format!("add `{symbol}`"),
            ),
        };
        Err(ExprError::new(self.here(), message, remedy))
    }

    /// What `one` reads, once or several times with commas between.
    pub(crate) fn list<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, ExprError>,
    ) -> Result<Vec<T>, ExprError> {
        let mut list = vec![one(self)?];
        while self.take(",") {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// The next operator and its strength if it binds at least this strongly, and its place.
    pub(crate) fn infix<O>(
        &mut self,
        of: impl Fn(&Token<N>) -> Option<(O, u8)>,
        least: u8,
    ) -> Option<(O, u8, Range<usize>)> {
        let (operator, strength) = self.peek().and_then(of).filter(|(_, s)| *s >= least)?;
        let place = self.here();
        self.advance();
        Some((operator, strength, place))
    }

    /// Refuses a comparison of a comparison: of one at `place`, if another follows.
    pub(crate) fn unchained<O>(
        &self,
        of: impl Fn(&Token<N>) -> Option<(O, u8)>,
        strength: u8,
        place: &Range<usize>,
    ) -> Result<(), ExprError> {
        let next = self.peek().and_then(of).map(|(_, strength)| strength);
        if (strength, next) != (COMPARISON, Some(COMPARISON)) {
            return Ok(());
        }
        let span = place.start..self.here().end;
        let (message, remedy) = ("comparisons do not chain", self.language.compare);
        Err(ExprError::new(span, message, remedy))
    }
}

pub(crate) fn word_len(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len())
}
