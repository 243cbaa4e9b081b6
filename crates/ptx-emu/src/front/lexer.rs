//! PTX text to tokens.

use super::ast::Position;

/// A token; its text is found through its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(super) enum Token {
    /// Opcode, register, symbol, label or keyword.
    Word,
    /// A word after a dot: directive, modifier or vector component.
    Dot,
    Integer,
    Decimal,
    HexSingle,
    HexDouble,
    Text,
    Sink,
    Comma,
    Semicolon,
    Colon,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Less,
    Greater,
    ShiftLeft,
    ShiftRight,
    At,
    Bang,
    Pipe,
    OrOr,
    AndAnd,
    EqualsEquals,
    BangEquals,
    LessEquals,
    GreaterEquals,
    Question,
    Equals,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Ampersand,
    Caret,
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

/// Splits the text; on failure returns the byte offset at which no token begins.
pub(super) fn tokenize(text: &str) -> Result<Vec<Spanned>, usize> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(&first) = bytes.get(start) {
        let rest = &bytes[start..];
        let skipped = match first {
            b' ' | b'\t' | b'\r' | b'\n' | b'\x0c' => 1,
            b'/' => comment(rest),
            _ => 0,
        };
        if skipped > 0 {
            start += skipped;
            continue;
        }
        let (token, len) = token(rest).ok_or(start)?;
        let end = start + len;
        tokens.push(Spanned { token, start, end });
        start = end;
    }
    Ok(tokens)
}

/// The length of the comment that `text` begins with; 0 if it is never closed.
fn comment(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'/') => run(text, |byte| byte != b'\n'),
        Some(b'*') => {
            let close = text[2..].windows(2).position(|pair| pair == b"*/");
            close.map_or(0, |at| at + 4)
        }
        _ => 0,
    }
}

/// The token that `text` begins with, the longest if there are several, and its length.
fn token(text: &[u8]) -> Option<(Token, usize)> {
    let word = |from: usize| from + run(&text[from..], in_word);
    match text[0] {
        b'a'..=b'z' | b'A'..=b'Z' => Some((Token::Word, word(1))),
        b'_' | b'$' | b'%' if word(1) > 1 => Some((Token::Word, word(1))),
        b'.' if word(1) > 1 => {
            let mut end = word(1);
            while text[end..].starts_with(b"::") && word(end + 2) > end + 2 {
                end = word(end + 2);
            }
            Some((Token::Dot, end))
        }
        b'0'..=b'9' => Some(number(text)),
        b'"' => string(text).map(|end| (Token::Text, end)),
        _ => punctuation(text),
    }
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// How many bytes at the start of `text` are of this kind.
fn run(text: &[u8], kind: impl Fn(u8) -> bool) -> usize {
    let end = text.iter().position(|&byte| !kind(byte));
    end.unwrap_or(text.len())
}

fn number(text: &[u8]) -> (Token, usize) {
    let after = text.get(2..).unwrap_or_default();
    if text[0] == b'0' && !after.is_empty() {
        let found = match text[1] {
            b'x' | b'X' => (Token::Integer, run(after, hex)),
            b'b' | b'B' => (
                Token::Integer,
                run(after, |byte| matches!(byte, b'0' | b'1')),
            ),
            b'f' | b'F' if run(after, hex) >= 8 => (Token::HexSingle, 8),
            b'd' | b'D' if run(after, hex) >= 16 => (Token::HexDouble, 16),
            _ => (Token::Integer, 0),
        };
        if let (token, digits @ 1..) = found {
            return (token, unsigned(text, token, 2 + digits));
        }
    }
    let whole = run(text, digit);
    let mut end = whole;
    if text.get(end) == Some(&b'.') {
        end += 1 + run(&text[end + 1..], digit);
    }
    end += exponent(&text[end..]);
    match end == whole {
        true => (Token::Integer, unsigned(text, Token::Integer, end)),
        false => (Token::Decimal, end),
    }
}

/// The end of a number, including the `U` that an integer may end with.
fn unsigned(text: &[u8], token: Token, end: usize) -> usize {
    end + usize::from(token == Token::Integer && text.get(end) == Some(&b'U'))
}

/// The length of an exponent, 0 if there is none.
fn exponent(text: &[u8]) -> usize {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return 0;
    }
    let sign = 1 + usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    match run(&text[sign..], digit) {
        0 => 0,
        digits => sign + digits,
    }
}

