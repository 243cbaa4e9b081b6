//! A round and a catalog become a plan: which contenders meet which shapes,
//! which images must be compiled for that, and every number of every launch.
//! Nothing here compiles or runs.

mod call;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use call::{
    Fill, LaunchGeometry, MapGeometry, MapLayout, MapType, OperandRef, OperatorCall, ScratchLayout,
    ScratchSize, Swizzle,
};

use crate::catalog::Contender;
use crate::config::Round;
use crate::domain::{Bytes, ContenderId, Shape};

/// What of the device the plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Multiprocessors: `sms` in expressions.
    pub sms: u32,
    /// Memory that operands and scratch must fit in.
    pub memory: Bytes,
}

impl Machine {
    /// What `check` and `list` plan for where no device is asked for.
    pub const H200: Self = Self {
        sms: 132,
        memory: Bytes(139 << 30),
    };
}

/// Everything a sweep will do, decided before anything is run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub round: Round,
    pub baseline: ContenderId,
    pub contenders: Vec<Contender>,
    pub shapes: Vec<Shape>,
    /// Every contender on every shape, contender by contender.
    pub cells: Vec<Cell>,
    pub builds: Vec<BuildSpec>,
}

/// One contender on one shape, by their places in the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub contender: usize,
    pub shape: usize,
    pub work: Work,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Run {
        /// Place in [`Plan::builds`].
        build: usize,
        call: OperatorCall,
    },
    /// The variant rules this shape out.
    Unsupported { reason: String },
}

/// One image to compile; contenders whose constants depend on the shape have several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildSpec {
    pub contender: ContenderId,
    /// The `.cu`, for messages; the text below is what is compiled.
    pub path: PathBuf,
    pub source: String,
    pub include: Vec<PathBuf>,
    pub arch: String,
    /// All `-DNAME=value`: constants, map and scratch indices.
    pub defines: BTreeMap<String, i64>,
    /// Parameters, tuned choices and constants alone, for the record.
    pub constants: BTreeMap<String, i64>,
    /// Kernels the launches name, in order, without repeats.
    pub kernels: Vec<String>,
    /// Names of the shapes this image serves.
    pub shapes: Vec<String>,
}
