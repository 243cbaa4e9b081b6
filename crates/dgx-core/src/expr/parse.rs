//! Precedence climbing. Loosest first: `?:`, `||`, `&&`, comparisons, sums,
//! products, prefix operators.

use std::ops::Range;

use super::cursor::{COMPARISON, Cursor, Token};
use super::token::tokens;
use super::{Binary, ExprError, ExprKind, Function, Node, Unary};
use crate::diagnostic::did_you_mean;

/// Maximum number of prefix operators before one value.
const MAX_PREFIX: usize = 64;

pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    tokens(text)?.whole(Cursor::choice)
}

fn infix(token: &Token<i64>) -> Option<(Binary, u8)> {
    let Token::Symbol(symbol) = token else {
        return None;
    };
    Some(match *symbol {
        "||" => (Binary::Or, 1),
        "&&" => (Binary::And, 2),
        "==" => (Binary::Equal, COMPARISON),
        "!=" => (Binary::NotEqual, COMPARISON),
        "<" => (Binary::Less, COMPARISON),
        "<=" => (Binary::LessEqual, COMPARISON),
        ">" => (Binary::Greater, COMPARISON),
        ">=" => (Binary::GreaterEqual, COMPARISON),
        "+" => (Binary::Add, 4),
        "-" => (Binary::Subtract, 4),
        "*" => (Binary::Multiply, 5),
        "/" => (Binary::Divide, 5),
        "%" => (Binary::Remainder, 5),
        _ => return None,
    })
}

impl Cursor<'_, i64> {
    fn choice(&mut self) -> Result<Node, ExprError> {
        self.enter()?;
        let condition = self.binary(1)?;
        let node = if self.take("?") {
            let yes = self.choice()?;
            self.expect(":")?;
            let no = self.choice()?;
            let span = condition.span.start..no.span.end;
            let kind = ExprKind::Choice(Box::new(condition), Box::new(yes), Box::new(no));
            Node { kind, span }
        } else {
            condition
        };
        self.leave();
        Ok(node)
    }

    fn binary(&mut self, least: u8) -> Result<Node, ExprError> {
        let mut left = self.prefix()?;
        while let Some((operator, strength, place)) = self.infix(infix, least) {
            let right = self.binary(strength + 1)?;
            self.unchained(infix, strength, &place)?;
            let span = left.span.start..right.span.end;
            let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
            left = Node { kind, span };
        }
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Node, ExprError> {
        let start = self.here().start;
        let mut operators = Vec::new();
        loop {
            if self.take("!") {
                operators.push(Unary::Not);
            } else if self.take("-") {
                operators.push(Unary::Negate);
            } else {
                break;
            }
        }
        if operators.len() > MAX_PREFIX {
            return Err(ExprError::new(
                start..self.here().end,
                "too many prefix operators",
                "remove pairs of them",
            ));
        }
        let mut node = self.primary()?;
        for operator in operators.into_iter().rev() {
            let span = start..node.span.end;
            let kind = ExprKind::Unary(operator, Box::new(node));
            node = Node { kind, span };
        }
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, ExprError> {
        let span = self.here();
        let kind = match self.peek().cloned() {
            Some(Token::Number(value)) => {
                self.advance();
                ExprKind::Integer(value)
            }
            Some(Token::Name(name)) => {
                self.advance();
                if self.take("(") {
                    return self.call(&name, span);
                }
                ExprKind::Name(name)
            }
            Some(Token::Symbol("(")) => {
                self.advance();
                let inner = self.choice()?;
                self.expect(")")?;
                return Ok(inner);
            }
            _ => {
                return Err(ExprError::new(
                    span,
                    "a value is missing here",
                    "write a number, a name or a parenthesised expression",
                ));
            }
        };
        Ok(Node { kind, span })
    }

    fn call(&mut self, name: &str, place: Range<usize>) -> Result<Node, ExprError> {
        let mut functions = Function::ALL.into_iter();
        let Some(function) = functions.find(|known| known.as_str() == name) else {
            let names = Function::ALL.map(Function::as_str);
            let remedy = did_you_mean(name, names)
                .unwrap_or_else(|| format!("the functions are {}", names.join(", ")));
            return Err(ExprError::new(
                place,
                format!("there is no function `{name}`"),
                remedy,
            ));
        };
        let args = match self.peek() == Some(&Token::Symbol(")")) {
            true => Vec::new(),
            false => self.list(Self::choice)?,
        };
        let span = place.start..self.here().end;
        self.expect(")")?;
        check_arity(function, args.len(), &span)?;
        let kind = ExprKind::Call(function, args);
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
    let message = format!("`{function}` takes {wants}, and is given {count}");
    let remedy = "see the table of functions in docs/variants.md";
    Err(ExprError::new(span.clone(), message, remedy))
}
