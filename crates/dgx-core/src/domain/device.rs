use std::collections::BTreeMap;

use ptx_machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::roofline::Ceiling;
use super::{Bytes, Chip, Timing, content_hash};

/// A GPU in numbers: which code it runs, how much there is of everything, and
/// how fast that is. Read from `configs/targets/`; on a card, what its driver
/// tells replaces what the file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// As its driver gives it, e.g. `NVIDIA H200`.
    pub name: String,
    pub chip: Chip,
    pub limits: Limits,
    pub peaks: Peaks,
    /// What modelled times are made of; where nobody knows it, there are none.
    pub model: Option<Machine>,
    /// How true they are, as far as anybody compared.
    pub calibration: Option<Calibration>,
    /// Where each number is from, by its key, e.g. `limits.sms`.
    pub origins: BTreeMap<String, String>,
    /// The one that is here, where one is.
    pub card: Option<Card>,
}

/// One card of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    pub uuid: Option<String>,
    pub driver: Option<String>,
}

/// How much a device has, and how much of it one block may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Multiprocessors: `sms` in expressions.
    pub sms: u32,
    /// Memory that operands and scratch must fit in.
    pub memory: Bytes,
    pub l2: Bytes,
    pub shared_per_sm: Bytes,
    /// Static and dynamic together, with the attribute that allows so much.
    pub shared_per_block: Bytes,
    /// What the system keeps for itself in every block.
    pub shared_reserved: Bytes,
    pub registers_per_sm: u32,
    /// Registers are handed out to warps in units of this many.
    pub register_unit: u32,
    pub threads_per_sm: u32,
    pub threads_per_block: u32,
    pub blocks_per_sm: u32,
    /// With the attribute that allows more than the portable eight.
    pub blocks_per_cluster: u32,
}

/// The most it can do, which no measurement may beat.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peaks {
    /// Highest SM clock.
    pub clock_mhz: f64,
    /// Bytes per second of device memory.
    pub bandwidth: f64,
    /// Dense tensor operations per clock and SM in fp4 where the chip multiplies
    /// it, else in fp16. No driver tells.
    pub tensor_flops: Option<f64>,
}

/// How far modelled times were from measured ones: shares of the measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The device that was measured; for another, it is what the same model was
    /// worth where somebody looked.
    pub device: String,
    /// The run it was compared with, or the rounds of several.
    pub run: String,
    pub median: f64,
    /// Nine of ten cells have at most this error.
    pub p90: f64,
    pub worst: f64,
    pub cells: u32,
    /// The operators of these cells; without any, the dual GEMM alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
}

impl Device {
    /// The least that times of this kind can be held to; `None` where nobody
    /// knows what the device can do.
    pub fn ceiling(&self, timing: Timing) -> Option<Ceiling> {
        match timing {
            Timing::Modelled => {
                let ceiling = Ceiling::modelled(self.model.as_ref()?);
                Some(
                    match (self.chip.multiplies_fp4(), self.peaks.tensor_flops) {
                        (true, Some(flops)) => ceiling.with_fp4(self.limits.sms, flops),
                        _ => ceiling,
                    },
                )
            }
            Timing::Measured | Timing::Scripted | Timing::Recorded => Ceiling {
                clock_mhz: self.peaks.clock_mhz,
                tensor_flops: f64::from(self.limits.sms) * self.peaks.tensor_flops?,
                fp4: self.chip.multiplies_fp4(),
                bandwidth: self.peaks.bandwidth,
            }
            .known(),
        }
    }

    /// What tells the numbers of one model from another's.
    pub(crate) fn model_digest(&self) -> Option<String> {
        let model = self.model.as_ref()?;
        // Who has no tensor memory has the same numbers as before there was any.
        let number = |name: &&str| Some(format!("{name}={:?}", Some(model.number(name)?)));
        let mut digest = content_hash(Machine::NAMES.iter().filter_map(number));
        digest.truncate(12);
        Some(digest)
    }

    /// What tells its numbers, those of the model and the limits, from another's.
    pub fn digest(&self) -> String {
        let model = self.model_digest().unwrap_or_default();
        let mut digest = content_hash([model, format!("{:?} {:?}", self.chip, self.limits)]);
        digest.truncate(12);
        digest
    }

    /// Notes that the numbers under these keys are somebody else's word.
    pub fn told(&mut self, by: &str, keys: &[&str]) {
        let told = keys.iter().map(|key| ((*key).to_owned(), by.to_owned()));
        self.origins.extend(told);
    }
}
