//! Expected results computed on the GPU: in f64 like the CPU's, a hundred times faster. They are
//! compared with the CPU's before use ([`Oracle::spot_check`]).

use std::ffi::c_void;

use super::driver::{CudaError, DeviceMemory, LaunchConfig};
use super::tools::{Tools, uploaded};
use crate::operator::{ORACLE_THREADS, Operands, Oracle, OracleDevice};

/// The expected results for these operands, from the kernels compiled for their operator.
pub(super) fn solve(tools: &Tools, operands: &Operands) -> Result<Oracle, String> {
    crate::operator::solve(&mut Device(tools), operands)
}

struct Device<'a>(&'a Tools);

impl OracleDevice for Device<'_> {
    type Memory = DeviceMemory;

    fn upload(&mut self, bytes: &[u8]) -> Result<DeviceMemory, String> {
        uploaded(bytes, &self.0.stream).map_err(said)
    }

    fn room(&mut self, bytes: u64) -> Result<DeviceMemory, String> {
        DeviceMemory::new(bytes).map_err(said)
    }

    fn address(memory: &DeviceMemory) -> u64 {
        memory.address
    }

    fn launch(&mut self, kernel: &str, blocks: u32, parameter: &[u8]) -> Result<(), String> {
        let function = self.0.function(kernel).map_err(said)?;
        // The driver copies it at the launch, with the size that the kernel declares.
        let mut parameters = [parameter.as_ptr().cast_mut().cast::<c_void>()];
        let launch = LaunchConfig::flat(blocks, ORACLE_THREADS);
        let launched = function.launch(&self.0.stream, &launch, &mut parameters);
        launched.map_err(said)
    }

    fn fetch(&mut self, memory: &DeviceMemory, into: &mut [u8]) -> Result<(), String> {
        let fetched = self.0.stream.download(into, memory.address);
        fetched.map_err(said)
    }
}

fn said(error: CudaError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
