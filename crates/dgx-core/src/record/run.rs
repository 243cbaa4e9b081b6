//! A run file in memory, made consistent: the last verdict of a cell counts, and every name in an
//! event is one from the header.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::Arc;

use super::names::Names;
use super::schema::{Build, ContenderRecord, Estimate, ExaminedCell, Header, RunEnd};
use crate::config::Yardstick;
use crate::domain::roofline::ResourceDemand;
use crate::domain::{
    BackendKind, Bytes, ContenderId, HazardWatch, KernelTime, Shape, Status, Timing, Tuning,
    Verdict,
};
use crate::operator::{self, Operator};
use crate::stats::{Contrast, Reservoir, Tally};

/// One run as read from its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub path: PathBuf,
    pub header: Header,
    /// The operator of its shapes.
    pub operator: Arc<Operator>,
    pub builds: Vec<Build>,
    /// Statistics of the blocks, by the numbers of shapes and arms.
    pub tally: Tally,
    pub end: Option<RunEnd>,
    /// The tool that timed it, if that was not dgx.
    pub tool: Option<String>,
    /// The last line was half written (the run was killed) and is not counted.
    pub torn: bool,
    /// By the number of a shape: blocks missing between others.
    pub(super) holes: HashMap<usize, u64>,
    pub(super) names: Names,
    /// By the numbers of entrant and shape, like verdicts and estimates: the build that serves a
    /// cell.
    pub(super) built: HashMap<(usize, usize), usize>,
    pub(super) verdicts: HashMap<(usize, usize), Verdict>,
    pub(super) estimates: HashMap<(usize, usize), Estimate>,
    /// Of measured calls.
    pub(super) kernels: HashMap<(usize, usize), Vec<KernelTime>>,
    pub(super) examined: HashMap<(usize, usize), ExaminedCell>,
    /// By the number of the shape.
    pub(super) tunings: HashMap<usize, Tuning>,
    /// By the number of a timed shape: its card, if known.
    pub(super) cards: HashMap<usize, Option<String>>,
}

/// The resources that a contender's kernels take on an SM: the maximum over its kernels and shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resources {
    pub registers: u32,
    pub spill_bytes: u32,
    /// Static and dynamic together, of the kernel that needs most.
    pub smem: Bytes,
    pub occupancy: f64,
}

impl Run {
    /// A run with only a header.
    pub(super) fn begun(path: PathBuf, header: Header) -> Self {
        let names = Names::of(&header);
        Self {
            path,
            tally: Tally::new(header.shapes.len()),
            names,
            operator: header
                .operator()
                .unwrap_or_else(|_| Arc::clone(operator::default_operator())),
            header,
            builds: Vec::new(),
            end: None,
            tool: None,
            torn: false,
            holes: HashMap::new(),
            built: HashMap::new(),
            verdicts: HashMap::new(),
            estimates: HashMap::new(),
            kernels: HashMap::new(),
            examined: HashMap::new(),
            tunings: HashMap::new(),
            cards: HashMap::new(),
        }
    }

    /// Drops all shapes but those of these names, as if the round had no others.
    pub fn keep_shapes(&mut self, kept: impl Fn(&str) -> bool) {
        let shapes = std::mem::take(&mut self.header.shapes);
        let (places, shapes): (Vec<usize>, Vec<Shape>) = (shapes.into_iter().enumerate())
            .filter(|(_, shape)| kept(&shape.name))
            .unzip();
        self.header.shapes = shapes;
        self.names = Names::of(&self.header);
        self.tally.keep(&places);
        let now = |before: usize| places.iter().position(|place| *place == before);
        let cell = |(arm, shape): (usize, usize)| Some((arm, now(shape)?));
        self.built = rekeyed(&mut self.built, cell);
        self.verdicts = rekeyed(&mut self.verdicts, cell);
        self.estimates = rekeyed(&mut self.estimates, cell);
        self.kernels = rekeyed(&mut self.kernels, cell);
        self.examined = rekeyed(&mut self.examined, cell);
        self.tunings = rekeyed(&mut self.tunings, now);
        self.cards = rekeyed(&mut self.cards, now);
        self.holes = rekeyed(&mut self.holes, now);
    }

    pub fn timing(&self) -> Timing {
        self.header.device.timing
    }

