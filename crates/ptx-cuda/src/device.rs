//! The device that programs see: its properties, and the settings of the run.

use std::ffi::c_int;
use std::sync::OnceLock;

use ptx_emu::{Config, DeviceLimits};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::say::say;
use crate::time::{TIME, Timing};

/// The variable with the device, as JSON of [`Properties`].
pub const TARGET: &str = "DGX_RUN_TARGET";
/// The variable with the seed of the first launch; each launch uses the next.
pub const SEED: &str = "DGX_RUN_SEED";
/// If set, every launch is watched for hazards.
pub const SANITIZE: &str = "DGX_RUN_SANITIZE";
/// If set, no kernel runs: a program whose own check still passes proves nothing.
pub const SKIP: &str = "DGX_RUN_SKIP";

/// CUDA 13.4: no program needs a newer driver than it was compiled for.
pub(crate) const VERSION: c_int = 13_040;

/// The answer of `cudaDeviceGetPCIBusId` for device 0.
pub(crate) const BUS: &str = "0000:00:00.0";

/// Identifies the emulated device.
pub(crate) const UUID: [u8; 16] = *b"dgx emulated gpu";

/// Fails for all but the one device.
pub(crate) fn check(device: c_int) -> Result {
    match device {
        0 => Ok(()),
        _ => Err(Error::INVALID_DEVICE),
    }
}

/// The properties of the device that a program can query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Properties {
    /// `NVIDIA H200`
    pub name: String,
    /// Compute capability times ten.
    pub capability: u32,
    /// Multiprocessors.
    pub sms: u32,
    /// Bytes of device memory.
    pub memory: u64,
    /// Bytes of the L2 cache.
    pub l2: u32,
    /// Shared bytes of one multiprocessor.
    pub shared_per_sm: u32,
    /// Shared bytes of one block, for kernels that request more than 48 KiB.
    pub shared_per_block: u32,
    /// Clock of the multiprocessors.
    pub clock_khz: u32,
    /// Clock of the memory.
    pub memory_clock_khz: u32,
    /// Bits of the memory's bus.
    pub bus_bits: u32,
}

/// Shared bytes of a block without a request.
pub(crate) const SHARED_PLAIN: u32 = 48 << 10;

impl Properties {
    /// NVIDIA H200.
    pub fn h200() -> Self {
        Self {
            name: "NVIDIA H200".to_owned(),
            capability: 90,
            sms: 132,
            memory: 150_109_880_320,
            l2: 62_914_560,
            shared_per_sm: 233_472,
            shared_per_block: 232_448,
            clock_khz: 1_980_000,
            memory_clock_khz: 3_201_000,
            bus_bits: 6144,
        }
    }

    /// NVIDIA B200.
    pub fn b200() -> Self {
        Self {
            name: "NVIDIA B200".to_owned(),
            capability: 100,
            sms: 148,
            memory: 180_000_000_000,
            l2: 132_120_576,
            clock_khz: 1_965_000,
            memory_clock_khz: 3_996_000,
            bus_bits: 8192,
            ..Self::h200()
        }
    }

    /// Limits that launches must observe.
    pub(crate) fn limits(&self) -> DeviceLimits {
        let like = DeviceLimits::of_target(&format!("sm_{}", self.capability)).unwrap_or_default();
        DeviceLimits {
            capability: self.capability,
            sms: self.sms,
            shared_per_cta: self.shared_per_block,
            shared_per_sm: self.shared_per_sm,
            ..like
        }
    }

    pub(crate) fn major(&self) -> i32 {
        (self.capability / 10) as i32
    }

    pub(crate) fn minor(&self) -> i32 {
        (self.capability % 10) as i32
    }

