use std::ffi::c_int;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use super::driver::{Result, cu, named};
use dgx_core::config::target;
use dgx_core::domain::{Bytes, Card, Chip, Device, Limits, Peaks};

/// Whether a GPU can be used, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuPresence {
    /// The number of GPUs, and the code that the first one runs.
    Gpu {
        chip: Chip,
        count: u32,
    },
    NoDriver,
    NoGpu(String),
}

/// Looks for a usable GPU without keeping it.
pub fn presence() -> GpuPresence {
    // SAFETY: only looks for the library.
    if !unsafe { sys::is_culib_present() } {
        return GpuPresence::NoDriver;
    }
    match first_chip() {
        Ok(Some((chip, count))) => GpuPresence::Gpu { chip, count },
        Ok(None) => GpuPresence::NoGpu("the driver reports no device".to_owned()),
        Err(error) => GpuPresence::NoGpu(error.to_string()),
    }
}

fn first_chip() -> Result<Option<(Chip, u32)>> {
    named("cuInit", result::init())?;
    match named("cuDeviceGetCount", result::device::get_count())? {
        0 => Ok(None),
        count => Ok(Some((
            Gpu::get(0)?.chip()?,
            u32::try_from(count).unwrap_or(1),
        ))),
    }
}

/// A GPU's primary context, current on this thread.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) gpu: Gpu,
}

impl Context {
    pub(super) fn open(card: u32) -> Result<Self> {
        let gpu = Gpu::get(card)?;
        let mut context = std::ptr::null_mut();
        cu!(cuDevicePrimaryCtxRetain(&mut context, gpu.0))?;
        let opened = Self { gpu };
        cu!(cuCtxSetCurrent(context))?;
        // Kernels' allocations there outlive their call, and a later call could look for them. The
        // driver rounds up to its minimum.
        let heap = sys::CUlimit_enum::CU_LIMIT_MALLOC_HEAP_SIZE;
        named("cuCtxSetLimit", result::ctx::set_limit(heap, 1))?;
        Ok(opened)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _ = cu!(cuDevicePrimaryCtxRelease_v2(self.gpu.0));
    }
}

/// A GPU as its driver describes it: a query needs no context, which would cost a second, take
/// memory, and be refused if another process has exclusive use of the card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gpu(sys::CUdevice);

impl Gpu {
    pub(super) fn get(card: u32) -> Result<Self> {
        named("cuInit", result::init())?;
        let card = c_int::try_from(card).unwrap_or(c_int::MAX);
        named("cuDeviceGet", result::device::get(card)).map(Self)
    }

    fn attribute(self, attribute: Attribute) -> Result<u32> {
        let mut value: c_int = 0;
        cu!(cuDeviceGetAttribute(&mut value, attribute, self.0))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn chip(self) -> Result<Chip> {
        use Attribute::*;
        Ok(Chip {
            major: self.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: self.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        })
    }

    fn name(self) -> Result<String> {
        named("cuDeviceGetName", result::device::get_name(self.0))
    }

    fn uuid(self) -> Result<String> {
        let uuid = named("cuDeviceGetUuid", result::device::get_uuid(self.0))?;
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

    /// The driver's numbers, and those it does not report from the target of its name or chip.
    pub(super) fn describe(self) -> Result<Device> {
        let (name, chip) = (self.name()?, self.chip()?);
        let known = target::like(&name, Some(chip));
        let mut device = Device {
            name,
            chip,
            limits: self.limits(known.unwrap_or(target::default_device()))?,
            peaks: self.peaks(known)?,
            model: known.and_then(|known| known.model.clone()),
            calibration: known.and_then(|known| known.calibration.clone()),
            origins: known.map_or_else(Default::default, |known| known.origins.clone()),
            card: Some(Card {
                uuid: self.uuid().ok(),
                driver: driver_version(),
            }),
        };
        if known.is_none() {
            let assumed = ["limits.register_unit", "limits.blocks_per_cluster"];
            device.record_origin("assumed: those of an H200", &assumed);
        }
        device.record_origin("its driver", &TOLD);
        Ok(device)
    }

    /// With the two that the driver does not report from `known`.
    fn limits(self, known: &Device) -> Result<Limits> {
        use Attribute::*;
        let mut memory = 0;
        cu!(cuDeviceTotalMem_v2(&mut memory, self.0))?;
        let count = |of| self.attribute(of);
        let bytes = |of| count(of).map(|n| Bytes(u64::from(n)));
        Ok(Limits {
            sms: count(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory: Bytes(memory as u64),
            l2: bytes(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            shared_per_sm: bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            shared_per_block: bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_reserved: bytes(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
            registers_per_sm: count(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            threads_per_sm: count(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            threads_per_block: count(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            blocks_per_sm: count(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
            register_unit: known.limits.register_unit,
            blocks_per_cluster: known.limits.blocks_per_cluster,
        })
    }

    fn peaks(self, known: Option<&Device>) -> Result<Peaks> {
        use Attribute::*;
        let count = |of| self.attribute(of).map(f64::from);
        let memory_khz = count(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
        let bus_bits = count(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
        Ok(Peaks {
            clock_mhz: count(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1e3,
            // All memories of these cards transfer twice per clock.
            bandwidth: 2.0 * memory_khz * 1e3 * bus_bits / 8.0,
            tensor_flops: known.and_then(|known| known.peaks.tensor_flops),
        })
    }
}

/// The fields of [`Gpu::describe`] that come from the driver.
const TOLD: [&str; 12] = [
    "limits.sms",
    "limits.memory",
    "limits.l2",
    "limits.shared_per_sm",
    "limits.shared_per_block",
    "limits.shared_reserved",
    "limits.registers_per_sm",
    "limits.threads_per_sm",
    "limits.threads_per_block",
    "limits.blocks_per_sm",
    "peaks.clock_mhz",
    "peaks.bandwidth",
];

/// The kernel driver's version if it can be read, else the CUDA version it supports.
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
