//! The emulator backend: executes a contender's own PTX on the CPU. Memory is
//! laid out, poisoned and guarded exactly as on the GPU, so that a fixture gets
//! the same status on both.

mod culprit;
mod fault;
mod hazards;
mod memory;
mod model;
mod printed;
pub mod probing;
mod role;
mod tensor_map;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ptx_emu::{Class, Config, Counters, DeviceLimits, MemoryError, MmaMode, Module, Sanitize};

pub use self::fault::STILL_RUNNING;
use self::memory::CallMemory;
use self::model::EndedLaunch;
pub use self::model::{TracedCall, machine};
pub use self::role::LaunchLayout;
pub use self::role::WarpRole;
use super::tables;
use super::{
    AccessSites, Backend, Buffer, CallInput, Emulation, Job, Loaded, Observation, RunFailure,
};
use crate::compile::Image;
use crate::operator::Operands;
use dgx_core::domain::{BackendKind, Device, Hazard, HazardWatch, Limits};
pub use tensor_map::refusal as map_refusal;

/// An emulated device.
pub struct EmuBackend {
    device: Device,
    modules: HashMap<String, Module>,
}

impl EmuBackend {
    pub fn new(device: Device) -> Self {
        Self {
            device,
            modules: HashMap::new(),
        }
    }
}

impl Backend for EmuBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Emu
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn load<'a>(&'a mut self, job: Job<'a>) -> Result<Box<dyn Loaded + 'a>, RunFailure> {
        Ok(Box::new(self.cell(job)?))
    }
}

impl EmuBackend {
    /// Runs the CTAs that a call's time is modelled from, and keeps their traces.
    pub fn trace<'a>(
        &'a mut self,
        job: Job<'a>,
        data: &CallInput<'_>,
    ) -> Result<TracedCall<'a>, RunFailure> {
        let mut cell = self.cell(job)?;
        let operands = shuffled_operands(data);
        let inputs = input_bytes(data, &operands);
        let ran = cell.run(data, &inputs, Some(WatchedFor::Time(TracedCtas::Alone)))?;
        TracedCall::new(cell.device, job.image, ran).map_err(RunFailure::refused)
    }

    /// Runs a call with stamps, and returns them. The times are the emulator's, and mean nothing.
    #[cfg(test)]
    pub fn stamped(
        &mut self,
        job: Job<'_>,
        data: &CallInput<'_>,
    ) -> Result<(Observation, Vec<u8>), RunFailure> {
        let mut cell = self.cell(job)?;
        let seen = cell.call(data)?;
        let stamps = cell.place.as_ref().map(|p| p.scratch(crate::plan::STAMPS));
        Ok((seen, stamps.unwrap_or_default()))
    }

    fn cell<'a>(&'a mut self, job: Job<'a>) -> Result<EmuCell<'a>, RunFailure> {
        self.load_module(job.image)?;
        Ok(EmuCell {
            device: &self.device,
            module: &self.modules[&job.image.key],
            job,
            place: None,
        })
    }

    fn load_module(&mut self, image: &Image) -> Result<(), RunFailure> {
        if !self.modules.contains_key(&image.key) {
            let module = Module::load(&image.ptx).map_err(|error| {
                RunFailure::unsupported(format!("the emulator cannot run this PTX: {error}"))
            })?;
            self.modules.insert(image.key.clone(), module);
        }
        Ok(())
    }
}

/// A contender on a shape. Its memory is made with the first call and stays, so that remains of a
/// call affect the next.
struct EmuCell<'a> {
    device: &'a Device,
    module: &'a Module,
    job: Job<'a>,
    place: Option<CallMemory>,
}

/// What a call is watched for.
#[derive(Clone)]
enum WatchedFor {
    /// Its modelled time.
    Time(TracedCtas),
    /// Hazards.
    Hazards(Sanitize),
}

/// How the CTAs that the time is modelled from are run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TracedCtas {
    /// With all the others.
    Along,
    /// The others do not run, and the contents of memory are incomplete.
    Alone,
}

