//! The statements of a function's body.

use super::ParseError;
use super::module::ModuleParser;
use super::{declare, operand};
use crate::front::ast::*;
use crate::front::lexer::Token;

/// Statements up to and including the closing brace.
pub(super) fn block<'a>(parser: &mut ModuleParser<'a>) -> Result<Vec<Statement<'a>>, ParseError> {
    let mut statements = Vec::new();
    while parser.cursor.eat(Token::RightBrace).is_none() {
        statement(parser, &mut statements)?;
    }
    Ok(statements)
}

fn statement<'a>(
    parser: &mut ModuleParser<'a>,
    into: &mut Vec<Statement<'a>>,
) -> Result<(), ParseError> {
    match parser.cursor.peek() {
        Some(Token::LeftBrace) => {
            parser.cursor.advance();
            into.push(Statement::Block(nested_block(parser)?));
        }
        Some(Token::Dot) => directive(parser, into)?,
        Some(Token::Word) if parser.cursor.peek_nth(1) == Some(Token::Colon) => {
            into.push(label(parser)?);
        }
        Some(Token::Word | Token::At) => {
            let instruction = instruction(parser)?;
            into.push(Statement::Instruction(instruction));
        }
        // An empty statement, as left by macros.
        Some(Token::Semicolon) => {
            parser.cursor.advance();
        }
        _ => return Err(parser.cursor.error("an instruction, a label or `}`")),
    }
    Ok(())
}

fn nested_block<'a>(parser: &mut ModuleParser<'a>) -> Result<Vec<Statement<'a>>, ParseError> {
    parser.cursor.enter()?;
    let statements = block(parser);
    parser.cursor.leave();
    statements
}

fn directive<'a>(
    parser: &mut ModuleParser<'a>,
    into: &mut Vec<Statement<'a>>,
) -> Result<(), ParseError> {
    match parser.cursor.peek_dot() {
        Some("reg") => into.push(Statement::Registers(declare::registers(
            &mut parser.cursor,
        )?)),
        Some("loc") => parser.loc()?,
        Some("pragma") => into.push(Statement::Pragma(parser.pragma()?)),
        Some("global" | "const" | "shared" | "local" | "param") => {
            local_variables(parser, Linkage::Internal, into)?;
        }
        Some("extern") => {
            parser.cursor.advance();
            local_variables(parser, Linkage::Extern, into)?;
        }
        _ => return Err(parser.cursor.error("a directive that may stand in a body")),
    }
    Ok(())
}

fn local_variables<'a>(
    parser: &mut ModuleParser<'a>,
    linkage: Linkage,
    into: &mut Vec<Statement<'a>>,
) -> Result<(), ParseError> {
    let mut variables = Vec::new();
    declare::variables(&mut parser.cursor, linkage, &mut variables)?;
    into.extend(variables.into_iter().map(Statement::Variable));
    Ok(())
}

/// `name:` and the tables that can follow it.
fn label<'a>(parser: &mut ModuleParser<'a>) -> Result<Statement<'a>, ParseError> {
    let cursor = &mut parser.cursor;
    let position = cursor.position();
    let name = cursor.word("a label")?;
    cursor.expect(Token::Colon, "`:`")?;
    match cursor.peek_dot() {
        Some("branchtargets" | "calltargets") => {
            cursor.advance();
            let targets = cursor.list(Token::Semicolon, "`,` or `;`", |inner| {
                inner.word("a target")
            })?;
            Ok(Statement::Targets {
                name,
                targets,
                position,
            })
        }
        Some("callprototype") => {
            cursor.advance();
            let returns = match cursor.eat(Token::LeftParen) {
                Some(_) => declare::parameters(cursor)?,
                None => Vec::new(),
            };
            if cursor.eat(Token::Sink).is_none() {
                cursor.word("`_` in place of the function's name")?;
            }
            let params = match cursor.eat(Token::LeftParen) {
                Some(_) => declare::parameters(cursor)?,
                None => Vec::new(),
            };
            cursor.eat_dot("noreturn");
            cursor.expect(Token::Semicolon, "`;` after a prototype")?;
            Ok(Statement::Prototype(Prototype {
                name,
                returns,
                params,
                position,
            }))
        }
        _ => Ok(Statement::Label { name, position }),
    }
}

fn instruction<'a>(parser: &mut ModuleParser<'a>) -> Result<Instruction<'a>, ParseError> {
    let location = parser.locations.current;
    let cursor = &mut parser.cursor;
    let position = cursor.position();
    let guard = match cursor.eat(Token::At) {
        Some(_) => {
            let negated = cursor.eat(Token::Bang).is_some();
            let register = cursor.word("a predicate register")?;
            Some(Guard { register, negated })
        }
        None => None,
    };
    let start = cursor.offset();
    let opcode = cursor.word("an opcode")?;
    let mut modifiers = Vec::new();
    while let Some(word) = cursor.eat(Token::Dot) {
        modifiers.push(&word[1..]);
    }
    let call = opcode == "call";
    let operands = cursor.list(Token::Semicolon, "`,` or `;`", |inner| {
        operand::operand(inner, call)
    })?;
    // The list ended with the semicolon, which is not part of the text.
    let text = cursor
        .slice(start, cursor.last_end().saturating_sub(1))
        .trim_end();
    Ok(Instruction {
        guard,
        opcode,
        modifiers,
        operands,
        text,
        position,
        location,
    })
}
