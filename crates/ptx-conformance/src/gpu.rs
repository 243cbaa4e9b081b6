//! Running a case on a GPU through the CUDA driver, loaded at run time.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use crate::case::{Case, ENTRY, Launch, MapBuffer, MapSpec};
use crate::golden::Provenance;

/// What went wrong on the way from PTX to outputs.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// No driver library can be loaded.
    #[error("no CUDA driver is installed here; goldens are recorded on a machine with a GPU")]
    NoDriver,
    /// The driver refused the PTX.
    #[error("the driver rejects the PTX: {0}")]
    Jit(String),
    /// The kernel began and failed; the context is unusable from here on.
    #[error("the kernel failed: {}", said(.0))]
    Sticky(DriverError),
    /// Any other call failed.
    #[error("{call}: {}", said(.error))]
    Call {
        /// The driver's name for it.
        call: &'static str,
        /// What the driver said.
        error: DriverError,
    },
}

impl GpuError {
    /// Whether the context must be thrown away.
    pub fn is_sticky(&self) -> bool {
        matches!(self, Self::Sticky(_))
    }
}

/// A context on the first device. Dropping it leaves clean-up to process exit: recording
/// runs in short-lived workers, and a poisoned context cannot be cleaned up anyway.
#[derive(Debug)]
pub(crate) struct Gpu {
    device: c_int,
}