impl<'a> EmuCell<'a> {
    /// Runs its launches once, in freshly prepared memory.
    fn run(
        &mut self,
        data: &CallInput<'_>,
        inputs: &[Cow<'_, [u8]>],
        listening: Option<WatchedFor>,
    ) -> Result<Vec<EndedLaunch<'a>>, RunFailure> {
        let place = match self.place.take() {
            Some(place) => place,
            None => CallMemory::new(&self.job, data.operands)?,
        };
        let place = self.place.insert(place);
        place.place(&self.job, data.operands, data.emulation.mirrored)?;
        place.lay(data, inputs).map_err(|e| no_memory(&e))?;
        let alone = matches!(listening, Some(WatchedFor::Time(TracedCtas::Alone)));
        let ran = place.launch_all(self.device, self.module, &self.job, data, listening);
        if ran.is_ok() || !alone {
            return ran;
        }
        // Without the other CTAs it may have waited in vain.
        place.lay(data, inputs).map_err(|e| no_memory(&e))?;
        let along = Some(WatchedFor::Time(TracedCtas::Along));
        place.launch_all(self.device, self.module, &self.job, data, along)
    }
}

impl Loaded for EmuCell<'_> {
    fn call(&mut self, data: &CallInput<'_>) -> Result<Observation, RunFailure> {
        let Emulation {
            time_only,
            watch,
            alone,
            ..
        } = data.emulation;
        // A call watched for hazards is not timed.
        let listening = match (time_only, watch, data.timed) {
            (true, ..) => Some(WatchedFor::Time(TracedCtas::Alone)),
            (false, HazardWatch::Off, true) => Some(WatchedFor::Time(TracedCtas::Along)),
            (false, ..) => hazards::wanted(watch, alone).map(WatchedFor::Hazards),
        };
        let timed = matches!(listening, Some(WatchedFor::Time(_)));
        let operands = shuffled_operands(data);
        let inputs = input_bytes(data, &operands);
        let ran = self.run(data, &inputs, listening)?;
        let modelled = timed.then(|| model::modelled(self.device, self.job.image, &ran));
        let whole = !time_only && !alone;
        let observed = match self.place.as_ref().filter(|_| whole) {
            None => Observation {
                printed: printed(&ran),
                hazards: found(&ran),
                ..Observation::default()
            },
            Some(place) => {
                let mut found = place.trespasses(data, &inputs).map_err(|e| no_memory(&e))?;
                let observed = place.observe(data, &ran)?;
                if !found.is_empty() {
                    self.name_instructions(data, &mut found);
                }
                Observation {
                    trespasses: found.into_iter().map(|(_, trespass)| trespass).collect(),
                    ..observed
                }
            }
        };
        Ok(Observation {
            modelled,
            ..observed
        })
    }

    fn buffers(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Buffer>, String> {
        match &self.place {
            Some(place) => place.buffers(wanted).map_err(|e| e.to_string()),
            None => Err("it was never called".to_owned()),
        }
    }

    fn search(
        &mut self,
        data: &CallInput<'_>,
        element: Option<(usize, usize)>,
    ) -> Option<AccessSites> {
        EmuCell::search(self, data, element)
    }
}

/// The operands of the call, shuffled by its seed.
fn shuffled_operands<'d>(data: &CallInput<'d>) -> Cow<'d, Operands> {
    match data.emulation.time_only {
        // They are zeros.
        true => Cow::Borrowed(data.operands),
        false => Cow::Owned(data.operands.shuffled(data.call_seed.shuffle())),
    }
}

/// The bytes of the inputs of a call; none if only the time counts, since memory begins with zeros.
fn input_bytes<'o>(data: &CallInput<'_>, operands: &'o Operands) -> Vec<Cow<'o, [u8]>> {
    match data.emulation.time_only {
        true => Vec::new(),
        false => tables::input_bytes(operands),
    }
}

fn config(device: &Device, emulation: Emulation, time_limit: Duration) -> Config {
    Config {
        seed: emulation.schedule,
        mma_mode: match emulation.exact_sums {
            true => MmaMode::Exact,
            false => MmaMode::Fast,
        },
        time_limit: Some(time_limit),
        limits: device_limits(device),
        detailed_counters: false,
        ..Config::default()
    }
}

