//! The emulator backend: executes a contender's own PTX on the CPU. Memory is
//! laid out, poisoned and guarded exactly as on the GPU, so that a fixture gets
//! the same status on both.

mod fault;
mod model;
mod tensor_map;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use ptx_emu::counters::{Class, Counters};
use ptx_emu::launch::{Config, Launch, MmaMode, Params, Profile, Report};
use ptx_emu::memory::{DevicePtr, Memory, MemoryError};
use ptx_emu::op::Module;

use super::tables::{self, Bases, Private, Tables};
use super::zones::Zones;
use super::{
    Backend, CANARY, Emulation, Job, Observation, POISON, RunFailure, Trespass, TrespassKind, abi,
};
use crate::compile::Image;
use crate::domain::{Group, Status};
use crate::plan::LaunchGeometry;
use crate::record::schema::Device;

/// An emulated H200.
pub struct EmuBackend {
    device: Device,
    modules: HashMap<String, Module>,
    /// The operands of the last job: the next contender of a shape reads the same.
    operands: Option<Loaded>,
}

/// One shape's operands in emulated memory.
struct Loaded {
    key: String,
    memory: Memory,
    groups: Vec<Group>,
    zones: Zones,
    base: DevicePtr,
}

impl Default for EmuBackend {
    fn default() -> Self {
        Self {
            device: model::device(),
            modules: HashMap::new(),
            operands: None,
        }
    }
}

impl Backend for EmuBackend {
    fn device(&self) -> &Device {
        &self.device
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Observation, RunFailure> {
        self.load_module(job.image)?;
        if self
            .operands
            .as_ref()
            .is_none_or(|o| o.key != job.operands_key)
        {
            // Dropped first: two shapes' operands need not fit side by side.
            self.operands = None;
            self.operands = Some(Loaded::new(job).map_err(|e| no_memory(&e))?);
        }
        let (Some(loaded), Some(module)) =
            (self.operands.as_mut(), self.modules.get(&job.image.key))
        else {
            unreachable!("both were put there above");
        };
        let mut call = Call::place(loaded, job)?;
        let ran = call.launch_all(module, job);
        let observed = ran.and_then(|reports| call.observe(job, &reports));
        call.release();
        if observed.as_ref().map_or(true, |o| !o.trespasses.is_empty()) {
            // Whatever was damaged must not meet the next contender.
            self.operands = None;
        }
        observed
    }
}

impl EmuBackend {
    fn load_module(&mut self, image: &Image) -> Result<(), RunFailure> {
        if !self.modules.contains_key(&image.key) {
            let module = Module::load(&image.ptx).map_err(|error| RunFailure {
                status: Status::Unsupported,
                message: format!("the emulator cannot run this PTX: {error}"),
                detail: None,
                fatal: false,
            })?;
            self.modules.insert(image.key.clone(), module);
        }
        Ok(())
    }
}

impl Loaded {
    fn new(job: &Job<'_>) -> Result<Self, MemoryError> {
        let (zones, tensors) = tables::reserve_inputs(job.operands);
        let mut memory = Memory::new();
        let base = guarded(&mut memory, "inputs", &zones)?;
        for (zone, bytes) in zones.all().iter().zip(&tensors) {
            memory.write(base.offset(zone.offset), bytes)?;
        }
        Ok(Self {
            key: job.operands_key.to_owned(),
            memory,
            groups: job.operands.groups.iter().map(|g| g.group).collect(),
            zones,
            base,
        })
    }

