//! PTX text to tokens.

use super::ast::Position;
use logos::Logos;

/// A token; its text is found through its span.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(skip(r"[ \t\r\n\f]+"))]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip(r"/\*([^*]|\*+[^*/])*\*+/"))]
#[allow(missing_docs)]
pub(super) enum Token {
    /// Opcode, register, symbol, label or keyword.
    #[regex(r"[a-zA-Z][a-zA-Z0-9_$]*|[_$%][a-zA-Z0-9_$]+")]
    Word,
    /// A word after a dot: directive, modifier or vector component.
    #[regex(r"\.[a-zA-Z0-9_$]+(::[a-zA-Z0-9_$]+)*")]
    Dot,
    #[regex(r"[0-9]+U?")]
    #[regex(r"0[xX][0-9a-fA-F]+U?")]
    #[regex(r"0[bB][01]+U?")]
    Integer,
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+")]
    Decimal,
    #[regex(r"0[fF][0-9a-fA-F]{8}")]
    HexSingle,
    #[regex(r"0[dD][0-9a-fA-F]{16}")]
    HexDouble,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Text,
    #[token("_")]
    Sink,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("(")]
    LeftParen,
    #[token(")")]
    RightParen,
    #[token("[")]
    LeftBracket,
    #[token("]")]
    RightBracket,
    #[token("{")]
    LeftBrace,
    #[token("}")]
    RightBrace,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("@")]
    At,
    #[token("!")]
    Bang,
    #[token("|")]
    Pipe,
    #[token("||")]
    OrOr,
    #[token("&&")]
    AndAnd,
    #[token("==")]
    EqualsEquals,
    #[token("!=")]
    BangEquals,
    #[token("<=")]
    LessEquals,
    #[token(">=")]
    GreaterEquals,
    #[token("?")]
    Question,
    #[token("=")]
    Equals,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("&")]
    Ampersand,
    #[token("^")]
    Caret,
    #[token("~")]
    Tilde,
}

/// A token with its place in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spanned {
    /// The token.
    pub token: Token,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Splits the text; on failure gives the byte offset of what no token begins with.
pub(super) fn tokenize(text: &str) -> Result<Vec<Spanned>, usize> {
    Token::lexer(text)
        .spanned()
        .map(|(token, span)| match token {
            Ok(token) => Ok(Spanned {
                token,
                start: span.start,
                end: span.end,
            }),
            Err(()) => Err(span.start),
        })
        .collect()
}

/// Turns byte offsets into lines and columns.
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    /// Finds the line starts of a text.
    pub(super) fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0)
            .chain(breaks.map(|(at, _)| at + 1))
            .collect();
        Self { starts }
    }

    /// The position of a byte offset.
    pub(super) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|&start| start <= offset);
        Position {
            line: line as u32,
            column: (offset - self.starts[line - 1] + 1) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        tokenize(text)
            .expect("tokens")
            .into_iter()
            .map(|spanned| spanned.token)
            .collect()
    }

    #[test]
    fn modifiers_with_colons_and_digits_are_one_word() {
        assert_eq!(
            tokens("tcgen05.wait::ld.L2::128B.32x128b"),
            [Token::Word, Token::Dot, Token::Dot, Token::Dot]
        );
    }

    #[test]
    fn numbers_keep_their_kind() {
        use Token::*;
        assert_eq!(
            tokens("0f3F800000 0d3FF0000000000000 1.5e3 9.0 0x1fU 017 0b11 42"),
            [
                HexSingle, HexDouble, Decimal, Decimal, Integer, Integer, Integer, Integer
            ]
        );
    }

    #[test]
    fn comments_vanish_and_lines_count() {
        let text = "/* a\n * b */ x // y\n  z";
        let spans = tokenize(text).expect("tokens");
        assert_eq!(spans.len(), 2);
        let position = Lines::new(text).position(spans[1].start);
        assert_eq!((position.line, position.column), (3, 3));
    }

    #[test]
    fn a_byte_that_begins_nothing_is_reported() {
        assert_eq!(tokenize("add #").err(), Some(4));
    }
}