impl Gpu {
    /// Opens the first device.
    pub(crate) fn open() -> Result<Self, GpuError> {
        // SAFETY: only probes for the library's presence.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoDriver);
        }
        result::init().map_err(in_call("cuInit"))?;
        let device = result::device::get(0).map_err(in_call("cuDeviceGet"))?;
        // SAFETY: the device is there, and its primary context is never released.
        unsafe {
            let context = result::primary_ctx::retain(device);
            let context = context.map_err(in_call("cuDevicePrimaryCtxRetain"))?;
            result::ctx::set_current(context).map_err(in_call("cuCtxSetCurrent"))?;
        }
        Ok(Self { device })
    }

    /// The device and driver, and today's date.
    pub(crate) fn provenance(&self) -> Result<Provenance, GpuError> {
        let gpu = result::device::get_name(self.device).map_err(in_call("cuDeviceGetName"))?;
        let mut version = 0;
        // SAFETY: the out-pointer is a live local.
        let asked = unsafe { sys::cuDriverGetVersion(&mut version) };
        asked.result().map_err(in_call("cuDriverGetVersion"))?;
        Ok(Provenance {
            gpu,
            driver: format!("{}.{}", version / 1000, version % 1000 / 10),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        })
    }

    /// The major compute capability.
    pub(crate) fn capability(&self) -> Result<i32, GpuError> {
        let major = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        // SAFETY: the device was opened.
        unsafe { result::device::get_attribute(self.device, major) }
            .map_err(in_call("cuDeviceGetAttribute"))
    }

    /// Compiles, launches and waits for one case; returns its outputs.
    pub(crate) fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, GpuError> {
        let module = Module::load(&case.ptx)?;
        let function = module.function(case.launch.shared)?;
        let inputs = case
            .inputs
            .iter()
            .map(|b| Buffer::filled(b))
            .collect::<Result<Vec<_>, _>>()?;
        let outputs = case
            .outputs
            .iter()
            .map(|b| Buffer::filled(b))
            .collect::<Result<Vec<_>, _>>()?;
        let mut maps = case
            .maps
            .iter()
            .map(|map| match map.buffer {
                MapBuffer::Input(i) => encode(map, inputs[i].address),
                MapBuffer::Output(i) => encode(map, outputs[i].address),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut addresses: Vec<u64> = inputs.iter().chain(&outputs).map(|b| b.address).collect();
        let mut params: Vec<*mut c_void> = addresses
            .iter_mut()
            .map(|a| ptr::from_mut(a).cast())
            .chain(maps.iter_mut().map(|m| ptr::from_mut(m).cast()))
            .collect();
        launch(function, &case.launch, &mut params)?;
        outputs.iter().map(Buffer::read).collect()
    }
}

struct Module(sys::CUmodule);

impl Module {
    /// Like `result::module::load_data`, with the compiler's log.
    fn load(ptx: &str) -> Result<Self, GpuError> {
        let image = CString::new(ptx).map_err(|e| GpuError::Jit(e.to_string()))?;
        let mut log = vec![0u8; 8192];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        let mut module = ptr::null_mut();
        // SAFETY: the image is terminated, and the log buffer's length is passed as its size option.
        let loaded = unsafe {
            sys::cuModuleLoadDataEx(
                &mut module,
                image.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        loaded.result().map(|()| Self(module)).map_err(|error| {
            let log = String::from_utf8_lossy(&log);
            match log.trim_end_matches('\0').trim() {
                "" => GpuError::Jit(said(&error)),
                log => GpuError::Jit(log.to_owned()),
            }
        })
    }

    fn function(&self, shared: u32) -> Result<sys::CUfunction, GpuError> {
        let name = CString::new(ENTRY).map_err(|e| GpuError::Jit(e.to_string()))?;
        let limit = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the module is loaded.
        unsafe {
            let function = result::module::get_function(self.0, name);
            let function = function.map_err(in_call("cuModuleGetFunction"))?;
            result::function::set_function_attribute(function, limit, shared as c_int)
                .map_err(in_call("cuFuncSetAttribute"))?;
            Ok(function)
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // A poisoned context refuses, which is harmless.
        // SAFETY: loaded by us and used by nobody after this.
        let _ = unsafe { result::module::unload(self.0) };
    }
}

struct Buffer {
    address: u64,
    length: usize,
}

impl Buffer {
    fn filled(bytes: &[u8]) -> Result<Self, GpuError> {
        // SAFETY: the allocation is at least as long as the copy.
        unsafe {
            let address = result::malloc_sync(bytes.len().max(16));
            let buffer = Self {
                address: address.map_err(in_call("cuMemAlloc"))?,
                length: bytes.len(),
            };
            result::memcpy_htod_sync(buffer.address, bytes).map_err(in_call("cuMemcpyHtoD"))?;
            Ok(buffer)
        }
    }

    fn read(&self) -> Result<Vec<u8>, GpuError> {
        let mut bytes = vec![0; self.length];
        // SAFETY: host and device ranges have the same length.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, self.address) }.map_err(GpuError::Sticky)?;
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // A poisoned context refuses, which is harmless.
        // SAFETY: allocated by us and used by nobody after this.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

fn encode(map: &MapSpec, address: u64) -> Result<sys::CUtensorMap, GpuError> {
    // SAFETY: the enums mirror the driver's numbering (see `MapType` and `Swizzle`), all
    // arrays have `rank` (strides: `rank - 1`) entries, and the map is written in full on success.
    unsafe {
        let mut encoded = MaybeUninit::<sys::CUtensorMap>::zeroed();
        sys::cuTensorMapEncodeTiled(
            encoded.as_mut_ptr(),
            std::mem::transmute::<u32, sys::CUtensorMapDataType>(map.element as u32),
            map.dims.len() as u32,
            address as *mut c_void,
            map.dims.as_ptr(),
            map.strides.as_ptr(),
            map.extent.as_ptr(),
            map.element_strides.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            std::mem::transmute::<u32, sys::CUtensorMapSwizzle>(map.swizzle as u32),
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            std::mem::transmute::<u32, sys::CUtensorMapFloatOOBfill>(u32::from(map.nan_fill)),
        )
        .result()
        .map_err(in_call("cuTensorMapEncodeTiled"))?;
        Ok(encoded.assume_init())
    }
}

fn launch(
    function: sys::CUfunction,
    launch: &Launch,
    params: &mut [*mut c_void],
) -> Result<(), GpuError> {
    let [x, y, z] = launch.cluster;
    let mut attribute = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue {
            clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z },
        },
    };
    let config = sys::CUlaunchConfig {
        gridDimX: launch.grid[0],
        gridDimY: launch.grid[1],
        gridDimZ: launch.grid[2],
        blockDimX: launch.block[0],
        blockDimY: launch.block[1],
        blockDimZ: launch.block[2],
        sharedMemBytes: launch.shared,
        hStream: ptr::null_mut(),
        attrs: &mut attribute,
        numAttrs: c_uint::from(launch.cluster != [1, 1, 1]),
    };
    // SAFETY: `params` points at one live value per kernel parameter, in the ABI's order.
    unsafe {
        sys::cuLaunchKernelEx(&config, function, params.as_mut_ptr(), ptr::null_mut())
            .result()
            .map_err(in_call("cuLaunchKernelEx"))?;
    }
    result::ctx::synchronize().map_err(GpuError::Sticky)
}

/// The driver's own words for an error.
fn said(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("{:?}", error.0),
    }
}

fn in_call(call: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |error| GpuError::Call { call, error }
}
