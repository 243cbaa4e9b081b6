use std::collections::BTreeMap;

use ptx_machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::roofline::Ceiling;
use super::{Bytes, Chip, Timing, content_hash};

/// A GPU in numbers: the code it runs, its resources, and its speed. Read from `configs/targets/`;
/// on a card, the driver's numbers replace those of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// As its driver reports it, e.g. `NVIDIA H200`.
    pub name: String,
    pub chip: Chip,
    pub limits: Limits,
    pub peaks: Peaks,
    /// The numbers behind modelled times; without them there are no modelled times.
    pub model: Option<Machine>,
    /// The error of modelled times, if they were compared with measured ones.
    pub calibration: Option<Calibration>,
    /// The source of each number, by its key, e.g. `limits.sms`.
    pub origins: BTreeMap<String, String>,
    /// The card of this machine, if there is one.
    pub card: Option<Card>,
}

/// One card of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    pub uuid: Option<String>,
    pub driver: Option<String>,
}

/// The resources of a device, and the share of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Multiprocessors: `sms` in expressions.
    pub sms: u32,
    /// Memory that operands and scratch must fit in.
    pub memory: Bytes,
    pub l2: Bytes,
    pub shared_per_sm: Bytes,
    /// Static and dynamic together, with the attribute that allows this maximum.
    pub shared_per_block: Bytes,
    /// Shared memory that the system reserves in every block.
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

/// Its peak rates, which no measurement may exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peaks {
    /// Highest SM clock.
    pub clock_mhz: f64,
    /// Bytes per second of device memory.
    pub bandwidth: f64,
    /// Dense tensor operations per clock and SM, in fp4 if the chip multiplies it, else in fp16. No
    /// driver reports it.
    pub tensor_flops: Option<f64>,
}

/// Errors of modelled times, as shares of the measured times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The device that was measured; for another device, these are the errors of the same model on
    /// this one.
    pub device: String,
    /// The run that was compared, or the rounds of several.
    pub run: String,
    pub median: f64,
    /// Nine of ten cells have at most this error.
    pub p90: f64,
    pub worst: f64,
    pub cells: u32,
    /// The operators of these cells; if empty, the dual GEMM alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
}

impl Device {
    /// The peak rates that bound times of this kind; `None` if they are not known.
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

    /// A hash that identifies the numbers of a model.
    pub(crate) fn model_digest(&self) -> Option<String> {
        let model = self.model.as_ref()?;
        // Devices without tensor memory keep the digest from before it was modelled.
        let number = |name: &&str| Some(format!("{name}={:?}", Some(model.number(name)?)));
        let mut digest = content_hash(Machine::NAMES.iter().filter_map(number));
        digest.truncate(12);
        Some(digest)
    }

    /// A hash that identifies its numbers, those of the model and the limits.
    pub fn digest(&self) -> String {
        let model = self.model_digest().unwrap_or_default();
        let mut digest = content_hash([model, format!("{:?} {:?}", self.chip, self.limits)]);
        digest.truncate(12);
        digest
    }

    /// Records `by` as the source of the numbers under these keys.
    pub fn record_origin(&mut self, by: &str, keys: &[&str]) {
        let origins = keys.iter().map(|key| ((*key).to_owned(), by.to_owned()));
        self.origins.extend(origins);
    }
}
