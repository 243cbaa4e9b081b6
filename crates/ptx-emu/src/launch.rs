//! Launches kernels of a module on emulated memory.
//!
//! ```no_run
//! use ptx_emu::launch::{Launch, Params};
//! use ptx_emu::memory::Memory;
//! use ptx_emu::op::Module;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let module = Module::load(&std::fs::read_to_string("kernel.ptx")?)?;
//! let mut memory = Memory::new();
//! let out = memory.alloc(4096)?;
//! let params = Params::new().pointer(out).u32(1024);
//! let launch = Launch::new("fill").grid([8, 1, 1]).block([128, 1, 1]).params(params);
//! let report = launch.run(&module, &mut memory)?;
//! println!("{} instructions", report.counters.total_instructions());
//! # Ok(())
//! # }
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::counters::Counters;
use crate::exec::bytes::AlignedBytes;
use crate::exec::classes;
use crate::exec::env::{Deadline, Env, Setup};
use crate::exec::grid;
use crate::exec::residency::{self, Demand, Residency};
use crate::fault::{EarlyRead, Fault};
use crate::lower::LowerError;
use crate::memory::{DevicePtr, Memory, MemoryError};
use crate::numeric::simd::Level;
use crate::op::{Module, Program, SHARED_BASE};
use crate::tensor::tensormap::TensorMap;

/// How tensor cores round.
pub use crate::tensor::Numerics as MmaMode;

/// The device whose limits are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Compute capability times ten: which `.target` the device runs.
    pub capability: u32,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Most shared bytes of one CTA, static and dynamic together.
    pub shared_per_cta: u32,
    /// Shared bytes of one multiprocessor.
    pub shared_per_sm: u32,
    /// Threads of one multiprocessor.
    pub threads_per_sm: u32,
    /// CTAs of one multiprocessor.
    pub ctas_per_sm: u32,
    /// 32-bit registers of one multiprocessor.
    pub registers_per_sm: u32,
    /// Most CTAs in a cluster.
    pub max_cluster: u32,
}

impl Profile {
    /// NVIDIA H200 (and H100 SXM).
    pub const H200: Self = Self {
        capability: 90,
        sms: 132,
        shared_per_cta: 232_448,
        shared_per_sm: 233_472,
        threads_per_sm: 2048,
        ctas_per_sm: 32,
        registers_per_sm: 65_536,
        max_cluster: 16,
    };
}

impl Profile {
    /// Whether a module for `target` runs here. PTX runs on its own architecture and later ones,
    /// but what was made for one chip (`sm_90a`) or one family (`sm_100f`) stays there.
    fn runs(&self, target: &str) -> bool {
        let Some(rest) = target.strip_prefix("sm_") else {
            return false;
        };
        let number = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
        match (number.parse::<u32>(), &rest[number.len()..]) {
            (Ok(n), "") => n <= self.capability,
            (Ok(n), "a") => n == self.capability,
            (Ok(n), "f") => n / 10 == self.capability / 10 && n <= self.capability,
            _ => false,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::H200
    }
}

/// How a launch is emulated; none of it changes what a correct kernel computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Picks one of many legal interleavings and latencies.
    pub seed: u64,
    /// Warp instructions a cluster may take before it counts as hung.
    pub step_limit: u64,
    /// Wall-clock time a launch may take; none by default, because a fault by it depends on the
    /// host and so cannot be reproduced. The step limit ends endless loops either way.
    pub time_limit: Option<Duration>,
    /// Host threads; 0 means all cores.
    pub threads: usize,
    /// Rounding of tensor-core sums.
    pub mma_mode: MmaMode,
    /// Device limits.
    pub profile: Profile,
    /// Vector instructions to use; the machine's best by default.
    pub level: Level,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            step_limit: 50_000_000,
            time_limit: None,
            threads: 0,
            mma_mode: MmaMode::Fast,
            profile: Profile::H200,
            level: Level::best(),
        }
    }
}

/// Kernel parameters, in declaration order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params {
    values: Vec<Vec<u8>>,
}

