//! The wire format of `results/*.jsonl`, version 1. The first line is a
//! [`Header`]; each further line another [`Line`]. Unknown keys are refused, so a
//! file of another version is never half understood.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::is_elided;
use crate::config::Round;
use crate::diagnostic::{InputError, SourceFile};
use crate::domain::mix;
use crate::domain::roofline::Ceiling;
use crate::domain::{
    BackendKind, Block, Bytes, Calibration, Claim, ContenderId, Device, Distribution, Hazard,
    HazardWatch, KernelTime, Micros, Shape, Status, Timing, Tuning, Verdict,
};
use crate::operator::{self, Operator, OperatorRecord};

/// Raised by any change that an older dgx would misread.
pub const SCHEMA: u32 = 1;

/// One line of a run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    Header(Box<Header>),
    Build(Build),
    Verdict(Verdict),
    Tuning(Tuning),
    Block(Block),
    Void(VoidedTimes),
    Estimate(Estimate),
    Kernels(CallKernels),
    Examined(ExaminedCell),
    End(RunEnd),
}

/// Everything needed to read the rest of the file without the config or the variants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub schema: u32,
    /// The round's name, e.g. `round4`.
    pub name: String,
    pub question: String,
    /// RFC 3339.
    pub started: String,
    /// Paths, here and in the config's, are relative to the project.
    pub argv: Vec<String>,
    pub dgx: String,
    pub git: Option<GitState>,
    pub host: Host,
    pub device: DeviceRecord,
    /// e.g. `NVRTC 13.0`; `None` for numbers recorded elsewhere.
    pub compiler: Option<String>,
    pub config: ConfigText,
    /// The computation; `None` for the operator that dgx began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorRecord>,
    pub baseline: ContenderId,
    /// The yardstick's name if one was timed, e.g. `cublas`.
    pub yardstick: Option<ContenderId>,
    pub contenders: Vec<ContenderRecord>,
    pub shapes: Vec<Shape>,
    pub settings: Settings,
    /// How the run departs from the round in its config, e.g. `--only sequential`; such a run
    /// promotes no design.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub departures: Vec<String>,
    /// Which part of the round it is, if it is not the whole: its shapes are those of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The run files it was merged from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergedPart>,
}

impl Header {
    /// The operator of its shapes, or why its text is not an operator.
    pub fn operator(&self) -> Result<Arc<Operator>, String> {
        match &self.operator {
            Some(record) => record.read(),
            None => Ok(Arc::clone(operator::default_operator())),
        }
    }

    /// Puts the sizes of every group in the operator's order: JSON has none.
    pub(super) fn order_sizes(&mut self, operator: &Operator) {
        let shard = self.shard.iter_mut().flat_map(|shard| &mut shard.shapes);
        for shape in self.shapes.iter_mut().chain(shard) {
            let groups = shape.groups.iter_mut();
            groups.for_each(|group| group.order_by(&operator.sizes));
        }
    }

    /// The shapes of the whole round.
    pub fn round_shapes(&self) -> &[Shape] {
        self.shard.as_ref().map_or(&self.shapes, |s| &s.shapes)
    }

    /// The seed of a shape's data.
    pub fn data_seed(&self, shape: &str) -> u64 {
        let of = |part: &&MergedPart| {
            let mut names = part.shapes.iter().chain(&part.unfinished);
            names.any(|name| name == shape)
        };
        let settings = &self.settings;
        match self.parts.iter().find(of) {
            Some(part) => mixed(settings.seed, part.secret),
            None => settings.data_seed(),
        }
    }
}

/// One part of a round that was divided by shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// From 1.
    pub number: u32,
    pub of: u32,
    /// All shapes of the round.
    pub shapes: Vec<Shape>,
}

/// What a merged run took from one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergedPart {
    /// Its name, without the folder.
    pub file: String,
    /// e.g. `2/4`, if it was a shard.
    pub shard: Option<String>,
    /// Names of the finished shapes that came from it.
    pub shapes: Vec<String>,
    /// Names of the unfinished ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitState {
    pub commit: String,
    pub dirty: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub os: String,
    pub arch: String,
    pub cpu: String,
    pub cores: u32,
}

