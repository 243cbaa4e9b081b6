//! The code in a cubin, and which line of the PTX each of its instructions came from.
//!
//! `-lineinfo` makes the assembler leave a DWARF line table for that in `.nv_debug_line_sass`.

use std::fmt::Display;

use gimli::{DebugLine, DebugLineOffset, LittleEndian};
use object::Endianness;
use object::elf::{FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, Rela, SectionHeader, Sym};

use crate::sass::{Kind, Sass};

/// Why the code of a kernel cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    /// No ELF file, or a broken one.
    #[error("the cubin cannot be read: {0}")]
    Broken(String),
    /// The kernel is not in it.
    #[error("the cubin has no kernel `{0}`")]
    NoKernel(String),
    /// It was compiled without `-lineinfo`.
    #[error("the cubin does not say which PTX its code came from: compile with -lineinfo")]
    NoLines,
}

/// A kernel's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    pub(crate) instructions: Vec<Sass>,
    /// Line of the PTX of each; 0 if the assembler made it up.
    pub(crate) lines: Vec<u32>,
}

type Header = FileHeader64<Endianness>;

/// Bits of an address in a section; the section's number stands above them.
const WITHIN: u32 = 32;

impl Code {
    /// Reads the code of a kernel.
    pub fn read(cubin: &[u8], kernel: &str) -> Result<Self, CubinError> {
        let header = Header::parse(cubin).map_err(broken)?;
        let endian = header.endian().map_err(broken)?;
        let sections = header.sections(endian, cubin).map_err(broken)?;
        let named = |name: &str| sections.section_by_name(endian, name.as_bytes());
        let data = |section: &SectionHeader64<_>| section.data(endian, cubin).map_err(broken);

        let text = named(&format!(".text.{kernel}"));
        let (text, section) = text.ok_or_else(|| CubinError::NoKernel(kernel.to_owned()))?;
        let (words, rest) = data(section)?.as_chunks::<{ Sass::BYTES }>();
        if !rest.is_empty() {
            return Err(broken("a kernel ends inside an instruction"));
        }

        let (table, section) = named(".nv_debug_line_sass").ok_or(CubinError::NoLines)?;
        let mut bytes = data(section)?.to_vec();
        // The tables of all kernels begin at address 0; relocations say whose each is.
        let symbols = sections.symbols(endian, cubin, object::elf::SHT_SYMTAB);
        let symbols = symbols.map_err(broken)?;
        for section in sections.iter() {
            if section.info_link(endian) != table {
                continue;
            }
            let Some((relocations, _)) = section.rela(endian, cubin).map_err(broken)? else {
                continue;
            };
            for relocation in relocations {
                let Some(symbol) = relocation.symbol(endian, false) else {
                    continue;
                };
                let symbol = symbols.symbol(symbol).map_err(broken)?;
                let of = u64::from(symbol.st_shndx(endian).0);
                let address = (of << WITHIN).wrapping_add_signed(relocation.r_addend.get(endian));
                let at = relocation.r_offset.get(endian) as usize;
                let place = at.checked_add(8).and_then(|end| bytes.get_mut(at..end));
                let place = place.ok_or_else(|| broken("a relocation lies outside its table"))?;
                place.copy_from_slice(&address.to_le_bytes());
            }
        }
        let lines = lines_of(&bytes, text.0 as u64, words.len()).map_err(broken)?;
        if lines.iter().all(|&line| line == 0) {
            return Err(CubinError::NoLines);
        }
        let mut code = Self {
            instructions: Sass::decode_all(words),
            lines,
        };
        code.name_first_tests();
        Ok(code)
    }

    /// Where an instruction jumps to.
    pub(crate) fn target(&self, at: usize) -> Option<usize> {
        let to = at as i64 + 1 + i64::from(self.instructions[at].offset);
        usize::try_from(to)
            .ok()
            .filter(|&to| to < self.instructions.len())
    }

    /// Of a wait for a phase the assembler makes a first test and, aside, a loop for those who have
    /// to try again; the first it gives the line of whatever stands before. It is the loop's.
    fn name_first_tests(&mut self) {
        for at in 0..self.instructions.len() {
            if self.instructions[at].kind != Kind::Phase {
                continue;
            }
            let again = self
                .next_of(at + 1, &[Kind::Branch])
                .filter(|&jump| self.instructions[jump].guarded)
                .and_then(|jump| self.target(jump))
                .filter(|&to| to > at)
                .and_then(|to| self.next_of(to, &[Kind::Phase, Kind::Branch]))
                .filter(|&again| self.instructions[again].kind == Kind::Phase);
            if let Some(again) = again {
                self.lines[at] = self.lines[again];
            }
        }
    }

    /// The first instruction of these kinds from here on.
    fn next_of(&self, from: usize, kinds: &[Kind]) -> Option<usize> {
        (from..self.instructions.len()).find(|&at| kinds.contains(&self.instructions[at].kind))
    }
}

fn broken(why: impl Display) -> CubinError {
    CubinError::Broken(why.to_string())
}

/// The lines of a section's instructions, from a table whose addresses name their sections.
fn lines_of(table: &[u8], section: u64, count: usize) -> Result<Vec<u32>, gimli::Error> {
    let mut lines = vec![0; count];
    let all = DebugLine::new(table, LittleEndian);
    let mut offset = 0;
    while offset < table.len() {
        let program = all.program(DebugLineOffset(offset), 8, None, None)?;
        // Its length stands before it, in four bytes.
        offset += 4 + program.header().unit_length();
        let mut rows = program.rows();
        let mut last: Option<(usize, u32)> = None;
        while let Some((_, row)) = rows.next_row()? {
            let ours = row.address() >> WITHIN == section;
            let at = (row.address() as u32 as usize / Sass::BYTES).min(count);
            if let Some((from, line)) = last.take()
                && from < at
            {
                lines[from..at].fill(line);
            }
            if ours && !row.end_sequence() {
                last = Some((at, row.line().map_or(0, |line| line.get() as u32)));
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_of_a_wait_has_the_line_of_those_that_follow() {
        let instruction = |(kind, offset): (Kind, i32)| Sass {
            kind,
            stall: 1,
            waits: 0,
            result: None,
            operands: None,
            guarded: kind == Kind::Branch,
            offset,
            uniform: false,
            reads: [0; 2],
            constants: None,
            cached: true,
            by_blocks: false,
        };
        let kinds = [
            (Kind::Phase, 0),
            (Kind::Alu, 0),
            (Kind::Branch, 3), // to the loop of this wait
            (Kind::Phase, 0),
            (Kind::Branch, -5), // to the head of another loop
            (Kind::Exit, 0),
            (Kind::Alu, 0),
            (Kind::Phase, 0),
            (Kind::Branch, -2),
        ];
        let mut code = Code {
            instructions: kinds.map(instruction).to_vec(),
            lines: vec![1, 1, 1, 2, 2, 3, 4, 5, 5],
        };
        code.name_first_tests();
        assert_eq!(code.lines, [5, 1, 1, 2, 2, 3, 4, 5, 5]);
    }
}