impl Params {
    /// No parameters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A parameter of raw bytes (a struct passed by value).
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.values.push(bytes.to_vec());
        self
    }

    /// A device pointer.
    pub fn pointer(self, ptr: DevicePtr) -> Self {
        self.u64(ptr.0)
    }

    /// A tensor map by value (`__grid_constant__ const CUtensorMap`).
    pub fn tensor_map(self, map: &TensorMap) -> Self {
        self.bytes(&map.encode())
    }

    /// A 32-bit unsigned integer.
    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 32-bit signed integer.
    pub fn i32(self, value: i32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 64-bit unsigned integer.
    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 32-bit float.
    pub fn f32(self, value: f32) -> Self {
        self.bytes(&value.to_le_bytes())
    }
}

/// One kernel launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Kernel name in the PTX.
    pub kernel: String,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads per CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs per cluster; `None` takes the kernel's own, or 1.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared bytes.
    pub shared_bytes: u32,
    /// Parameters.
    pub params: Params,
    /// Registers per thread, as ptxas allots them; PTX itself does not say. Unknown, they limit
    /// nothing.
    pub registers: Option<u32>,
    /// All CTAs must be resident at once, as for grid-wide synchronisation.
    pub cooperative: bool,
    /// How to emulate.
    pub config: Config,
}

/// What a finished launch did.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Counts.
    pub counters: Counters,
    /// Seed it ran with.
    pub seed: u64,
    /// CTAs that fit on one multiprocessor at once.
    pub ctas_per_sm: u32,
    /// The first read of something that was still on its way, which explains wrong results.
    pub early_read: Option<EarlyRead>,
    /// What the kernel printed, CTA after CTA; at most 1 MiB.
    pub printed: String,
}

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
        /// Limit of the profile.
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
        /// Limit of the profile.
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
        /// Of the profile, e.g. `9.0`.
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

/// What a cooperative launch hands to its kernel: the size of the workspace, then the grid's
/// barrier, both 32 bits and zero at first. The low half of its address is in `%envreg2`, the high
/// half in `%envreg1`.
const WORKSPACE_BYTES: u64 = 64;

static LAUNCHES: AtomicU64 = AtomicU64::new(1);

impl Launch {
    /// A launch of one thread, to be filled in.
    pub fn new(kernel: &str) -> Self {
        Self {
            kernel: kernel.to_owned(),
            grid: [1; 3],
            block: [1; 3],
            cluster: None,
            shared_bytes: 0,
            params: Params::default(),
            registers: None,
            cooperative: false,
            config: Config::default(),
        }
    }

