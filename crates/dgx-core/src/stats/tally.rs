//! The data kept of a run's blocks: enough for every estimate, and nothing that grows with the
//! number of blocks.
//!
//! Estimates compare two arms within the blocks that timed both, process by process, so a process
//! keeps count, mean and scatter of every arm and of every pair's log ratio. With few blocks and
//! many arms the rows themselves are smaller; a process keeps its rows until the table of pairs is
//! smaller. Both give the same numbers, to the last bit.

use std::collections::BTreeMap;

use super::reservoir::Reservoir;
use super::{Contrast, Moments};

/// One entry of a block. The caller numbers the arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    pub arm: usize,
    /// ln(µs).
    pub log: f64,
    pub clock_mhz: Option<f64>,
}

/// The blocks of a run, by shape, process and arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    arms: usize,
    blocks: usize,
    shapes: Vec<OneShape>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct OneShape {
    /// By id, so that the same index in two shapes is the same process.
    processes: BTreeMap<u32, Process>,
    cells: BTreeMap<usize, Reservoir>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Process {
    blocks: u32,
    kept: StoredTimes,
}

#[derive(Clone, Debug, PartialEq)]
enum StoredTimes {
    Rows(Rows),
    Pairs(Pairs),
}

impl Default for StoredTimes {
    fn default() -> Self {
        Self::Rows(Rows::default())
    }
}

impl Tally {
    pub fn new(shapes: usize, arms: usize) -> Self {
        Self {
            arms,
            blocks: 0,
            shapes: vec![OneShape::default(); shapes],
        }
    }

    /// Adds one block: each arm at most once.
    pub fn add(&mut self, shape: usize, process: u32, block: &[Sampled]) {
        self.blocks += 1;
        let shape = &mut self.shapes[shape];
        for sample in block {
            shape
                .cells
                .entry(sample.arm)
                .or_default()
                .add(process, sample);
        }
        shape
            .processes
            .entry(process)
            .or_default()
            .add(block, self.arms);
    }

    /// Drops all blocks of a shape.
    pub fn forget(&mut self, shape: usize) {
        let dropped = std::mem::take(&mut self.shapes[shape]);
        let blocks = dropped.processes.values().map(|p| p.blocks as usize);
        self.blocks -= blocks.sum::<usize>();
    }

    /// Keeps only these shapes, renumbered by their index in the list.
    pub fn keep(&mut self, kept: &[usize]) {
        self.shapes = kept.iter().map(|s| self.shapes[*s].clone()).collect();
        let processes = self.shapes.iter().flat_map(|s| s.processes.values());
        self.blocks = processes.map(|p| p.blocks as usize).sum();
    }

    /// Makes looking up many pairs fast; worth it once the last block is in.
    pub fn settle(&mut self) {
        for process in self
            .shapes
            .iter_mut()
            .flat_map(|s| s.processes.values_mut())
        {
            if let StoredTimes::Rows(rows) = &mut process.kept {
                rows.sort(self.arms);
            }
        }
    }

    /// How many shapes there are, timed or not.
    pub fn shapes(&self) -> usize {
        self.shapes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Blocks of all shapes and processes.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// A shape's processes, each with its number of blocks.
    pub fn processes(&self, shape: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let processes = self
            .shapes
            .get(shape)
            .into_iter()
            .flat_map(|s| &s.processes);
        processes.map(|(id, process)| (*id, process.blocks))
    }

    /// Different processes over all shapes.
    pub fn process_count(&self) -> usize {
        let ids = self.shapes.iter().flat_map(|s| s.processes.keys());
        ids.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Samples of one arm on a shape, or a uniform selection of them.
    pub fn samples(&self, shape: usize, arm: usize) -> Option<&Reservoir> {
        self.shapes.get(shape)?.cells.get(&arm)
    }

    /// ln(µs) of one arm, for comparisons without common blocks.
    pub fn times(&self, shape: usize, arm: usize) -> Contrast {
        self.contrast(shape, |process| process.times(arm))
    }

    /// ln(`base` / `candidate`): positive if the candidate is faster. Only blocks that timed both
    /// count, because the pairing removes clock drift and temperature from the comparison.
    pub fn ratios(&self, shape: usize, base: usize, candidate: usize) -> Contrast {
        self.contrast(shape, |process| process.ratios(base, candidate))
    }

    fn contrast(&self, shape: usize, of: impl Fn(&Process) -> Moments) -> Contrast {
        let Some(OneShape { processes, .. }) = self.shapes.get(shape) else {
            return Contrast::default();
        };
        // Called for every pair on every shape: allocates for all of them at once.
        let mut moments = Vec::with_capacity(processes.len());
        let each = processes.iter().map(|(id, process)| (*id, of(process)));
        moments.extend(each.filter(|(_, m)| m.count > 0));
        Contrast { processes: moments }
    }
}

impl Process {
    fn add(&mut self, block: &[Sampled], arms: usize) {
        if let StoredTimes::Rows(rows) = &mut self.kept {
            let values = rows.entries.len() + block.len();
            if values * size_of::<LoggedTime>() <= Pairs::bytes(arms) {
                rows.add(self.blocks, block);
            } else {
                self.kept = StoredTimes::Pairs(rows.paired(arms));
            }
        }
        if let StoredTimes::Pairs(pairs) = &mut self.kept {
            pairs.add(block.iter().map(|s| (s.arm, s.log)));
        }
        self.blocks += 1;
    }

    fn times(&self, arm: usize) -> Moments {
        match &self.kept {
            StoredTimes::Rows(rows) => rows.column(arm).map(|e| e.log).collect(),
            StoredTimes::Pairs(pairs) => pairs.singles[arm],
        }
    }

    fn ratios(&self, base: usize, candidate: usize) -> Moments {
        match &self.kept {
            StoredTimes::Rows(rows) => rows.ratios(base, candidate),
            StoredTimes::Pairs(pairs) => pairs.ratios(base, candidate),
        }
    }
}

/// The blocks as they were added.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rows {
    entries: Vec<LoggedTime>,
    /// Where each arm's entries begin, and the end; empty until they are sorted by arm.
    starts: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LoggedTime {
    row: u32,
    arm: u32,
    log: f64,
}

impl Rows {
    fn add(&mut self, row: u32, block: &[Sampled]) {
        self.undo_sorting();
        self.entries.extend(block.iter().map(|sample| LoggedTime {
            row,
            arm: sample.arm as u32,
            log: sample.log,
        }));
    }

    fn sort(&mut self, arms: usize) {
        self.entries.sort_by_key(|e| (e.arm, e.row));
        let before = |arm: usize| self.entries.partition_point(|e| (e.arm as usize) < arm);
        self.starts = (0..=arms).map(|arm| before(arm) as u32).collect();
    }

    fn undo_sorting(&mut self) {
        if !self.starts.is_empty() {
            self.starts.clear();
            self.entries.sort_by_key(|e| e.row);
        }
    }

    /// One arm's entries by row, if they are sorted.
    fn sorted(&self, arm: usize) -> Option<&[LoggedTime]> {
        let ends = self.starts.get(arm..arm + 2)?;
        Some(&self.entries[ends[0] as usize..ends[1] as usize])
    }

    /// One arm's entries by row.
    fn column(&self, arm: usize) -> impl Iterator<Item = &LoggedTime> {
        let within = self.sorted(arm).unwrap_or(&self.entries);
        within.iter().filter(move |e| e.arm as usize == arm)
    }

    fn ratios(&self, base: usize, candidate: usize) -> Moments {
        let mut moments = Moments::default();
        // Most blocks time all arms: then no search is needed.
        if let (Some(bases), Some(others)) = (self.sorted(base), self.sorted(candidate))
            && bases.len() == others.len()
            && bases.iter().zip(others).all(|(b, o)| b.row == o.row)
        {
            for (entry, other) in bases.iter().zip(others) {
                moments.add(entry.log - other.log);
            }
            return moments;
        }
        let mut others = self.column(candidate).peekable();
        for entry in self.column(base) {
            while others.next_if(|o| o.row < entry.row).is_some() {}
            if let Some(other) = others.next_if(|o| o.row == entry.row) {
                moments.add(entry.log - other.log);
            }
        }
        moments
    }

    fn paired(&mut self, arms: usize) -> Pairs {
        self.undo_sorting();
        let mut pairs = Pairs::new(arms);
        for row in self.entries.chunk_by(|a, b| a.row == b.row) {
            pairs.add(row.iter().map(|e| (e.arm as usize, e.log)));
        }
        pairs
    }
}

/// Every arm, and every pair's log ratio over the blocks that timed both.
#[derive(Clone, Debug, PartialEq)]
struct Pairs {
    singles: Vec<Moments>,
    /// The lower arm over the higher one, by [`place`].
    ratios: Vec<Moments>,
}

/// The index of a pair, `low` below `high`, in a triangle.
fn place(low: usize, high: usize) -> usize {
    high * (high - 1) / 2 + low
}

impl Pairs {
    fn new(arms: usize) -> Self {
        Self {
            singles: vec![Moments::default(); arms],
            ratios: vec![Moments::default(); place(0, arms.max(1))],
        }
    }

    fn bytes(arms: usize) -> usize {
        (arms + place(0, arms.max(1))) * size_of::<Moments>()
    }

    fn add(&mut self, block: impl Iterator<Item = (usize, f64)> + Clone) {
        let mut rest = block;
        while let Some((arm, log)) = rest.next() {
            self.singles[arm].add(log);
            for (other, other_log) in rest.clone() {
                match arm < other {
                    true => self.ratios[place(arm, other)].add(log - other_log),
                    false => self.ratios[place(other, arm)].add(other_log - log),
                }
            }
        }
    }

    fn ratios(&self, base: usize, candidate: usize) -> Moments {
        match base.cmp(&candidate) {
            std::cmp::Ordering::Less => self.ratios[place(base, candidate)],
            std::cmp::Ordering::Greater => self.ratios[place(candidate, base)].negated(),
            std::cmp::Ordering::Equal => Moments {
                count: self.singles[base].count,
                ..Moments::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ARMS: usize = 5;

    /// Processes, each with blocks that time some of the arms.
    fn runs() -> impl Strategy<Value = Vec<(u32, Vec<Sampled>)>> {
        let block = prop::collection::vec(prop::option::of(-1.0..1.0f64), ARMS);
        let samples = block.prop_map(|logs| {
            let timed = logs.into_iter().enumerate();
            let sampled = |(arm, log): (usize, Option<f64>)| {
                Some(Sampled {
                    arm,
                    log: log?,
                    clock_mhz: None,
                })
            };
            timed.filter_map(sampled).collect()
        });
        prop::collection::vec((0..3u32, samples), 0..60)
    }

    fn plain(blocks: &[(u32, Vec<Sampled>)], base: usize, candidate: usize) -> Contrast {
        let mut processes = BTreeMap::<u32, Moments>::new();
        for (process, block) in blocks {
            let log = |arm: usize| block.iter().find(|s| s.arm == arm).map(|s| s.log);
            if let (Some(b), Some(c)) = (log(base), log(candidate)) {
                processes.entry(*process).or_default().add(b - c);
            }
        }
        Contrast {
            processes: processes.into_iter().collect(),
        }
    }

    proptest! {
        #[test]
        fn pairs_are_what_their_common_blocks_say(blocks in runs(), again in runs()) {
            let mut tally = Tally::new(1, ARMS);
            let mut all = Vec::new();
            // Settled half-way, which is allowed.
            for part in [blocks, again] {
                for (process, block) in &part {
                    tally.add(0, *process, block);
                }
                tally.settle();
                all.extend(part);
                for base in 0..ARMS {
                    for candidate in (0..ARMS).filter(|c| *c != base) {
                        let found = tally.ratios(0, base, candidate);
                        prop_assert_eq!(found, plain(&all, base, candidate));
                    }
                }
            }
            prop_assert_eq!(tally.blocks(), all.len());
        }
    }

    #[test]
    fn a_hundred_thousand_blocks_take_no_more_room_than_a_hundred() {
        let block: Vec<Sampled> = (0..ARMS)
            .map(|arm| Sampled {
                arm,
                log: arm as f64,
                clock_mhz: Some(1755.0),
            })
            .collect();
        let mut tally = Tally::new(1, ARMS);
        (0..100_000).for_each(|_| tally.add(0, 0, &block));
        let process = &tally.shapes[0].processes[&0];
        assert!(matches!(process.kept, StoredTimes::Pairs(_)));
        let samples = tally.samples(0, 0).unwrap();
        assert_eq!(samples.seen(), 100_000);
        assert!(samples.logs().count() < 5000);
    }
}
