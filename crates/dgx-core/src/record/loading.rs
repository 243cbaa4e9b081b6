//! Adds lines to a [`Run`] and refuses what one sweep cannot have written: a block that occurs
//! twice would count as new evidence.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::parse::{self, LineError, ParsedLine, Timed};
use super::run::Run;
use super::schema::{Build, CallKernels, Estimate, ExaminedCell, Line, RunEnd, VoidedTimes};
use super::{contradiction, edge};
use crate::domain::{Status, Tuning, Verdict};

/// Lines parsed at a time by one core.
const SHARE: usize = 256;

/// A line's number and its error.
pub(super) struct RefusedLine {
    pub line: usize,
    pub message: String,
}

pub(super) struct RunLoader {
    run: Run,
    /// The blocks of each process on each shape.
    blocks: HashMap<(usize, u32), Blocks>,
    /// The line on which each arm was last timed.
    timed: Vec<usize>,
    /// Lines on which cells were built, estimated, and got their current verdict.
    built: HashMap<(usize, usize), usize>,
    estimated: HashMap<(usize, usize), usize>,
    judged: HashMap<(usize, usize), usize>,
    /// Lines on which the yardstick was tuned, by shape.
    tuned: HashMap<usize, usize>,
    ended: Option<usize>,
}

impl RunLoader {
    pub(super) fn new(run: Run) -> Self {
        Self {
            timed: vec![0; run.names.arms()],
            run,
            blocks: HashMap::new(),
            built: HashMap::new(),
            estimated: HashMap::new(),
            judged: HashMap::new(),
            tuned: HashMap::new(),
            ended: None,
        }
    }

