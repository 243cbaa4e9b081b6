//! The data that the first pass over a kernel hands to the second.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::names::{File, Label};
use crate::op::{Pc, RegisterHazard};

/// Where control goes after a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the next group.
    Next,
    /// To one of the labels, or (if guarded) to the next group.
    Branch(Vec<Label>),
    /// Out of the function; if guarded, only for some lanes.
    Return,
    /// The thread ends or traps.
    Abort,
}

/// One PTX instruction's run of emitted instructions.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub start: Pc,
    pub guarded: bool,
    pub flow: Flow,
}

/// The results of the first pass.
#[derive(Default)]
pub(crate) struct Survey {
    pub groups: Vec<Group>,
    /// Registers that must not share a slot: asynchronous operands and register parameters.
    pub pinned: BTreeSet<(File, u32)>,
    /// Plain 32-bit moves: (from, to).
    pub copies: Vec<(u32, u32)>,
    /// First instruction after each label.
    pub labels: Vec<Pc>,
    /// Bodies in order of emission: (function, first group, one past the last).
    pub bodies: Vec<(usize, u32, u32)>,
    /// Entry of each function: (for direct calls, for calls through its address).
    pub entries: HashMap<usize, (Pc, Pc)>,
}

/// The data that the second pass needs beforehand.
#[derive(Default)]
pub(crate) struct Plan {
    /// Physical slot of each virtual register, by file.
    pub slots: [Vec<u32>; 3],
    /// Slots in use, by file; constants come after them.
    pub used: [u32; 3],
    /// Slots of each body, in order of emission: 32-bit, 64-bit, predicates.
    pub body_slots: Vec<[Range<u32>; 3]>,
    pub labels: Vec<Pc>,
    pub entries: HashMap<usize, (Pc, Pc)>,
    /// Reconvergence point of the branch group that starts at this instruction.
    pub reconverge: HashMap<Pc, Pc>,
    /// Absolute address of each shared variable.
    pub shared: Vec<u32>,
    /// 32-bit virtual registers that some instruction reads.
    pub read: BTreeSet<u32>,
    /// Hazards of its registers.
    pub register_hazards: Vec<RegisterHazard>,
}

/// The first number of constants in the first pass: beyond any virtual register.
pub(crate) const SURVEY_CONSTANTS: u32 = 1 << 30;
