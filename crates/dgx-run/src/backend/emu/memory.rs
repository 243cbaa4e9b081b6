//! Memory as it is set up before a call and read after it.

use std::borrow::Cow;
use std::iter::repeat;
use std::sync::Arc;
use std::time::Instant;

use ptx_emu::trace::{Part, Trace, Watch};
use ptx_emu::{
    Config, DevicePtr, Launch, Memory, MemoryError, Module, Params, Region, Sanitize, Wake,
};

use super::model::{self, EndedLaunch};
use super::{
    TracedCtas, WatchedFor, config, fault, found, hazards, named, no_memory, printed, tensor_map,
};
use crate::backend::pieces::{self, Piece, PieceSource};
use crate::backend::tables::{self, Bases, PrivateZones, Tables};
use crate::backend::zones::Zones;
use crate::backend::{Buffer, CallInput, CallSeed, ForbiddenWrite, Job, Observation, RunFailure};
use crate::operator::Operands;
use dgx_core::domain::{Bytes, Device, Group};
use dgx_core::operator::Operator;

/// Larger shapes are not placed in two orders, since both are kept.
const MOST_MIRRORED: u64 = 256 << 20;

/// Memory with everything a call needs in it.
pub(super) struct CallMemory {
    pub(super) memory: Memory,
    pub(super) operator: Arc<Operator>,
    groups: Vec<Group>,
    /// The layout in the current call.
    pub(super) now: CallLayout,
    /// The layout in calls with the other order, once there was one.
    other: Option<CallLayout>,
}

/// Buffers in one order.
pub(super) struct CallLayout {
    mirrored: bool,
    inputs: Zones,
    pub(super) outputs: Zones,
    private: PrivateZones,
    pub(super) bases: Bases,
    tables: Tables,
    pub(super) pieces: Vec<Piece>,
    /// The same for the hazard detector: all memory that a kernel may touch.
    regions: Vec<Region>,
    /// The same for the time model: reads by many CTAs are distinguished from reads by one.
    parts: Vec<Part>,
}

impl CallLayout {
    fn new(
        job: &Job<'_>,
        operands: &Operands,
        memory: &mut Memory,
        mirrored: bool,
    ) -> Result<Self, RunFailure> {
        let operator = &operands.operator;
        let groups = operands.groups();
        let mut inputs = tables::reserve_inputs(operator, &groups);
        let mut outputs = tables::reserve_outputs(operator, &groups);
        let mut private = PrivateZones::reserve(operator, job.call);
        if mirrored {
            for zones in [&mut inputs, &mut outputs, &mut private.zones] {
                *zones = zones.mirrored();
            }
        }
        let zones = [&inputs, &outputs, &private.zones];
        let at = allocate(memory, zones, mirrored).map_err(|e| no_memory(&e))?;
        let bases = Bases {
            inputs: at[0],
            outputs: at[1],
            private: at[2],
        };
        let zones = (&inputs, &outputs, &private);
        let tables = Tables::build(
            (job.call, job.image),
            (operator, &groups),
            zones,
            bases,
            tensor_map::encode,
        )?;
        let mut pieces = pieces::inputs(&inputs, bases.inputs, operator, &groups);
        let begun = pieces::outputs(&outputs, bases.outputs, operator, &pieces);
        pieces.extend(begun);
        pieces.extend(pieces::private(&private, bases.private));
        let regions = hazards::regions(&inputs, bases.inputs)
            .chain(hazards::regions(&outputs, bases.outputs))
            .chain(hazards::regions(&private.zones, bases.private))
            .collect();
        let parts = model::parts([&inputs, &outputs, &private.zones]);
        Ok(Self {
            mirrored,
            regions,
            parts,
            inputs,
            outputs,
            private,
            bases,
            tables,
            pieces,
        })
    }

    fn bytes(&self) -> u64 {
        self.inputs.bytes() + self.outputs.bytes() + self.private.zones.bytes()
    }
}

/// Addresses of inputs, outputs and scratch; if mirrored, scratch comes first.
fn allocate(
    memory: &mut Memory,
    zones: [&Zones; 3],
    mirrored: bool,
) -> Result<[u64; 3], MemoryError> {
    let names = ["inputs", "outputs", "scratch"];
    let mut order = [0, 1, 2];
    if mirrored {
        order.reverse();
    }
    let mut at = [0; 3];
    for place in order {
        at[place] = memory.alloc_named(names[place], zones[place].bytes())?.0;
    }
    Ok(at)
}

