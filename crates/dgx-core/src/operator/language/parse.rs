//! Text to terms, by precedence climbing. Python's order, loosest first: `or`,
//! `and`, comparisons, sums, products, minus, `.T` and `[…]`.

use std::ops::Range;

use super::token::{NumberToken, tokens};
use crate::expr::{COMPARISON, Cursor, ExprError, Token};
use crate::operator::BinaryOp;

/// A part of an expression as it is written.
#[derive(Debug)]
pub(crate) struct Term {
    pub(super) kind: TermKind,
    /// Bytes of the expression.
    pub(super) span: Range<usize>,
    depth: usize,
}

#[derive(Debug)]
pub(super) enum TermKind {
    Number { value: f64, whole: bool },
    Name(String),
    Negate(Box<Term>),
    Binary(BinaryOp, Box<(Term, Term)>),
    MatMul(Box<(Term, Term)>),
    Transpose(Box<Term>),
    Subscript(Box<Term>, Vec<Subscript>),
    Call(String, Vec<Term>),
}

#[derive(Debug)]
pub(super) enum Subscript {
    /// `...`
    Rest,
    /// `begin:end`
    Range(Option<Term>, Option<Term>),
    Single(Term),
}

impl TermKind {
    fn depth(&self) -> usize {
        match self {
            Self::Number { .. } | Self::Name(_) => 0,
            Self::Negate(a) | Self::Transpose(a) => a.depth,
            Self::Binary(_, both) | Self::MatMul(both) => both.0.depth.max(both.1.depth),
            Self::Subscript(a, subscripts) => {
                let depths = subscripts.iter().map(|subscript| match subscript {
                    Subscript::Rest => 0,
                    Subscript::Range(begin, end) => {
                        let depth = |bound: &Option<Term>| bound.as_ref().map_or(0, |t| t.depth);
                        depth(begin).max(depth(end))
                    }
                    Subscript::Single(term) => term.depth,
                });
                depths.max().unwrap_or(0).max(a.depth)
            }
            Self::Call(_, args) => args.iter().map(|arg| arg.depth).max().unwrap_or(0),
        }
    }
}

pub(crate) fn parse(text: &str) -> Result<Term, ExprError> {
    tokens(text)?.whole(Cursor::value)
}

/// What stands between two terms.
#[derive(Clone, Copy)]
enum Infix {
    Binary(BinaryOp),
    MatMul,
}

fn infix(token: &Token<NumberToken>) -> Option<(Infix, u8)> {
    let (op, strength) = match token {
        Token::Name(name) => match name.as_str() {
            "or" => (BinaryOp::Or, 1),
            "and" => (BinaryOp::And, 2),
            _ => return None,
        },
        Token::Symbol(symbol) => match *symbol {
            "@" => return Some((Infix::MatMul, 5)),
            "==" => (BinaryOp::Equal, COMPARISON),
            "!=" => (BinaryOp::NotEqual, COMPARISON),
            "<=" => (BinaryOp::LessEqual, COMPARISON),
            ">=" => (BinaryOp::GreaterEqual, COMPARISON),
            "<" => (BinaryOp::Less, COMPARISON),
            ">" => (BinaryOp::Greater, COMPARISON),
            "+" => (BinaryOp::Add, 4),
            "-" => (BinaryOp::Subtract, 4),
            "*" => (BinaryOp::Multiply, 5),
            "/" => (BinaryOp::Divide, 5),
            "//" => (BinaryOp::FloorDivide, 5),
            "%" => (BinaryOp::Remainder, 5),
            _ => return None,
        },
        Token::Number(_) => return None,
    };
    Some((Infix::Binary(op), strength))
}

