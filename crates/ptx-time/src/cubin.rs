//! The code in a cubin, and which line of the PTX each of its instructions came from.
//!
//! `-lineinfo` makes the assembler leave a DWARF line table for that in `.nv_debug_line_sass`.

use std::fmt::Display;

use gimli::{DebugLine, DebugLineOffset, LittleEndian};
use object::Endianness;
use object::elf::{FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, Rela, SectionHeader, Sym};
use ptx_emu::mixed::{MixedMap, MixedSet};
use ptx_emu::trace::{Event, Trace};

use crate::sass::{Kind, Sass, Update, elects};

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
        code.name_updates(words);
        Ok(code)
    }

    /// Whether a warp of a trace went into a function that the assembler did not inline: a stretch
    /// is looked for in the kernel's own code, and would be told without what the function does.
    /// What the assembler calls for by itself, as for a division, is one instruction of the PTX, and
    /// the next follows it.
    pub fn leaves(&self, trace: &Trace) -> bool {
        let calls = |at: &usize| self.instructions[*at].kind == Kind::Call;
        let calls = (0..self.instructions.len()).filter(calls);
        let lines: MixedSet<u32> = calls.map(|at| self.lines[at]).collect();
        if lines.is_empty() {
            return false;
        }
        let ends = |event: &Event| match *event {
            Event::Run { first, end } => (first, end),
            Event::Did { at, .. } => (at, at + 1),
        };
        let warps = trace.ctas.iter().flat_map(|cta| &cta.warps);
        let mut steps = warps.flat_map(|events| events.windows(2));
        steps.any(|pair| {
            let ((_, end), (next, _)) = (ends(&pair[0]), ends(&pair[1]));
            let line = trace.lines.get(end as usize - 1);
            next != end && line.is_some_and(|line| lines.contains(line))
        })
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

    /// What the assembler has made of atomics: of one line of the PTX it makes the election of a lane
    /// and an instruction that is guarded by it, or a loop.
    fn name_updates(&mut self, words: &[[u8; Sass::BYTES]]) {
        let mut elections: MixedMap<u32, (bool, bool)> = MixedMap::default();
        for (word, &line) in words.iter().zip(&self.lines) {
            let (votes, finds) = elects(word);
            let of = elections.entry(line).or_default();
            *of = (of.0 || votes, of.1 || finds);
        }
        let loops = (0..self.instructions.len()).filter(|&at| {
            let target = self.target(at).filter(|&to| to < at);
            self.instructions[at].kind == Kind::Branch
                && target.is_some_and(|to| self.lines[to] == self.lines[at])
        });
        let loops: MixedSet<u32> = loops.map(|at| self.lines[at]).collect();
        for (instruction, line) in self.instructions.iter_mut().zip(&self.lines) {
            let at_memory = matches!(instruction.kind, Kind::Shared | Kind::Global);
            if *line == 0 || !at_memory {
                continue;
            }
            if instruction.guarded && elections[line] == (true, true) {
                instruction.update = Update::Together;
            } else if loops.contains(line) {
                instruction.update = Update::InLoop;
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
    use ptx_emu::trace::CtaTrace;

    fn instruction((kind, offset): (Kind, i32)) -> Sass {
        Sass {
            guarded: kind == Kind::Branch,
            offset,
            ..Sass::plain(kind)
        }
    }

    #[test]
    fn a_function_that_was_not_inlined_is_left_for() {
        let kinds = [Kind::Alu, Kind::Call, Kind::Alu, Kind::Exit];
        let code = Code {
            instructions: kinds.map(|kind| instruction((kind, 0))).to_vec(),
            lines: vec![10, 11, 12, 13],
        };
        let trace = |runs: &[(u32, u32)]| {
            let run = |&(first, end)| Event::Run { first, end };
            Trace {
                lines: vec![10, 11, 12, 13, 40, 41],
                ctas: vec![CtaTrace {
                    warps: vec![runs.iter().map(run).collect()],
                    ..CtaTrace::default()
                }],
                ..Trace::default()
            }
        };
        assert!(code.leaves(&trace(&[(0, 2), (4, 6), (2, 4)])));
        // A division whose rare case is a function, and a jump.
        assert!(!code.leaves(&trace(&[(0, 4)])));
        assert!(!code.leaves(&trace(&[(0, 3), (0, 4)])));
    }

    #[test]
    fn the_first_test_of_a_wait_has_the_line_of_those_that_follow() {
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
