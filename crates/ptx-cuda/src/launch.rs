//! Kernel launches.

use std::ffi::{c_int, c_void};
use std::io::Write;

use ptx_emu::{Fault, FaultKind, Launch, LaunchError, Params, Print, Report, Sanitize};

use crate::device::settings;
use crate::error::{Error, Result};
use crate::module::Function;
use crate::progress::Progress;
use crate::report;
use crate::say::{say, say_once};
use crate::state::Device;

/// Clusters of a launch with full checks, if hazards are looked for.
const WATCHED: u64 = 64;

/// A kernel with its arguments and launch shape.
#[derive(Debug)]
pub(crate) struct KernelCall {
    /// The program's handle of it.
    pub(crate) handle: usize,
    pub(crate) function: Function,
    pub(crate) shape: Shape,
    params: Vec<Vec<u8>>,
    /// Their offsets.
    places: Vec<usize>,
}

impl KernelCall {
    pub(crate) fn new(
        handle: usize,
        function: Function,
        shape: Shape,
        params: Vec<Vec<u8>>,
    ) -> Self {
        let place = |param: &Vec<u8>| param.as_ptr().expose_provenance();
        Self {
            places: params.iter().map(place).collect(),
            handle,
            function,
            shape,
            params,
        }
    }

    /// The driver's checks before a launch, and when one is captured.
    pub(crate) fn check(&self) -> Result {
        self.check_limits()?;
        let Function { module, name, .. } = &self.function;
        let fits = self.shape.launch(name).resident(&module.emu);
        fits.map(drop).map_err(|error| refuse_launch(name, &error))
    }

    /// Checks what the emulator does not: attributes that a program must set before.
    fn check_limits(&self) -> Result {
        self.check_shared()?;
        let cluster = self.shape.cluster.or(self.function.kernel()?.cluster);
        cluster.map_or(Ok(()), |cluster| self.check_cluster(cluster))
    }

    /// Clusters of the launch; without clusters each CTA counts as one.
    fn clusters(&self) -> u64 {
        let own = self
            .function
            .kernel()
            .ok()
            .and_then(|kernel| kernel.cluster);
        let cluster = self.shape.cluster.or(own).map_or(1, product);
        self.shape.ctas() / cluster.max(1)
    }

    fn check_shared(&self) -> Result {
        let (name, bytes) = (&self.function.name, self.shape.shared);
        let most = self.function.max_dynamic_shared;
        if bytes <= most {
            return Ok(());
        }
        let text = format!(
            "kernel {name}: {bytes} dynamic shared bytes, {most} are allowed: \
             cudaFuncSetAttribute(…, cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes}) \
             allows more"
        );
        say_of(name, &text);
        Err(Error::INVALID_VALUE)
    }

    fn check_cluster(&self, cluster: [u32; 3]) -> Result {
        let (name, grid) = (&self.function.name, self.shape.grid);
        let most = crate::occupancy::largest_cluster(&self.function);
        let divides = (0..3).all(|i| cluster[i] > 0 && grid[i].is_multiple_of(cluster[i]));
        if divides && product(cluster) <= most as u64 {
            return Ok(());
        }
        let more = match self.function.large_clusters {
            true => "",
            false => "; cudaFuncAttributeNonPortableClusterSizeAllowed allows more",
        };
        let text = format!(
            "kernel {name}: cluster {cluster:?} of grid {grid:?}: a cluster divides its grid and \
             has 1 to {most} CTAs{more}"
        );
        say_of(name, &text);
        Err(Error::INVALID_CLUSTER)
    }

    /// A pointer to each parameter, as launches need them. Valid as long as `self` is.
    pub(crate) fn args(&self) -> *const *const c_void {
        self.places.as_ptr().cast()
    }
}

/// The number of threads, and their shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) cooperative: bool,
}

impl Shape {
    pub(crate) fn ctas(&self) -> u64 {
        product(self.grid)
    }

    /// The launch without its parameters.
    pub(crate) fn launch(&self, kernel: &str) -> Launch {
        Launch {
            cluster: self.cluster,
            ..Launch::new(kernel)
                .grid(self.grid)
                .block(self.block)
                .shared_bytes(self.shared)
                .cooperative(self.cooperative)
                .config(settings().config)
        }
    }
}

