//! Variables, parameters, registers and function headers.

use super::ParseError;
use super::cursor::{self, Cursor};
use super::module::ModuleParser;
use super::{operand, statement};
use crate::front::ast::*;
use crate::front::lexer::Token;

/// A variable, entry or function at file scope.
pub(super) fn item<'a>(
    parser: &mut ModuleParser<'a>,
    module: &mut Module<'a>,
) -> Result<(), ParseError> {
    let linkage = linkage(&mut parser.cursor);
    match parser.cursor.peek_dot() {
        Some("entry") => {
            parser.cursor.advance();
            let function = function(parser, FunctionKind::Entry, linkage)?;
            module.functions.push(function);
        }
        Some("func") => {
            parser.cursor.advance();
            let function = function(parser, FunctionKind::Func, linkage)?;
            module.functions.push(function);
        }
        Some("global" | "const" | "shared" | "local" | "param" | "tex") => {
            variables(&mut parser.cursor, linkage, &mut module.variables)?;
        }
        _ => {
            return Err(parser
                .cursor
                .error("`.entry`, `.func` or a variable's state space"));
        }
    }
    Ok(())
}

fn linkage(cursor: &mut Cursor<'_>) -> Linkage {
    let linkage = match cursor.peek_dot() {
        Some("visible") => Linkage::Visible,
        Some("extern") => Linkage::Extern,
        Some("weak") => Linkage::Weak,
        Some("common") => Linkage::Common,
        _ => return Linkage::Internal,
    };
    cursor.advance();
    linkage
}

/// `.attribute(...)`: the location of managed memory, which does not matter here.
fn skip_attribute(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    if !cursor.eat_dot("attribute") {
        return Ok(());
    }
    cursor.expect(Token::LeftParen, "`(` after .attribute")?;
    let mut open = 1;
    while open > 0 {
        match cursor.peek() {
            Some(Token::LeftParen) => open += 1,
            Some(Token::RightParen) => open -= 1,
            None => return Err(cursor.error("`)` to close .attribute")),
            _ => {}
        }
        cursor.advance();
    }
    Ok(())
}

fn function<'a>(
    parser: &mut ModuleParser<'a>,
    kind: FunctionKind,
    linkage: Linkage,
) -> Result<Function<'a>, ParseError> {
    let cursor = &mut parser.cursor;
    skip_attribute(cursor)?;
    let returns = match cursor.eat(Token::LeftParen) {
        Some(_) => parameters(cursor)?,
        None => Vec::new(),
    };
    let position = cursor.position();
    let name = cursor.word("a function name")?;
    let params = match cursor.eat(Token::LeftParen) {
        Some(_) => parameters(cursor)?,
        None => Vec::new(),
    };
    let mut function = Function {
        kind,
        linkage,
        name,
        returns,
        params,
        limits: Limits::default(),
        noreturn: false,
        body: None,
        broken: None,
        position,
    };
    parser.locations.current = None;
    directives(parser, &mut function)?;
    if parser.cursor.eat(Token::Semicolon).is_none() {
        parser
            .cursor
            .expect(Token::LeftBrace, "`{` to open the body, or `;`")?;
        let start = parser.cursor.mark();
        function.body = Some(match statement::block(parser) {
            Ok(statements) => statements,
            // The other functions remain usable, if this one has an end.
            Err(error) => {
                parser.cursor.back_to(start);
                if !parser.cursor.skip_block() {
                    return Err(error);
                }
                function.broken = Some(error);
                Vec::new()
            }
        });
    }
    Ok(function)
}

/// Everything between a header and `{` or `;`.
fn directives<'a>(
    parser: &mut ModuleParser<'a>,
    function: &mut Function<'a>,
) -> Result<(), ParseError> {
    while let Some(word) = parser.cursor.peek_dot() {
        if word == "pragma" {
            parser.pragma()?;
            continue;
        }
        let unknown = parser.cursor.error("a function directive");
        parser.cursor.advance();
        let cursor = &mut parser.cursor;
        let limits = &mut function.limits;
        match word {
            "maxntid" => limits.max_threads = Some(extent(cursor)?),
            "reqntid" => limits.required_threads = Some(extent(cursor)?),
            "reqnctapercluster" => limits.required_cluster = Some(extent(cursor)?),
            "minnctapersm" => limits.min_ctas_per_sm = Some(cursor.u32("a count")?),
            "maxnctapersm" => limits.max_ctas_per_sm = Some(cursor.u32("a count")?),
            "maxnreg" => limits.max_registers = Some(cursor.u32("a register count")?),
            "maxclusterrank" => limits.max_cluster_rank = Some(cursor.u32("a count")?),
            "explicitcluster" => limits.explicit_cluster = true,
            "blocksareclusters" => limits.blocks_are_clusters = true,
            "noreturn" => function.noreturn = true,
            "abi_preserve" | "abi_preserve_control" => {
                cursor.u32("a register count")?;
            }
            _ => return Err(unknown),
        }
    }
    Ok(())
}