    /// Sets the grid.
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.grid = grid;
        self
    }

    /// Sets the block.
    pub fn block(mut self, block: [u32; 3]) -> Self {
        self.block = block;
        self
    }

    /// Sets the cluster size.
    pub fn cluster(mut self, cluster: [u32; 3]) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Sets the dynamic shared memory.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Sets the parameters.
    pub fn params(mut self, params: Params) -> Self {
        self.params = params;
        self
    }

    /// Sets the registers per thread.
    pub fn registers(mut self, per_thread: u32) -> Self {
        self.registers = Some(per_thread);
        self
    }

    /// Asks for a cooperative launch.
    pub fn cooperative(mut self, cooperative: bool) -> Self {
        self.cooperative = cooperative;
        self
    }

    /// Sets how to emulate.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Runs the kernel to its end.
    pub fn run(&self, module: &Module, memory: &mut Memory) -> Result<Report, LaunchError> {
        self.check_target(module)?;
        let program = self.program(module)?;
        let params = self.pack_params(program)?;
        let cluster = self.check_shape(program)?;
        self.check_shared(program)?;
        self.check_residency(program, cluster)?;
        let globals = memory.bind(module)?;
        let workspace = match self.cooperative {
            true => Some(memory.alloc_named("cooperative workspace", WORKSPACE_BYTES)?),
            false => None,
        };
        let report = self.emulate(program, memory, params, globals, cluster, workspace);
        if let Some(workspace) = workspace {
            memory.free(workspace)?;
        }
        report
    }

    fn emulate(
        &self,
        program: &Program,
        memory: &Memory,
        params: AlignedBytes,
        globals: Vec<u64>,
        cluster: Option<[u32; 3]>,
        workspace: Option<DevicePtr>,
    ) -> Result<Report, LaunchError> {
        let sizes = cluster.unwrap_or([1; 3]);
        let alone = (0..3).all(|i| self.grid[i] == sizes[i]);
        let env = Env::new(Setup {
            program,
            memory,
            params,
            globals,
            grid: self.grid,
            block: self.block,
            cluster,
            dynamic_shared: self.shared_bytes,
            shared_grid: !alone && classes::communicates(program),
            seed: self.config.seed,
            step_limit: self.config.step_limit,
            deadline: self.config.time_limit.map(Deadline::after),
            mma_mode: self.config.mma_mode,
            level: self.config.level.min(Level::best()),
            profile: self.config.profile,
            launch_id: LAUNCHES.fetch_add(1, Ordering::Relaxed),
            registers: self.registers,
            workspace: workspace.map_or(0, |ptr| ptr.0),
        });
        let tally = match self.config.threads {
            0 => grid::run(&env),
            threads => rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .map_err(|e| LaunchError::Threads {
                    threads,
                    reason: e.to_string(),
                })?
                .install(|| grid::run(&env)),
        };
        let tally = tally.map_err(LaunchError::Fault)?;
        let counters = tally.counters;
        let (early_read, printed) = tally.words();
        Ok(Report {
            counters,
            seed: self.config.seed,
            ctas_per_sm: env.residency().per_sm,
            early_read,
            printed,
        })
    }

    fn program<'m>(&self, module: &'m Module) -> Result<&'m Program, LaunchError> {
        if let Some(program) = module.kernels.get(&self.kernel) {
            return Ok(program);
        }
        let name = self.kernel.clone();
        if let Some(reason) = module.refused.get(&name) {
            let reason = Box::new(reason.clone());
            return Err(LaunchError::Refused { name, reason });
        }
        let names = module.kernels.keys().chain(module.refused.keys());
        let known = names.map(String::as_str).collect::<Vec<_>>().join(", ");
        Err(LaunchError::NoKernel { name, known })
    }

    fn pack_params(&self, program: &Program) -> Result<AlignedBytes, LaunchError> {
        let values = &self.params.values;
        if values.len() != program.params.len() {
            return Err(LaunchError::ParamCount {
                kernel: self.kernel.clone(),
                expected: program.params.len(),
                given: values.len(),
            });
        }
        let mut bytes =
            AlignedBytes::filled((program.param_bytes as usize).next_multiple_of(16), 0);
        for (index, (value, param)) in values.iter().zip(&program.params).enumerate() {
            let at = param.offset as usize;
            match bytes.get_mut(at..at + param.size as usize) {
                Some(place) if place.len() == value.len() => place.copy_from_slice(value),
                _ => {
                    return Err(LaunchError::ParamSize {
                        kernel: self.kernel.clone(),
                        index,
                        name: param.name.clone(),
                        expected: param.size,
                        given: value.len(),
                    });
                }
            }
        }
        Ok(bytes)
    }

    /// Checks grid, block and cluster; the cluster size to use.
    fn check_shape(&self, program: &Program) -> Result<Option<[u32; 3]>, LaunchError> {
        let wrong = |reason: String| {
            Err(LaunchError::Shape {
                kernel: self.kernel.clone(),
                reason,
            })
        };
        let [gx, gy, gz] = self.grid;
        let [bx, by, bz] = self.block;
        if self.grid.contains(&0) || self.block.contains(&0) {
            return wrong(format!(
                "grid {:?} and block {:?} must not contain 0",
                self.grid, self.block
            ));
        }
        if gx > 0x7fff_ffff || gy > 65_535 || gz > 65_535 {
            return wrong(format!(
                "grid {:?} exceeds 2147483647 × 65535 × 65535",
                self.grid
            ));
        }
        let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
        if bx > 1024 || by > 1024 || bz > 64 || threads > 1024 {
            return wrong(format!(
                "block {:?} exceeds 1024 × 1024 × 64 or 1024 threads in all",
                self.block
            ));
        }
        if let Some(required) = program.required_block.filter(|r| *r != self.block) {
            return wrong(format!(
                "block {:?} differs from its .reqntid {required:?}",
                self.block
            ));
        }
        let product = |d: [u32; 3]| d.iter().map(|&x| u64::from(x)).product::<u64>();
        if let Some(most) = program.max_block.filter(|m| product(*m) < threads) {
            return wrong(format!(
                "block {:?} exceeds its .maxntid {most:?}",
                self.block
            ));
        }
        let cluster = match (self.cluster, program.cluster) {
            (Some(given), Some(fixed)) if given != fixed => {
                return wrong(format!(
                    "cluster {given:?} differs from its .reqnctapercluster {fixed:?}"
                ));
            }
            (given, fixed) => given.or(fixed),
        };
        if let Some(cluster) = cluster {
            let most = self.config.profile.max_cluster;
            if cluster.contains(&0) || product(cluster) > u64::from(most) {
                return wrong(format!(
                    "cluster {cluster:?}: a cluster has 1 to {most} CTAs"
                ));
            }
            if (0..3).any(|i| !self.grid[i].is_multiple_of(cluster[i])) {
                return wrong(format!(
                    "grid {:?} is not a multiple of its cluster {cluster:?}",
                    self.grid
                ));
            }
        }
        Ok(cluster)
    }

    fn check_target(&self, module: &Module) -> Result<(), LaunchError> {
        let profile = &self.config.profile;
        match profile.runs(&module.target) {
            true => Ok(()),
            false => Err(LaunchError::Target {
                target: module.target.clone(),
                capability: format!("{}.{}", profile.capability / 10, profile.capability % 10),
            }),
        }
    }

    /// Checks that a CTA fits on a multiprocessor, and a cooperative grid on the device.
    fn check_residency(
        &self,
        program: &Program,
        cluster: Option<[u32; 3]>,
    ) -> Result<(), LaunchError> {
        let profile = &self.config.profile;
        let threads: u32 = self.block.iter().product();
        let end = program.shared_dynamic_start.max(program.shared_static_end);
        let demand = Demand {
            threads,
            shared: end + self.shared_bytes,
            registers: self.registers,
            cluster: cluster.map_or(1, |sizes| sizes.iter().product()),
        };
        let residency = Residency::of(profile, &demand);
        if let (0, Some(each)) = (residency.per_sm, self.registers) {
            let of_cta = residency::registers_of_warp(each) * threads.div_ceil(32);
            return Err(LaunchError::Registers {
                kernel: self.kernel.clone(),
                needed: of_cta.into(),
                threads,
                each,
                limit: profile.registers_per_sm,
            });
        }
        let ctas = self.grid.iter().map(|&n| u64::from(n)).product();
        if self.cooperative && ctas > residency.ctas {
            return Err(LaunchError::TooLargeToCooperate {
                kernel: self.kernel.clone(),
                ctas,
                resident: residency.ctas,
                per_sm: residency.per_sm,
                sms: profile.sms,
                limit: residency.limit.to_owned(),
            });
        }
        Ok(())
    }

    fn check_shared(&self, program: &Program) -> Result<(), LaunchError> {
        let end = program.shared_dynamic_start.max(program.shared_static_end);
        let fixed = end.saturating_sub(SHARED_BASE);
        let needed = u64::from(fixed) + u64::from(self.shared_bytes);
        let limit = self.config.profile.shared_per_cta;
        match needed > u64::from(limit) {
            true => Err(LaunchError::SharedMemory {
                kernel: self.kernel.clone(),
                needed,
                fixed,
                dynamic: self.shared_bytes,
                limit,
            }),
            false => Ok(()),
        }
    }
}

impl Module {
    /// Reads PTX text and prepares all its kernels; those that cannot run are in
    /// [`Module::refused`].
    pub fn load(ptx: &str) -> Result<Self, crate::lower::CompileError> {
        crate::lower::compile(ptx)
    }
}
