//! Launches kernels of a module on emulated memory.

mod check;
mod crew;
mod error;
mod params;
mod traced;

use std::sync::atomic::{AtomicU64, Ordering};

pub use error::LaunchError;
pub use params::Params;

use crate::config::Config;
use crate::exec::clock::Steps;
use crate::exec::cluster::env::{Deadline, Env, Setup, first_launch};
use crate::exec::listen::visit::Listener;
use crate::exec::schedule::grid;
use crate::exec::storage::bytes::AlignedBytes;
use crate::exec::storage::overlap::Overlap;
use crate::exec::trace::recorder::Watched;
use crate::hazard::{Detector, Finding, Findings, Hazard, Sanitize};
use crate::memory::{DevicePtr, Memory};
use crate::module::Module;
use crate::numeric::simd::Level;
use crate::op::Program;
use crate::report::Report;
use crate::trace::{Trace, Watch};
use crate::watchpoint::{Lookout, Touches, Watchpoint};

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

/// What a cooperative launch hands to its kernel: the size of the workspace, then the grid's
/// barrier, both 32 bits and zero at first. The low half of its address is in `%envreg2`, the high
/// half in `%envreg1`.
const WORKSPACE_BYTES: u64 = 64;

/// Bytes that are changed before clusters are run again which wrote different values there, and how
/// many of them are.
const OVERLAP_BYTES: u64 = 1024;
const OVERLAP_CLUSTERS: usize = 64;

/// Nanoseconds by which the device's timer is later when the next launch begins.
const BETWEEN_LAUNCHES: u64 = 1_000_000;

static LAUNCHES: AtomicU64 = AtomicU64::new(1);

/// Clusters that are treated apart from the others.
enum Chosen<'w> {
    /// What they do is written down.
    Traced(&'w Watch),
    /// They run, and the others do not.
    Clusters(Vec<u64>),
}

/// What a checked launch runs with.
struct Given<'l> {
    params: AlignedBytes,
    globals: Vec<u64>,
    cluster: Option<[u32; 3]>,
    workspace: Option<DevicePtr>,
    listener: Option<&'l dyn Listener>,
    watched: Option<Watched>,
    began_nanos: u64,
}

