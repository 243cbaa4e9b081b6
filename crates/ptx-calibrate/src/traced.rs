//! Cases as the emulator runs them: one cluster of each, watched, so that a
//! modelled GPU can be put the same question as often as one likes.

use ptx_time::{CallTimes, Code, Launched, Machine};

use super::measure::trial;
use super::probe::{Case, L2, Read};
use dgx_run::backend::emu::probing::{self, ProbeTrace};
use dgx_run::compile::Image;

/// A case that was emulated.
pub(super) struct Traced {
    pub(super) case: &'static Case,
    code: Code,
    called: ProbeTrace,
}

/// What a modelled GPU answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ModelAnswer {
    /// By the clock the case reads.
    pub(super) time: f64,
    pub(super) mhz: f64,
}

impl Traced {
    pub(super) fn of(case: &'static Case, image: &Image) -> Result<Self, String> {
        let code = Code::read(&image.cubin, "probe").map_err(|e| e.to_string())?;
        let called = probing::call(&trial(case, image), [case.data, case.scratch])?;
        Ok(Self { case, code, called })
    }

    /// What `machine` would have answered.
    pub(super) fn put_to(&self, machine: &Machine) -> Result<ModelAnswer, String> {
        let case = self.case;
        let places = u64::from(self.called.resident) * machine.sms as u64;
        let launch = |index: u32| Launched {
            code: &self.code,
            trace: &self.called.trace,
            ctas: u64::from(case.grid),
            cluster: case.cluster,
            resident: self.called.resident,
            dependent: case.overlap && index > 0,
            beside: 2 * u64::from(case.grid) <= places,
            fetched: !case.driven_out,
        };
        let launches: Vec<Launched<'_>> = (0..case.launches).map(launch).collect();
        let call = match case.l2 {
            L2::Cold => CallTimes::replay(machine, &launches, false),
            L2::Warm => CallTimes::replay_warm(machine, &launches, false),
        };
        let call = call.map_err(|stuck| stuck.to_string())?;
        let stamped = call.launches.last().and_then(|launch| launch.stamped);
        let stamped = || stamped.ok_or_else(|| "no clock was read".to_owned());
        let time = match case.read {
            Read::Cycles => stamped()?,
            // Of all CTAs: from the start of the first.
            Read::Nanos if case.grid > 1 => {
                1e3 * (machine.spread_micros + stamped()? / call.clock_mhz)
            }
            Read::Nanos => 1e3 * stamped()? / call.clock_mhz,
            Read::Micros => call.micros,
        };
        Ok(ModelAnswer {
            time,
            mhz: call.clock_mhz,
        })
    }
}
