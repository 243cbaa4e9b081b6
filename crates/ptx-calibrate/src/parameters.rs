//! Which cases each number of a machine is fitted on, and in which order: what
//! a case needs besides its own number stands before it.

use std::sync::LazyLock;

use ptx_time::Machine;
use serde::Deserialize;

use dgx_core::domain::roofline::tensor_flops;
use dgx_core::domain::{Pattern, Peaks};

/// One number of a [`Machine`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    pub(super) name: String,
    bounds: (f64, f64),
    /// The clock of its cases is compared with the model's, not their time.
    #[serde(default, rename = "clock")]
    pub(super) by_clock: bool,
    /// Names of cases, with `*` for anything.
    cases: Vec<String>,
}

/// In the order in which they are fitted. Those of a machine that are not among
/// them no case can tell from others.
pub(super) fn parameters() -> &'static [Parameter] {
    #[derive(Deserialize)]
    struct Parameters {
        numbers: Vec<Parameter>,
    }
    static PARAMETERS: LazyLock<Parameters> = LazyLock::new(|| {
        let parsed = toml::from_str(include_str!("parameters.toml"));
        parsed.unwrap_or_else(|mistake| panic!("parameters.toml: {mistake}"))
    });
    &PARAMETERS.numbers
}

impl Parameter {
    pub(super) fn is_about(&self, case: &str) -> bool {
        let mut patterns = self.cases.iter();
        patterns.any(|pattern| Pattern::new(pattern).matches(case))
    }

    /// Within what it is looked for: no more than the peaks allow.
    pub(super) fn bounds(&self, machine: &Machine, peaks: &Peaks) -> (f64, f64) {
        let (low, high) = self.bounds;
        match self.name.as_str() {
            "clock_mhz" | "rested_clock_mhz" => (low, high.min(peaks.clock_mhz)),
            "memory_bandwidth" => (low, high.min(peaks.bandwidth)),
            "wgmma_column" => {
                let column = tensor_flops(machine) * machine.wgmma_column;
                let least = peaks.tensor_flops.map_or(0.0, |most| column / most);
                (low.max(least), high)
            }
            _ => (low, high),
        }
    }
}

/// Numbers of machines on which nothing is fitted: what the device is, and what
/// no case can tell from others.
pub(super) fn unasked() -> impl Iterator<Item = &'static str> {
    let names = Machine::NAMES.iter().copied();
    names.filter(|name| parameters().iter().all(|p| p.name != *name))
}