    /// Inputs and canaries that are no longer what was put there.
    fn changes(&self, job: &Job<'_>) -> Result<Vec<Trespass>, MemoryError> {
        let now = self.memory.view(self.base, self.zones.bytes())?;
        let mut found = self.zones.trespasses_in(now);
        let (_, tensors): (_, Vec<Cow<'_, [u8]>>) = tables::reserve_inputs(job.operands);
        for (zone, bytes) in self.zones.all().iter().zip(&tensors) {
            let kept = &now[zone.offset as usize..(zone.offset + zone.bytes) as usize];
            if let Some(at) = first_difference(kept, bytes) {
                found.push(self.zones.explain(zone.offset + at as u64));
            }
        }
        Ok(found)
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    // Whole slices first: equal is the rule, and memcmp is fast.
    (a != b).then(|| a.iter().zip(b).position(|(x, y)| x != y))?
}

/// Outputs, scratch and tables of one call, beside the operands it reads.
struct Call<'a> {
    loaded: &'a mut Loaded,
    outputs: Zones,
    private: Private,
    bases: Bases,
    args: abi::Args,
}

impl<'a> Call<'a> {
    fn place(loaded: &'a mut Loaded, job: &Job<'_>) -> Result<Self, RunFailure> {
        let outputs = tables::reserve_outputs(&loaded.groups);
        let private = Private::reserve(job.call);
        let memory = &mut loaded.memory;
        let bases = Bases {
            inputs: loaded.base.0,
            outputs: guarded(memory, "outputs", &outputs)
                .map_err(|e| no_memory(&e))?
                .0,
            private: guarded(memory, "scratch", &private.zones)
                .map_err(|e| no_memory(&e))?
                .0,
        };
        let zones = (&loaded.zones, &outputs, &private);
        let made = Tables::build(job.call, &loaded.groups, zones, bases, tensor_map::encode)?;
        let mut call = Self {
            loaded,
            outputs,
            private,
            bases,
            args: made.args,
        };
        call.fill(&made).map_err(|e| no_memory(&e))?;
        Ok(call)
    }

    /// Poison over outputs and scratch, then the tables.
    fn fill(&mut self, made: &Tables) -> Result<(), MemoryError> {
        let memory = &mut self.loaded.memory;
        for zone in self.outputs.all() {
            poison(memory, self.bases.outputs + zone.offset, zone.bytes)?;
        }
        for scratch in &self.private.scratch {
            let zone = self.private.zones.zone(scratch.zone);
            let at = self.bases.private + zone.offset;
            match scratch.zero {
                true => memory.fill(DevicePtr(at), 0, zone.bytes)?,
                false => poison(memory, at, zone.bytes)?,
            }
        }
        memory.write(DevicePtr(self.args.groups), abi::bytes_of(&made.groups))?;
        memory.write(DevicePtr(self.args.maps), &made.maps)?;
        memory.write(DevicePtr(self.args.deal), abi::bytes_of(&made.deal))
    }

    fn launch_all(&mut self, module: &Module, job: &Job<'_>) -> Result<Vec<Report>, RunFailure> {
        let began = Instant::now();
        let launches = job.call.launches.iter();
        launches
            .map(|geometry| {
                let left = job.time_limit.saturating_sub(began.elapsed());
                self.launch(module, geometry, config(job.emulation, left))
            })
            .collect()
    }

    fn launch(
        &mut self,
        module: &Module,
        geometry: &LaunchGeometry,
        config: Config,
    ) -> Result<Report, RunFailure> {
        let mut launch = Launch::new(&geometry.kernel)
            .grid(geometry.grid)
            .block(geometry.block)
            .shared_bytes(geometry.smem)
            .config(config)
            .params(Params::new().bytes(abi::bytes_of(&[self.args])));
        if geometry.cluster != [1; 3] {
            launch = launch.cluster(geometry.cluster);
        }
        launch
            .run(module, &mut self.loaded.memory)
            .map_err(|error| fault::failure(&error))
    }

    fn observe(&self, job: &Job<'_>, reports: &[Report]) -> Result<Observation, RunFailure> {
        self.observe_memory(job)
            .map(|(c, trespasses)| Observation {
                c,
                trespasses,
                read_early: reports
                    .iter()
                    .find_map(|report| report.early_read.as_ref())
                    .map(ToString::to_string),
                counters: named(reports, &self.loaded.groups),
                modelled: Some(model::modelled(reports)),
            })
            .map_err(|e| no_memory(&e))
    }