    pub fn contender(&self, id: &ContenderId) -> Option<&ContenderRecord> {
        self.header.contenders.get(self.arm(id)?)
    }

    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.header.shapes.get(self.names.shape(name)?)
    }

    /// The minimum work of any design on a shape.
    pub fn least_work(&self, contender: &ContenderId, shape: &str) -> Option<ResourceDemand> {
        let mut work = self.operator.least_work(self.shape(shape)?);
        // A copy moves the operator's bytes, and multiplies nothing.
        if *contender == Yardstick::Copy.id() {
            work.products.clear();
        }
        Some(work)
    }

    /// The number of a contender's (or the yardstick's) first entry, which all estimates use.
    pub fn arm(&self, id: &ContenderId) -> Option<usize> {
        self.names.entrant(id.as_str())
    }

    fn cell(&self, contender: &ContenderId, shape: &str) -> Option<(usize, usize)> {
        Some((self.arm(contender)?, self.names.shape(shape)?))
    }

    /// ln(µs) of a contender on a shape, for comparisons without common blocks.
    pub fn times(&self, contender: &ContenderId, shape: &str) -> Contrast {
        let cell = self.cell(contender, shape);
        cell.map_or_else(Contrast::default, |(arm, s)| self.tally.times(s, arm))
    }

    /// The baseline over itself: its first entry over its second, on the shape of this number.
    pub fn control(&self, shape: usize) -> Contrast {
        let first = self.arm(&self.header.baseline);
        first.map_or_else(Contrast::default, |first| {
            self.tally.ratios(shape, first, self.names.control())
        })
    }

    /// Samples of a contender on a shape; `None` if it was not timed.
    pub fn samples(&self, contender: &ContenderId, shape: &str) -> Option<&Reservoir> {
        let (arm, shape) = self.cell(contender, shape)?;
        self.tally.samples(shape, arm)
    }

    pub(crate) fn is_yardstick(&self, id: &ContenderId) -> bool {
        self.header.yardstick.as_ref() == Some(id)
    }

    /// Contenders in the header's order, then the yardstick.
    pub fn entrants(&self) -> impl Iterator<Item = &ContenderId> {
        let contenders = self.header.contenders.iter().map(|c| &c.id);
        contenders.chain(self.header.yardstick.iter())
    }

    pub fn verdict(&self, contender: &ContenderId, shape: &str) -> Option<&Verdict> {
        self.verdicts.get(&self.cell(contender, shape)?)
    }

    pub fn estimate(&self, contender: &ContenderId, shape: &str) -> Option<&Estimate> {
        self.estimates.get(&self.cell(contender, shape)?)
    }

    /// The time of each kernel of a call, in order, if known.
    pub fn kernels(&self, contender: &ContenderId, shape: &str) -> &[KernelTime] {
        let measured = self
            .cell(contender, shape)
            .and_then(|c| self.kernels.get(&c));
        let modelled = || Some(&self.estimate(contender, shape)?.kernels);
        measured.or_else(modelled).map_or(&[], Vec::as_slice)
    }

    /// Whether the emulator watched a cell for hazards: in emulated runs by the settings, in
    /// measured ones if there was time.
    pub fn was_examined(&self, contender: &ContenderId, shape: &str) -> bool {
        if self.header.device.backend == BackendKind::Emu {
            return self.header.settings.hazards != HazardWatch::Off;
        }
        let examined = self.cell(contender, shape);
        let examined = examined.and_then(|cell| self.examined.get(&cell));
        examined.is_some_and(|examined| examined.left_out.is_none())
    }

    /// How the yardstick computes a shape, if it was tuned for it.
    pub fn tuning(&self, shape: &str) -> Option<&Tuning> {
        self.tunings.get(&self.names.shape(shape)?)
    }

    /// The card a shape was timed on, if it was and the card is known.
    pub fn card(&self, shape: &str) -> Option<&str> {
        self.cards.get(&self.names.shape(shape)?)?.as_deref()
    }

    /// Every card that timed a shape, once.
    pub fn cards(&self) -> BTreeSet<&str> {
        self.cards.values().flatten().map(String::as_str).collect()
    }

    /// The number of blocks of a shape that are missing between others.
    pub fn missing_blocks(&self, shape: &str) -> u64 {
        let place = self.names.shape(shape);
        place
            .and_then(|place| self.holes.get(&place).copied())
            .unwrap_or(0)
    }

    /// Whether both files have one run: one is a copy of the other, or of its beginning.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let (a, b) = (&self.header, &other.header);
        if self.tool.is_some() {
            // Whatever another tool reports, no two runs measure the same times.
            return self.tool == other.tool
                && a.contenders == b.contenders
                && a.shapes == b.shapes
                && (&self.tally, &self.estimates) == (&other.tally, &other.estimates);
        }
        let (one, two) = (&a.settings, &b.settings);
        let drawn = one.secret.is_some() && !one.secret_given;
        let begun = (&a.started, one.seed) == (&b.started, two.seed);
        one.secret == two.secret && a.shard == b.shard && (drawn || begun)
    }

    /// The status of a cell; `None` while it is unknown.
    pub fn status(&self, contender: &ContenderId, shape: &str) -> Option<Status> {
        if let Some(verdict) = self.verdict(contender, shape) {
            return Some(verdict.status);
        }
        self.failed_build(contender, shape)
            .map(|_| Status::CompileError)
    }

    /// One line with the reason why a cell is not ok.
    pub fn reason(&self, contender: &ContenderId, shape: &str) -> Option<&str> {
        match self.verdict(contender, shape) {
            Some(verdict) => verdict.reason.as_deref(),
            None => self.failed_build(contender, shape)?.message.as_deref(),
        }
    }

    fn failed_build(&self, contender: &ContenderId, shape: &str) -> Option<&Build> {
        let build = self.built.get(&self.cell(contender, shape)?)?;
        self.builds.get(*build).filter(|b| !b.ok)
    }

    /// `None` if nothing of the contender was built.
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

fn rekeyed<K: Eq + Hash, T>(
    map: &mut HashMap<K, T>,
    key: impl Fn(K) -> Option<K>,
) -> HashMap<K, T> {
    let entries = std::mem::take(map).into_iter();
    entries.filter_map(|(k, v)| Some((key(k)?, v))).collect()
}
