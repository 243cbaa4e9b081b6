//! Directives at file scope, and the line table of debug information.

use super::ParseError;
use super::cursor::Cursor;
use super::declare;
use crate::front::ast::*;
use crate::front::lexer::Token;
use std::collections::HashMap;

pub(super) struct ModuleParser<'a> {
    pub cursor: Cursor<'a>,
    pub locations: Locations<'a>,
}

/// The `.loc` directives so far; names of inlined functions come from `.debug_str`, which follows
/// the code, so they are kept as labels until the end.
#[derive(Default)]
pub(super) struct Locations<'a> {
    list: Vec<RawLocation<'a>>,
    /// Latest location at a file, line and column: what `inlined_at` refers to.
    latest: HashMap<(u32, u32, u32), LocationId>,
    known: HashMap<RawLocation<'a>, LocationId>,
    pub current: Option<LocationId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RawLocation<'a> {
    place: (u32, u32, u32),
    function: Option<(&'a str, u64)>,
    inlined_at: Option<LocationId>,
}

/// Labels and bytes of `.debug_str`.
#[derive(Default)]
struct DebugStrings<'a> {
    bytes: Vec<u8>,
    labels: HashMap<&'a str, usize>,
}

impl DebugStrings<'_> {
    fn text(&self, label: &str, offset: u64) -> Option<String> {
        let start = self
            .labels
            .get(label)?
            .checked_add(usize::try_from(offset).ok()?)?;
        let tail = self.bytes.get(start..)?;
        let end = tail
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(tail.len());
        Some(String::from_utf8_lossy(&tail[..end]).into_owned())
    }
}