/// `x[, y[, z]]`, missing ones being 1.
fn extent(cursor: &mut Cursor<'_>) -> Result<[u32; 3], ParseError> {
    let mut extent = [cursor.u32("an extent")?, 1, 1];
    for axis in &mut extent[1..] {
        if cursor.eat(Token::Comma).is_none() {
            break;
        }
        *axis = cursor.u32("an extent")?;
    }
    Ok(extent)
}

/// Formal parameters, after the opening parenthesis.
pub(super) fn parameters<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Variable<'a>>, ParseError> {
    cursor.list(Token::RightParen, "`,` or `)`", parameter)
}

fn parameter<'a>(cursor: &mut Cursor<'a>) -> Result<Variable<'a>, ParseError> {
    let storage = match cursor.peek_dot() {
        Some("param") => Storage::Memory(Space::Param),
        Some("reg") => Storage::Register,
        _ => return Err(cursor.error("`.param` or `.reg`")),
    };
    cursor.advance();
    let shape = TypeWords::read(cursor)?;
    shape.declarator(cursor, storage, Linkage::Internal)
}

/// The words between a state space and a name.
struct TypeWords {
    scalar: ScalarType,
    vector: u32,
    align: Option<u32>,
    /// A handle, whose initial value has named fields.
    opaque: bool,
}

impl TypeWords {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let mut align = None;
        let mut vector = 1;
        let mut scalar = None;
        let mut pointer = false;
        let mut opaque = false;
        while let Some(word) = cursor.peek_dot() {
            match word {
                "align" => {
                    cursor.advance();
                    let error = cursor.error("an alignment that is a power of two");
                    let value = cursor.u32("an alignment")?;
                    if !value.is_power_of_two() {
                        return Err(error);
                    }
                    // After `.ptr` it applies to the target of the pointer, not to the parameter.
                    if !pointer {
                        align = Some(value);
                    }
                    continue;
                }
                "v2" => vector = 2,
                "v4" => vector = 4,
                "v8" => vector = 8,
                "ptr" => pointer = true,
                "global" | "const" | "shared" | "local" if pointer => {}
                "attribute" => {
                    skip_attribute(cursor)?;
                    continue;
                }
                // Handles of textures and the like: their users are refused, not the module.
                "texref" | "samplerref" | "surfref" if scalar.is_none() => {
                    scalar = Some(ScalarType::B64);
                    opaque = true;
                }
                _ => match ScalarType::from_word(word) {
                    Some(found) if scalar.is_none() => scalar = Some(found),
                    _ => return Err(cursor.error("a type, `.align` or a vector size")),
                },
            }
            cursor.advance();
        }
        Ok(Self {
            scalar: scalar.ok_or_else(|| cursor.error("a type such as .b32"))?,
            vector,
            align,
            opaque,
        })
    }

    fn declarator<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        storage: Storage,
        linkage: Linkage,
    ) -> Result<Variable<'a>, ParseError> {
        let position = cursor.position();
        let name = match cursor.eat(Token::Sink) {
            Some(sink) => sink,
            None => cursor.word("a name")?,
        };
        let mut dims = Vec::new();
        while cursor.eat(Token::LeftBracket).is_some() {
            let size = match cursor.peek() {
                Some(Token::RightBracket) => None,
                _ => Some(operand::integer_expression(cursor)?),
            };
            dims.push(size);
            cursor.expect(Token::RightBracket, "`]`")?;
        }
        let init = match cursor.eat(Token::Equals) {
            Some(_) if self.opaque => {
                skip_braces(cursor)?;
                None
            }
            Some(_) => Some(initializer(cursor)?),
            None => None,
        };
        Ok(Variable {
            storage,
            linkage,
            scalar: self.scalar,
            vector: self.vector,
            align: self.align,
            name,
            dims,
            init,
            position,
        })
    }
}

