use crate::domain::{ContenderId, Micros};

/// A time that no device of its kind can reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Impossible {
    pub contender: ContenderId,
    pub shape: String,
    pub time: Micros,
    /// The minimum by the roofline.
    pub least: Micros,
}

/// Something a run lacks to be complete.
#[derive(Clone, Debug, PartialEq)]
pub enum Gap {
    NotEnded,
    /// With the first line of the reason, if there is one.
    Stopped(Option<String>),
    /// Cells without a verdict.
    Unjudged {
        cells: usize,
        of: usize,
    },
    /// Cells that are correct but have no time.
    Untimed {
        cells: usize,
        of: usize,
    },
    /// Shapes timed in fewer processes than planned, and in how many.
    Thin {
        processes: u32,
        /// The fewest blocks with which a process counts.
        blocks: u64,
        shapes: Vec<(String, usize)>,
    },
    /// Shapes with blocks missing between others, and how many.
    Holes(Vec<(String, u64)>),
    /// The settings in which it was validated less strictly than the baseline run.
    Looser(Vec<String>),
    /// It is one of several shards.
    Shard {
        number: u32,
        of: u32,
    },
    /// Only times were asked for: results were not checked.
    NotValidated,
    /// Times below the roofline, which a sweep would have rejected.
    Impossible(Vec<Impossible>),
    /// Its times prove nothing.
    Scripted,
}
