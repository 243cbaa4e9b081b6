//! Expected results computed on the GPU: in f64 like the CPU's, a hundred times faster. They are
//! compared with the CPU's before use ([`Oracle::spot_check`]).

use std::ffi::c_void;

use super::driver::{CudaError, DeviceMemory, Launch, Stream};
use super::tools::{Tools, uploaded};
use crate::operator::{ORACLE_THREADS, Operands, Oracle, OracleDevice};

/// The expected results for these operands, from the kernels compiled for their operator.
pub(super) fn solve(tools: &Tools, stream: &Stream, operands: &Operands) -> Result<Oracle, String> {
    crate::operator::solve(&mut Device { tools, stream }, operands)
}

struct Device<'a> {
    tools: &'a Tools,
    stream: &'a Stream,
}

impl OracleDevice for Device<'_> {
    type Memory = DeviceMemory;

    fn upload(&mut self, bytes: &[u8]) -> Result<DeviceMemory, String> {
        uploaded(bytes, self.stream).map_err(said)
    }

    fn room(&mut self, bytes: u64) -> Result<DeviceMemory, String> {
        DeviceMemory::new(bytes).map_err(said)
    }

    fn address(memory: &DeviceMemory) -> u64 {
        memory.address
    }

    fn launch(&mut self, kernel: &str, blocks: u32, parameter: &[u8]) -> Result<(), String> {
        let function = self.tools.function(kernel).map_err(said)?;
        // The driver copies it at the launch, with the size that the kernel declares.
        let mut parameters = [parameter.as_ptr().cast_mut().cast::<c_void>()];
        let launch = Launch::flat(blocks, ORACLE_THREADS);
        let launched = function.launch(self.stream, &launch, &mut parameters);
        launched.map_err(said)
    }

    fn fetch(&mut self, memory: &DeviceMemory, into: &mut [u8]) -> Result<(), String> {
        let fetched = self.stream.download(into, memory.address);
        fetched.map_err(said)
    }
}

fn said(error: CudaError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
