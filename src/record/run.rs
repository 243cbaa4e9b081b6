//! A run file in memory, with its loose ends tied: the last verdict of a cell
//! wins, and every name an event uses is one the header introduced.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::schema::{Block, Build, ContenderRecord, End, Estimate, Header, Timing, Verdict};
use crate::domain::{Bytes, ContenderId, Shape, Status};

/// One run as read from its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub path: PathBuf,
    pub header: Header,
    pub builds: Vec<Build>,
    pub blocks: Vec<Block>,
    pub end: Option<End>,
    /// The last line was half written (the run was killed) and is not counted.
    pub torn: bool,
    pub(super) verdicts: BTreeMap<(ContenderId, String), Verdict>,
    pub(super) estimates: BTreeMap<(ContenderId, String), Estimate>,
}

/// What a contender's kernels take of an SM: the worst over its kernels and shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resources {
    pub registers: u32,
    pub spill_bytes: u32,
    /// Static and dynamic together, of the kernel that needs most.
    pub smem: Bytes,
    pub occupancy: f64,
}

impl Run {
    pub fn timing(&self) -> Timing {
        self.header.device.timing
    }

    pub fn contender(&self, id: &ContenderId) -> Option<&ContenderRecord> {
        self.header.contenders.iter().find(|c| c.id == *id)
    }

    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.header.shapes.iter().find(|s| s.name == name)
    }

    pub fn is_yardstick(&self, id: &ContenderId) -> bool {
        self.header.yardstick.as_ref() == Some(id)
    }

    /// Contenders in the header's order, then the yardstick.
    pub fn entrants(&self) -> impl Iterator<Item = &ContenderId> {
        let contenders = self.header.contenders.iter().map(|c| &c.id);
        contenders.chain(self.header.yardstick.iter())
    }

    pub fn verdict(&self, contender: &ContenderId, shape: &str) -> Option<&Verdict> {
        self.verdicts.get(&(contender.clone(), shape.to_owned()))
    }

    pub fn estimate(&self, contender: &ContenderId, shape: &str) -> Option<&Estimate> {
        self.estimates.get(&(contender.clone(), shape.to_owned()))
    }

    /// What became of a cell; `None` while nothing is known of it.
    pub fn status(&self, contender: &ContenderId, shape: &str) -> Option<Status> {
        if let Some(verdict) = self.verdict(contender, shape) {
            return Some(verdict.status);
        }
        self.failed_build(contender, shape)
            .map(|_| Status::CompileError)
    }

    /// One line saying why a cell is not ok.
    pub fn reason(&self, contender: &ContenderId, shape: &str) -> Option<&str> {
        match self.verdict(contender, shape) {
            Some(verdict) => verdict.reason.as_deref(),
            None => self.failed_build(contender, shape)?.message.as_deref(),
        }
    }

    fn failed_build(&self, contender: &ContenderId, shape: &str) -> Option<&Build> {
        let serves = |b: &&Build| b.contender == *contender && b.shapes.iter().any(|s| s == shape);
        self.builds.iter().rev().find(serves).filter(|b| !b.ok)
    }

    /// `None` where nothing of the contender was built.
    pub fn resources(&self, contender: &ContenderId) -> Option<Resources> {
        let built = |b: &&Build| b.contender == *contender && b.ok;
        let kernels = self.builds.iter().filter(built).flat_map(|b| &b.kernels);
        kernels.fold(None, |worst: Option<Resources>, kernel| {
            let smem = Bytes(kernel.static_smem.0 + kernel.dynamic_smem.0);
            let worst = worst.unwrap_or(Resources {
                registers: 0,
                spill_bytes: 0,
                smem: Bytes(0),
                occupancy: f64::INFINITY,
            });
            Some(Resources {
                registers: worst.registers.max(kernel.registers),
                spill_bytes: worst.spill_bytes.max(kernel.spill_bytes),
                smem: worst.smem.max(smem),
                occupancy: worst.occupancy.min(kernel.occupancy),
            })
        })
    }

    /// Remarks of the compiler about a contender, each once.
    pub fn remarks(&self, contender: &ContenderId) -> Vec<&str> {
        let mut remarks: Vec<&str> = self
            .builds
            .iter()
            .filter(|b| b.contender == *contender)
            .flat_map(|b| b.remarks.iter().map(String::as_str))
            .collect();
        remarks.sort_unstable();
        remarks.dedup();
        remarks
    }
}
