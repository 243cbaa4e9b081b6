//! The few driver calls that dgx makes, each checked and named in its error, and owners that
//! release their resources. cudarc's `result` layer does not name the call that failed, and its
//! `safe` layer puts its own allocations and events on the timed streams; so the calls are those of
//! `sys`, except where `result` offers one without `unsafe`.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::ptr;

use cudarc::driver::{DriverError, sys};

use crate::backend::RunFailure;

/// A failed driver call: its name, and the driver's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({text})")]
pub struct CudaError {
    pub call: &'static str,
    pub code: sys::CUresult,
    pub name: String,
    pub text: String,
}

impl CudaError {
    /// The launch was refused; nothing ran.
    pub fn refused(self) -> RunFailure {
        // Sticky errors appear at whichever call comes next.
        if self.sticky() {
            return self.crashed();
        }
        RunFailure::refused(self.to_string())
    }

    /// A kernel broke the context.
    pub fn crashed(self) -> RunFailure {
        RunFailure::crashed(self.to_string())
    }

    fn sticky(&self) -> bool {
        use sys::cudaError_enum::*;
        matches!(
            self.code,
            CUDA_ERROR_ILLEGAL_ADDRESS
                | CUDA_ERROR_MISALIGNED_ADDRESS
                | CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUDA_ERROR_INVALID_PC
                | CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUDA_ERROR_LAUNCH_FAILED
                | CUDA_ERROR_LAUNCH_TIMEOUT
                | CUDA_ERROR_ASSERT
                | CUDA_ERROR_ECC_UNCORRECTABLE
                | CUDA_ERROR_CONTEXT_IS_DESTROYED
        )
    }
}

pub(super) type Result<T> = std::result::Result<T, CudaError>;

/// Names the call in its error.
pub(super) fn named<T>(
    call: &'static str,
    result: std::result::Result<T, DriverError>,
) -> Result<T> {
    result.map_err(|error| {
        let code = error.0;
        let say = |text: std::result::Result<&CStr, DriverError>| match text {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => format!("{code:?}"),
        };
        CudaError {
            call,
            code,
            name: say(error.error_name()),
            text: say(error.error_string()),
        }
    })
}

/// Calls a driver function by name and checks it.
macro_rules! cu {
    ($call:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: arguments are live handles and pointers owned by the caller.
        $crate::backend::cuda::driver::named(stringify!($call), unsafe {
            cudarc::driver::sys::$call($($argument),*).result()
        })
    };
}
pub(super) use cu;

/// Device memory, freed on drop.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    pub address: u64,
    pub bytes: u64,
}

impl DeviceMemory {
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let mut address = 0;
        let size = usize::try_from(bytes.max(16)).unwrap_or(usize::MAX);
        cu!(cuMemAlloc_v2(&mut address, size))?;
        Ok(Self { address, bytes })
    }
}

/// Free bytes of device memory.
pub(super) fn free_memory() -> Result<u64> {
    let (mut free, mut total) = (0, 0);
    cu!(cuMemGetInfo_v2(&mut free, &mut total))?;
    Ok(free as u64)
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let _ = cu!(cuMemFree_v2(self.address));
    }
}

/// A stream with the copies and fills that are queued on it.
#[derive(Debug)]
pub(super) struct Stream(pub sys::CUstream);

impl Stream {
    pub(super) fn new() -> Result<Self> {
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        cu!(cuStreamCreate(&mut stream, flags))?;
        Ok(Self(stream))
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        cu!(cuStreamSynchronize(self.0))
    }

    pub(super) fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        cu!(cuMemsetD8Async(address, byte, bytes as usize, self.0))
    }

    /// Queues copying memory of the device.
    pub(super) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<()> {
        cu!(cuMemcpyDtoDAsync_v2(to, from, bytes as usize, self.0))
    }

    pub(super) fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let source = bytes.as_ptr().cast();
        cu!(cuMemcpyHtoDAsync_v2(address, source, bytes.len(), self.0))
    }

    /// Copies back and waits.
    pub(super) fn download(&self, into: &mut [u8], address: u64) -> Result<()> {
        if !into.is_empty() {
            let target = into.as_mut_ptr().cast();
            cu!(cuMemcpyDtoHAsync_v2(target, address, into.len(), self.0))?;
        }
        self.synchronize()
    }

    /// Records what `queue` puts on this stream as a graph.
    pub(super) fn capture<E>(
        &self,
        queue: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Graph, E>
    where
        E: From<CudaError>,
    {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        cu!(cuStreamBeginCapture_v2(self.0, mode))?;
        let queued = queue();
        let mut graph = ptr::null_mut();
        let ended = cu!(cuStreamEndCapture(self.0, &mut graph));
        queued?;
        ended?;
        let mut exec = ptr::null_mut();
        let made = cu!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        let _ = cu!(cuGraphDestroy(graph));
        made?;
        Ok(Graph(exec))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = cu!(cuStreamDestroy_v2(self.0));
    }
}

/// A recorded sequence of launches.
#[derive(Debug)]
pub(super) struct Graph(sys::CUgraphExec);

impl Graph {
    pub(super) fn launch(&self, stream: &Stream) -> Result<()> {
        cu!(cuGraphLaunch(self.0, stream.0))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = cu!(cuGraphExecDestroy(self.0));
    }
}

/// A point on a stream that can be timed.
#[derive(Debug)]
pub(super) struct Event(sys::CUevent);

impl Event {
    pub(super) fn new() -> Result<Self> {
        let mut event = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint;
        cu!(cuEventCreate(&mut event, flags))?;
        Ok(Self(event))
    }

    pub(super) fn record(&self, stream: &Stream) -> Result<()> {
        cu!(cuEventRecord(self.0, stream.0))
    }