/// The device, as far as a reader needs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRecord {
    /// `none` for recorded numbers.
    pub backend: BackendKind,
    /// Equals [`BackendKind::timing`], so that files can be read without knowing backends.
    pub timing: Timing,
    /// e.g. `NVIDIA H200`; for the emulator, the modelled device.
    pub name: String,
    pub uuid: Option<String>,
    pub driver: Option<String>,
    pub sms: u32,
    pub l2: Bytes,
    pub memory: Bytes,
    /// Highest SM clock, MHz.
    pub clock_mhz: f64,
    /// Highest memory bandwidth, bytes per second, by the vendor's figures.
    pub bandwidth: f64,
    /// Dense tensor operations per clock and SM: fp16 on Hopper, fp4 on Blackwell.
    pub tensor_flops_per_clock: f64,
    /// Whether these are fp4. Records of the dual GEMM alone need not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fp4: bool,
    pub smem_per_block: Bytes,
    /// The error of modelled times, if they were compared with measured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Digest of the numbers behind modelled times; runs from before the replay have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl DeviceRecord {
    pub fn new(backend: BackendKind, device: &Device) -> Self {
        let Device { limits, peaks, .. } = device;
        let card = device.card.clone().unwrap_or_default();
        let modelled = backend.timing() == Timing::Modelled;
        // Modelled times are bounded by the model's own numbers.
        let ceiling = device.ceiling(backend.timing());
        Self {
            backend,
            timing: backend.timing(),
            name: device.name.clone(),
            uuid: card.uuid,
            driver: card.driver,
            sms: limits.sms,
            l2: limits.l2,
            memory: limits.memory,
            clock_mhz: ceiling.map_or(peaks.clock_mhz, |c| c.clock_mhz),
            bandwidth: ceiling.map_or(peaks.bandwidth, |c| c.bandwidth),
            tensor_flops_per_clock: ceiling.map_or(0.0, |c| c.tensor_flops) / f64::from(limits.sms),
            fp4: ceiling.is_some_and(|c| c.fp4),
            smem_per_block: limits.shared_per_block,
            calibration: device.calibration.clone().filter(|_| modelled),
            model: device.model_digest().filter(|_| modelled),
        }
    }

    /// The error of modelled times, if this device was compared.
    pub fn model_error(&self) -> Option<f64> {
        let known = self.calibration.as_ref().filter(|_| self.calibrated());
        known.map(|known| known.median)
    }

    /// Whether modelled times were compared on exactly this device.
    pub fn calibrated(&self) -> bool {
        let known = self.calibration.as_ref();
        known.is_some_and(|known| known.device == self.name)
    }

    /// The operators whose modelled times were compared with a card's.
    pub fn compared_operators(&self) -> Vec<&str> {
        let listed = self.calibration.iter().flat_map(|known| &known.operators);
        let listed: Vec<&str> = listed.map(String::as_str).collect();
        match self.calibration.is_some() && listed.is_empty() {
            true => vec![operator::default_operator().name.as_str()],
            false => listed,
        }
    }

    /// Whether modelled times of this operator were compared on exactly this device.
    pub fn calibrated_for(&self, operator: &str) -> bool {
        self.calibrated() && self.compared_operators().contains(&operator)
    }

    /// Its peak rates; `None` if the record lacks them.
    pub fn ceiling(&self) -> Option<Ceiling> {
        Ceiling {
            clock_mhz: self.clock_mhz,
            tensor_flops: f64::from(self.sms) * self.tensor_flops_per_clock,
            fp4: self.fp4,
            bandwidth: self.bandwidth,
        }
        .known()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigText {
    pub path: String,
    pub text: String,
}

impl ConfigText {
    /// The round it describes.
    pub fn round(&self) -> Result<Round, InputError> {
        Round::from_source(SourceFile {
            path: self.path.clone().into(),
            text: self.text.as_str().into(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContenderRecord {
    pub id: ContenderId,
    pub variant: String,
    pub params: BTreeMap<String, i64>,
    pub summary: String,
    pub parent: Option<String>,
    pub round: Option<u32>,
    pub claim: Option<Claim>,
    pub expect: Status,
    /// SHA-256 of the source with its headers.
    pub hash: String,
    /// The target that the source is compiled for; empty in files from before there was a choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
}

impl Header {
    /// Folders of variants that its command named; `None` for one outside the project, of which
    /// only the last part is recorded.
    pub fn folders(&self) -> Vec<Option<&str>> {
        self.named_folders()
            .map(|folder| (!is_elided(folder)).then_some(folder))
            .collect()
    }

    /// The same as recorded.
    pub(crate) fn named_folders(&self) -> impl Iterator<Item = &str> {
        let next = self.argv.iter().skip(1).map(Some).chain([None]);
        self.argv.iter().zip(next).filter_map(|(word, next)| {
            match word.strip_prefix("--variants") {
                Some("") => next.map(String::as_str),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            }
        })
    }
}

/// The settings of a run: how its data are drawn, and how cells are validated, timed and emulated.
/// The command line makes them, the header records them, and workers get them with every request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub seed: u64,
    /// Random, from the operating system when the run began: data and calls follow from it and the
    /// seed. Older files have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<u64>,
    /// Whether it was given instead of drawn: then the data could be known beforehand.
    #[serde(default, skip_serializing_if = "is_default")]
    pub secret_given: bool,
    pub rtol: f64,
    pub atol: f64,
    pub distributions: Vec<Distribution>,
    pub min_blocks: u32,
    pub max_seconds: f64,
    pub processes: u32,
    pub cold_l2: bool,
    /// Settings of the emulator that differ from the usual.
    #[serde(default, skip_serializing_if = "is_default")]
    pub schedule: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub exact_sums: bool,
    /// Only the CTAs that times are modelled from ran, and nothing was validated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub time_only: bool,
    /// How closely calls were watched for hazards; older files have none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hazards: HazardWatch,
    /// The target as the user gave it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

fn mixed(seed: u64, secret: Option<u64>) -> u64 {
    secret.map_or(seed, |secret| mix(seed ^ mix(secret)))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Settings {
    /// The settings of a round, with data of this seed.
    pub fn of(round: &Round, seed: u64) -> Self {
        let (validation, measurement) = (&round.validation, &round.measurement);
        let (rtol, atol) = round.tolerance();
        Self {
            seed,
            rtol,
            atol,
            distributions: validation.distributions.clone(),
            min_blocks: measurement.min_blocks,
            max_seconds: measurement.max_seconds,
            processes: measurement.processes,
            cold_l2: measurement.cold_l2,
            ..Self::default()
        }
    }

    /// The seed of data, calls and their order.
    pub fn data_seed(&self) -> u64 {
        mixed(self.seed, self.secret)
    }

    /// Blocks each process must take of each shape.
    pub fn share(&self) -> u32 {
        self.min_blocks.div_ceil(self.processes.max(1)).max(2)
    }

    /// Seconds each process may take of each shape.
    pub fn seconds(&self) -> f64 {
        self.max_seconds / f64::from(self.processes.max(1))
    }
}

/// A cell that the emulator watched for hazards while a card measured, or the reason why not. A
/// cell that was `ok` and has hazards is `racy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExaminedCell {
    pub contender: ContenderId,
    pub shape: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hazards: Vec<Hazard>,
}

/// One compilation: a contender's image for one shape (constants may depend on the shape).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    pub contender: ContenderId,
    /// Shapes this image serves.
    pub shapes: Vec<String>,
    pub constants: BTreeMap<String, i64>,
    pub ok: bool,
    /// The compiler's message if it failed.
    pub message: Option<String>,
    pub kernels: Vec<KernelResources>,
    /// ptxas remarks that mean lost speed: spills, serialised wgmma, ignored setmaxnreg.
    pub remarks: Vec<String>,
    pub cached: bool,
    pub millis: f64,
    /// The name of its machine code in the folder `RUN.cubins` beside the run file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelResources {
    pub name: String,
    pub registers: u32,
    pub spill_bytes: u32,
    pub static_smem: Bytes,
    pub dynamic_smem: Bytes,
    pub threads: u32,
    /// Resident warps over the most an SM can hold.
    pub occupancy: f64,
    /// Columns of tensor memory that a block allocates.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tensor_columns: u32,
}

/// Discards all times of a shape so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoidedTimes {
    pub shape: String,
    pub reason: String,
}

/// A time without samples: modelled by the emulator, or recorded elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    pub contender: ContenderId,
    pub shape: String,
    pub micros: Micros,
    /// What limits a modelled time (`tensor cores`, `issue`, `launch`, …).
    pub bound: Option<String>,
    /// The kernels of a modelled call, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelTime>,
}

/// The time of each kernel of a measured call, in order. It is not used for ranking: it comes from
/// separate calls, in which no kernel overlaps the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallKernels {
    pub contender: ContenderId,
    pub shape: String,
    pub kernels: Vec<KernelTime>,
}

/// The last line of a run that was not killed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnd {
    pub complete: bool,
    /// Why it stopped early, if it did.
    pub reason: Option<String>,
    /// Seconds by stage: compile, oracle, validate, measure, other.
    pub seconds: BTreeMap<String, f64>,
    /// `decided`, or what a decision would need.
    pub decision: Option<String>,
}