impl CallMemory {
    pub(super) fn new(job: &Job<'_>, operands: &Operands) -> Result<Self, RunFailure> {
        let mut memory = Memory::new();
        Ok(Self {
            now: CallLayout::new(job, operands, &mut memory, false)?,
            other: None,
            memory,
            operator: Arc::clone(&operands.operator),
            groups: operands.groups(),
        })
    }

    /// Places the buffers of the next call in the usual order or the other.
    pub(super) fn place(
        &mut self,
        job: &Job<'_>,
        operands: &Operands,
        mirrored: bool,
    ) -> Result<(), RunFailure> {
        if self.now.mirrored == mirrored || self.now.bytes() > MOST_MIRRORED {
            return Ok(());
        }
        let other = match self.other.take() {
            Some(other) => other,
            None => CallLayout::new(job, operands, &mut self.memory, mirrored)?,
        };
        self.other = Some(std::mem::replace(&mut self.now, other));
        Ok(())
    }

    pub(super) fn lay(
        &mut self,
        data: &CallInput<'_>,
        tensors: &[Cow<'_, [u8]>],
    ) -> Result<(), MemoryError> {
        // If only the time counts, changes by a call do not matter, and the zeros that memory
        // begins with are valid elements.
        let time_only = data.emulation.time_only;
        let matters = |piece: &&Piece| match piece.what.source() {
            Some(PieceSource::Input(_)) => false,
            _ => piece.what.is_defined(),
        };
        let pieces = self.now.pieces.iter();
        for piece in pieces.filter(|piece| !time_only || matters(piece)) {
            let source = source(&self.now.tables, tensors, piece);
            for stretch in piece.stretches() {
                let at = DevicePtr(piece.at + stretch.start);
                self.memory
                    .write(at, &piece.laid(data.call_seed, source, stretch))?;
            }
        }
        Ok(())
    }

    pub(super) fn launch_all<'j>(
        &mut self,
        device: &Device,
        module: &Module,
        job: &Job<'j>,
        data: &CallInput<'_>,
        listening: Option<WatchedFor>,
    ) -> Result<Vec<EndedLaunch<'j>>, RunFailure> {
        let began = Instant::now();
        let mut ended: Vec<EndedLaunch<'j>> = Vec::new();
        for (place, geometry) in job.call.launches.iter().enumerate() {
            let left = data.time_limit.saturating_sub(began.elapsed());
            let config = Config {
                // Those of the timed call represent the cell.
                detailed_counters: data.timed && !data.emulation.time_only,
                ..config(device, data.emulation, left)
            };
            let listening = listening.as_ref().map(|to| match to {
                WatchedFor::Hazards(sanitize) => WatchedFor::Hazards(Sanitize {
                    after: (ended.last())
                        .filter(|_| geometry.pdl)
                        .map(|before| before.wake.clone()),
                    ..sanitize.clone()
                }),
                time => time.clone(),
            });
            if let (false, Some(before)) = (geometry.pdl, ended.last_mut()) {
                // Its accesses are no longer needed, and take much memory.
                before.wake = Wake::default();
            }
            let of = (device, data.call_seed);
            let ran = self.launch(module, (job, place), config, listening, of);
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
        (job, place): (&Job<'j>, usize),
        config: Config,
        listening: Option<WatchedFor>,
        (device, call_seed): (&Device, CallSeed),
    ) -> Result<EndedLaunch<'j>, RunFailure> {
        let geometry = &job.call.launches[place];
        let launch = self.launch_with_arguments(job, place, &config);
        let memory = &mut self.memory;
        let untraced = |report| (report, Trace::default(), Trace::default());
        let (ran, hazards, wake, unwatched) = match listening {
            Some(WatchedFor::Time(how)) => {
                let alone = how == TracedCtas::Alone;
                let watch = model::watch(
                    geometry,
                    (&self.operator, &self.groups),
                    device.limits.sms,
                    alone,
                );
                let fixed = watch.ctas.clone();
                let both = [model::drawn(&watch, call_seed.0), watch.ctas].concat();
                let watch = Watch {
                    ctas: both,
                    ..watch
                };
                let ran = launch.run_traced(module, memory, &watch);
                let ran = ran.map(|(report, mut whole)| {
                    whole.split(&self.now.parts);
                    (report, model::part(&whole, &fixed), whole)
                });
                (ran, Vec::new(), Wake::default(), 0)
            }
            Some(WatchedFor::Hazards(mut sanitize)) => {
                sanitize.regions = self.now.regions.clone();
                let (report, found) = launch.run_sanitized(module, memory, &sanitize);
                let hazards = hazards::describe(&found.all, &self.operator, &self.groups);
                (report.map(untraced), hazards, found.wake, found.unwatched)
            }
            None => {
                let report = launch.run(module, memory);
                (report.map(untraced), Vec::new(), Wake::default(), 0)
            }
        };
        match ran {
            Ok((report, trace, whole)) => Ok(EndedLaunch {
                geometry,
                report,
                trace,
                whole,
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

    /// The launch at this index of a call, with all its arguments.
    pub(super) fn launch_with_arguments(
        &self,
        job: &Job<'_>,
        place: usize,
        config: &Config,
    ) -> Launch {
        let geometry = &job.call.launches[place];
        let report = job.image.kernel(&geometry.kernel);
        let entry = report.map_or(&geometry.kernel, |report| &report.entry);
        let params = self.now.tables.params[place].iter();
        let params = params.fold(Params::new(), |all, bytes| all.bytes(bytes));
        let mut launch = Launch::new(entry)
            .grid(geometry.grid)
            .block(geometry.block)
            .shared_bytes(report.map_or(geometry.smem, |report| report.dynamic_smem(geometry)))
            .config(*config)
            .params(params);
        if geometry.cluster != [1; 3] {
            launch = launch.cluster(geometry.cluster);
        }
        // From ptxas: PTX does not contain it.
        launch.registers = report.map(|report| report.registers).filter(|&n| n > 0);
        launch
    }

    pub(super) fn observe(
        &self,
        data: &CallInput<'_>,
        ran: &[EndedLaunch<'_>],
    ) -> Result<Observation, RunFailure> {
        let base = DevicePtr(self.now.bases.outputs);
        let copy = self.memory.view(base, self.now.outputs.bytes());
        let copy = copy.map_err(|e| no_memory(&e))?;
        Ok(Observation {
            copied: None,
            outputs: tables::split_outputs(&self.operator, &self.now.outputs, copy, data.call_seed),
            trespasses: Vec::new(),
            read_early: ran
                .iter()
                .find_map(|ended| ended.report.early_read.as_ref())
                .map(ToString::to_string),
            printed: printed(ran),
            counters: named(ran, self.operator.work_of(&self.groups).tensor_flops()),
            modelled: None,
            hazards: found(ran),
            unwatched: Bytes(ran.iter().map(|ended| ended.unwatched.0).sum()),
        })
    }

    /// The contents of a scratch buffer of the whole call.
    #[cfg(test)]
    pub(super) fn scratch(&self, name: &str) -> Vec<u8> {
        let name = tables::scratch_zone(name);
        let mut zones = self.now.private.zones.all().iter();
        let zone = zones.find(|zone| zone.name == name).expect("a buffer");
        let at = DevicePtr(self.now.bases.private + zone.offset);
        self.memory.view(at, zone.bytes).expect("memory").to_vec()
    }

    pub(super) fn arenas(&self) -> [(&Zones, u64); 3] {
        [
            (&self.now.inputs, self.now.bases.inputs),
            (&self.now.outputs, self.now.bases.outputs),
            (&self.now.private.zones, self.now.bases.private),
        ]
    }

    pub(super) fn buffers(
        &self,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Buffer>, MemoryError> {
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

    /// Forbidden changes, each with its address.
    pub(super) fn trespasses(
        &self,
        data: &CallInput<'_>,
        tensors: &[Cow<'_, [u8]>],
    ) -> Result<Vec<(u64, ForbiddenWrite)>, MemoryError> {
        let arenas = self.arenas();
        let mut found = Vec::new();
        for piece in &self.now.pieces {
            let now = self.memory.view(DevicePtr(piece.at), piece.bytes)?;
            let source = source(&self.now.tables, tensors, piece);
            if let Some(at) = piece.first_change(data.call_seed, source, now) {
                let address = piece.at + at;
                found.push((address, pieces::explain(&self.now.pieces, &arenas, address)));
            }
        }
        Ok(found)
    }
}

/// The bytes a piece comes from.
fn source<'a>(tables: &'a Tables, tensors: &'a [Cow<'_, [u8]>], piece: &Piece) -> &'a [u8] {
    match piece.what.source() {
        Some(PieceSource::Input(zone)) => &tensors[zone],
        Some(PieceSource::Table(table)) => &tables.bytes[table],
        // The emulator's modules keep their variables.
        Some(PieceSource::Variable(_)) | None => &[],
    }
}
