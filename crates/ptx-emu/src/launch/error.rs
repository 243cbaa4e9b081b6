//! Why a launch was refused, or ended early.

use crate::fault::Fault;
use crate::lower::LowerError;
use crate::memory::MemoryError;

/// Why a launch did not finish.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No such kernel.
    #[error("the module has no kernel `{name}`; it has: {known}")]
    NoKernel {
        /// Asked for.
        name: String,
        /// Kernels there are.
        known: String,
    },
    /// The kernel is there, but cannot run here.
    #[error("kernel `{name}` cannot run in the emulator: {reason}")]
    Refused {
        /// Kernel.
        name: String,
        /// What is not supported, and where.
        reason: Box<LowerError>,
    },
    /// Wrong number of parameters.
    #[error("kernel `{kernel}` takes {expected} parameters, {given} were given")]
    ParamCount {
        /// Kernel.
        kernel: String,
        /// Declared.
        expected: usize,
        /// Given.
        given: usize,
    },
    /// A parameter of the wrong size.
    #[error(
        "parameter {index} (`{name}`) of kernel `{kernel}` is {expected} bytes, {given} were given"
    )]
    ParamSize {
        /// Kernel.
        kernel: String,
        /// Which, from 0.
        index: usize,
        /// Its name.
        name: String,
        /// Declared bytes.
        expected: u32,
        /// Given bytes.
        given: usize,
    },
    /// Zero or too large grid, block or cluster.
    #[error("kernel `{kernel}`: {reason}")]
    Shape {
        /// Kernel.
        kernel: String,
        /// What is wrong, and the limit.
        reason: String,
    },
    /// Too much shared memory.
    #[error(
        "kernel `{kernel}` needs {needed} bytes of shared memory ({fixed} static, {dynamic} dynamic); a CTA can have {limit}"
    )]
    SharedMemory {
        /// Kernel.
        kernel: String,
        /// Both together.
        needed: u64,
        /// Static bytes.
        fixed: u32,
        /// Dynamic bytes.
        dynamic: u32,
        /// Limit of the device.
        limit: u32,
    },
    /// More registers than a multiprocessor has.
    #[error(
        "kernel `{kernel}` needs {needed} registers for a CTA of {threads} threads with {each} registers each; a multiprocessor has {limit}"
    )]
    Registers {
        /// Kernel.
        kernel: String,
        /// Of the whole CTA, as they are handed out.
        needed: u64,
        /// Threads of the CTA.
        threads: u32,
        /// Registers per thread.
        each: u32,
        /// Limit of the device.
        limit: u32,
    },
    /// A cooperative launch of more CTAs than can be resident.
    #[error(
        "kernel `{kernel}`: a cooperative launch of {ctas} CTAs, but only {resident} can be resident at once ({per_sm} on each of {sms} multiprocessors, limited by {limit})"
    )]
    TooLargeToCooperate {
        /// Kernel.
        kernel: String,
        /// CTAs of the grid.
        ctas: u64,
        /// CTAs the device holds.
        resident: u64,
        /// CTAs of one multiprocessor.
        per_sm: u32,
        /// Multiprocessors.
        sms: u32,
        /// What there is no more of.
        limit: String,
    },
    /// The module was made for another chip.
    #[error(
        "the module is for {target}, which a device of compute capability {capability} does not run"
    )]
    Target {
        /// `.target` of the module.
        target: String,
        /// Of the device, e.g. `9.0`.
        capability: String,
    },
    /// Module variables did not fit.
    #[error("module variables: {0}")]
    Memory(#[from] MemoryError),
    /// The host threads could not be started.
    #[error("cannot start {threads} host threads: {reason}")]
    Threads {
        /// Asked for.
        threads: usize,
        /// Why not.
        reason: String,
    },
    /// The kernel faulted.
    #[error("{0}")]
    Fault(Box<Fault>),
}