/// `{ filter_mode = linear, … }`
fn skip_braces(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    cursor.expect(Token::LeftBrace, "`{` to open a handle's fields")?;
    while cursor.eat(Token::RightBrace).is_none() {
        if cursor.at_end() {
            return Err(cursor.error("`}` to close a handle's fields"));
        }
        cursor.advance();
    }
    Ok(())
}

/// `.space .type a, b[4] = {…};`
pub(super) fn variables<'a>(
    cursor: &mut Cursor<'a>,
    linkage: Linkage,
    into: &mut Vec<Variable<'a>>,
) -> Result<(), ParseError> {
    let space = match cursor.peek_dot() {
        // A texture's handle is in global memory; its own space is the old notation.
        Some("global" | "tex") => Space::Global,
        Some("const") => Space::Const,
        Some("shared") => Space::Shared,
        Some("local") => Space::Local,
        Some("param") => Space::Param,
        _ => return Err(cursor.error("a state space")),
    };
    cursor.advance();
    let words = TypeWords::read(cursor)?;
    loop {
        into.push(words.declarator(cursor, Storage::Memory(space), linkage)?);
        if cursor.eat(Token::Comma).is_none() {
            break;
        }
    }
    cursor.expect(Token::Semicolon, "`;` after a declaration")?;
    Ok(())
}

/// `.reg .b32 %r<10>, %x;`
pub(super) fn registers<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<RegisterDecl<'a>>, ParseError> {
    cursor.advance();
    let words = TypeWords::read(cursor)?;
    let mut declared = Vec::new();
    loop {
        let position = cursor.position();
        let name = cursor.word("a register name")?;
        let count = match cursor.eat(Token::Less) {
            Some(_) => {
                let count = cursor.u32("a register count")?;
                cursor.expect(Token::Greater, "`>`")?;
                Some(count)
            }
            None => None,
        };
        declared.push(RegisterDecl {
            scalar: words.scalar,
            vector: words.vector,
            name,
            count,
            position,
        });
        if cursor.eat(Token::Comma).is_none() {
            break;
        }
    }
    cursor.expect(Token::Semicolon, "`;` after a declaration")?;
    Ok(declared)
}

fn initializer<'a>(cursor: &mut Cursor<'a>) -> Result<Initializer<'a>, ParseError> {
    match cursor.peek() {
        Some(Token::LeftBrace) => {
            cursor.advance();
            let items =
                cursor.nested(|inner| inner.list(Token::RightBrace, "`,` or `}`", initializer))?;
            Ok(Initializer::List(items))
        }
        Some(Token::Word) => symbol_address(cursor, None),
        Some(Token::Integer) if cursor.peek_nth(1) == Some(Token::LeftParen) => {
            let error = cursor.error("a mask of one byte, such as 0xff00");
            let mask = cursor::integer(cursor.advance()).ok_or_else(|| error.clone())?;
            let byte = mask.trailing_zeros() / 8;
            if byte > 7 || mask != 0xff << (8 * byte) {
                return Err(error);
            }
            cursor.advance();
            let address = symbol_address(cursor, Some(byte as u8))?;
            cursor.expect(Token::RightParen, "`)` after a masked address")?;
            Ok(address)
        }
        _ => Ok(Initializer::Constant(operand::constant(cursor)?)),
    }
}

/// `symbol`, `symbol+4`, `generic(symbol)+4`
fn symbol_address<'a>(
    cursor: &mut Cursor<'a>,
    byte: Option<u8>,
) -> Result<Initializer<'a>, ParseError> {
    let word = cursor.word("a symbol")?;
    let generic = word == "generic" && cursor.eat(Token::LeftParen).is_some();
    let (symbol, inner) = match generic {
        true => {
            let symbol = cursor.word("a symbol")?;
            let inner = operand::trailing_offset(cursor)?;
            cursor.expect(Token::RightParen, "`)`")?;
            (symbol, inner)
        }
        false => (word, 0),
    };
    Ok(Initializer::Address {
        symbol,
        offset: inner.wrapping_add(operand::trailing_offset(cursor)?),
        generic,
        byte,
    })
}