/// Copies the parameters of a kernel from the places that `args` points to.
///
/// # Safety
/// `args` must have a pointer to each parameter.
pub(crate) unsafe fn gather(
    function: &Function,
    args: *const *const c_void,
) -> Result<Vec<Vec<u8>>> {
    let kernel = function.kernel()?;
    if args.is_null() && !kernel.params.is_empty() {
        return Err(Error::INVALID_VALUE);
    }
    let mut params = Vec::with_capacity(kernel.params.len());
    for (index, param) in kernel.params.iter().enumerate() {
        // SAFETY: by this function's contract.
        let bytes = unsafe {
            let from = *args.add(index);
            if from.is_null() {
                return Err(Error::INVALID_VALUE);
            }
            std::slice::from_raw_parts(from.cast::<u8>(), param.size as usize)
        };
        params.push(bytes.to_vec());
    }
    Ok(params)
}

/// Copies the parameters of a kernel from the buffer that `extra` names.
///
/// # Safety
/// `extra` must be a list in the format of `cuLaunchKernel`.
pub(crate) unsafe fn gather_extra(
    function: &Function,
    extra: *const *mut c_void,
) -> Result<Vec<Vec<u8>>> {
    let (mut buffer, mut bytes) = (std::ptr::null::<u8>(), 0);
    let mut at = extra;
    // SAFETY: pairs of a name and a pointer, and a zero at the end.
    unsafe {
        while !(*at).is_null() {
            match (*at).addr() {
                1 => buffer = (*at.add(1)).cast(),
                2 => bytes = *(*at.add(1)).cast::<usize>(),
                _ => return Err(Error::INVALID_VALUE),
            }
            at = at.add(2);
        }
    }
    let kernel = function.kernel()?;
    let mut params = Vec::with_capacity(kernel.params.len());
    for param in kernel.params {
        let end = (param.offset + param.size) as usize;
        if buffer.is_null() || end > bytes {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: inside the buffer.
        let part = unsafe {
            std::slice::from_raw_parts(buffer.add(param.offset as usize), param.size as usize)
        };
        params.push(part.to_vec());
    }
    Ok(params)
}

impl Device {
    /// Runs a kernel. Its errors show in later calls, as on a device.
    pub(crate) fn launch(&mut self, call: &KernelCall) -> Result {
        let Function { module, name, .. } = &call.function;
        let shape = &call.shape;
        call.check_limits()?;
        let settings = settings();
        if settings.skip {
            return Ok(());
        }
        let params = call.params.iter();
        let params = params.fold(Params::new(), |all, bytes| all.bytes(bytes));
        let mut launch = shape.launch(name).params(params);
        launch.config.seed = settings.config.seed.wrapping_add(self.launches);
        self.launches += 1;
        if module.is_first_launch(name) {
            report::forms(&call.function.kernel()?);
        }
        report::begun(name, shape.ctas());
        let progress = Progress::of(name, shape.ctas());
        let (result, time) = on_whole_thread(|| match (&module.timer, settings.sanitize) {
            (_, true) => (self.watch(launch, call), None),
            (Some(timer), _) => timer.run(launch, shape, &module.emu, &mut self.memory),
            (None, _) => (launch.run(&module.emu, &mut self.memory), None),
        });
        drop(progress);
        match result {
            Ok(done) => {
                print(&done.printed);
                report::ended(name, done.counters.total_instructions(), time);
                Ok(())
            }
            Err(LaunchError::Fault(fault)) => self.fault(name, &fault),
            Err(error) => {
                report::taken_back(name, shape.ctas());
                Err(refuse_launch(name, &error))
            }
        }
    }

    /// Runs a kernel and reports hazards.
    fn watch(
        &mut self,
        launch: Launch,
        call: &KernelCall,
    ) -> std::result::Result<Report, LaunchError> {
        let sanitize = Sanitize {
            clusters: Some(WATCHED),
            ..Sanitize::default()
        };
        let Function { module, name, .. } = &call.function;
        let (result, findings) = launch.run_sanitized(&module.emu, &mut self.memory, &sanitize);
        for finding in &findings.all {
            report::hazard(name, finding);
        }
        report::watched(name, call.clusters(), findings.clusters, findings.unwatched);
        result
    }

    /// The driver's reaction to a failed kernel.
    fn fault(&mut self, kernel: &str, fault: &Fault) -> Result {
        print(&fault.printed);
        let code = match &fault.kind {
            FaultKind::OutOfBounds { .. } => Error::ILLEGAL_ADDRESS,
            FaultKind::Misaligned { .. } => Error::MISALIGNED,
            FaultKind::Assert { .. } => Error::ASSERT,
            FaultKind::Illegal { .. } | FaultKind::Mbarrier { .. } => Error::ILLEGAL_INSTRUCTION,
            kind if kind.is_hang() => Error::LAUNCH_TIMEOUT,
            _ => Error::LAUNCH_FAILED,
        };
        if let FaultKind::Assert {
            message,
            file,
            line,
            function,
        } = &fault.kind
        {
            let [x, y, z] = fault.place.cta;
            let _ = writeln!(
                std::io::stderr(),
                "{file}:{line}: {function}: block: [{x},{y},{z}], warp {}: Assertion `{message}` failed.",
                fault.place.warp
            );
        }
        say(&fault.to_string());
        report::fault(kernel, &fault.to_string());
        if code.sticks() {
            self.sticky = Some(code);
        }
        Ok(())
    }
}

/// Writes the kernels' output to the program's own standard output, so that lines stay in order.
fn print(printed: &[Print]) {
    if printed.is_empty() {
        return;
    }
    let mut bytes = Vec::new();
    for print in printed {
        // Writing to memory does not fail.
        let _ = bytes.write_all(print.text.as_bytes());
    }
    unsafe extern "C" {
        static stdout: *mut c_void;
        fn fwrite(from: *const c_void, size: usize, count: usize, file: *mut c_void) -> usize;
        fn fflush(file: *mut c_void) -> c_int;
    }
    // SAFETY: the C library's own stream, and bytes that live on.
    unsafe {
        fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stdout);
        fflush(stdout);
    }
}

