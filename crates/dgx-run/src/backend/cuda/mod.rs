//! The GPU backend: cudarc's driver API, loaded at run time, so that the same
//! binary starts on a machine without CUDA.

mod arena;
mod bench;
mod call_buffers;
mod copy;
mod cublas;
mod device;
mod driver;
mod instance;
mod judge;
mod oracle;
mod prepared;
mod probing;
mod program;
mod scrub;
mod stamping;
mod tensor_map;
#[cfg(test)]
mod tests;
mod timed;
mod timer;
mod tools;
mod tuning;
mod variables;

use std::rc::Rc;

pub use cublas::find as find_cublas;
pub use device::{GpuPresence, presence};
pub use driver::CudaError;
pub(crate) use probing::REPORT_BYTES;
pub use probing::{ProbeBench, ProbeReading, ProbeTrial, SEED, WARP_STAMPS};
pub use stamping::StampedCalls;

use super::{Backend, Bench, BenchSetup, Buffer, CallInput, Job, Loaded, Observation, RunFailure};
use crate::compile::{CompilerKind, Image, TranslationUnit};
use crate::operator::{Operands, Oracle, OracleKernels};
use bench::CudaBench;
use device::{Context, Gpu};
use dgx_core::domain::{BackendKind, Device};
use dgx_core::operator::Operator;
use instance::{DataSet, Instance};
use prepared::PreparedCall;
use scrub::Scrub;
use tools::Tools;

/// The source of the harness's own kernels, compiled like a variant; with those that compute the
/// expected results of `operator`.
pub fn tools_unit(arch: &str, operator: Option<&Operator>) -> TranslationUnit {
    let oracle = operator.map(|operator| OracleKernels::new(operator).source);
    let mut source = concat!(include_str!("tools.cu"), include_str!("scrub.cu")).to_owned();
    source += &oracle.unwrap_or_default();
    TranslationUnit {
        name: "src/backend/cuda/tools.cu".to_owned(),
        source: source.into(),
        arch: arch.to_owned(),
        flags: Vec::new(),
        defines: Vec::new(),
        headers: Default::default(),
        compiler: CompilerKind::Nvrtc,
        kernels: Vec::new(),
    }
}

/// Data sets that validation keeps on the device: the distributions of one shape.
const KEPT_SETS: usize = 4;

/// One GPU, one context, one stream.
pub struct CudaBackend {
    device: Device,
    tools: Rc<Tools>,
    scrub: Rc<Scrub>,
    /// The operands of the current shape.
    instance: Option<Rc<Instance>>,
    /// Its data sets, most recently used last.
    sets: Vec<Rc<DataSet>>,
    // Dropped last: everything above lives in it.
    _context: Context,
}

impl CudaBackend {
    /// Takes the GPU of this number, as CUDA_VISIBLE_DEVICES counts them; `tools` is the image of [`tools_unit`].
    pub fn open(tools: &Image, card: u32) -> Result<Self, CudaError> {
        let context = Context::open(card)?;
        let device = context.gpu.describe()?;
        let tools = Rc::new(Tools::load(&tools.cubin)?);
        Ok(Self {
            scrub: Rc::new(Scrub::new(&device, &tools)?),
            device,
            tools,
            instance: None,
            sets: Vec::new(),
            _context: context,
        })
    }

    /// Describes the first GPU without opening it.
    pub fn describe() -> Result<Device, CudaError> {
        Gpu::get(0)?.describe()
    }

    /// The same, after opening the card.
    pub fn try_out() -> Result<Device, CudaError> {
        Context::open(0)?.gpu.describe()
    }

    /// The place for operands like these. A new shape replaces the old one.
    fn instance(&mut self, operands: &Operands) -> Result<Rc<Instance>, CudaError> {
        let like = |i: &&Rc<Instance>| {
            i.groups() == operands.groups() && *i.operator() == operands.operator
        };
        if let Some(instance) = self.instance.as_ref().filter(like) {
            return Ok(Rc::clone(instance));
        }
        // Freed first: the operands of two shapes may not fit side by side.
        self.instance = None;
        self.sets.clear();
        let instance = Rc::new(Instance::new(operands)?);
        Ok(Rc::clone(self.instance.insert(instance)))
    }

    /// A data set on the device, uploaded unless it is already there.
    fn set(&mut self, data: &CallInput<'_>) -> Result<Rc<DataSet>, CudaError> {
        if let Some(at) = self.sets.iter().position(|s| s.key() == data.key) {
            let set = self.sets.remove(at);
            self.sets.push(Rc::clone(&set));
            return Ok(set);
        }
        if self.sets.len() >= KEPT_SETS {
            self.sets.remove(0);
        }
        let set = Rc::new(DataSet::upload(
            data.key,
            data.operands,
            &self.tools.stream,
        )?);
        self.sets.push(Rc::clone(&set));
        Ok(set)
    }

    /// Prepares everything for a call but the launch: module, scratch, maps, arguments.
    fn prepare(&mut self, job: &Job<'_>, operands: &Operands) -> Result<PreparedCall, RunFailure> {
        let instance = self.instance(operands)?;
        let stream = Rc::clone(&self.tools.stream);
        PreparedCall::new(job.image, instance, job.call, stream)
    }
}

impl Backend for CudaBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Cuda
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn load<'a>(&'a mut self, job: Job<'a>) -> Result<Box<dyn Loaded + 'a>, RunFailure> {
        Ok(Box::new(CudaCell {
            backend: self,
            job,
            prepared: None,
        }))
    }

    fn answers(&self) -> bool {
        true
    }

    fn answer(&mut self, operands: &Operands) -> Result<Oracle, String> {
        oracle::solve(&self.tools, operands)
    }

    fn bench<'a>(&'a mut self, setup: &BenchSetup<'_>) -> Result<Box<dyn Bench + 'a>, String> {
        Ok(Box::new(CudaBench::new(self, setup)?))
    }

    fn yardstick(&self) -> Result<String, String> {
        cublas::find()
    }
}

/// A contender on a shape, loaded with its first call: the module stays, including its variables.
struct CudaCell<'a> {
    backend: &'a mut CudaBackend,
    job: Job<'a>,
    prepared: Option<PreparedCall>,
}

impl Loaded for CudaCell<'_> {
    fn call(&mut self, data: &CallInput<'_>) -> Result<Observation, RunFailure> {
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => self.backend.prepare(&self.job, data.operands)?,
        };
        let prepared = self.prepared.insert(prepared);
        let tools = &Rc::clone(&self.backend.tools);
        let set = self.backend.set(data)?;
        let program = prepared.call_buffers().program(&set)?;
        program.lay(tools, data.call_seed, false)?;
        let (scrub, local) = (&self.backend.scrub, prepared.local_bytes());
        scrub.make(data.call_seed, local)?;
        prepared.queue()?;
        tools.stream.synchronize().map_err(CudaError::crashed)?;
        let observed = prepared
            .call_buffers()
            .observe(&program, tools, data.call_seed);
        observed.map_err(CudaError::crashed)
    }

    fn buffers(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Buffer>, String> {
        let Some(prepared) = &self.prepared else {
            return Err("it was never called".to_owned());
        };
        let read = prepared.call_buffers().buffers(wanted);
        read.map_err(|e| format!("the device's memory cannot be read any more: {e}"))
    }
}
