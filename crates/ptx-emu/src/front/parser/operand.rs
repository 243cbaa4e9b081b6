//! Operands and constant expressions.

use super::ParseError;
use super::cursor::{self, Cursor};
use crate::front::ast::*;
use crate::front::lexer::Token;

/// One operand; `call` allows parenthesised argument lists.
pub(super) fn operand<'a>(cursor: &mut Cursor<'a>, call: bool) -> Result<Operand<'a>, ParseError> {
    if call && cursor.eat(Token::LeftParen).is_some() {
        let arguments = cursor.nested(|inner| {
            inner.list(Token::RightParen, "`,` or `)`", |inner| {
                operand(inner, false)
            })
        })?;
        return Ok(Operand::List(arguments));
    }
    let first = primary(cursor)?;
    if cursor.eat(Token::Pipe).is_none() {
        return Ok(first);
    }
    let second = primary(cursor)?;
    Ok(Operand::Pair(Box::new(first), Box::new(second)))
}

fn primary<'a>(cursor: &mut Cursor<'a>) -> Result<Operand<'a>, ParseError> {
    match cursor.peek() {
        Some(Token::Sink) => {
            cursor.advance();
            Ok(Operand::Sink)
        }
        Some(Token::Bang) if cursor.peek_nth(1) == Some(Token::Word) => {
            cursor.advance();
            Ok(Operand::Not(cursor.word("a predicate register")?))
        }
        Some(Token::Minus) if cursor.peek_nth(1) == Some(Token::Word) => {
            cursor.advance();
            Ok(Operand::Negated(Box::new(named(cursor)?)))
        }
        Some(Token::LeftBrace) => {
            cursor.advance();
            Ok(Operand::Vector(elements(cursor)?))
        }
        Some(Token::LeftBracket) => {
            cursor.advance();
            address(cursor)
        }
        Some(Token::Word) => named(cursor),
        _ => constant(cursor).map(Operand::Constant),
    }
}

/// Elements of a vector, after the opening brace.
fn elements<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Operand<'a>>, ParseError> {
    cursor.nested(|inner| {
        inner.list(Token::RightBrace, "`,` or `}`", |inner| {
            operand(inner, false)
        })
    })
}

fn named<'a>(cursor: &mut Cursor<'a>) -> Result<Operand<'a>, ParseError> {
    let name = cursor.word("a name")?;
    if let Some(member) = cursor.eat(Token::Dot) {
        return Ok(Operand::Member(name, &member[1..]));
    }
    match cursor.peek() {
        Some(Token::Plus | Token::Minus) => Ok(Operand::NameOffset(name, trailing_offset(cursor)?)),
        Some(Token::LeftBracket) => Ok(Operand::Element(name, subscripts(cursor)?)),
        _ => Ok(Operand::Name(name)),
    }
}

/// `[2]`, `[%r1]`, `[%r1+3]`, each dimension in its own brackets.
fn subscripts<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Index<'a>>, ParseError> {
    let mut indices = Vec::new();
    while cursor.eat(Token::LeftBracket).is_some() {
        let register = cursor.eat(Token::Word);
        let offset = match register {
            Some(_) => trailing_offset(cursor)?,
            None => integer_expression(cursor)? as i64,
        };
        indices.push(Index { register, offset });
        cursor.expect(Token::RightBracket, "`]`")?;
    }
    Ok(indices)
}

/// `[base+offset]` or `[base, {c0, …}]`, after the opening bracket.
fn address<'a>(cursor: &mut Cursor<'a>) -> Result<Operand<'a>, ParseError> {
    let address = match cursor.eat(Token::Word) {
        Some(base) => Address {
            base: Some(base),
            offset: trailing_offset(cursor)?,
        },
        None => Address {
            base: None,
            offset: integer_expression(cursor)? as i64,
        },
    };
    let operand = match cursor.eat(Token::Comma) {
        Some(_) => {
            let coordinates = match cursor.eat(Token::LeftBrace) {
                Some(_) => elements(cursor)?,
                None => vec![primary(cursor)?],
            };
            Operand::TensorAddress(address, coordinates)
        }
        None => Operand::Address(address),
    };
    cursor.expect(Token::RightBracket, "`]`")?;
    Ok(operand)
}

/// `+4`, `-4`, `+-4` or nothing.
pub(super) fn trailing_offset(cursor: &mut Cursor<'_>) -> Result<i64, ParseError> {
    match cursor.peek() {
        Some(Token::Plus) => {
            cursor.advance();
            Ok(integer_expression(cursor)? as i64)
        }
        Some(Token::Minus) => Ok(integer_expression(cursor)? as i64),
        _ => Ok(0),
    }
}

/// A constant expression that must be an integer; its 64 bits.
pub(super) fn integer_expression(cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
    let error = cursor.error("an integer expression");
    match constant(cursor)? {
        Constant::Int(bits) => Ok(bits),
        Constant::Single(_) | Constant::Double(_) => Err(error),
    }
}

/// A constant expression: C's operators, with C's precedence.
pub(super) fn constant(cursor: &mut Cursor<'_>) -> Result<Constant, ParseError> {
    let error = cursor.error("an integer as condition");
    let condition = binary(cursor, 0)?;
    if cursor.eat(Token::Question).is_none() {
        return Ok(condition);
    }
    let Constant::Int(condition) = condition else {
        return Err(error);
    };
    let yes = cursor.nested(constant)?;
    cursor.expect(Token::Colon, "`:` between two values")?;
    let no = cursor.nested(constant)?;
    Ok(if condition != 0 { yes } else { no })
}

