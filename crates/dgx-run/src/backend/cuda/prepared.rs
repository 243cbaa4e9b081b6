use std::rc::Rc;

use cudarc::driver::sys::CUresult;

use super::call_buffers::{CallBuffers, Variable};
use super::driver::{CudaError, Event, Function, Graph, LaunchConfig, Module, Stream};
use super::instance::Instance;
use super::tools::uploaded;
use super::{scrub, tensor_map, variables};
use crate::backend::RunFailure;
use crate::backend::tables::{Bases, PrivateZones, Tables};
use crate::compile::Image;
use crate::plan::OperatorCall;

/// A fully prepared call, which can be queued repeatedly.
#[derive(Debug)]
pub(super) struct PreparedCall {
    launches: Vec<(Function, LaunchConfig, String)>,
    /// Of each launch.
    params: Vec<Vec<Vec<u8>>>,
    call_buffers: CallBuffers,
    /// Of a thread, the maximum over all kernels.
    local_bytes: u32,
    stream: Rc<Stream>,
    module: Module,
}

impl PreparedCall {
    /// Loads the image again, so that its variables have their initial values.
    pub(super) fn new(
        image: &Image,
        instance: Rc<Instance>,
        call: &OperatorCall,
        stream: Rc<Stream>,
    ) -> Result<Self, RunFailure> {
        let module = load(image)?;
        let launches = launches(&module, image, call)?;
        let local = launches.iter().map(|(function, ..)| function.local_bytes());
        let local = local.collect::<Result<Vec<u32>, _>>()?;
        let call_buffers = CallBuffers::bare(instance, Rc::clone(&stream))?;
        let places = PrivateZones::reserve(call_buffers.instance.operator(), call);
        let (call_buffers, made) =
            call_buffers.with_tables(places, |call_buffers, places, private| {
                let bases = Bases {
                    inputs: call_buffers.instance.base(),
                    outputs: call_buffers.outputs.base(),
                    private,
                };
                let zones = (
                    call_buffers.instance.zones(),
                    call_buffers.outputs.zones(),
                    places,
                );
                let shape = (
                    &**call_buffers.instance.operator(),
                    call_buffers.instance.groups(),
                );
                Tables::build((call, image), shape, zones, bases, tensor_map::encode)
            })?;
        Ok(Self {
            launches,
            params: made.params,
            call_buffers,
            local_bytes: local.into_iter().max().unwrap_or(0),
            stream,
            module,
        })
    }

    /// From now on every timed call begins with the module's variables as loaded: a call must not
    /// use values that an earlier one left there. Fails if the driver does not find a variable,
    /// which could not be restored.
    pub(super) fn forget_between_calls(mut self, image: &Image) -> Result<Self, RunFailure> {
        let unreadable = |e| RunFailure::refused(format!("cannot read the cubin: {e}"));
        let names = variables::variables(&image.cubin).map_err(unreadable)?;
        let allocating = variables::allocating(&image.cubin).map_err(unreadable)?;
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for name in names {
            match self.module.variable(&name)? {
                Some((address, bytes)) => found.push(self.variable(address, bytes)?),
                None => missing.push(name),
            }
        }
        let refusal = variables::untimed_reason(&missing)
            .or(allocating)
            .or_else(|| scrub::untimed_reason(self.local_bytes));
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        self.call_buffers.restore(found);
        Ok(self)
    }

    fn variable(&self, address: u64, bytes: u64) -> Result<Variable, CudaError> {
        let mut initial = vec![0; bytes as usize];
        self.stream.download(&mut initial, address)?;
        Ok(Variable {
            address,
            bytes,
            initial: uploaded(&initial, &self.stream)?,
        })
    }

    pub(super) fn call_buffers(&self) -> &CallBuffers {
        &self.call_buffers
    }

    pub(super) fn local_bytes(&self) -> u32 {
        self.local_bytes
    }

    /// Queues every launch of the call, in order.
    pub(super) fn queue(&self) -> Result<(), RunFailure> {
        let mut launches = self.launches.iter().enumerate();
        launches.try_for_each(|(place, (_, launch, _))| self.launch(place, launch))
    }

    /// The same with an event before each launch, so that none overlaps the one before.
    pub(super) fn queue_apart(&self, events: &[Event]) -> Result<(), RunFailure> {
        for (place, ((_, launch, _), event)) in self.launches.iter().zip(events).enumerate() {
            event.record(&self.stream)?;
            let alone = LaunchConfig {
                overlap: false,
                ..*launch
            };
            self.launch(place, &alone)?;
        }
        Ok(())
    }

    fn launch(&self, place: usize, launch: &LaunchConfig) -> Result<(), RunFailure> {
        let (function, _, kernel) = &self.launches[place];
        let mut params = self.params[place].clone();
        let mut pointers: Vec<_> = params.iter_mut().map(|p| p.as_mut_ptr().cast()).collect();
        function
            .launch(&self.stream, launch, &mut pointers)
            .map_err(|error| explain_refusal(error, kernel, launch))
    }

    /// The names of the launched kernels.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &str> {
        self.launches.iter().map(|(_, _, kernel)| kernel.as_str())
    }

    /// The same as a graph, for timing.
    pub(super) fn capture(&self) -> Result<Graph, RunFailure> {
        self.stream.capture(|| self.queue())
    }
}

fn launches(
    module: &Module,
    image: &Image,
    call: &OperatorCall,
) -> Result<Vec<(Function, LaunchConfig, String)>, RunFailure> {
    let mut all = Vec::new();
    for (index, geometry) in call.launches.iter().enumerate() {
        let kernel = &geometry.kernel;
        let report = image.kernel(kernel);
        let smem = report.map_or(geometry.smem, |report| report.dynamic_smem(geometry));
        let launch = LaunchConfig {
            grid: geometry.grid,
            block: geometry.block,
            cluster: geometry.cluster,
            smem,
            // The first launch has no predecessor to overlap with.
            overlap: geometry.pdl && index > 0,
        };
        let refused = |error: CudaError| explain_refusal(error, kernel, &launch);
        let entry = report.map_or(kernel, |report| &report.entry);
        let function = module.function(entry).map_err(refused)?;
        if smem > 0 {
            function.allow_smem(smem).map_err(refused)?;
        }
        if geometry.cluster.iter().product::<u32>() > 8 {
            function.allow_large_clusters().map_err(refused)?;
        }
        all.push((function, launch, kernel.clone()));
    }
    Ok(all)
}

/// Machine code runs on its own generation of chips; for later ones the driver compiles the PTX.
fn load(image: &Image) -> Result<Module, CudaError> {
    match Module::load(&image.cubin) {
        Err(e) if e.code == CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => {
            Module::load(&[image.ptx.as_bytes(), b"\0"].concat())
        }
        loaded => loaded,
    }
}

fn explain_refusal(error: CudaError, kernel: &str, launch: &LaunchConfig) -> RunFailure {
    let mut failure = error.refused();
    failure.message = format!(
        "kernel {kernel}: {}; grid {:?}, block {:?}, cluster {:?}, {} bytes of dynamic shared memory",
        failure.message, launch.grid, launch.block, launch.cluster, launch.smem
    );
    failure
}
