//! The emulator backend: executes a contender's own PTX on the CPU. Memory is
//! laid out, poisoned and guarded exactly as on the GPU, so that a fixture gets
//! the same status on both.

mod culprit;
mod fault;
mod hazards;
mod model;
mod printed;
pub(crate) mod probing;
mod role;
mod tensor_map;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::iter::repeat;
use std::time::{Duration, Instant};

use bytemuck::cast_slice;
use ptx_emu::trace::Trace;
use ptx_emu::{
    Class, Config, Counters, DevicePtr, Launch, Memory, MemoryError, MmaMode, Module, Params,
    Profile, Region, Sanitize, Wake,
};

use self::model::Ended;
pub(crate) use self::model::{Traced, cause_word, machine};
pub(crate) use self::role::{Laid, Role};
use super::pieces::{self, Piece, Source};
use super::tables::{self, Bases, Private, Tables};
use super::zones::Zones;
use super::{
    Backend, Buffer, Data, Emulation, Job, Loaded, Observation, RunFailure, Trespass, Whereabouts,
};
use crate::compile::Image;
use crate::domain::{BackendKind, Bytes, Device, Group, Hazard, Limits, Status, Watch};
use crate::operator::Operands;
use crate::plan::LaunchGeometry;
pub(crate) use tensor_map::refusal as map_refusal;

/// An emulated device.
pub(crate) struct EmuBackend {
    device: Device,
    modules: HashMap<String, Module>,
}

impl EmuBackend {
    pub(crate) fn new(device: Device) -> Self {
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
    /// Runs the CTAs that a call's time is told by, and keeps what they did.
    pub(crate) fn trace<'a>(
        &'a mut self,
        job: Job<'a>,
        data: &Data<'_>,
    ) -> Result<Traced<'a>, RunFailure> {
        let mut cell = self.cell(job)?;
        let ran = cell.run(data, Some(Listening::Time(Watching::Alone)))?;
        Traced::new(cell.device, job.image, ran).map_err(RunFailure::refused)
    }

    /// Runs a call that stamps, and hands over what it wrote. The times are the
    /// emulator's, and mean nothing.
    #[cfg(test)]
    pub(crate) fn stamped(
        &mut self,
        job: Job<'_>,
        data: &Data<'_>,
    ) -> Result<(Observation, Vec<u8>), RunFailure> {
        let mut cell = self.cell(job)?;
        let seen = cell.call(data)?;
        let stamps = cell.place.as_ref().map(|p| p.scratch(crate::plan::STAMPS));
        Ok((seen, stamps.unwrap_or_default()))
    }

    fn cell<'a>(&'a mut self, job: Job<'a>) -> Result<Cell<'a>, RunFailure> {
        self.load_module(job.image)?;
        Ok(Cell {
            device: &self.device,
            module: &self.modules[&job.image.key],
            job,
            place: None,
            timed: false,
        })
    }

    fn load_module(&mut self, image: &Image) -> Result<(), RunFailure> {
        if !self.modules.contains_key(&image.key) {
            let module = Module::load(&image.ptx).map_err(|error| RunFailure {
                status: Status::Unsupported,
                message: format!("the emulator cannot run this PTX: {error}"),
                detail: None,
                fatal: false,
                hazards: Vec::new(),
                printed: Box::default(),
            })?;
            self.modules.insert(image.key.clone(), module);
        }
        Ok(())
    }
}

/// A contender on a shape. Its memory is made with the first call and stays,
/// so that what a call leaves behind meets the next.
struct Cell<'a> {
    device: &'a Device,
    module: &'a Module,
    job: Job<'a>,
    place: Option<Place>,
    /// Whether a call of it was timed.
    timed: bool,
}

/// What a call is listened to for.
#[derive(Clone)]
enum Listening {
    /// How long it would take.
    Time(Watching),
    /// What its result does not show.
    Hazards(Sanitize),
}

/// How the CTAs that time is told by are run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watching {
    /// With all the others.
    Along,
    /// The others do not run, and what is left in memory is incomplete.
    Alone,
}

impl<'a> Cell<'a> {
    /// Runs its launches once, in memory that is laid out anew.
    fn run(
        &mut self,
        data: &Data<'_>,
        listening: Option<Listening>,
    ) -> Result<Vec<Ended<'a>>, RunFailure> {
        let place = match self.place.take() {
            Some(place) => place,
            None => Place::new(&self.job, data.operands)?,
        };
        let place = self.place.insert(place);
        let (_, tensors) = tables::reserve_inputs(data.operands);
        place.lay(data, &tensors).map_err(|e| no_memory(&e))?;
        let alone = matches!(listening, Some(Listening::Time(Watching::Alone)));
        let ran = place.launch_all(self.device, self.module, &self.job, data, listening);
        if ran.is_ok() || !alone {
            return ran;
        }
        // Without the other CTAs it may have waited for what never came.
        place.lay(data, &tensors).map_err(|e| no_memory(&e))?;
        let along = Some(Listening::Time(Watching::Along));
        place.launch_all(self.device, self.module, &self.job, data, along)
    }
}