/// What came of a launch.
struct Ran {
    report: Report,
    trace: Trace,
    overlap: Option<Overlap>,
}

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
        self.run_heard(module, memory, None)
    }

    /// As [`Launch::run`], with a listener to all accesses.
    pub(crate) fn run_heard(
        &self,
        module: &Module,
        memory: &mut Memory,
        listener: Option<&dyn Listener>,
    ) -> Result<Report, LaunchError> {
        Ok(self.start(module, memory, listener, None)?.report)
    }

    /// As [`Launch::run`], and says who touched the bytes of each watchpoint, also where the kernel
    /// faults.
    pub fn run_watched(
        &self,
        module: &Module,
        memory: &mut Memory,
        watchpoints: &[Watchpoint],
    ) -> (Result<Report, LaunchError>, Vec<Touches>) {
        let watch = match self.lookout(module, memory, watchpoints) {
            Ok(watch) => watch,
            Err(error) => return (Err(error), vec![Touches::default(); watchpoints.len()]),
        };
        let report = self.run_heard(module, memory, Some(&watch));
        (report, watch.touches())
    }

    fn lookout<'m>(
        &self,
        module: &'m Module,
        memory: &mut Memory,
        watchpoints: &[Watchpoint],
    ) -> Result<Lookout<'m>, LaunchError> {
        let program = self.program(module)?;
        let cluster = self.check_shape(program)?.unwrap_or([1; 3]);
        memory.bind(module)?;
        Ok(Lookout::new(
            program,
            memory,
            (self.grid, cluster),
            watchpoints,
        ))
    }

    /// As [`Launch::run`], and says what was right by luck, also where the kernel faults.
    pub fn run_sanitized(
        &self,
        module: &Module,
        memory: &mut Memory,
        sanitize: &Sanitize,
    ) -> (Result<Report, LaunchError>, Findings) {
        let detector = match self.detector(module, memory, sanitize) {
            Ok(detector) => detector,
            Err(error) => return (Err(error), Findings::default()),
        };
        let chosen = sanitize
            .alone
            .then(|| Chosen::Clusters(detector.attended()));
        let ran = self.start(module, memory, Some(&detector), chosen);
        let mut findings = detector.findings();
        let races = findings.all.iter().any(|f| f.hazard == Hazard::Race);
        if let Ok(Ran {
            overlap: Some(overlap),
            ..
        }) = &ran
            && !races
        {
            findings
                .all
                .extend(self.races_at(module, memory, sanitize, overlap));
        }
        (ran.map(|ran| ran.report), findings)
    }

    /// Who writes different values to the bytes of a page: its clusters are run once more, on a copy of
    /// memory, and all they do is remembered. The page is changed first, since who writes what is there
    /// already hurts nobody.
    fn races_at(
        &self,
        module: &Module,
        memory: &Memory,
        sanitize: &Sanitize,
        overlap: &Overlap,
    ) -> Vec<Finding> {
        let mut memory = memory.copied();
        memory.invert(overlap.region, overlap.first, OVERLAP_BYTES);
        let all = Sanitize {
            clusters: None,
            ..sanitize.clone()
        };
        let Ok(detector) = self.detector(module, &mut memory, &all) else {
            return Vec::new();
        };
        let mut clusters = overlap.clusters.clone();
        clusters.dedup();
        clusters.truncate(OVERLAP_CLUSTERS);
        let chosen = Chosen::Clusters(clusters);
        // What else becomes of it does not matter.
        let _ = self.start(module, &mut memory, Some(&detector), Some(chosen));
        let mut found = detector.findings().all;
        found.retain(|found| found.hazard == Hazard::Race && found.there.is_some());
        found
    }

    fn detector<'m>(
        &self,
        module: &'m Module,
        memory: &mut Memory,
        sanitize: &Sanitize,
    ) -> Result<Detector<'m>, LaunchError> {
        let program = self.program(module)?;
        let cluster = self.check_shape(program)?.unwrap_or([1; 3]);
        memory.bind(module)?;
        let threads = self.block.iter().product();
        Ok(Detector::new(
            program,
            memory,
            (self.grid, cluster),
            (threads, self.config.scoreboard),
            sanitize,
        ))
    }

    fn start(
        &self,
        module: &Module,
        memory: &mut Memory,
        listener: Option<&dyn Listener>,
        chosen: Option<Chosen<'_>>,
    ) -> Result<Ran, LaunchError> {
        self.check_target(module)?;
        let program = self.program(module)?;
        let params = self.pack_params(program)?;
        let cluster = self.check_shape(program)?;
        self.check_shared(program)?;
        self.check_residency(program, cluster)?;
        let watched = match chosen {
            Some(Chosen::Traced(watch)) => Some(self.watched(watch, cluster, program)?),
            Some(Chosen::Clusters(clusters)) => Some(Watched::alone(clusters)),
            None => None,
        };
        let globals = memory.bind(module)?;
        let workspace = match self.cooperative {
            true => Some(memory.alloc_named("cooperative workspace", WORKSPACE_BYTES)?),
            false => None,
        };
        let given = Given {
            params,
            globals,
            cluster,
            workspace,
            listener,
            watched,
            began_nanos: memory.timer(first_launch(self.config.seed)),
        };
        let report = self.emulate(program, memory, given);
        let longest = report
            .as_ref()
            .map_or(0, |ran| ran.report.most.of_all.cluster);
        memory.pass(BETWEEN_LAUNCHES + 2 * longest);
        if let Some(workspace) = workspace {
            memory.free(workspace)?;
        }
        report
    }

    fn emulate(
        &self,
        program: &Program,
        memory: &Memory,
        given: Given<'_>,
    ) -> Result<Ran, LaunchError> {
        let Given {
            params,
            globals,
            cluster,
            workspace,
            listener,
            watched,
            began_nanos,
        } = given;
        let sizes = cluster.unwrap_or([1; 3]);
        let alone = (0..3).all(|i| self.grid[i] == sizes[i]);
        let env = Env::new(Setup {
            program,
            listener,
            watched,
            memory,
            params,
            globals,
            grid: self.grid,
            block: self.block,
            cluster,
            dynamic_shared: self.shared_bytes,
            shared_grid: !alone && program.communicates(),
            seed: self.config.seed,
            step_limit: Steps(self.config.step_limit),
            deadline: self.config.time_limit.map(Deadline::after),
            mma_mode: self.config.mma_mode,
            scoreboard: self.config.scoreboard,
            level: self.config.level.min(Level::best()),
            #[cfg(target_arch = "x86_64")]
            engine: self.config.engine,
            limits: self.config.limits,
            detailed_counters: self.config.detailed_counters,
            one_thread: self.config.threads == 1,
            launch_id: LAUNCHES.fetch_add(1, Ordering::Relaxed),
            began_nanos,
            registers: self.registers,
            workspace: workspace.map_or(0, |ptr| ptr.0),
        });
        let tally = match self.config.threads {
            0 | 1 => grid::run(&env),
            threads => crew::with(threads, || grid::run(&env))?,
        };
        let mut tally = tally.map_err(LaunchError::Fault)?;
        let trace = env.watched.as_ref().map(|watched| {
            let ctas = tally.traces();
            traced::trace(program, memory, watched, ctas)
        });
        let (counters, most, overlap) = (tally.counters, tally.most, tally.overlap.take());
        let (early_read, printed) = tally.words();
        let report = Report {
            counters,
            most,
            seed: self.config.seed,
            ctas_per_sm: env.residency().per_sm,
            early_read,
            printed,
        };
        Ok(Ran {
            report,
            trace: trace.unwrap_or_default(),
            overlap,
        })
    }
}
