//! Precedence climbing. Loosest first: `?:`, `||`, `&&`, comparisons, sums,
//! products, prefix operators.

use std::ops::Range;

use super::token::{Token, tokens};
use super::{Binary, ExprError, FUNCTIONS, Function, Kind, Node, Unary};
use crate::diagnostic::did_you_mean;

/// Deep enough for anything a person writes, shallow enough for any stack.
const MAX_DEPTH: usize = 64;
/// `1 + 1 + …` is a tree as deep as it is long.
const MAX_TOKENS: usize = 1000;

pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    let tokens = tokens(text)?;
    if let Some((_, span)) = tokens.get(MAX_TOKENS) {
        return Err(ExprError::new(
            span.clone(),
            format!(
                "an expression of {} words, {MAX_TOKENS} at most",
                tokens.len()
            ),
            "name parts of it as constants",
        ));
    }
    let mut parser = Parser {
        tokens,
        at: 0,
        end: text.len(),
        depth: 0,
    };
    let root = parser.choice()?;
    match parser.tokens.get(parser.at) {
        None => Ok(root),
        Some((_, span)) => Err(ExprError::new(
            span.clone(),
            format!(
                "`{}` is left over after the expression",
                &text[span.clone()]
            ),
            "remove it, or put an operator before it",
        )),
    }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    end: usize,
    depth: usize,
}

fn strength(operator: Binary) -> u8 {
    match operator {
        Binary::Or => 1,
        Binary::And => 2,
        Binary::Equal
        | Binary::NotEqual
        | Binary::Less
        | Binary::LessEqual
        | Binary::Greater
        | Binary::GreaterEqual => COMPARISON,
        Binary::Add | Binary::Subtract => 4,
        Binary::Multiply | Binary::Divide | Binary::Remainder => 5,
    }
}

const COMPARISON: u8 = 3;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    /// Where the next token is, or the end of the text.
    fn here(&self) -> Range<usize> {
        self.tokens
            .get(self.at)
            .map_or(self.end..self.end, |(_, span)| span.clone())
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &Token, what: &str) -> Result<(), ExprError> {
        if self.take(token) {
            return Ok(());
        }
        Err(ExprError::new(
            self.here(),
            format!("{what} is missing here"),
            format!("add {what}"),
        ))
    }

    fn choice(&mut self) -> Result<Node, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExprError::new(
                self.here(),
                format!("nested more than {MAX_DEPTH} deep"),
                "name a part of it as a constant",
            ));
        }
        let condition = self.binary(1)?;
        let node = if self.take(&Token::Question) {
            let yes = self.choice()?;
            self.expect(&Token::Colon, "`:`")?;
            let no = self.choice()?;
            let span = condition.span.start..no.span.end;
            let kind = Kind::Choice(Box::new(condition), Box::new(yes), Box::new(no));
            Node { kind, span }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn binary(&mut self, least: u8) -> Result<Node, ExprError> {
        let mut left = self.prefix()?;
        while let Some(Token::Operator(operator)) = self.peek() {
            let operator = *operator;
            let binds = strength(operator);
            if binds < least {
                break;
            }
            let place = self.here();
            self.at += 1;
            let right = self.binary(binds + 1)?;
            if binds == COMPARISON && self.compares_again() {
                return Err(ExprError::new(
                    place.start..self.here().end,
                    "comparisons do not chain",
                    "write `a < b && b < c`",
                ));
            }
            let span = left.span.start..right.span.end;
            let kind = Kind::Binary(operator, Box::new(left), Box::new(right));
            left = Node { kind, span };
        }
        Ok(left)
    }

    fn compares_again(&self) -> bool {
        matches!(self.peek(), Some(Token::Operator(next)) if strength(*next) == COMPARISON)
    }

    fn prefix(&mut self) -> Result<Node, ExprError> {
        let start = self.here().start;
        let mut operators = Vec::new();
        loop {
            if self.take(&Token::Not) {
                operators.push(Unary::Not);
            } else if self.take(&Token::Operator(Binary::Subtract)) {
                operators.push(Unary::Negate);
            } else {
                break;
            }
        }
        if operators.len() > MAX_DEPTH {
            return Err(ExprError::new(
                start..self.here().end,
                "too many prefix operators",
                "remove pairs of them",
            ));
        }
        let mut node = self.primary()?;
        for operator in operators.into_iter().rev() {
            let span = start..node.span.end;
            let kind = Kind::Unary(operator, Box::new(node));
            node = Node { kind, span };
        }
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, ExprError> {
        let span = self.here();
        match self.peek().cloned() {
            Some(Token::Integer(value)) => {
                self.at += 1;
                let kind = Kind::Integer(value);
                Ok(Node { kind, span })
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                if self.take(&Token::Open) {
                    return self.call(&name, span);
                }
                let kind = Kind::Name(name);
                Ok(Node { kind, span })
            }
            Some(Token::Open) => {
                self.at += 1;
                let inner = self.choice()?;
                self.expect(&Token::Close, "`)`")?;
                Ok(inner)
            }
            _ => Err(ExprError::new(
                span,
                "a value is missing here",
                "write a number, a name or a parenthesised expression",
            )),
        }
    }

    fn call(&mut self, name: &str, place: Range<usize>) -> Result<Node, ExprError> {
        let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let names = FUNCTIONS.map(|(name, _)| name);
            let remedy = did_you_mean(name, names)
                .unwrap_or_else(|| format!("the functions are {}", names.join(", ")));
            return Err(ExprError::new(
                place,
                format!("there is no function `{name}`"),
                remedy,
            ));
        };
        let mut args = Vec::new();
        if self.peek() != Some(&Token::Close) {
            args.push(self.choice()?);
            while self.take(&Token::Comma) {
                args.push(self.choice()?);
            }
        }
        let span = place.start..self.here().end;
        self.expect(&Token::Close, "`)`")?;
        check_arity(*function, args.len(), &span)?;
        let kind = Kind::Call(*function, args);
        Ok(Node { kind, span })
    }
}

fn check_arity(function: Function, count: usize, span: &Range<usize>) -> Result<(), ExprError> {
    let (fits, wants) = match function {
        Function::Cdiv | Function::Align | Function::Next => (count == 2, "two arguments"),
        Function::Levels => (count == 3, "three arguments"),
        Function::Min | Function::Max => (count >= 2, "two or more arguments"),
        Function::Sum | Function::Most | Function::Least | Function::Bits => {
            (count == 1, "one argument")
        }
    };
    if fits {
        return Ok(());
    }
    let name = function.name();
    Err(ExprError::new(
        span.clone(),
        format!("`{name}` takes {wants}, and is given {count}"),
        "see the table of functions in docs/variants.md",
    ))
}
