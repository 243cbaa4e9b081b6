//! The times of a run's blocks, as estimates need them: comparisons are made within the blocks that
//! timed both arms, process by process.

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
    /// The times of each arm, in the order of the blocks. Only timed arms: a small file may name
    /// thousands of contenders, shapes and processes.
    arms: BTreeMap<usize, Vec<LoggedTime>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LoggedTime {
    /// Which block of the process.
    block: u32,
    log: f64,
}

impl Tally {
    pub fn new(shapes: usize) -> Self {
        Self {
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
        shape.processes.entry(process).or_default().add(block);
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
    fn add(&mut self, block: &[Sampled]) {
        for sample in block {
            self.arms.entry(sample.arm).or_default().push(LoggedTime {
                block: self.blocks,
                log: sample.log,
            });
        }
        self.blocks += 1;
    }

    fn times(&self, arm: usize) -> Moments {
        self.of(arm).iter().map(|time| time.log).collect()
    }

    /// The times of an arm.
    fn of(&self, arm: usize) -> &[LoggedTime] {
        self.arms.get(&arm).map_or(&[], Vec::as_slice)
    }

    fn ratios(&self, base: usize, candidate: usize) -> Moments {
        let mut others = self.of(candidate).iter().peekable();
        let of = |time: &LoggedTime| {
            while others.next_if(|o| o.block < time.block).is_some() {}
            let other = others.next_if(|o| o.block == time.block)?;
            Some(time.log - other.log)
        };
        self.of(base).iter().filter_map(of).collect()
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

    #[test]
    fn arms_without_times_take_no_memory() {
        let (shapes, arms, processes) = (5, 2000, 1024);
        let mut tally = Tally::new(shapes);
        let sampled = |arm, log| Sampled {
            arm,
            log,
            clock_mhz: None,
        };
        for shape in 0..shapes {
            for process in 0..processes {
                let block = [sampled(process as usize, 1.0), sampled(arms - 1, 0.5)];
                tally.add(shape, process, &block);
            }
        }
        let kept = tally.shapes.iter().flat_map(|s| s.processes.values());
        let kept = kept.map(|process| process.arms.len()).sum::<usize>();
        assert_eq!(kept, 2 * shapes * processes as usize);
        let ratios = tally.ratios(4, 3, arms - 1).processes;
        assert_eq!(ratios, [(3, Moments::from_iter([0.5]))]);
        assert_eq!(tally.times(0, arms - 1).processes.len(), 1024);
        assert!(tally.times(0, arms - 2).processes.is_empty());
    }

    proptest! {
        #[test]
        fn pairs_are_what_their_common_blocks_say(blocks in runs(), again in runs()) {
            let mut tally = Tally::new(1);
            let mut all = Vec::new();
            for part in [blocks, again] {
                for (process, block) in &part {
                    tally.add(0, *process, block);
                }
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
}
