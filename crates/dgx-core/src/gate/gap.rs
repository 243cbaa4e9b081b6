use crate::domain::{ContenderId, Micros};

/// A time that no device of its kind can reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Impossible {
    pub contender: ContenderId,
    pub shape: String,
    pub time: Micros,
    /// What the roofline allows at least.
    pub least: Micros,
}

/// Something a run lacks to be whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Gap {
    NotEnded,
    /// With the first line of why, where it says.
    Stopped(Option<String>),
    /// Cells without a verdict.
    Unjudged {
        cells: usize,
        of: usize,
    },
    /// Cells that are right and have no time.
    Untimed {
        cells: usize,
        of: usize,
    },
    /// Shapes timed in fewer processes than the run set out to, and in how many.
    Thin {
        processes: u32,
        /// Blocks of a process that counts.
        blocks: u64,
        shapes: Vec<(String, usize)>,
    },
    /// Shapes with blocks missing between others, and how many.
    Holes(Vec<(String, u64)>),
    /// In what it was validated less strictly than the baseline run.
    Looser(Vec<String>),
    /// It is one of so many shards.
    Shard {
        number: u32,
        of: u32,
    },
    /// Only times were asked for: nobody knows who is right.
    NotValidated,
    /// Times below the roofline, which a sweep would have rejected.
    Impossible(Vec<Impossible>),
    /// Its times prove nothing.
    Scripted,
}
