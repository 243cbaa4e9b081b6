//! Attributes of kernels, and their occupancy.

use std::ffi::{c_char, c_int, c_uint};

use super::launch::LaunchConfig;
use crate::c::put;
use crate::call::runtime;
use crate::context::in_runtime;
use crate::device::settings;
use crate::error::Error;
use crate::occupancy;

/// `cudaFuncAttributes`
#[repr(C)]
struct Attributes {
    shared: usize,
    constant: usize,
    local: usize,
    max_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    max_dynamic_shared: c_int,
    carveout: c_int,
    cluster_must_be_set: c_int,
    cluster: [c_int; 3],
    cluster_policy: c_int,
    large_clusters: c_int,
    reserved: [c_int; 16],
}

runtime! {
    fn cudaFuncGetAttributes(to: *mut Attributes, kernel: usize) {
        let mut device = in_runtime()?;
        let function = device.function(kernel)?;
        let get = |attribute| occupancy::attribute(function, attribute);
        put(to, Attributes {
            shared: get(1)? as usize,
            constant: get(2)? as usize,
            local: get(3)? as usize,
            max_threads: get(0)?,
            registers: get(4)?,
            ptx_version: get(5)?,
            binary_version: get(6)?,
            cache_mode: get(7)?,
            max_dynamic_shared: get(8)?,
            carveout: get(9)?,
            cluster_must_be_set: get(10)?,
            cluster: [get(11)?, get(12)?, get(13)?],
            cluster_policy: 0,
            large_clusters: get(14)?,
            reserved: [0; 16],
        })
    }

    fn cudaFuncSetAttribute(kernel: usize, attribute: c_int, value: c_int) {
        occupancy::set_attribute(in_runtime()?.function(kernel)?, attribute, value)
    }

    fn cudaFuncSetCacheConfig(kernel: usize, _config: c_int) {
        in_runtime()?.function(kernel).map(drop)
    }

    fn cudaFuncSetSharedMemConfig(kernel: usize, _config: c_int) {
        in_runtime()?.function(kernel).map(drop)
    }

    fn cudaFuncGetName(name: *mut *const c_char, kernel: usize) {
        let mut device = in_runtime()?;
        put(name, crate::module::lasting_name(&device.function(kernel)?.name))
    }

    fn cudaFuncGetParamInfo(
        kernel: usize,
        index: usize,
        offset: *mut usize,
        bytes: *mut usize,
    ) {
        let mut device = in_runtime()?;
        let kernel = device.function(kernel)?.kernel()?;
        let param = kernel.params.get(index).ok_or(Error::INVALID_VALUE)?;
        put(offset, param.offset as usize)?;
        crate::c::offer(bytes, param.size as usize);
        Ok(())
    }

    fn cudaGetFuncBySymbol(to: *mut usize, kernel: usize) {
        in_runtime()?.function(kernel)?;
        put(to, kernel)
    }

    fn cudaGetKernel(to: *mut usize, kernel: usize) {
        in_runtime()?.function(kernel)?;
        put(to, kernel)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        kernel: usize,
        threads: c_int,
        shared: usize,
    ) {
        put(blocks, occupancy::blocks(in_runtime()?.function(kernel)?, threads, shared)?)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        kernel: usize,
        threads: c_int,
        shared: usize,
        _flags: c_uint,
    ) {
        put(blocks, occupancy::blocks(in_runtime()?.function(kernel)?, threads, shared)?)
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        bytes: *mut usize,
        kernel: usize,
        blocks: c_int,
        _threads: c_int,
    ) {
        let blocks = u32::try_from(blocks).ok().filter(|n| *n > 0).ok_or(Error::INVALID_VALUE)?;
        let mut device = in_runtime()?;
        let fixed = device.function(kernel)?.kernel()?.static_shared;
        let properties = &settings().properties;
        let share = (properties.shared_per_sm / blocks).saturating_sub(1024) / 128 * 128;
        let most = share.min(properties.shared_per_block);
        put(bytes, most.saturating_sub(fixed) as usize)
    }

    fn cudaOccupancyMaxActiveClusters(
        clusters: *mut c_int,
        kernel: usize,
        config: *const LaunchConfig,
    ) {
        let shape = config.as_ref().ok_or(Error::INVALID_VALUE)?.shape()?;
        put(clusters, occupancy::clusters(in_runtime()?.function(kernel)?, &shape)?)
    }

    fn cudaOccupancyMaxPotentialClusterSize(
        size: *mut c_int,
        kernel: usize,
        _config: *const LaunchConfig,
    ) {
        put(size, occupancy::largest_cluster(in_runtime()?.function(kernel)?))
    }
}