    /// Adds whole lines, the first of which has this number.
    pub(super) fn take(&mut self, first: usize, text: &[u8]) -> Result<(), RefusedLine> {
        let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
        let names = &self.run.names;
        let parsed: Vec<Option<Result<ParsedLine, LineError>>> = lines
            .par_iter()
            .with_min_len(SHARE)
            .map(|line| (!line.trim_ascii().is_empty()).then(|| parse::parse(line, names)))
            .collect();
        for (index, event) in parsed.into_iter().enumerate() {
            let line = first + index;
            let refused = |message| RefusedLine { line, message };
            match event {
                None => {}
                Some(Ok(event)) => self.event(line, event).map_err(refused)?,
                // Only the last line can lack its newline, and only after a kill.
                Some(Err(LineError::Unreadable(_))) if !lines[index].ends_with(b"\n") => {
                    self.run.torn = true;
                }
                Some(Err(LineError::Unreadable(message) | LineError::Impossible(message))) => {
                    return Err(refused(message));
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run, RefusedLine> {
        self.unlike()?;
        self.note_holes();
        self.add_hazards();
        Ok(self.run)
    }

    /// Every process numbers its blocks from 0 on.
    fn note_holes(&mut self) {
        for ((shape, _), blocks) in &self.blocks {
            let holes = blocks.holes();
            if holes > 0 {
                *self.run.holes.entry(*shape).or_default() += holes;
            }
        }
    }

    /// A cell that was `ok` and has hazards becomes `racy`, however the sweep that found them
    /// ended.
    fn add_hazards(&mut self) {
        for (cell, examined) in &self.run.examined {
            let verdict = self.run.verdicts.get_mut(cell);
            if let Some(verdict) = verdict.filter(|v| v.status == Status::Ok) {
                verdict.add_hazards(examined.hazards.clone());
            }
        }
    }

    /// No two processes measure the same times to the last bit: such a copy is the same process
    /// under another number, and would count as new evidence.
    fn unlike(&self) -> Result<(), RefusedLine> {
        let mut whole: Vec<_> = (self.blocks.iter())
            .filter(|(_, blocks)| blocks.count > 1)
            .map(|((shape, process), b)| ((*shape, b.count, b.print), b.line, *process))
            .collect();
        whole.sort_unstable();
        let twin = whole.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let Some([one, other]) = twin else {
            return Ok(());
        };
        let shape = &self.run.header.shapes[one.0.0].name;
        Err(RefusedLine {
            line: other.1,
            message: format!(
                "process {} has the very times on `{shape}` that process {} has from line {} on: \
                 lines were copied",
                other.2, one.2, one.1
            ),
        })
    }

    fn event(&mut self, line: usize, event: ParsedLine) -> Result<(), String> {
        match (event, self.ended) {
            (ParsedLine::Other(Line::Header(_)), _) => {
                Err("a second header: two run files were joined".to_owned())
            }
            (_, Some(ended)) => Err(format!(
                "the run ended on line {ended}, but more lines follow"
            )),
            (ParsedLine::Block(block), _) => self.block(line, &block),
            (ParsedLine::Other(other), _) => match other {
                Line::Build(build) => self.build(line, build),
                Line::Verdict(verdict) => self.verdict(line, verdict),
                Line::Estimate(estimate) => self.estimate(line, estimate),
                Line::Kernels(kernels) => self.kernels(kernels),
                Line::Examined(examined) => self.examined(examined),
                Line::Tuning(tuning) => self.tuning(line, tuning),
                Line::Void(void) => self.void(&void),
                Line::End(end) => self.end(line, end),
                // Blocks are another event, and the header comes before all lines.
                Line::Header(_) | Line::Block(_) => Ok(()),
            },
        }
    }

    fn block(&mut self, line: usize, block: &Timed) -> Result<(), String> {
        let header = &self.run.header;
        let (shape, process, number) = (block.shape, block.process, block.block);
        let called = || format!("`{}`, process {process}", header.shapes[shape].name);
        for sample in &block.samples {
            if std::mem::replace(&mut self.timed[sample.arm], line) == line {
                let name = self.run.entrants().nth(sample.arm);
                let name = name.unwrap_or(&header.baseline);
                return Err(format!("the block times the same arm of `{name}` twice"));
            }
        }
        if !self.run.timing().sampled() {
            return Err(format!(
                "a block in a {} run: only measured ones have samples",
                self.run.timing().as_str()
            ));
        }
        // The times of a block are compared with each other, and cards differ.
        let card = block.card.as_ref().or(header.device.uuid.as_ref());
        let first = self.run.cards.entry(shape).or_insert_with(|| card.cloned());
        if first.as_ref() != card {
            let named = |card: Option<&String>| card.cloned().unwrap_or("a card unknown".into());
            return Err(format!(
                "{} was timed on {} before, and here on {}: a shape is timed on one card",
                called(),
                named(first.as_ref()),
                named(card)
            ));
        }
        let known = self.blocks.contains_key(&(shape, process));
        if !known && self.run.tally.processes(shape).count() >= edge::PROCESSES {
            return Err(format!(
                "more than {} processes timed {}",
                edge::PROCESSES,
                header.shapes[shape].name
            ));
        }
        let seen = self.blocks.entry((shape, process)).or_default();
        if let Some(first) = seen.insert(number, line) {
            return Err(format!(
                "block {number} of {} is on line {first} already: \
                 two sweeps wrote this file, or lines were copied",
                called()
            ));
        }
        seen.note(line, block.print);
        self.run.tally.add(shape, process, &block.samples);
        Ok(())
    }

    fn build(&mut self, line: usize, build: Build) -> Result<(), String> {
        edge::build(&build)?;
        let contender = parse::contender(&self.run.names, build.contender.as_str())?;
        for name in &build.shapes {
            let shape = parse::shape(&self.run.names, name)?;
            if let Some(first) = self.built.insert((contender, shape), line) {
                let id = &build.contender;
                return Err(format!(
                    "`{id}` was built for `{name}` on line {first} already"
                ));
            }
            self.run
                .built
                .insert((contender, shape), self.run.builds.len());
        }
        self.run.builds.push(build);
        Ok(())
    }

    fn verdict(&mut self, line: usize, verdict: Verdict) -> Result<(), String> {
        let cell = self.cell(verdict.contender.as_str(), &verdict.shape)?;
        contradiction::verdict(&verdict, &self.run.header.settings)?;
        let before = self.judged.insert(cell, line);
        if let (Some(earlier), Some(first)) = (self.run.verdicts.get(&cell), before) {
            let (earlier, now) = (earlier.status, verdict.status);
            // A correct cell can turn out wrong while it is timed; a wrong one is not judged again,
            // except the yardstick, which every process times anew.
            let yardstick = self.run.header.yardstick.as_ref() == Some(&verdict.contender);
            let possible = now != Status::Ok && (earlier == Status::Ok || yardstick);
            if !possible {
                return Err(format!(
                    "`{}` is {} on `{}` on line {first}, and cannot be {} after that: \
                     two sweeps wrote this file, or lines were changed",
                    verdict.contender,
                    earlier.as_str(),
                    verdict.shape,
                    now.as_str()
                ));
            }
        }
        self.run.verdicts.insert(cell, verdict);
        Ok(())
    }

    fn estimate(&mut self, line: usize, estimate: Estimate) -> Result<(), String> {
        if self.run.timing().sampled() {
            return Err(format!(
                "an estimate in a {} run: its times are its blocks'",
                self.run.timing().as_str()
            ));
        }
        let cell = self.cell(estimate.contender.as_str(), &estimate.shape)?;
        edge::time(estimate.micros)?;
        edge::kernels(&estimate.kernels)?;
        contradiction::estimate(&estimate)?;
        if let Some(first) = self.estimated.insert(cell, line) {
            return Err(format!(
                "the time of `{}` on `{}` is on line {first} already: \
                 two sweeps wrote this file, or lines were copied",
                estimate.contender, estimate.shape
            ));
        }
        self.run.estimates.insert(cell, estimate);
        Ok(())
    }

    /// A resumed run may have examined cells that it skipped before.
    fn examined(&mut self, examined: ExaminedCell) -> Result<(), String> {
        let cell = self.cell(examined.contender.as_str(), &examined.shape)?;
        self.run.examined.insert(cell, examined);
        Ok(())
    }

    fn kernels(&mut self, of: CallKernels) -> Result<(), String> {
        if !self.run.timing().sampled() {
            return Err(format!(
                "kernels of their own in a {} run: they stand with its estimates",
                self.run.timing().as_str()
            ));
        }
        let cell = self.cell(of.contender.as_str(), &of.shape)?;
        edge::kernels(&of.kernels)?;
        match self.run.kernels.insert(cell, of.kernels) {
            None => Ok(()),
            Some(_) => Err(format!(
                "the kernels of `{}` on `{}` are there already: \
                 two sweeps wrote this file, or lines were copied",
                of.contender, of.shape
            )),
        }
    }

    fn tuning(&mut self, line: usize, tuning: Tuning) -> Result<(), String> {
        let shape = parse::shape(&self.run.names, &tuning.shape)?;
        let header = &self.run.header;
        if header.yardstick.is_none() {
            return Err("a tuning, and the header names no yardstick".to_owned());
        }
        edge::tuning(&tuning, header.shapes[shape].groups.len())?;
        if let Some(first) = self.tuned.insert(shape, line) {
            return Err(format!(
                "the yardstick was tuned for `{}` on line {first} already: \
                 two sweeps wrote this file, or lines were copied",
                tuning.shape
            ));
        }
        self.run.tunings.insert(shape, tuning);
        Ok(())
    }

    fn void(&mut self, void: &VoidedTimes) -> Result<(), String> {
        let shape = parse::shape(&self.run.names, &void.shape)?;
        self.blocks.retain(|(of, _), _| *of != shape);
        self.tuned.remove(&shape);
        self.run.tunings.remove(&shape);
        self.run.kernels.retain(|(_, of), _| *of != shape);
        self.run.cards.remove(&shape);
        self.run.tally.forget(shape);
        Ok(())
    }

    fn end(&mut self, line: usize, end: RunEnd) -> Result<(), String> {
        edge::end(&end)?;
        contradiction::end(&end)?;
        self.ended = end.complete.then_some(line);
        self.run.end = Some(end);
        Ok(())
    }

    fn cell(&self, contender: &str, shape: &str) -> Result<(usize, usize), String> {
        let names = &self.run.names;
        Ok((
            parse::contender(names, contender)?,
            parse::shape(names, shape)?,
        ))
    }
}

/// Numbers of blocks and their lines. Blocks are written one after the other, so only runs of
/// consecutive ones are stored.
#[derive(Default)]
struct Blocks {
    /// First block → the number of consecutive blocks, and the line of the first.
    runs: BTreeMap<u32, (u32, usize)>,
    count: u32,
    /// The line of the first block in the file.
    line: usize,
    /// A hash of their times that ignores their order and numbers.
    print: u64,
}

impl Blocks {
    fn note(&mut self, line: usize, print: u64) {
        if self.count == 0 {
            self.line = line;
        }
        self.count += 1;
        self.print = self.print.wrapping_add(print);
    }

    /// The number of missing blocks before the last.
    fn holes(&self) -> u64 {
        let last = self.runs.last_key_value();
        let all = last.map_or(0, |(first, (count, _))| {
            u64::from(*first) + u64::from(*count)
        });
        all - u64::from(self.count)
    }

    /// The line on which the block already is, if there is one.
    fn insert(&mut self, block: u32, line: usize) -> Option<usize> {
        let before = self.runs.range_mut(..=block).next_back();
        if let Some((first, (count, begun))) = before {
            let offset = block - first;
            if offset < *count {
                return Some(*begun + offset as usize);
            }
            if offset == *count && line == *begun + offset as usize {
                *count += 1;
                return None;
            }
        }
        self.runs.insert(block, (1, line));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_any_order_are_known_again() {
        let mut blocks = Blocks::default();
        let order = [5, 6, 7, 0, 1, 9, 8, 3];
        for (line, block) in order.into_iter().enumerate() {
            assert_eq!(blocks.insert(block, line), None, "{block}");
        }
        assert_eq!(blocks.runs.len(), 5);
        for (line, block) in order.into_iter().enumerate() {
            assert_eq!(blocks.insert(block, 99), Some(line), "{block}");
        }
        assert_eq!(blocks.insert(u32::MAX, 100), None);
        assert_eq!(blocks.insert(u32::MAX, 101), Some(100));
    }
}