/// Precedence of a binary operator. The `|` between a result and its predicate does not occur here:
/// an expression begins with a constant.
fn strength(token: Token) -> Option<u8> {
    Some(match token {
        Token::OrOr => 1,
        Token::AndAnd => 2,
        Token::Pipe => 3,
        Token::Caret => 4,
        Token::Ampersand => 5,
        Token::EqualsEquals | Token::BangEquals => 6,
        Token::Less | Token::LessEquals | Token::Greater | Token::GreaterEquals => 7,
        Token::ShiftLeft | Token::ShiftRight => 8,
        Token::Plus | Token::Minus => 9,
        Token::Star | Token::Slash | Token::Percent => 10,
        _ => return None,
    })
}

fn binary(cursor: &mut Cursor<'_>, weakest: u8) -> Result<Constant, ParseError> {
    cursor.nested(|cursor| {
        let mut left = unary(cursor)?;
        while let Some(token) = cursor.peek() {
            let Some(level) = strength(token).filter(|&level| level > weakest) else {
                break;
            };
            let error = cursor.error("an operator that has a value here");
            cursor.advance();
            let right = binary(cursor, level)?;
            left = combine(token, left, right).ok_or(error)?;
        }
        Ok(left)
    })
}

/// `None` for a division by zero or an operator that does not exist for floats.
fn combine(operator: Token, left: Constant, right: Constant) -> Option<Constant> {
    if let (Constant::Int(a), Constant::Int(b)) = (left, right) {
        let (signed_a, signed_b) = (a as i64, b as i64);
        return Some(Constant::Int(match operator {
            Token::Plus => a.wrapping_add(b),
            Token::Minus => a.wrapping_sub(b),
            Token::Star => a.wrapping_mul(b),
            Token::Slash => signed_a.checked_div(signed_b)? as u64,
            Token::Percent => signed_a.checked_rem(signed_b)? as u64,
            Token::ShiftLeft => a.checked_shl(u32::try_from(b).ok()?)?,
            Token::ShiftRight => signed_a.checked_shr(u32::try_from(b).ok()?)? as u64,
            Token::Ampersand => a & b,
            Token::Caret => a ^ b,
            Token::Pipe => a | b,
            Token::AndAnd => u64::from(a != 0 && b != 0),
            Token::OrOr => u64::from(a != 0 || b != 0),
            Token::EqualsEquals => u64::from(a == b),
            Token::BangEquals => u64::from(a != b),
            Token::Less => u64::from(signed_a < signed_b),
            Token::LessEquals => u64::from(signed_a <= signed_b),
            Token::Greater => u64::from(signed_a > signed_b),
            Token::GreaterEquals => u64::from(signed_a >= signed_b),
            _ => return None,
        }));
    }
    let (Constant::Double(a), Constant::Double(b)) = (left, right) else {
        return None;
    };
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    let value = match operator {
        Token::Plus => a + b,
        Token::Minus => a - b,
        Token::Star => a * b,
        Token::Slash => a / b,
        _ => return None,
    };
    Some(Constant::Double(value.to_bits()))
}

fn unary(cursor: &mut Cursor<'_>) -> Result<Constant, ParseError> {
    let error = cursor.error("a constant or an operand");
    let token = cursor.peek().ok_or_else(|| error.clone())?;
    let text = cursor.advance();
    let value = match token {
        Token::Minus => match cursor.nested(unary)? {
            Constant::Int(bits) => Some(Constant::Int(bits.wrapping_neg())),
            Constant::Single(bits) => Some(Constant::Single(bits ^ (1 << 31))),
            Constant::Double(bits) => Some(Constant::Double(bits ^ (1 << 63))),
        },
        Token::Plus => Some(cursor.nested(unary)?),
        Token::Tilde => match cursor.nested(unary)? {
            Constant::Int(bits) => Some(Constant::Int(!bits)),
            Constant::Single(_) | Constant::Double(_) => None,
        },
        Token::Bang => match cursor.nested(unary)? {
            Constant::Int(bits) => Some(Constant::Int(u64::from(bits == 0))),
            Constant::Single(_) | Constant::Double(_) => None,
        },
        // `(.s64)` and `(.u64)` change the interpretation of a value, not its bits.
        Token::LeftParen if matches!(cursor.peek_dot(), Some("s64" | "u64")) => {
            cursor.advance();
            cursor.expect(Token::RightParen, "`)` after a cast")?;
            match cursor.nested(unary)? {
                Constant::Int(bits) => Some(Constant::Int(bits)),
                Constant::Single(_) | Constant::Double(_) => None,
            }
        }
        Token::LeftParen => {
            let inner = cursor.nested(constant)?;
            cursor.expect(Token::RightParen, "`)`")?;
            Some(inner)
        }
        Token::Integer => cursor::integer(text).map(Constant::Int),
        Token::Decimal => text
            .parse::<f64>()
            .ok()
            .map(|value| Constant::Double(value.to_bits())),
        Token::HexSingle => u32::from_str_radix(&text[2..], 16)
            .ok()
            .map(Constant::Single),
        Token::HexDouble => u64::from_str_radix(&text[2..], 16)
            .ok()
            .map(Constant::Double),
        _ => None,
    };
    value.ok_or(error)
}