impl Loaded for Cell<'_> {
    fn call(&mut self, data: &Data<'_>) -> Result<Observation, RunFailure> {
        let Emulation {
            time_only, watch, ..
        } = data.emulation;
        // The first call speaks for the cell: one time is enough. One that is
        // watched for hazards is not timed.
        let listening = match (time_only, watch, self.timed) {
            (true, ..) => Some(Listening::Time(Watching::Alone)),
            (false, Watch::Off, false) => Some(Listening::Time(Watching::Along)),
            (false, ..) => hazards::wanted(watch).map(Listening::Hazards),
        };
        let timed = matches!(listening, Some(Listening::Time(_)));
        let ran = self.run(data, listening)?;
        self.timed |= timed;
        let modelled = timed.then(|| model::modelled(self.device, self.job.image, &ran));
        let observed = match self.place.as_ref().filter(|_| !data.emulation.time_only) {
            None => Observation {
                printed: printed(&ran),
                ..Observation::default()
            },
            Some(place) => {
                let (_, tensors) = tables::reserve_inputs(data.operands);
                let mut found = place
                    .trespasses(data, &tensors)
                    .map_err(|e| no_memory(&e))?;
                let observed = place.observe(data, &ran)?;
                if !found.is_empty() {
                    self.accuse(data, &mut found);
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

    fn search(&mut self, data: &Data<'_>, element: Option<(usize, usize)>) -> Option<Whereabouts> {
        Cell::search(self, data, element)
    }
}

/// Memory with everything a call needs in it.
struct Place {
    memory: Memory,
    groups: Vec<Group>,
    inputs: Zones,
    outputs: Zones,
    private: Private,
    bases: Bases,
    tables: Tables,
    pieces: Vec<Piece>,
    /// The same for whoever watches: all that a kernel may touch.
    regions: Vec<Region>,
}

impl Place {
    fn new(job: &Job<'_>, operands: &Operands) -> Result<Self, RunFailure> {
        let groups: Vec<Group> = operands.groups.iter().map(|g| g.group).collect();
        let (inputs, _) = tables::reserve_inputs(operands);
        let outputs = tables::reserve_outputs(&groups);
        let private = Private::reserve(job.call);
        let mut memory = Memory::new();
        let mut allocate = |name: &str, zones: &Zones| {
            let made = memory.alloc_named(name, zones.bytes());
            made.map(|base| base.0).map_err(|e| no_memory(&e))
        };
        let bases = Bases {
            inputs: allocate("inputs", &inputs)?,
            outputs: allocate("outputs", &outputs)?,
            private: allocate("scratch", &private.zones)?,
        };
        let zones = (&inputs, &outputs, &private);
        let tables = Tables::build(job.call, &groups, zones, bases, tensor_map::encode)?;
        let mut pieces = pieces::inputs(&inputs, bases.inputs, &groups);
        pieces.extend(pieces::outputs(&outputs, bases.outputs));
        pieces.extend(pieces::private(&private, bases.private));
        let regions = hazards::regions(&inputs, bases.inputs)
            .chain(hazards::regions(&outputs, bases.outputs))
            .chain(hazards::regions(&private.zones, bases.private))
            .collect();
        Ok(Self {
            memory,
            regions,
            groups,
            inputs,
            outputs,
            private,
            bases,
            tables,
            pieces,
        })
    }

    fn lay(&mut self, data: &Data<'_>, tensors: &[Cow<'_, [u8]>]) -> Result<(), MemoryError> {
        // Where only its time counts, nobody will look for what a call changed, and the zeros that
        // memory begins with are elements as good as any.
        let time_only = data.emulation.time_only;
        let matters = |piece: &&Piece| match piece.what.source() {
            Some(Source::Input(_)) => false,
            _ => piece.what.promised(),
        };
        let pieces = self.pieces.iter();
        for piece in pieces.filter(|piece| !time_only || matters(piece)) {
            let source = source(&self.tables, tensors, piece);
            for stretch in piece.stretches() {
                let at = DevicePtr(piece.at + stretch.start);
                self.memory
                    .write(at, &piece.laid(data.salt, source, stretch))?;
            }
        }
        Ok(())
    }

    fn launch_all<'j>(
        &mut self,
        device: &Device,
        module: &Module,
        job: &Job<'j>,
        data: &Data<'_>,
        listening: Option<Listening>,
    ) -> Result<Vec<Ended<'j>>, RunFailure> {
        let began = Instant::now();
        let mut ended: Vec<Ended<'j>> = Vec::new();
        for geometry in &job.call.launches {
            let left = data.time_limit.saturating_sub(began.elapsed());
            let registers = registers(job.image, &geometry.kernel);
            let config = config(device, data.emulation, left);
            let listening = listening.as_ref().map(|to| match to {
                Listening::Hazards(sanitize) => Listening::Hazards(Sanitize {
                    after: (ended.last())
                        .filter(|_| geometry.pdl)
                        .map(|before| before.wake.clone()),
                    ..sanitize.clone()
                }),
                time => time.clone(),
            });
            if let (false, Some(before)) = (geometry.pdl, ended.last_mut()) {
                // Nobody asks any more what it did, and to remember it takes much.
                before.wake = Wake::default();
            }
            let ran = self.launch(module, geometry, registers, config, listening);
            ended.push(ran.map_err(|failure| RunFailure {
                hazards: [found(&ended), failure.hazards].concat(),
                printed: (printed(&ended) + &failure.printed).into(),
                ..failure
            })?);
        }
        Ok(ended)
    }

    fn launch<'j>(
        &mut self,
        module: &Module,
        geometry: &'j LaunchGeometry,
        registers: Option<u32>,
        config: Config,
        listening: Option<Listening>,
    ) -> Result<Ended<'j>, RunFailure> {
        let launch = self.geared(geometry, registers, &config);
        let memory = &mut self.memory;
        let untraced = |report| (report, Trace::default());
        let (ran, hazards, wake, unwatched) = match listening {
            Some(Listening::Time(how)) => {
                let watch = model::watch(geometry, &self.groups, how == Watching::Alone);
                let ran = launch.run_traced(module, memory, &watch);
                (ran, Vec::new(), Wake::default(), 0)
            }
            Some(Listening::Hazards(mut sanitize)) => {
                sanitize.regions = self.regions.clone();
                let (report, found) = launch.run_sanitized(module, memory, &sanitize);
                let hazards = hazards::told(&found.all, &self.groups);
                (report.map(untraced), hazards, found.wake, found.unwatched)
            }
            None => {
                let report = launch.run(module, memory);
                (report.map(untraced), Vec::new(), Wake::default(), 0)
            }
        };
        match ran {
            Ok((report, trace)) => Ok(Ended {
                geometry,
                report,
                trace,
                hazards,
                wake,
                unwatched: Bytes(unwatched),
            }),
            Err(error) => Err(RunFailure {
                hazards,
                ..fault::failure(&error)
            }),
        }
    }

    /// A launch with all it is given.
    fn geared(&self, geometry: &LaunchGeometry, registers: Option<u32>, config: &Config) -> Launch {
        let mut launch = Launch::new(&geometry.kernel)
            .grid(geometry.grid)
            .block(geometry.block)
            .shared_bytes(geometry.smem)
            .config(*config)
            .params(Params::new().bytes(bytemuck::bytes_of(&self.tables.args)));
        if geometry.cluster != [1; 3] {
            launch = launch.cluster(geometry.cluster);
        }
        launch.registers = registers;
        launch
    }

    fn observe(&self, data: &Data<'_>, ran: &[Ended<'_>]) -> Result<Observation, RunFailure> {
        let base = DevicePtr(self.bases.outputs);
        let copy = self.memory.view(base, self.outputs.bytes());
        let copy = copy.map_err(|e| no_memory(&e))?;
        Ok(Observation {
            c: tables::split_outputs(&self.outputs, copy, &self.groups, data.salt),
            trespasses: Vec::new(),
            read_early: ran
                .iter()
                .find_map(|ended| ended.report.early_read.as_ref())
                .map(ToString::to_string),
            printed: printed(ran),
            counters: named(ran, &self.groups),
            modelled: None,
            hazards: found(ran),
            unwatched: Bytes(ran.iter().map(|ended| ended.unwatched.0).sum()),
        })
    }

    /// What a scratch buffer of the whole call holds.
    #[cfg(test)]
    fn scratch(&self, name: &str) -> Vec<u8> {
        let name = tables::scratch_zone(name);
        let mut zones = self.private.zones.all().iter();
        let zone = zones.find(|zone| zone.name == name).expect("a buffer");
        let at = DevicePtr(self.bases.private + zone.offset);
        self.memory.view(at, zone.bytes).expect("memory").to_vec()
    }

    fn arenas(&self) -> [(&Zones, u64); 3] {
        [
            (&self.inputs, self.bases.inputs),
            (&self.outputs, self.bases.outputs),
            (&self.private.zones, self.bases.private),
        ]
    }

    fn buffers(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Buffer>, MemoryError> {
        let arenas = self.arenas();
        let zones = arenas
            .iter()
            .flat_map(|(zones, base)| zones.all().iter().zip(repeat(*base)));
        zones
            .filter(|(zone, _)| zone.bytes > 0 && wanted(&zone.name))
            .map(|(zone, base)| {
                let bytes = self
                    .memory
                    .view(DevicePtr(base + zone.offset), zone.bytes)?;
                Ok((zone.name.clone(), bytes.to_vec()))
            })
            .collect()
    }

    /// What changed and should not have, each with its address.
    fn trespasses(
        &self,
        data: &Data<'_>,
        tensors: &[Cow<'_, [u8]>],
    ) -> Result<Vec<(u64, Trespass)>, MemoryError> {
        let arenas = self.arenas();
        let mut found = Vec::new();
        for piece in &self.pieces {
            let now = self.memory.view(DevicePtr(piece.at), piece.bytes)?;
            let source = source(&self.tables, tensors, piece);
            if let Some(at) = piece.first_change(data.salt, source, now) {
                let address = piece.at + at;
                found.push((address, pieces::explain(&self.pieces, &arenas, address)));
            }
        }
        Ok(found)
    }
}

/// The bytes a piece comes from.
fn source<'a>(tables: &'a Tables, tensors: &'a [Cow<'_, [u8]>], piece: &Piece) -> &'a [u8] {
    match piece.what.source() {
        Some(Source::Input(zone)) => &tensors[zone],
        Some(Source::Groups) => cast_slice(&tables.groups),
        Some(Source::Maps) => &tables.maps,
        Some(Source::Deal) => cast_slice(&tables.deal),
        // The emulator's modules keep their variables.
        Some(Source::Variable(_)) | None => &[],
    }
}

