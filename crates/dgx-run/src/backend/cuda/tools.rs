use std::ffi::c_void;
use std::rc::Rc;

use super::driver::{DeviceMemory, Function, LaunchConfig, Module, Result, Stream};

/// The harness's own kernels, loaded.
#[derive(Debug)]
pub(super) struct Tools {
    pub lay: Function,
    pub check: Function,
    pub judge: Function,
    pub judge_values: Function,
    pub hold: Function,
    pub stamp: Function,
    pub dequantise: Function,
    pub gate: Function,
    pub scrub: Function,
    /// Everything is queued on it.
    pub stream: Rc<Stream>,
    module: Module,
}

impl Tools {
    pub(super) fn load(cubin: &[u8]) -> Result<Self> {
        let module = Module::load(cubin)?;
        Ok(Self {
            lay: module.function("dgx_lay")?,
            check: module.function("dgx_check")?,
            judge: module.function("dgx_judge")?,
            judge_values: module.function("dgx_judge_values")?,
            hold: module.function("dgx_hold")?,
            stamp: module.function("dgx_stamp")?,
            dequantise: module.function("dgx_dequantise")?,
            gate: module.function("dgx_gate")?,
            scrub: module.function("dgx_scrub")?,
            stream: Rc::new(Stream::new()?),
            module,
        })
    }

    /// A kernel that is seldom needed.
    pub(super) fn function(&self, name: &str) -> Result<Function> {
        self.module.function(name)
    }
}

/// A pointer to an argument, as launches need it.
pub(super) fn argument<T>(value: &mut T) -> *mut c_void {
    (value as *mut T).cast()
}

/// Launches a kernel with these parameters, whose types are those that it declares. They live until
/// the launch has copied them: it is one expression.
macro_rules! launch {
    ($function:expr, $stream:expr, $launch:expr, [$($value:expr),* $(,)?]) => {
        $function.launch($stream, $launch, &mut [
            $($crate::backend::cuda::tools::argument(&mut { $value })),*
        ])
    };
}
pub(super) use launch;

/// Memory with these bytes. Waits for the copy, so that `bytes` may be freed.
pub(super) fn uploaded(bytes: &[u8], stream: &Stream) -> Result<DeviceMemory> {
    let memory = DeviceMemory::new(bytes.len() as u64)?;
    stream.upload(memory.address, bytes)?;
    stream.synchronize()?;
    Ok(memory)
}

/// Enough threads for `chunks` of work, one block each.
pub(super) fn blocks(chunks: u64) -> LaunchConfig {
    LaunchConfig::flat(u32::try_from(chunks).unwrap_or(u32::MAX), 256)
}
