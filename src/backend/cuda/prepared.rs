use std::rc::Rc;

use super::arena::Arena;
use super::driver::{CudaError, Function, Graph, Launch, Module, Stream};
use super::instance::Instance;
use super::tensor_map;
use crate::backend::tables::{self, Bases, Private, ScratchZone, Tables};
use crate::backend::{Observation, POISON, RunFailure, Trespass, TrespassKind, abi};
use crate::plan::OperatorCall;

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
        let places = Private::reserve(call);
        let arena = |zones| Arena::new(zones, &stream).map_err(CudaError::refused);
        let outputs = arena(tables::reserve_outputs(instance.groups()))?;
        let private = arena(places.zones.clone())?;
        let bases = Bases {
            inputs: instance.base(),
            outputs: outputs.base(),
            private: private.base(),
        };
        let zones = (instance.zones(), outputs.zones(), &places);
        let made = Tables::build(call, instance.groups(), zones, bases, tensor_map::encode)?;
        let upload = |zone: usize, bytes: &[u8]| {
            let copied = stream.upload(private.address(zone), bytes);
            copied.map_err(CudaError::refused)
        };
        upload(places.groups_zone, abi::bytes_of(&made.groups))?;
        upload(places.maps_zone, &made.maps)?;
        upload(places.deal_zone, abi::bytes_of(&made.deal))?;
        let scratch = places.scratch;
        for s in &scratch {
            let zone = private.zones().zone(s.zone);
            let byte = if s.zero { 0 } else { 0xff };
            stream
                .fill(private.address(s.zone), byte, zone.bytes)
                .map_err(CudaError::refused)?;
        }
        // The tables are on this stack until the copies are done.
        stream.synchronize().map_err(CudaError::refused)?;
        Ok(Self {
            launches,
            args: made.args,
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
        for (index, zone) in self.outputs.zones().all().iter().enumerate() {
            self.stream
                .fill_halves(self.outputs.address(index), POISON, zone.bytes)?;
        }
        for s in self.scratch.iter().filter(|s| !s.zero) {
            let bytes = self.private.zones().zone(s.zone).bytes;
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
        let mut trespasses = self.outputs.zones().trespasses_in(&copy);
        trespasses.extend(self.private.trespasses(&self.stream)?);
        trespasses.extend(self.instance.verify(tools, &self.stream)?);
        trespasses.extend(self.uncleared()?);
        Ok(Observation {
            c: tables::split_outputs(self.outputs.zones(), &copy),
            trespasses,
            ..Observation::default()
        })
    }

    fn uncleared(&self) -> Result<Vec<Trespass>, CudaError> {
        let mut found = Vec::new();
        for s in self.scratch.iter().filter(|s| s.zero) {
            let zone = self.private.zones().zone(s.zone);
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