impl<'a> ModuleParser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, ParseError> {
        Ok(Self {
            cursor: Cursor::new(text)?,
            locations: Locations::default(),
        })
    }

    pub(super) fn module(mut self) -> Result<Module<'a>, ParseError> {
        let mut module = Module {
            address_size: 64,
            ..Module::default()
        };
        self.header(&mut module)?;
        let mut strings = DebugStrings::default();
        while !self.cursor.at_end() {
            self.item(&mut module, &mut strings)?;
        }
        module.locations = self.locations.resolve(&strings);
        Ok(module)
    }

    /// `.version`, which must come first, so that a file that is not PTX is reported as such.
    fn header(&mut self, module: &mut Module<'a>) -> Result<(), ParseError> {
        if !self.cursor.eat_dot("version") {
            return Err(self.cursor.error("`.version` at the start of a PTX module"));
        }
        let error = self.cursor.error("a version such as 9.0");
        let version = self
            .cursor
            .expect(Token::Decimal, "a version such as 9.0")?;
        module.version = version
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .ok_or(error)?;
        Ok(())
    }

    fn item(
        &mut self,
        module: &mut Module<'a>,
        strings: &mut DebugStrings<'a>,
    ) -> Result<(), ParseError> {
        match self.cursor.peek_dot() {
            Some("target") => {
                self.cursor.advance();
                module.target = vec![self.cursor.word("a target architecture")?];
                while self.cursor.eat(Token::Comma).is_some() {
                    module.target.push(self.cursor.word("a target option")?);
                }
            }
            Some("address_size") => {
                self.cursor.advance();
                module.address_size = self.cursor.u32("32 or 64")?;
            }
            Some("file") => module.files.push(self.file()?),
            Some("section") => self.section(strings)?,
            Some("loc") => self.loc()?,
            Some("alias") => module.aliases.push(self.alias()?),
            Some("pragma") => {
                self.pragma()?;
            }
            Some(_) => declare::item(self, module)?,
            None if self.cursor.eat(Token::Semicolon).is_some() => {}
            None => return Err(self.cursor.error("a module-level directive")),
        }
        Ok(())
    }

    /// `.file 1 "path"[, time, size]`
    pub(super) fn file(&mut self) -> Result<SourceFile<'a>, ParseError> {
        self.cursor.advance();
        let index = self.cursor.u32("a file number")?;
        let name = self.cursor.expect(Token::Text, "a quoted file name")?;
        while self.cursor.eat(Token::Comma).is_some() {
            self.cursor.expect(Token::Integer, "a time stamp or size")?;
        }
        Ok(SourceFile {
            index,
            name: &name[1..name.len() - 1],
        })
    }

    /// `.pragma "text";`
    pub(super) fn pragma(&mut self) -> Result<&'a str, ParseError> {
        self.cursor.advance();
        let text = self.cursor.expect(Token::Text, "a quoted pragma")?;
        while self.cursor.eat(Token::Comma).is_some() {
            self.cursor.expect(Token::Text, "a quoted pragma")?;
        }
        self.cursor.expect(Token::Semicolon, "`;` after a pragma")?;
        Ok(&text[1..text.len() - 1])
    }

    fn alias(&mut self) -> Result<Alias<'a>, ParseError> {
        self.cursor.advance();
        let name = self.cursor.word("the new name")?;
        self.cursor.expect(Token::Comma, "`,`")?;
        let target = self.cursor.word("the function it stands for")?;
        self.cursor.expect(Token::Semicolon, "`;` after an alias")?;
        Ok(Alias { name, target })
    }

    /// `.loc file line column [, function_name label[+offset], inlined_at file line column]`
    pub(super) fn loc(&mut self) -> Result<(), ParseError> {
        self.cursor.advance();
        let place = self.place()?;
        let mut raw = RawLocation {
            place,
            function: None,
            inlined_at: None,
        };
        while self.cursor.eat(Token::Comma).is_some() {
            match self.cursor.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    let label = self.cursor.word("a label in .debug_str")?;
                    let offset = match self.cursor.eat(Token::Plus) {
                        Some(_) => u64::from(self.cursor.u32("an offset")?),
                        None => 0,
                    };
                    raw.function = Some((label, offset));
                }
                "inlined_at" => {
                    let site = self.place()?;
                    raw.inlined_at = Some(self.locations.site(site));
                }
                _ => return Err(self.cursor.error("`function_name` or `inlined_at`")),
            }
        }
        self.locations.current = Some(self.locations.add(raw));
        Ok(())
    }

    fn place(&mut self) -> Result<(u32, u32, u32), ParseError> {
        Ok((
            self.cursor.u32("a file number")?,
            self.cursor.u32("a line")?,
            self.cursor.u32("a column")?,
        ))
    }

    /// `.section .name { … }`: debug information. Only strings are kept, for `function_name`.
    fn section(&mut self, strings: &mut DebugStrings<'a>) -> Result<(), ParseError> {
        self.cursor.advance();
        let name = self.cursor.expect(Token::Dot, "a section name")?;
        while self.cursor.eat(Token::Comma).is_some() {
            self.cursor.expect(Token::Text, "section flags")?;
        }
        self.cursor
            .expect(Token::LeftBrace, "`{` to open the section")?;
        let keep = name == ".debug_str";
        while self.cursor.eat(Token::RightBrace).is_none() {
            if self.cursor.at_end() {
                return Err(self.cursor.error("`}` to close the section"));
            }
            if !keep {
                self.cursor.advance();
            } else if let Some(label) = self.cursor.eat(Token::Word) {
                self.cursor.expect(Token::Colon, "`:` after a label")?;
                strings.labels.insert(label, strings.bytes.len());
            } else {
                self.string_bytes(strings)?;
            }
        }
        Ok(())
    }

    /// `.b8 102,111,111,0`
    fn string_bytes(&mut self, strings: &mut DebugStrings<'a>) -> Result<(), ParseError> {
        if !self.cursor.eat_dot("b8") {
            return Err(self.cursor.error("`.b8` or a label in .debug_str"));
        }
        loop {
            strings.bytes.push(self.cursor.u32("a byte")? as u8);
            if self.cursor.eat(Token::Comma).is_none() {
                return Ok(());
            }
        }
    }
}

impl<'a> Locations<'a> {
    fn add(&mut self, raw: RawLocation<'a>) -> LocationId {
        let id = *self.known.entry(raw).or_insert_with(|| {
            self.list.push(raw);
            (self.list.len() - 1) as LocationId
        });
        self.latest.insert(raw.place, id);
        id
    }

    /// The location of a call site: the latest `.loc` there, with its own chain.
    fn site(&mut self, place: (u32, u32, u32)) -> LocationId {
        if let Some(&id) = self.latest.get(&place) {
            return id;
        }
        self.add(RawLocation {
            place,
            function: None,
            inlined_at: None,
        })
    }

    fn resolve(self, strings: &DebugStrings<'_>) -> Vec<Location> {
        let named = |(label, offset): (&str, u64)| {
            strings
                .text(label, offset)
                .unwrap_or_else(|| label.to_owned())
        };
        self.list
            .into_iter()
            .map(|raw| Location {
                file: raw.place.0,
                line: raw.place.1,
                column: raw.place.2,
                function: raw.function.map(named),
                inlined_at: raw.inlined_at,
            })
            .collect()
    }
}