/// Registers per thread as ptxas allotted them: PTX does not say.
fn registers(image: &Image, kernel: &str) -> Option<u32> {
    let mut reports = image.kernels.iter();
    let report = reports.find(|report| report.name == kernel)?;
    Some(report.registers).filter(|&each| each > 0)
}

fn config(device: &Device, emulation: Emulation, time_limit: Duration) -> Config {
    Config {
        seed: emulation.schedule,
        mma_mode: match emulation.exact_sums {
            true => MmaMode::Exact,
            false => MmaMode::Fast,
        },
        time_limit: Some(time_limit),
        profile: profile(device),
        ..Config::default()
    }
}

/// The limits that the emulator enforces.
fn profile(device: &Device) -> Profile {
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
    Profile {
        capability: 10 * device.chip.major + device.chip.minor,
        sms,
        // Targets are read with less shared memory than 32 bits count.
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

fn found(ran: &[Ended<'_>]) -> Vec<Hazard> {
    let hazards = ran.iter().flat_map(|ended| &ended.hazards);
    hazards.cloned().collect()
}

fn printed(ran: &[Ended<'_>]) -> String {
    let several = ran.len() > 1;
    let words = ran.iter().map(|ended| {
        let kernel = several.then_some(ended.geometry.kernel.as_str());
        printed::lines(kernel, &ended.report.printed)
    });
    words.collect()
}

/// Counters of all launches of a call, by name.
fn named(ran: &[Ended<'_>], groups: &[Group]) -> BTreeMap<String, f64> {
    let mut sum = Counters::default();
    for ended in ran {
        sum += &ended.report.counters;
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

/// What the emulator counts, by the names that go on record.
#[cfg(test)]
pub(crate) fn counter_names() -> Vec<String> {
    named(&[], &[]).into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::target;

    #[test]
    fn what_is_asked_of_the_emulator_reaches_it() {
        let asked = Emulation {
            schedule: 7,
            exact_sums: true,
            time_only: false,
            watch: Watch::Off,
        };
        let config = config(target::usual(), asked, Duration::from_secs(3));
        assert_eq!((config.seed, config.mma_mode), (7, MmaMode::Exact));
        assert_eq!(config.time_limit, Some(Duration::from_secs(3)));
    }

    #[test]
    fn the_emulator_knows_the_usual_device_by_the_same_numbers() {
        assert_eq!(profile(target::usual()), Profile::H200);
        let mut small = target::usual().clone();
        small.limits.sms = 3;
        small.limits.blocks_per_cluster = 4;
        let config = config(&small, Emulation::default(), Duration::from_secs(3));
        assert_eq!((config.profile.sms, config.profile.max_cluster), (3, 4));
    }
}
