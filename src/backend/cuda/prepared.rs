use std::rc::Rc;

use super::arena::{Arena, Layout};
use super::driver::{CudaError, Function, Graph, Launch, Module, Stream};
use super::instance::Instance;
use super::tensor_map;
use crate::backend::{Observation, POISON, RunFailure, Trespass, TrespassKind, abi};
use crate::plan::{OperandRef, OperatorCall, ScratchSize};

/// A scratch buffer's place in the call's arena.
#[derive(Clone, Copy, Debug)]
struct ScratchZone {
    zone: usize,
    zero: bool,
}

/// A call with everything in place: it can be queued, again and again.
#[derive(Debug)]
pub struct Prepared {
    launches: Vec<(Function, Launch, String)>,
    args: abi::Args,
    /// C of every group, in the shape's order.
    outputs: Arena,
    /// Scratch, and the tables the kernels read.
    private: Arena,
    scratch: Vec<ScratchZone>,
    instance: Rc<Instance>,
    stream: Rc<Stream>,
    _module: Rc<Module>,
}

impl Prepared {
    pub fn new(
        module: Rc<Module>,
        instance: Rc<Instance>,
        call: &OperatorCall,
        stream: Rc<Stream>,
    ) -> Result<Self, RunFailure> {
        let launches = launches(&module, call)?;
        let outputs = output_arena(&instance, &stream).map_err(CudaError::refused)?;
        let mut layout = Layout::default();
        let (scratch, slots) = reserve_scratch(call, &mut layout);
        let groups = instance.groups().len();
        let groups_zone = layout.add("groups", (groups * size_of::<abi::Group>()) as u64);
        let map_bytes = groups * call.maps.len() * abi::TENSOR_MAP;
        let maps_zone = layout.add("maps", map_bytes as u64);
        let private = Arena::new(layout, &stream).map_err(CudaError::refused)?;

        let tables = Tables::build(call, &instance, &outputs, &private, &slots)?;
        let upload = |zone: usize, bytes: &[u8]| stream.upload(private.address(zone), bytes);
        upload(groups_zone, abi::bytes_of(&tables.groups)).map_err(CudaError::refused)?;
        upload(maps_zone, &tables.maps).map_err(CudaError::refused)?;
        let args = abi::Args {
            groups: private.address(groups_zone),
            maps: private.address(maps_zone),
            scratch: tables.call_scratch,
            group_count: groups as u32,
            tile_count: call.tile_count,
            first: tables.groups[0],
        };
        for s in &scratch {
            let zone = private.zone(s.zone);
            let byte = if s.zero { 0 } else { 0xff };
            stream
                .fill(private.address(s.zone), byte, zone.bytes)
                .map_err(CudaError::refused)?;
        }
        // The tables are on this stack until the copies are done.
        stream.synchronize().map_err(CudaError::refused)?;
        Ok(Self {
            launches,
            args,
            outputs,
            private,
            scratch,
            instance,
            stream,
            _module: module,
        })
    }

    /// Queues NaN over the output and over scratch that is not promised to
    /// stay clear: what a call does not write, it cannot have.
    pub fn poison(&self) -> Result<(), CudaError> {
        for (index, zone) in self.outputs.zones().iter().enumerate() {
            self.stream
                .fill_halves(self.outputs.address(index), POISON, zone.bytes)?;
        }
        for s in self.scratch.iter().filter(|s| !s.zero) {
            let bytes = self.private.zone(s.zone).bytes;
            self.stream
                .fill_halves(self.private.address(s.zone), POISON, bytes)?;
        }
        Ok(())
    }

    /// Queues every launch of the call, in order.
    pub fn queue(&self) -> Result<(), RunFailure> {
        for (function, launch, kernel) in &self.launches {
            let mut args = self.args;
            function
                .launch(&self.stream, launch, &mut [(&raw mut args).cast()])
                .map_err(|error| explain_refusal(error, kernel, launch))?;
        }
        Ok(())
    }

    /// The same as a graph, for timing.
    pub fn capture(&self) -> Result<Graph, RunFailure> {
        self.stream.capture(|| self.queue())
    }

    pub fn instance(&self) -> &Rc<Instance> {
        &self.instance
    }

    /// Reads back what the call did to memory.
    pub fn observe(&self, tools: &Module) -> Result<Observation, CudaError> {
        let copy = self.outputs.download(&self.stream)?;
        let mut trespasses = self.outputs.trespasses_in(&copy);
        trespasses.extend(self.private.trespasses(&self.stream)?);
        trespasses.extend(self.instance.verify(tools, &self.stream)?);
        trespasses.extend(self.uncleared()?);
        Ok(Observation {
            c: self.split(&copy),
            trespasses,
            ..Observation::default()
        })
    }

    fn split(&self, copy: &[u8]) -> Vec<Vec<u16>> {
        let halves = |bytes: &[u8]| {
            bytes
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect()
        };
        self.outputs
            .zones()
            .iter()
            .map(|z| halves(&copy[z.offset as usize..(z.offset + z.bytes) as usize]))
            .collect()
    }