    /// `cudaDevAttr…` and `CU_DEVICE_ATTRIBUTE_…` by number; `None` for unknown ones.
    pub(crate) fn attribute(&self, attribute: i32) -> Option<i32> {
        let limits = self.limits();
        Some(match attribute {
            1..=3 => 1024,
            4 => 64,
            5 => i32::MAX,
            6 | 7 => 65_535,
            8 => SHARED_PLAIN as i32,
            9 => 65_536,
            10 => 32,
            11 => i32::MAX,
            12 | 82 => limits.registers_per_sm as i32,
            13 => self.clock_khz as i32,
            14 | 30 => 512,
            51 => 32,
            16 => self.sms as i32,
            15 | 19 | 31 | 41 | 78 | 79 | 80 | 83 | 89 | 90 | 91 | 95 | 99 | 102 | 115 => 1,
            120 | 127 | 129 => i32::from(self.capability >= 90),
            32 => 1,
            40 => 3,
            36 => self.memory_clock_khz as i32,
            37 => self.bus_bits as i32,
            38 => self.l2 as i32,
            39 => limits.threads_per_sm as i32,
            75 => self.major(),
            76 => self.minor(),
            81 => self.shared_per_sm as i32,
            87 => 2,
            97 => self.shared_per_block as i32,
            106 => limits.ctas_per_sm as i32,
            // L2 that can be set aside, and what may be kept there: hints, which are accepted.
            108 => self.l2 as i32 / 8 * 5,
            109 => 134_213_632,
            111 => 1024,
            126 => 4,
            130 | 131 | 134 => -1,
            // Textures: 1-D, 2-D, 3-D, layers, gathered, cubes, linear.
            21 | 22 | 70 => 131_072,
            23 => 65_536,
            24..=26 => 16_384,
            27 | 28 | 42 | 45 | 46 | 49 | 52 | 53 => 32_768,
            29 | 43 => 2_048,
            47 | 48 => 8_192,
            54 => 2_046,
            69 => 268_435_456,
            71 => 65_000,
            72 => 2_097_120,
            // Surfaces: 1-D, 2-D, 3-D, layers, cubes.
            55 | 61 | 63 | 64 | 66 | 67 => 32_768,
            56 => 131_072,
            57 => 65_536,
            58..=60 => 16_384,
            62 | 65 => 2_048,
            68 => 2_046,
            // Features that the emulated device lacks: mipmaps, peers, other processes.
            17 | 18 | 20 | 33..=35 | 44 | 50 | 73 | 74 | 77 | 84..=86 | 88 => 0,
            92..=94
            | 96
            | 98
            | 100
            | 101
            | 103..=105
            | 107
            | 110
            | 112..=114
            | 116..=119
            | 121..=125 => 0,
            128 | 132 | 133 | 135..=161 => 0,
            _ => return None,
        })
    }
}

/// The emulation settings of this process.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) properties: Properties,
    pub(crate) config: Config,
    pub(crate) sanitize: bool,
    pub(crate) time: Option<Timing>,
    pub(crate) skip: bool,
}

/// The settings, read from the environment once.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let properties = properties();
        Settings {
            config: Config {
                seed: std::env::var(SEED)
                    .ok()
                    .and_then(|seed| seed.parse().ok())
                    .unwrap_or(0),
                // A cluster of a long program may take long.
                step_limit: u64::MAX / 4,
                scoreboard: true,
                limits: properties.limits(),
                ..Config::default()
            },
            properties,
            sanitize: set(SANITIZE),
            time: time(),
            skip: set(SKIP),
        }
    })
}

fn time() -> Option<Timing> {
    let text = std::env::var(TIME).ok().filter(|text| !text.is_empty())?;
    let timing = serde_json::from_str(&text);
    timing
        .map_err(|error| {
            say(&format!(
                "{TIME} cannot be read ({error}): no time is modelled"
            ))
        })
        .ok()
}

fn properties() -> Properties {
    match std::env::var(TARGET) {
        Err(_) => Properties::h200(),
        Ok(text) => match text.as_str() {
            "h200" | "" => Properties::h200(),
            "b200" => Properties::b200(),
            _ => serde_json::from_str(&text).unwrap_or_else(|error| {
                say(&format!(
                    "{TARGET} describes no device ({error}): an H200 is used"
                ));
                Properties::h200()
            }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_say_what_the_profile_says() {
        let h200 = Properties::h200();
        assert_eq!(h200.limits(), DeviceLimits::H200);
        assert_eq!(Properties::b200().limits(), DeviceLimits::B200);
        assert_eq!(h200.attribute(75), Some(9));
        assert_eq!(h200.attribute(16), Some(132));
        assert_eq!(h200.attribute(-1), None);
    }
}
