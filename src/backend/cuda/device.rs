use std::ffi::{CStr, c_int};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use super::driver::{Result, cu};
use crate::domain::{BackendKind, Bytes};
use crate::record::schema::Device;

/// Whether a GPU can be used, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// There is one, and this is its compile target, e.g. `sm_90a`.
    Gpu {
        arch: String,
    },
    NoDriver,
    NoGpu(String),
}

/// Looks for a usable GPU without keeping it.
pub fn presence() -> Presence {
    // SAFETY: only looks for the library.
    if !unsafe { sys::is_culib_present() } {
        return Presence::NoDriver;
    }
    match first_arch() {
        Ok(Some(arch)) => Presence::Gpu { arch },
        Ok(None) => Presence::NoGpu("the driver reports no device".to_owned()),
        Err(error) => Presence::NoGpu(error.to_string()),
    }
}

fn first_arch() -> Result<Option<String>> {
    cu!(cuInit(0))?;
    let (mut count, mut device) = (0, 0);
    cu!(cuDeviceGetCount(&mut count))?;
    if count == 0 {
        return Ok(None);
    }
    cu!(cuDeviceGet(&mut device, 0))?;
    let (mut major, mut minor) = (0, 0);
    let (of_major, of_minor) = (
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    );
    cu!(cuDeviceGetAttribute(&mut major, of_major, device))?;
    cu!(cuDeviceGetAttribute(&mut minor, of_minor, device))?;
    let suffix = if major >= 9 { "a" } else { "" };
    Ok(Some(format!("sm_{major}{minor}{suffix}")))
}

/// The first GPU's primary context, current on this thread.
#[derive(Debug)]
pub struct Context {
    device: sys::CUdevice,
}

impl Context {
    pub fn open() -> Result<Self> {
        cu!(cuInit(0))?;
        let mut device = 0;
        cu!(cuDeviceGet(&mut device, 0))?;
        let mut context = std::ptr::null_mut();
        cu!(cuDevicePrimaryCtxRetain(&mut context, device))?;
        let opened = Self { device };
        cu!(cuCtxSetCurrent(context))?;
        // What kernels allocate there outlives their call, and a later call
        // could look for it. The driver rounds up to the least it can do.
        let heap = sys::CUlimit_enum::CU_LIMIT_MALLOC_HEAP_SIZE;
        cu!(cuCtxSetLimit(heap, 1))?;
        Ok(opened)
    }

    fn attribute(&self, attribute: Attribute) -> Result<u64> {
        let mut value: c_int = 0;
        cu!(cuDeviceGetAttribute(&mut value, attribute, self.device))?;
        Ok(u64::try_from(value).unwrap_or(0))
    }

    fn name(&self) -> Result<String> {
        let mut text = [0; 256];
        cu!(cuDeviceGetName(text.as_mut_ptr(), 256, self.device))?;
        // SAFETY: the driver terminates the name within the buffer.
        let name = unsafe { CStr::from_ptr(text.as_ptr()) };
        Ok(name.to_string_lossy().into_owned())
    }

    fn uuid(&self) -> Result<String> {
        // SAFETY: plain bytes.
        let mut uuid: sys::CUuuid = unsafe { std::mem::zeroed() };
        cu!(cuDeviceGetUuid_v2(&mut uuid, self.device))?;
        let hex: String = uuid
            .bytes
            .iter()
            .map(|&b| format!("{:02x}", b as u8))
            .collect();
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        Ok(format!("GPU-{}", parts.join("-")))
    }

    /// What the record says of this GPU.
    pub fn describe(&self) -> Result<Device> {
        use Attribute::*;
        let mut memory = 0;
        cu!(cuDeviceTotalMem_v2(&mut memory, self.device))?;
        let clock_khz = self.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
        let memory_khz = self.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
        let bus_bits = self.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
        let major = self.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        Ok(Device {
            backend: BackendKind::Cuda,
            timing: BackendKind::Cuda.timing(),
            name: self.name()?,
            uuid: self.uuid().ok(),
            driver: driver_version(),
            sms: self.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
            l2: Bytes(self.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
            memory: Bytes(memory as u64),
            clock_mhz: clock_khz as f64 / 1e3,
            // Two transfers a clock on every memory these cards have.
            bandwidth: 2.0 * memory_khz as f64 * 1e3 * bus_bits as f64 / 8.0,
            tensor_flops_per_clock: tensor_flops_per_clock(major),
            smem_per_block: Bytes(
                self.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            ),
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _ = cu!(cuDevicePrimaryCtxRelease_v2(self.device));
    }
}

/// Dense fp16 operations per clock and SM, by compute capability.
fn tensor_flops_per_clock(major: u64) -> f64 {
    match major {
        0..=8 => 2048.0,
        9 => 4096.0,
        _ => 8192.0,
    }
}

/// The kernel driver's version where it can be read, else the CUDA version it speaks.
fn driver_version() -> Option<String> {
    let kernel = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
    let number = kernel.and_then(|text| {
        text.split_whitespace()
            .find(|w| w.contains('.') && w.starts_with(|c: char| c.is_ascii_digit()))
            .map(str::to_owned)
    });
    number.or_else(|| {
        let mut version = 0;
        cu!(cuDriverGetVersion(&mut version)).ok()?;
        Some(format!("CUDA {}.{}", version / 1000, version % 1000 / 10))
    })
}