impl Cursor<'_, NumberToken> {
    fn value(&mut self) -> Result<Term, ExprError> {
        self.binary(1)
    }

    fn term(&self, kind: TermKind, start: usize) -> Result<Term, ExprError> {
        let (span, depth) = (start..self.before(), kind.depth() + 1);
        if depth > self.depth_limit() {
            return Err(self.too_deep(span));
        }
        Ok(Term { kind, span, depth })
    }

    fn binary(&mut self, least: u8) -> Result<Term, ExprError> {
        self.enter()?;
        let start = self.here().start;
        let mut left = self.prefix()?;
        while let Some((op, strength, place)) = self.infix(infix, least) {
            let right = self.binary(strength + 1)?;
            self.unchained(infix, strength, &place)?;
            let both = Box::new((left, right));
            let kind = match op {
                Infix::Binary(op) => TermKind::Binary(op, both),
                Infix::MatMul => TermKind::MatMul(both),
            };
            left = self.term(kind, start)?;
        }
        self.leave();
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Term, ExprError> {
        let mut starts = Vec::new();
        loop {
            let start = self.here().start;
            match self.take("-") {
                true => starts.push(start),
                false => break,
            }
        }
        let mut term = self.postfix()?;
        for start in starts.into_iter().rev() {
            term = self.term(TermKind::Negate(Box::new(term)), start)?;
        }
        Ok(term)
    }

    fn postfix(&mut self) -> Result<Term, ExprError> {
        let start = self.here().start;
        let mut term = self.primary()?;
        loop {
            if self.take(".") {
                let place = self.here();
                if self.peek() != Some(&Token::Name("T".to_owned())) {
                    return Err(ExprError::new(
                        place,
                        "only `.T` may follow a dot",
                        "write x.T, or a function: sum(x, -1)",
                    ));
                }
                self.advance();
                term = self.term(TermKind::Transpose(Box::new(term)), start)?;
            } else if self.take("[") {
                let subscripts = self.subscripts()?;
                term = self.term(TermKind::Subscript(Box::new(term), subscripts), start)?;
            } else {
                return Ok(term);
            }
        }
    }

    fn subscripts(&mut self) -> Result<Vec<Subscript>, ExprError> {
        let subscripts = self.list(Self::subscript)?;
        self.expect("]")?;
        Ok(subscripts)
    }

    fn subscript(&mut self) -> Result<Subscript, ExprError> {
        if self.take("...") {
            return Ok(Subscript::Rest);
        }
        let ends = [":", ",", "]"].map(Token::Symbol);
        let bound = |parser: &mut Self| match parser.peek() {
            Some(token) if !ends.contains(token) => parser.value().map(Some),
            _ => Ok(None),
        };
        let begin = bound(self)?;
        if self.take(":") {
            let end = bound(self)?;
            if self.peek() == Some(&Token::Symbol(":")) {
                let remedy = "take(x, i(-1) * 2, -1) takes every second element";
                return Err(ExprError::new(self.here(), "a slice has no step", remedy));
            }
            return Ok(Subscript::Range(begin, end));
        }
        begin.map(Subscript::Single).ok_or_else(|| {
            ExprError::new(
                self.here(),
                "a slice is missing here",
                "write begin:end, or `...`",
            )
        })
    }

    fn primary(&mut self) -> Result<Term, ExprError> {
        let place = self.here();
        match self.peek().cloned() {
            Some(Token::Number(NumberToken { value, whole })) => {
                self.advance();
                self.term(TermKind::Number { value, whole }, place.start)
            }
            Some(Token::Name(name)) if name != "and" && name != "or" => {
                self.advance();
                let kind = match self.take("(") {
                    true => TermKind::Call(name, self.arguments()?),
                    false => TermKind::Name(name),
                };
                self.term(kind, place.start)
            }
            Some(Token::Symbol("(")) => {
                self.advance();
                let inner = self.value()?;
                self.expect(")")?;
                Ok(inner)
            }
            _ => Err(ExprError::new(
                place,
                "a value is missing here",
                "write a number, a name, a function or parentheses",
            )),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Term>, ExprError> {
        if self.take(")") {
            return Ok(Vec::new());
        }
        let args = self.list(Self::value)?;
        self.expect(")")?;
        Ok(args)
    }
}