/// The length of a string in quotes, if it ends on its line.
fn string(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\n' => return None,
            b'\\' if *text.get(at + 1)? == b'\n' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn punctuation(text: &[u8]) -> Option<(Token, usize)> {
    let two = match text.get(..2) {
        Some(b"<<") => Some(Token::ShiftLeft),
        Some(b">>") => Some(Token::ShiftRight),
        Some(b"||") => Some(Token::OrOr),
        Some(b"&&") => Some(Token::AndAnd),
        Some(b"==") => Some(Token::EqualsEquals),
        Some(b"!=") => Some(Token::BangEquals),
        Some(b"<=") => Some(Token::LessEquals),
        Some(b">=") => Some(Token::GreaterEquals),
        _ => None,
    };
    if let Some(token) = two {
        return Some((token, 2));
    }
    let token = match text[0] {
        b'_' => Token::Sink,
        b',' => Token::Comma,
        b';' => Token::Semicolon,
        b':' => Token::Colon,
        b'(' => Token::LeftParen,
        b')' => Token::RightParen,
        b'[' => Token::LeftBracket,
        b']' => Token::RightBracket,
        b'{' => Token::LeftBrace,
        b'}' => Token::RightBrace,
        b'<' => Token::Less,
        b'>' => Token::Greater,
        b'@' => Token::At,
        b'!' => Token::Bang,
        b'|' => Token::Pipe,
        b'?' => Token::Question,
        b'=' => Token::Equals,
        b'+' => Token::Plus,
        b'-' => Token::Minus,
        b'*' => Token::Star,
        b'/' => Token::Slash,
        b'%' => Token::Percent,
        b'&' => Token::Ampersand,
        b'^' => Token::Caret,
        b'~' => Token::Tilde,
        _ => return None,
    };
    Some((token, 1))
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
    fn the_longest_token_is_taken() {
        use Token::*;
        let pieces = |text: &str| -> Vec<(Token, String)> {
            let tokens = tokenize(text).expect("tokens").into_iter();
            tokens
                .map(|t| (t.token, text[t.start..t.end].to_owned()))
                .collect()
        };
        let expect = |text: &str, all: &[(Token, &str)]| {
            let all: Vec<_> = all.iter().map(|(t, s)| (*t, (*s).to_owned())).collect();
            assert_eq!(pieces(text), all, "{text}");
        };
        expect("0x", &[(Integer, "0"), (Word, "x")]);
        expect("0b12U", &[(Integer, "0b1"), (Integer, "2U")]);
        expect("0f3F8000001", &[(HexSingle, "0f3F800000"), (Integer, "1")]);
        expect("0f3F", &[(Integer, "0"), (Word, "f3F")]);
        expect(
            "1.5e+ 2e7",
            &[(Decimal, "1.5"), (Word, "e"), (Plus, "+"), (Decimal, "2e7")],
        );
        expect(".a::b::", &[(Dot, ".a::b"), (Colon, ":"), (Colon, ":")]);
        expect(
            "_ _a % %r",
            &[(Sink, "_"), (Word, "_a"), (Percent, "%"), (Word, "%r")],
        );
        expect(
            "/*/ <<=",
            &[
                (Slash, "/"),
                (Star, "*"),
                (Slash, "/"),
                (ShiftLeft, "<<"),
                (Equals, "="),
            ],
        );
        expect(r#""a\"b" 3"#, &[(Text, r#""a\"b""#), (Integer, "3")]);
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
        assert_eq!(tokenize("add $").err(), Some(4));
        assert_eq!(tokenize(". x").err(), Some(0));
        assert_eq!(tokenize("\"open\n\"").err(), Some(0));
    }
}
