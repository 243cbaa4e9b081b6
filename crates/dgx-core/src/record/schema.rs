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
    KernelTime, Micros, Shape, Status, Timing, Tuning, Verdict, Watch,
};
use crate::operator::Operator;
use crate::operators::{self, OperatorRecord};

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
    Void(Void),
    Estimate(Estimate),
    Kernels(CallKernels),
    Examined(Examined),
    End(End),
}

/// Everything needed to read the rest of the file without the config or the variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// e.g. `NVRTC 13.0`; none for numbers recorded elsewhere.
    pub compiler: Option<String>,
    pub config: ConfigText,
    /// What was computed; none for the operator that dgx began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorRecord>,
    pub baseline: ContenderId,
    /// The yardstick's name where one was timed, e.g. `cublas`.
    pub yardstick: Option<ContenderId>,
    pub contenders: Vec<ContenderRecord>,
    pub shapes: Vec<Shape>,
    pub settings: Settings,
    /// How the run departs from the round as its config says it, e.g. `--only
    /// sequential`; such a run promotes nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub departures: Vec<String>,
    /// Which part of the round it is, where it is not the whole: its shapes are
    /// those of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The run files it was merged from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

impl Header {
    /// What its shapes are sizes of, or why its text is no operator.
    pub fn operator(&self) -> Result<Arc<Operator>, String> {
        match &self.operator {
            Some(record) => record.read(),
            None => Ok(Arc::clone(operators::usual())),
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

    /// What the data of a shape were drawn by.
    pub fn data_seed(&self, shape: &str) -> u64 {
        let of = |part: &&Part| {
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

/// One part of a round that was dealt out by shape.
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
pub struct Part {
    /// Its name, without the folder.
    pub file: String,
    /// e.g. `2/4`, where it was a shard.
    pub shard: Option<String>,
    /// Names of the shapes that came from it and that it had finished.
    pub shapes: Vec<String>,
    /// Those that it had begun only.
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub os: String,
    pub arch: String,
    pub cpu: String,
    pub cores: u32,
}

/// What a reader must know of where it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRecord {
    /// `none` for recorded numbers.
    pub backend: BackendKind,
    /// What [`BackendKind::timing`] says: files are read without knowing that.
    pub timing: Timing,
    /// e.g. `NVIDIA H200`; for the emulator, the profile times are modelled for.
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
    /// How true modelled times are, as far as anybody compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Digest of the numbers that modelled times are made of; runs from before
    /// the replay have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl DeviceRecord {
    pub fn new(backend: BackendKind, device: &Device) -> Self {
        let Device { limits, peaks, .. } = device;
        let card = device.card.clone().unwrap_or_default();
        // Modelled times are held to what they are made of.
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
            calibration: match backend.timing() {
                Timing::Modelled => device.calibration.clone(),
                Timing::Measured | Timing::Recorded | Timing::Scripted => None,
            },
            model: match backend.timing() {
                Timing::Modelled => device.model_digest(),
                Timing::Measured | Timing::Recorded | Timing::Scripted => None,
            },
        }
    }

    /// How far off modelled times are, where somebody compared this device.
    pub fn model_error(&self) -> Option<f64> {
        let known = self.calibration.as_ref().filter(|_| self.calibrated());
        known.map(|known| known.median)
    }

    /// Whether it is this very device that modelled times were compared on.
    pub fn calibrated(&self) -> bool {
        let known = self.calibration.as_ref();
        known.is_some_and(|known| known.device == self.name)
    }

    /// The operators whose modelled times were compared with a card's.
    pub fn compared_operators(&self) -> Vec<&str> {
        let listed = self.calibration.iter().flat_map(|known| &known.operators);
        let listed: Vec<&str> = listed.map(String::as_str).collect();
        match self.calibration.is_some() && listed.is_empty() {
            true => vec![operators::usual().name.as_str()],
            false => listed,
        }
    }

    /// Whether modelled times of this operator were compared on this very device.
    pub fn calibrated_for(&self, operator: &str) -> bool {
        self.calibrated() && self.compared_operators().contains(&operator)
    }

    /// The most it can do; `None` where the record does not say.
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What that source is compiled for; empty in files from before there was
    /// a choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
}

impl Header {
    /// Folders of variants that its command named; none for one outside of the
    /// project, of which only the last part is known still.
    pub fn folders(&self) -> Vec<Option<&str>> {
        self.named_folders()
            .map(|folder| (!is_elided(folder)).then_some(folder))
            .collect()
    }

    /// The same as they are on record.
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

/// What is asked of a run: how its data are drawn, and how cells are validated,
/// timed and emulated. The command line makes it, the header records it, and
/// workers get it with every request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub seed: u64,
    /// Drawn from the operating system when the run began: data, and which calls
    /// are made, follow from both. Files from before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<u64>,
    /// It was not drawn but given: the data could be known beforehand.
    #[serde(default, skip_serializing_if = "is_default")]
    pub secret_given: bool,
    pub rtol: f64,
    pub atol: f64,
    pub distributions: Vec<Distribution>,
    pub min_blocks: u32,
    pub max_seconds: f64,
    pub processes: u32,
    pub cold_l2: bool,
    /// What the emulator was asked for, where it was not the usual.
    #[serde(default, skip_serializing_if = "is_default")]
    pub schedule: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub exact_sums: bool,
    /// Only the CTAs that times are told by ran, and nothing was validated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub time_only: bool,
    /// How closely calls were watched for what results do not show; files from
    /// before have none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hazards: Watch,
    /// The target as it was asked for, where it was.
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
    /// What a round asks for, on the data of this seed.
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

    /// What data, calls and their order are drawn by.
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

/// A cell that the emulator watched for hazards while a card measured, or why
/// it did not. A cell that was `ok` and has hazards is `racy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Examined {
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
    /// The compiler's message where it failed.
    pub message: Option<String>,
    pub kernels: Vec<KernelResources>,
    /// ptxas remarks that mean lost speed: spills, serialised wgmma, ignored setmaxnreg.
    pub remarks: Vec<String>,
    pub cached: bool,
    pub millis: f64,
    /// Names its machine code in the folder `RUN.cubins` beside the run file.
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
    /// Columns of tensor memory a block asks for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tensor_columns: u32,
}

/// All that was timed of a shape so far counts no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Void {
    pub shape: String,
    pub reason: String,
}

/// A time without samples: modelled by the emulator, or taken down elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    pub contender: ContenderId,
    pub shape: String,
    pub micros: Micros,
    /// What bounds a modelled time (`tensor cores`, `issue`, `launch`, …).
    pub bound: Option<String>,
    /// The kernels of a modelled call, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelTime>,
}

/// What each kernel of a measured call takes, in their order. Nothing is ranked
/// by it: it comes from calls of its own, in which no kernel overlaps the next.
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
pub struct End {
    pub complete: bool,
    /// Why it stopped early, where it did.
    pub reason: Option<String>,
    /// Seconds by stage: compile, oracle, validate, measure, other.
    pub seconds: BTreeMap<String, f64>,
    /// `decided`, or what would be needed to decide.
    pub decision: Option<String>,
}
