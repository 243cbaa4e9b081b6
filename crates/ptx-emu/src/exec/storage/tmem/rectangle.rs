//! Words of tensor memory that a warp loads or stores together.

use super::reach::Reach;
use crate::exec::lanes::V32;
use crate::tensor::tcgen05::{LANES, MoveLanes, MoveShape};

/// Words of tensor memory that a warp moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) shape: MoveShape,
    pub(crate) split: u32,
    pub(crate) packed: bool,
    pub(crate) lane: u32,
    pub(crate) column: u32,
}

/// A load that was issued and not waited for.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) pc: u32,
    pub(crate) from: Rectangle,
    /// What it found, if it has looked already.
    pub(crate) values: Option<Box<[V32]>>,
}

/// A store that was issued and not waited for.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) to: Rectangle,
    pub(crate) values: Box<[V32]>,
}

impl Rectangle {
    /// Where register `j` of thread `t` lies: the word, and the one that holds its upper half.
    fn place(&self, t: usize, j: usize) -> (usize, usize) {
        let (lane, column) = self.shape.place(t, j);
        let lane = self.lane as usize + lane;
        let half = if self.shape.second(t) { self.split } else { 0 };
        let first = (self.column + half) as usize;
        let word = |column: usize| (first + column) * LANES + lane;
        match self.packed {
            false => (word(column), word(column)),
            true => (word(2 * column), word(2 * column + 1)),
        }
    }

    /// Columns of tensor memory from first to last.
    pub(crate) fn reaches(&self) -> Vec<Reach> {
        let lanes = match self.shape.tall() {
            32 => 0xffff_ffff,
            _ => 0xffff,
        };
        let wide = self.shape.columns() * if self.packed { 2 } else { 1 };
        let starts = match self.shape.lanes {
            MoveLanes::L16x32x2 => vec![self.column, self.column + self.split],
            _ => vec![self.column],
        };
        let reach = |start: u32| Reach {
            columns: start..start + wide,
            lanes: lanes << self.lane,
        };
        starts.into_iter().map(reach).collect()
    }

    pub(crate) fn load(&self, words: &[u32], registers: usize) -> Box<[V32]> {
        (0..registers).map(|j| self.register(words, j)).collect()
    }

    pub(crate) fn register(&self, words: &[u32], j: usize) -> V32 {
        if self.shape.lanes == MoveLanes::L32x32 && !self.packed {
            let first = self.place(0, j).0;
            let mut lanes = [0; 32];
            lanes.copy_from_slice(&words[first..][..32]);
            return V32(lanes);
        }
        V32(std::array::from_fn(|t| {
            match (self.packed, self.place(t, j)) {
                (false, (word, _)) => words[word],
                (true, (low, high)) => words[low] & 0xffff | words[high] << 16,
            }
        }))
    }

    pub(crate) fn store(&self, words: &mut [u32], values: &[V32]) {
        for (j, register) in values.iter().enumerate() {
            for (t, &value) in register.0.iter().enumerate() {
                let (low, high) = self.place(t, j);
                match self.packed {
                    false => words[low] = value,
                    true => (words[low], words[high]) = (value & 0xffff, value >> 16),
                }
            }
        }
    }
}