    /// Whether everything before it has ended.
    pub(super) fn reached(&self) -> Result<bool> {
        match cu!(cuEventQuery(self.0)) {
            Ok(()) => Ok(true),
            Err(e) if e.code == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            Err(e) => Err(e),
        }
    }

    pub(super) fn micros_since(&self, start: &Self) -> Result<f64> {
        let mut millis = 0f32;
        cu!(cuEventElapsedTime_v2(&mut millis, start.0, self.0))?;
        Ok(f64::from(millis) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = cu!(cuEventDestroy_v2(self.0));
    }
}

/// A loaded cubin.
#[derive(Debug)]
pub(super) struct Module(sys::CUmodule);

impl Module {
    pub(super) fn load(cubin: &[u8]) -> Result<Self> {
        let mut module = ptr::null_mut();
        cu!(cuModuleLoadData(&mut module, cubin.as_ptr().cast()))?;
        Ok(Self(module))
    }

    pub(super) fn function(&self, name: &str) -> Result<Function> {
        let name = CString::new(name).unwrap_or_default();
        let mut function = ptr::null_mut();
        cu!(cuModuleGetFunction(&mut function, self.0, name.as_ptr()))?;
        Ok(Function(function))
    }

    /// Address and size of a variable, if the driver finds it by this name.
    pub(super) fn variable(&self, name: &str) -> Result<Option<(u64, u64)>> {
        let name = CString::new(name).unwrap_or_default();
        let (mut address, mut bytes) = (0, 0);
        match cu!(cuModuleGetGlobal_v2(
            &mut address,
            &mut bytes,
            self.0,
            name.as_ptr()
        )) {
            Ok(()) => Ok(Some((address, bytes as u64))),
            Err(e) if e.code == sys::CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = cu!(cuModuleUnload(self.0));
    }
}

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function(sys::CUfunction);

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub smem: u32,
    /// Programmatic dependent launch on the launch before.
    pub overlap: bool,
}

impl LaunchConfig {
    pub(super) fn flat(blocks: u32, threads: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            cluster: [1, 1, 1],
            ..Self::default()
        }
    }
}

impl Function {
    /// Allows `bytes` of dynamic shared memory, which above 48 KB must be asked for.
    pub(super) fn allow_smem(&self, bytes: u32) -> Result<()> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        cu!(cuFuncSetAttribute(self.0, attribute, value))
    }

    /// Bytes of local memory that each of its threads has.
    pub(super) fn local_bytes(&self) -> Result<u32> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
        let mut value: c_int = 0;
        cu!(cuFuncGetAttribute(&mut value, attribute, self.0))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    pub(super) fn allow_large_clusters(&self) -> Result<()> {
        let attribute =
            sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        cu!(cuFuncSetAttribute(self.0, attribute, 1))
    }

    /// Queues one launch; `parameters` point at the kernel's arguments.
    pub(super) fn launch(
        &self,
        stream: &Stream,
        launch: &LaunchConfig,
        parameters: &mut [*mut c_void],
    ) -> Result<()> {
        let mut attributes = Vec::with_capacity(2);
        if launch.cluster.iter().any(|&c| c > 1) {
            attributes.push(cluster_attribute(launch.cluster));
        }
        if launch.overlap {
            attributes.push(overlap_attribute());
        }
        let config = sys::CUlaunchConfig {
            gridDimX: launch.grid[0],
            gridDimY: launch.grid[1],
            gridDimZ: launch.grid[2],
            blockDimX: launch.block[0],
            blockDimY: launch.block[1],
            blockDimZ: launch.block[2],
            sharedMemBytes: launch.smem,
            hStream: stream.0,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as c_uint,
        };
        cu!(cuLaunchKernelEx(
            &config,
            self.0,
            parameters.as_mut_ptr(),
            ptr::null_mut()
        ))
    }
}

fn attribute(
    id: sys::CUlaunchAttributeID,
    set: impl FnOnce(&mut sys::CUlaunchAttributeValue),
) -> sys::CUlaunchAttribute {
    // SAFETY: a union of plain integers; all zeros is a value of each.
    let mut value: sys::CUlaunchAttributeValue = unsafe { std::mem::zeroed() };
    set(&mut value);
    sys::CUlaunchAttribute {
        id,
        pad: [0; 4],
        value,
    }
}

fn cluster_attribute(cluster: [u32; 3]) -> sys::CUlaunchAttribute {
    let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute(id, |value| {
        value.clusterDim.x = cluster[0];
        value.clusterDim.y = cluster[1];
        value.clusterDim.z = cluster[2];
    })
}

fn overlap_attribute() -> sys::CUlaunchAttribute {
    let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute(id, |value| value.programmaticStreamSerializationAllowed = 1)
}

/// One word of host memory that the device can read while it runs.
#[derive(Debug)]
pub(super) struct Flag {
    host: *mut u32,
    pub device: u64,
}

impl Flag {
    pub(super) fn new() -> Result<Self> {
        let mut host: *mut c_void = ptr::null_mut();
        cu!(cuMemHostAlloc(
            &mut host,
            64,
            sys::CU_MEMHOSTALLOC_DEVICEMAP
        ))?;
        let mut device = 0;
        cu!(cuMemHostGetDevicePointer_v2(&mut device, host, 0))?;
        let flag = Self {
            host: host.cast(),
            device,
        };
        flag.set(0);
        Ok(flag)
    }

    pub(super) fn set(&self, value: u32) {
        // SAFETY: pinned memory owned by this flag.
        unsafe { self.host.write_volatile(value) };
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        let _ = cu!(cuMemFreeHost(self.host.cast()));
    }
}

impl From<CudaError> for RunFailure {
    fn from(error: CudaError) -> Self {
        error.refused()
    }
}