    fn observe_memory(&self, job: &Job<'_>) -> Result<(Vec<Vec<u16>>, Vec<Trespass>), MemoryError> {
        let memory = &self.loaded.memory;
        let copy = memory.view(DevicePtr(self.bases.outputs), self.outputs.bytes())?;
        let mut trespasses = self.outputs.trespasses_in(copy);
        let private = memory.view(DevicePtr(self.bases.private), self.private.zones.bytes())?;
        trespasses.extend(self.private.zones.trespasses_in(private));
        for scratch in self.private.scratch.iter().filter(|s| s.zero) {
            let zone = self.private.zones.zone(scratch.zone);
            let bytes = &private[zone.offset as usize..(zone.offset + zone.bytes) as usize];
            trespasses.extend(bytes.iter().position(|&b| b != 0).map(|at| Trespass {
                buffer: zone.name.clone(),
                kind: TrespassKind::NotCleared,
                offset: at as i64,
            }));
        }
        trespasses.extend(self.loaded.changes(job)?);
        Ok((tables::split_outputs(&self.outputs, copy), trespasses))
    }

    fn release(self) {
        for base in [self.bases.outputs, self.bases.private] {
            // It was allocated by `place`, so there is nothing to fail.
            let _ = self.loaded.memory.free(DevicePtr(base));
        }
    }
}

/// An allocation full of canaries.
fn guarded(memory: &mut Memory, name: &str, zones: &Zones) -> Result<DevicePtr, MemoryError> {
    let base = memory.alloc_named(name, zones.bytes())?;
    memory.fill(base, CANARY, zones.bytes())?;
    Ok(base)
}

fn config(emulation: Emulation, time_limit: Duration) -> Config {
    Config {
        seed: emulation.schedule,
        mma_mode: match emulation.exact_sums {
            true => MmaMode::Exact,
            false => MmaMode::Fast,
        },
        time_limit: Some(time_limit),
        ..Config::default()
    }
}

fn poison(memory: &mut Memory, at: u64, bytes: u64) -> Result<(), MemoryError> {
    let pair = POISON.to_le_bytes();
    let pattern: Vec<u8> = pair.iter().copied().cycle().take(bytes as usize).collect();
    memory.write(DevicePtr(at), &pattern)
}

fn no_memory(error: &MemoryError) -> RunFailure {
    RunFailure::refused(format!("emulated memory: {error}"))
}

/// Counters of all launches of a call, by name.
fn named(reports: &[Report], groups: &[Group]) -> BTreeMap<String, f64> {
    let mut sum = Counters::default();
    for report in reports {
        sum += &report.counters;
    }
    let useful: f64 = groups.iter().map(Group::flops).sum();
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

/// The device whose limits the emulator enforces.
const PROFILE: Profile = Profile::H200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::counters::PANELS;

    #[test]
    fn what_is_asked_of_the_emulator_reaches_it() {
        let asked = Emulation {
            schedule: 7,
            exact_sums: true,
        };
        let config = config(asked, Duration::from_secs(3));
        assert_eq!((config.seed, config.mma_mode), (7, MmaMode::Exact));
        assert_eq!(config.time_limit, Some(Duration::from_secs(3)));
    }

    #[test]
    fn every_counter_on_record_is_in_a_table() {
        let recorded = named(&[], &[]);
        let shown: Vec<&str> = PANELS
            .iter()
            .flat_map(|p| p.figures)
            .flat_map(|f| f.of.iter().copied())
            .collect();
        for name in recorded.keys() {
            assert!(shown.contains(&name.as_str()), "{name} is in no table");
        }
        for name in shown {
            assert!(recorded.contains_key(name), "{name} is never recorded");
        }
    }
}