    fn uncleared(&self) -> Result<Vec<Trespass>, CudaError> {
        let mut found = Vec::new();
        for s in self.scratch.iter().filter(|s| s.zero) {
            let zone = self.private.zone(s.zone);
            let mut bytes = vec![0; zone.bytes as usize];
            self.stream
                .download(&mut bytes, self.private.address(s.zone))?;
            if let Some(at) = bytes.iter().position(|&b| b != 0) {
                found.push(Trespass {
                    buffer: zone.name.clone(),
                    kind: TrespassKind::NotCleared,
                    offset: at as i64,
                });
            }
        }
        Ok(found)
    }
}

fn launches(
    module: &Module,
    call: &OperatorCall,
) -> Result<Vec<(Function, Launch, String)>, RunFailure> {
    let mut all = Vec::new();
    for (index, geometry) in call.launches.iter().enumerate() {
        let kernel = &geometry.kernel;
        let launch = Launch {
            grid: geometry.grid,
            block: geometry.block,
            cluster: geometry.cluster,
            smem: geometry.smem,
            // The first launch has nothing of its own to overlap with.
            overlap: geometry.pdl && index > 0,
        };
        let refused = |error: CudaError| explain_refusal(error, kernel, &launch);
        let function = module.function(kernel).map_err(refused)?;
        if geometry.smem > 0 {
            function.allow_smem(geometry.smem).map_err(refused)?;
        }
        if geometry.cluster.iter().product::<u32>() > 8 {
            function.allow_large_clusters().map_err(refused)?;
        }
        all.push((function, launch, kernel.clone()));
    }
    Ok(all)
}

fn explain_refusal(error: CudaError, kernel: &str, launch: &Launch) -> RunFailure {
    let mut failure = error.refused();
    failure.message = format!(
        "kernel {kernel}: {}; grid {:?}, block {:?}, cluster {:?}, {} bytes of dynamic shared memory",
        failure.message, launch.grid, launch.block, launch.cluster, launch.smem
    );
    failure
}

fn output_arena(instance: &Instance, stream: &Stream) -> Result<Arena, CudaError> {
    let mut layout = Layout::default();
    for (index, group) in instance.groups().iter().enumerate() {
        let bytes = u64::from(group.m) * u64::from(group.n) * 2;
        layout.add(format!("c of group {index}"), bytes);
    }
    Arena::new(layout, stream)
}

/// Zone of each scratch buffer: for each layout, one per kernel group or one in all.
type Slots = Vec<Vec<usize>>;

fn reserve_scratch(call: &OperatorCall, layout: &mut Layout) -> (Vec<ScratchZone>, Slots) {
    let mut zones = Vec::new();
    let mut slots = Vec::new();
    for scratch in &call.scratch {
        let sizes: Vec<(String, u64)> = match &scratch.size {
            ScratchSize::PerCall(bytes) => vec![(format!("scratch {}", scratch.name), *bytes)],
            ScratchSize::PerGroup(sizes) => sizes
                .iter()
                .enumerate()
                .map(|(i, bytes)| {
                    let group = call.group_order[i];
                    (format!("scratch {} of group {group}", scratch.name), *bytes)
                })
                .collect(),
        };
        let own: Vec<usize> = sizes
            .into_iter()
            .map(|(name, bytes)| layout.add(name, bytes))
            .collect();
        zones.extend(own.iter().map(|&zone| ScratchZone {
            zone,
            zero: scratch.zero,
        }));
        slots.push(own);
    }
    (zones, slots)
}

/// What the kernels are handed in global memory.
struct Tables {
    groups: Vec<abi::Group>,
    maps: Vec<u8>,
    call_scratch: [u64; abi::SCRATCH_SLOTS],
}

impl Tables {
    fn build(
        call: &OperatorCall,
        instance: &Instance,
        outputs: &Arena,
        private: &Arena,
        slots: &Slots,
    ) -> Result<Self, RunFailure> {
        let mut call_scratch = [0; abi::SCRATCH_SLOTS];
        let mut groups = Vec::with_capacity(call.group_order.len());
        for (i, &place) in call.group_order.iter().enumerate() {
            let mut group = instance.group_inputs(place);
            group.c = outputs.address(place);
            group.tile_begin = call.tile_begin[i];
            for (scratch, zones) in call.scratch.iter().zip(slots) {
                match scratch.size {
                    ScratchSize::PerCall(_) => {
                        call_scratch[scratch.slot] = private.address(zones[0]);
                    }
                    ScratchSize::PerGroup(_) => {
                        group.scratch[scratch.slot] = private.address(zones[i]);
                    }
                }
            }
            groups.push(group);
        }
        let mut maps = Vec::new();
        for (i, group) in groups.iter().enumerate() {
            for map in &call.maps {
                let geometry = &map.groups[i];
                let address = match geometry.operand {
                    OperandRef::C => group.c,
                    OperandRef::Scratch(slot) => group.scratch[slot],
                    input => instance
                        .address(call.group_order[i], input)
                        .unwrap_or_default(),
                };
                maps.extend(tensor_map::encode(&map.name, geometry, address)?);
            }
        }
        Ok(Self {
            groups,
            maps,
            call_scratch,
        })
    }
}
