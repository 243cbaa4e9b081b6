//! The integer expressions of the front matter: grids, shared memory, scratch
//! sizes, boxes. Small on purpose: no variables of its own, no loops, and every
//! way to go wrong (overflow, division by zero, an unknown or ambiguous name)
//! is an error with a place.

mod cursor;
mod eval;
mod levels;
mod parse;
mod token;

use std::ops::Range;

pub(crate) use cursor::{COMPARISON, Cursor, Language, Token, word_len};
pub use eval::{Scope, Steps};
pub use eval::{not_yet, unknown};

/// Names with a meaning in every expression, besides the operator's sizes; neither sizes nor
/// constants may use them.
pub const CALL_NAMES: [&str; 3] = ["tiles", "groups", "sms"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Cdiv,
    Align,
    Min,
    Max,
    Sum,
    Most,
    Least,
    Bits,
    Levels,
    Next,
}

words!(Function {
    Cdiv = "cdiv",
    Align = "align",
    Min = "min",
    Max = "max",
    Sum = "sum",
    Most = "most",
    Least = "least",
    Bits = "bits",
    Levels = "levels",
    Next = "next",
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Negate,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: ExprKind,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    Integer(i64),
    Name(String),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    Choice(Box<Node>, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    root: Node,
}

/// The mistake in an expression, its bytes there, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    pub span: Range<usize>,
    pub message: String,
    pub remedy: String,
}

impl ExprError {
    pub fn new(span: Range<usize>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

impl Expr {
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        Ok(Self {
            root: parse::parse(text)?,
        })
    }

    /// A plain integer.
    pub fn integer(value: i64) -> Self {
        Self {
            root: Node {
                kind: ExprKind::Integer(value),
                span: 0..0,
            },
        }
    }

    pub fn eval(&self, scope: &Scope<'_>) -> Result<i64, ExprError> {
        scope.eval(&self.root)
    }

    /// The whole expression.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Every name used, with its place, in order of appearance.
    pub fn names(&self) -> Vec<(&str, Range<usize>)> {
        self.root.names()
    }
}

impl Node {
    /// As [`Expr::names`].
    pub fn names(&self) -> Vec<(&str, Range<usize>)> {
        let mut names = Vec::new();
        collect(self, &mut names);
        names
    }
}

fn collect<'a>(node: &'a Node, names: &mut Vec<(&'a str, Range<usize>)>) {
    match &node.kind {
        ExprKind::Integer(_) => {}
        ExprKind::Name(name) => names.push((name, node.span.clone())),
        ExprKind::Unary(_, a) => collect(a, names),
        ExprKind::Binary(_, a, b) => {
            collect(a, names);
            collect(b, names);
        }
        ExprKind::Choice(a, b, c) => {
            collect(a, names);
            collect(b, names);
            collect(c, names);
        }
        ExprKind::Call(_, args) => args.iter().for_each(|arg| collect(arg, names)),
    }
}

#[cfg(test)]
mod tests;
