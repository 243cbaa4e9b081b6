//! The GPU backend: cudarc's driver API, loaded at run time, so that the same
//! binary starts on a machine without CUDA.

mod arena;
mod bench;
mod cublas;
mod device;
mod driver;
mod instance;
mod oracle;
mod prepared;
mod tensor_map;

use std::collections::HashMap;
use std::rc::Rc;

pub use bench::{Bench, Entry, Timed};
pub use cublas::{Yardstick, find as find_cublas};
pub use device::{Presence, presence};
pub use driver::CudaError;
pub use instance::Instance;
pub use prepared::Prepared;

use super::{Backend, Job, Observation, RunFailure};
use crate::compile::{Image, Unit};
use crate::operator::{Operands, Oracle};
use crate::record::schema::Device;
use device::Context;
use driver::{Module, Stream};

/// The source of the harness's own kernels, to be compiled like a variant.
pub fn tools_unit(arch: &str) -> Unit {
    Unit {
        name: "src/backend/cuda/tools.cu".to_owned(),
        source: concat!(include_str!("tools.cu"), include_str!("oracle.cu")).to_owned(),
        arch: arch.to_owned(),
        defines: Vec::new(),
        headers: Default::default(),
    }
}

/// How many sets of operands stay on the device: the distributions of one shape.
const KEPT_INSTANCES: usize = 4;

/// One GPU, one context, one stream.
pub struct CudaBackend {
    device: Device,
    tools: Rc<Module>,
    modules: HashMap<String, Rc<Module>>,
    /// Most recently used last.
    instances: Vec<Rc<Instance>>,
    stream: Rc<Stream>,
    // Dropped last: everything above lives in it.
    _context: Context,
}

impl CudaBackend {
    /// Takes the first GPU; `tools` is the image of [`tools_unit`].
    pub fn open(tools: &Image) -> Result<Self, CudaError> {
        let context = Context::open()?;
        let device = context.describe()?;
        Ok(Self {
            device,
            tools: Rc::new(Module::load(&tools.cubin)?),
            modules: HashMap::new(),
            instances: Vec::new(),
            stream: Rc::new(Stream::new()?),
            _context: context,
        })
    }

    /// What the GPU is, without loading anything onto it.
    pub fn describe() -> Result<Device, CudaError> {
        Context::open()?.describe()
    }

    /// A stopwatch on this GPU.
    pub fn bench(&self, cold_l2: bool) -> Result<Bench, CudaError> {
        Bench::new(&self.device, &self.tools, Rc::clone(&self.stream), cold_l2)
    }

    /// The yardstick for operands already on the device, its GEMMs tuned.
    pub fn yardstick(&self, instance: &Rc<Instance>) -> Result<Yardstick, String> {
        Yardstick::new(&self.tools, Rc::clone(&self.stream), instance)
    }

    /// Operands on the device, uploaded unless they are there already.
    pub fn instance(&mut self, job: &Job<'_>) -> Result<Rc<Instance>, CudaError> {
        let key = job.operands_key;
        if let Some(at) = self.instances.iter().position(|i| i.key() == key) {
            let instance = self.instances.remove(at);
            self.instances.push(Rc::clone(&instance));
            return Ok(instance);
        }
        if self.instances.len() >= KEPT_INSTANCES {
            self.instances.remove(0);
        }
        let instance = Rc::new(Instance::upload(key, job.operands, &self.stream)?);
        self.instances.push(Rc::clone(&instance));
        Ok(instance)
    }

    /// Everything for a call but the launch: module, scratch, maps, arguments.
    pub fn prepare(&mut self, job: &Job<'_>) -> Result<Prepared, RunFailure> {
        let module = self.module(job.image).map_err(CudaError::refused)?;
        let instance = self.instance(job).map_err(CudaError::refused)?;
        Prepared::new(module, instance, job.call, Rc::clone(&self.stream))
    }

    fn module(&mut self, image: &Image) -> Result<Rc<Module>, CudaError> {
        if let Some(module) = self.modules.get(&image.key) {
            return Ok(Rc::clone(module));
        }
        let module = Rc::new(Module::load(&image.cubin)?);
        self.modules.insert(image.key.clone(), Rc::clone(&module));
        Ok(module)
    }
}

impl Backend for CudaBackend {
    fn device(&self) -> &Device {
        &self.device
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Observation, RunFailure> {
        let prepared = self.prepare(job)?;
        prepared.poison().map_err(CudaError::refused)?;
        prepared.queue()?;
        self.stream.synchronize().map_err(CudaError::crashed)?;
        prepared.observe(&self.tools).map_err(CudaError::crashed)
    }

    fn answer(&mut self, operands: &Operands) -> Result<Oracle, String> {
        oracle::solve(&self.tools, &self.stream, operands).map_err(|e| e.to_string())
    }

    fn cuda(&mut self) -> Option<&mut CudaBackend> {
        Some(self)
    }
}