/// Saturates.
fn product(sides: [u32; 3]) -> u64 {
    let sides = sides.into_iter().map(u64::from);
    sides.fold(1, u64::saturating_mul)
}

/// Reports a launch that does not begin.
fn say_of(kernel: &str, text: &str) {
    say_once(text);
    report::fault(kernel, text);
}

/// Reports why a launch does not begin; returns its code.
fn refuse_launch(kernel: &str, error: &LaunchError) -> Error {
    say_of(kernel, &error.to_string());
    match error {
        LaunchError::NoKernel { .. } => Error::NOT_FOUND,
        LaunchError::ParamCount { .. } | LaunchError::ParamSize { .. } => Error::INVALID_VALUE,
        LaunchError::SharedMemory { .. } => Error::INVALID_VALUE,
        LaunchError::Shape { .. } => Error::INVALID_CONFIGURATION,
        LaunchError::Registers { .. } => Error::OUT_OF_RESOURCES,
        LaunchError::TooLargeToCooperate { .. } => Error::TOO_LARGE_TO_COOPERATE,
        LaunchError::Target { .. } => Error::NO_BINARY,
        LaunchError::Memory(_) => Error::OUT_OF_MEMORY,
        LaunchError::Refused { .. } => Error::NOT_SUPPORTED,
        _ => Error::UNKNOWN,
    }
}

/// Runs on this thread, or on another if this one's thread-local values are already destroyed: the
/// emulator has some, and destructors of a program's globals may launch.
fn on_whole_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    struct Whole;

    impl Drop for Whole {
        fn drop(&mut self) {}
    }

    thread_local! {
        static WHOLE: Whole = const { Whole };
    }
    match WHOLE.try_with(|_| ()) {
        Ok(()) => run(),
        Err(_) => std::thread::scope(|scope| {
            let ended = scope.spawn(run).join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }),
    }
}
