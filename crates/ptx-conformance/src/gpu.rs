//! Running a case on a GPU through the CUDA driver, loaded at run time.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use cudarc::driver::sys::{self, CUresult};

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
    #[error("{call}: {message}")]
    Sticky { call: &'static str, message: String },
    /// Any other call failed.
    #[error("{call}: {message}")]
    Call { call: &'static str, message: String },
}

impl GpuError {
    /// Whether the context must be thrown away.
    pub fn is_sticky(&self) -> bool {
        matches!(self, Self::Sticky { .. })
    }
}

/// A context on the first device. Dropping it leaves clean-up to process exit: recording
/// runs in short-lived workers, and a poisoned context cannot be cleaned up anyway.
#[derive(Debug)]
pub struct Gpu {
    device: c_int,
}

impl Gpu {
    /// Opens the first device.
    pub fn open() -> Result<Self, GpuError> {
        // SAFETY: only probes for the library's presence.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoDriver);
        }
        let mut device = 0;
        let mut context = ptr::null_mut();
        // SAFETY: out-pointers are live locals; the primary context outlives the process's use of it.
        unsafe {
            check("cuInit", sys::cuInit(0))?;
            check("cuDeviceGet", sys::cuDeviceGet(&mut device, 0))?;
            check(
                "cuDevicePrimaryCtxRetain",
                sys::cuDevicePrimaryCtxRetain(&mut context, device),
            )?;
            check("cuCtxSetCurrent", sys::cuCtxSetCurrent(context))?;
        }
        Ok(Self { device })
    }

    /// The device and driver, and today's date.
    pub fn provenance(&self) -> Result<Provenance, GpuError> {
        let mut name = [0; 256];
        let mut version = 0;
        // SAFETY: the buffer's length is passed with it and the driver terminates the name.
        let name = unsafe {
            check(
                "cuDeviceGetName",
                sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, self.device),
            )?;
            check("cuDriverGetVersion", sys::cuDriverGetVersion(&mut version))?;
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        };
        let driver = format!("{}.{}", version / 1000, version % 1000 / 10);
        Ok(Provenance {
            gpu: name,
            driver,
            date: today(),
        })
    }

    /// Compiles, launches and waits for one case; returns its outputs.
    pub fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, GpuError> {
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
        let result = unsafe {
            sys::cuModuleLoadDataEx(
                &mut module,
                image.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if result == CUresult::CUDA_SUCCESS {
            return Ok(Self(module));
        }
        let log = String::from_utf8_lossy(&log)
            .trim_end_matches('\0')
            .trim()
            .to_owned();
        Err(GpuError::Jit(if log.is_empty() {
            describe(result)
        } else {
            log
        }))
    }

    fn function(&self, shared: u32) -> Result<sys::CUfunction, GpuError> {
        let name = CString::new(ENTRY).map_err(|e| GpuError::Jit(e.to_string()))?;
        let mut function = ptr::null_mut();
        let limit = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the module is loaded and the name terminated.
        unsafe {
            check(
                "cuModuleGetFunction",
                sys::cuModuleGetFunction(&mut function, self.0, name.as_ptr()),
            )?;
            check(
                "cuFuncSetAttribute",
                sys::cuFuncSetAttribute(function, limit, shared as c_int),
            )?;
        }
        Ok(function)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded by us and used by nobody after this. A poisoned context refuses, which is harmless.
        unsafe { sys::cuModuleUnload(self.0) };
    }
}

struct Buffer {
    address: u64,
    length: usize,
}

impl Buffer {
    fn filled(bytes: &[u8]) -> Result<Self, GpuError> {
        let mut address = 0;
        // SAFETY: the allocation is at least as long as the copy.
        unsafe {
            check(
                "cuMemAlloc",
                sys::cuMemAlloc_v2(&mut address, bytes.len().max(16)),
            )?;
            let buffer = Self {
                address,
                length: bytes.len(),
            };
            check(
                "cuMemcpyHtoD",
                sys::cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()),
            )?;
            Ok(buffer)
        }
    }

    fn read(&self) -> Result<Vec<u8>, GpuError> {
        let mut bytes = vec![0; self.length];
        // SAFETY: host and device ranges have the same length.
        unsafe {
            check_sticky(
                "cuMemcpyDtoH",
                sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), self.address, self.length),
            )?;
        }
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by us and used by nobody after this. A poisoned context refuses, which is harmless.
        unsafe { sys::cuMemFree_v2(self.address) };
    }
}

fn encode(map: &MapSpec, address: u64) -> Result<sys::CUtensorMap, GpuError> {
    // SAFETY: the enums mirror the driver's numbering (see `MapType` and `Swizzle`), all
    // arrays have `rank` (strides: `rank - 1`) entries, and the map is written in full on success.
    unsafe {
        let mut encoded = MaybeUninit::<sys::CUtensorMap>::zeroed();
        let result = sys::cuTensorMapEncodeTiled(
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
        );
        check("cuTensorMapEncodeTiled", result)?;
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
        check(
            "cuLaunchKernelEx",
            sys::cuLaunchKernelEx(&config, function, params.as_mut_ptr(), ptr::null_mut()),
        )?;
        check_sticky("cuCtxSynchronize", sys::cuCtxSynchronize())
    }
}

fn check(call: &'static str, result: CUresult) -> Result<(), GpuError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(GpuError::Call {
            call,
            message: describe(other),
        }),
    }
}

fn check_sticky(call: &'static str, result: CUresult) -> Result<(), GpuError> {
    check(call, result).map_err(|_| GpuError::Sticky {
        call,
        message: describe(result),
    })
}

fn describe(result: CUresult) -> String {
    let mut text = ptr::null();
    // SAFETY: on success the driver points `text` at a static terminated string.
    unsafe {
        match sys::cuGetErrorString(result, &mut text) {
            CUresult::CUDA_SUCCESS if !text.is_null() => {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
            _ => format!("{result:?}"),
        }
    }
}

/// Today's date in UTC, by the proleptic Gregorian calendar.
fn today() -> String {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    date_of_day(seconds / 86_400)
}

/// The date `day` days after 1970-01-01: years are counted from March so that the leap day is last.
fn date_of_day(day: u64) -> String {
    let shifted = day + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date_of_day(0), "1970-01-01");
        assert_eq!(date_of_day(11_016), "2000-02-29");
        assert_eq!(date_of_day(20_454), "2026-01-01");
    }
}