/// The limits that the emulator enforces.
fn device_limits(device: &Device) -> DeviceLimits {
    let Limits {
        sms,
        shared_per_block,
        shared_per_sm,
        threads_per_sm,
        blocks_per_sm,
        registers_per_sm,
        blocks_per_cluster,
        ..
    } = device.limits;
    DeviceLimits {
        capability: 10 * device.chip.major + device.chip.minor,
        sms,
        // Target files limit shared memory to less than 32 bits can count.
        shared_per_cta: shared_per_block.0 as u32,
        shared_per_sm: shared_per_sm.0 as u32,
        threads_per_sm,
        ctas_per_sm: blocks_per_sm,
        registers_per_sm,
        max_cluster: blocks_per_cluster,
        // A property of the architecture, like the instructions that reach it.
        tensor_columns: match device.chip.major {
            10 | 11 => 512,
            _ => 0,
        },
    }
}

fn no_memory(error: &MemoryError) -> RunFailure {
    RunFailure::refused(format!("emulated memory: {error}"))
}

fn found(ran: &[EndedLaunch<'_>]) -> Vec<Hazard> {
    let hazards = ran.iter().flat_map(|ended| &ended.hazards);
    hazards.cloned().collect()
}

fn printed(ran: &[EndedLaunch<'_>]) -> String {
    let several = ran.len() > 1;
    let words = ran.iter().map(|ended| {
        let kernel = several.then_some(ended.geometry.kernel.as_str());
        printed::lines(kernel, &ended.report.printed)
    });
    words.collect()
}

/// Counters of all launches of a call, by name.
fn named(ran: &[EndedLaunch<'_>], useful: f64) -> BTreeMap<String, f64> {
    let mut sum = Counters::default();
    for ended in ran {
        sum += &ended.report.counters;
    }
    let mut named: BTreeMap<String, f64> = Class::ALL
        .iter()
        .map(|&class| {
            let name = format!("instructions-{}", class.name());
            (name, sum.instructions(class) as f64)
        })
        .collect();
    let rest = [
        ("global-read", sum.global_read),
        ("global-written", sum.global_written),
        ("global-unique-read", sum.global_unique_read),
        ("global-unique-written", sum.global_unique_written),
        ("shared-read", sum.shared_read),
        ("shared-written", sum.shared_written),
        ("shared-async-read", sum.shared_async_read),
        ("shared-async-written", sum.shared_async_written),
        ("shared-tensor-read", sum.shared_tensor_read),
        ("shared-unique-read", sum.shared_unique_read),
        ("shared-unique-written", sum.shared_unique_written),
        ("local-read", sum.local_read),
        ("local-written", sum.local_written),
        ("bank-conflicts", sum.bank_conflicts),
        ("async-read", sum.async_read),
        ("async-written", sum.async_written),
        ("bulk-copies", sum.bulk_copies),
        ("mma-flops", sum.mma_flops),
        ("barrier-waits", sum.barrier_waits),
        ("atomics", sum.atomics),
        ("early-reads", sum.early_reads),
        ("launches", sum.launches),
        ("ctas", sum.ctas),
    ];
    named.extend(rest.map(|(name, value)| (name.to_owned(), value as f64)));
    named.insert("mma-flops-useful".to_owned(), useful);
    named
}

/// The emulator's counters, by their recorded names.
#[cfg(test)]
pub(crate) fn counter_names() -> Vec<String> {
    named(&[], 0.0).into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::config::target;

    #[test]
    fn what_is_asked_of_the_emulator_reaches_it() {
        let asked = Emulation {
            schedule: 7,
            exact_sums: true,
            ..Emulation::default()
        };
        let config = config(target::default_device(), asked, Duration::from_secs(3));
        assert_eq!((config.seed, config.mma_mode), (7, MmaMode::Exact));
        assert_eq!(config.time_limit, Some(Duration::from_secs(3)));
    }

    #[test]
    fn the_emulator_knows_the_usual_device_by_the_same_numbers() {
        assert_eq!(device_limits(target::default_device()), DeviceLimits::H200);
        let mut small = target::default_device().clone();
        small.limits.sms = 3;
        small.limits.blocks_per_cluster = 4;
        let config = config(&small, Emulation::default(), Duration::from_secs(3));
        assert_eq!((config.limits.sms, config.limits.max_cluster), (3, 4));
    }
}
