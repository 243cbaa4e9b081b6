//! How a launch is emulated.

use std::sync::OnceLock;
use std::time::Duration;

use crate::limits::DeviceLimits;
use crate::module::Module;
use crate::numeric::simd::Level;
use crate::tensor::Numerics as MmaMode;

/// How a launch is emulated; none of it changes what a correct kernel computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Picks one of many legal interleavings and latencies.
    pub seed: u64,
    /// Warp instructions a cluster may take before it counts as hung.
    pub step_limit: u64,
    /// Wall-clock time a launch may take; none by default, because a fault by it depends on the
    /// host and so cannot be reproduced. The step limit ends endless loops either way.
    pub time_limit: Option<Duration>,
    /// Host threads; 0 means all cores, and 1 the thread that launches.
    pub threads: usize,
    /// Rounding of tensor-core sums.
    pub mma_mode: MmaMode,
    /// Whether a register of `tcgen05.ld` has its value where it is read, waited for or not. PTX
    /// asks for a `wait::ld` first, and without this a register is poison until then. ptxas makes
    /// readers wait by themselves, and the code of CUTLASS and Triton relies on it.
    pub scoreboard: bool,
    /// Device limits.
    pub limits: DeviceLimits,
    /// Vector instructions to use; the machine's best by default.
    pub level: Level,
    /// Whether kernels become machine code.
    pub engine: Engine,
    /// Whether bank conflicts and the distinct bytes that were touched are counted, which takes
    /// time; otherwise these counters are 0.
    pub detailed_counters: bool,
}

/// How instructions are executed. Results, counters and faults are the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// One after the other, looked up in the program.
    Interpreted,
    /// As machine code from the first one on. Without AVX-512, or where memory cannot be made
    /// executable, they are interpreted.
    Compiled,
    /// Interpreted at first, and compiled once a kernel has run for long enough.
    Mixed,
}

impl Engine {
    /// What the environment variable `DGX_EMU` asks for: `interpret` or `compile`; mixed otherwise.
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Engine> = OnceLock::new();
        *CHOSEN.get_or_init(|| match std::env::var("DGX_EMU").as_deref() {
            Ok("interpret") => Self::Interpreted,
            Ok("compile") => Self::Compiled,
            _ => Self::Mixed,
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            step_limit: 50_000_000,
            time_limit: None,
            threads: 0,
            mma_mode: MmaMode::Fast,
            scoreboard: false,
            limits: DeviceLimits::H200,
            level: Level::best(),
            engine: Engine::chosen(),
            detailed_counters: true,
        }
    }
}

impl Config {
    /// As by default, on the device that the module was made for.
    pub fn of(module: &Module) -> Self {
        Self {
            limits: DeviceLimits::of_target(module.target()).unwrap_or_default(),
            ..Self::default()
        }
    }
}
