//! From blocks to numbers: the log ratio of two contenders within each block,
//! kept in its nest of process and block.

use crate::domain::ContenderId;
use crate::record::schema::Block;

/// One entry of a block: a contender, and which of its entries (the baseline
/// is entered twice).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    pub contender: ContenderId,
    pub arm: u32,
}

impl Arm {
    /// The contender's first entry: the one all estimates use. The second
    /// entry of the baseline is a control and never enters them.
    pub fn first(contender: &ContenderId) -> Self {
        Self {
            contender: contender.clone(),
            arm: 0,
        }
    }

    /// The baseline's second entry.
    pub fn control(contender: &ContenderId) -> Self {
        Self {
            contender: contender.clone(),
            arm: 1,
        }
    }

    fn logs<'b>(&'b self, block: &'b Block) -> impl Iterator<Item = f64> + 'b {
        let mine =
            |s: &&crate::record::schema::Sample| s.contender == self.contender && s.arm == self.arm;
        block.samples.iter().filter(mine).map(|s| s.micros.0.ln())
    }
}

/// Values of one shape, nested: process → block → sample. Processes are in the
/// order of their ids, so that the same place in two shapes is the same process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contrast {
    pub processes: Vec<Process>,
}

/// One process's blocks; each block holds one value or more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    pub id: u32,
    pub blocks: Vec<Vec<f64>>,
}

impl Contrast {
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    pub fn block_count(&self) -> usize {
        self.processes.iter().map(|p| p.blocks.len()).sum()
    }

    /// Every value, in file order.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let blocks = self.processes.iter().flat_map(|p| &p.blocks);
        blocks.flatten().copied()
    }

    fn push(&mut self, process: u32, values: Vec<f64>) {
        if values.is_empty() {
            return;
        }
        match self.processes.binary_search_by_key(&process, |p| p.id) {
            Ok(found) => self.processes[found].blocks.push(values),
            Err(place) => self.processes.insert(
                place,
                Process {
                    id: process,
                    blocks: vec![values],
                },
            ),
        }
    }
}

/// ln(`base` / `candidate`) on `shape`: positive where the candidate is faster.
/// Only blocks that timed both count, because the pairing is what removes
/// clock drift and temperature from the comparison.
pub fn log_ratios(blocks: &[Block], shape: &str, base: &Arm, candidate: &Arm) -> Contrast {
    let mut contrast = Contrast::default();
    for block in blocks.iter().filter(|b| b.shape == shape) {
        let pairs = base.logs(block).zip(candidate.logs(block));
        contrast.push(block.process, pairs.map(|(b, c)| b - c).collect());
    }
    contrast
}

/// ln(µs) of one arm on `shape`, for comparisons that no block can pair.
pub fn log_times(blocks: &[Block], shape: &str, arm: &Arm) -> Contrast {
    let mut contrast = Contrast::default();
    for block in blocks.iter().filter(|b| b.shape == shape) {
        contrast.push(block.process, arm.logs(block).collect());
    }
    contrast
}
