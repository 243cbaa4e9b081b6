//! Attributes of kernels, and their occupancy.

use std::ffi::{c_char, c_int, c_uint};

use super::launch::LaunchConfig;
use crate::c::{offer, put};
use crate::call::driver;
use crate::error::Error;
use crate::module::lasting_name;
use crate::occupancy;
use crate::state::device;

driver! {
    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: usize) {
        put(value, occupancy::attribute(device()?.function(function)?, attribute)?)
    }

    fn cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) {
        occupancy::set_attribute(device()?.function(function)?, attribute, value)
    }

    fn cuKernelGetAttribute(
        value: *mut c_int,
        attribute: c_int,
        kernel: usize,
        _device: c_int,
    ) {
        put(value, occupancy::attribute(device()?.function(kernel)?, attribute)?)
    }

    fn cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: usize, _device: c_int) {
        occupancy::set_attribute(device()?.function(kernel)?, attribute, value)
    }

    fn cuFuncSetCacheConfig(function: usize, _config: c_int) {
        device()?.function(function).map(drop)
    }

    fn cuKernelSetCacheConfig(kernel: usize, _config: c_int, _device: c_int) {
        device()?.function(kernel).map(drop)
    }

    fn cuFuncSetSharedMemConfig(function: usize, _config: c_int) {
        device()?.function(function).map(drop)
    }

    fn cuFuncGetModule(module: *mut usize, function: usize) {
        let mut device = device()?;
        let of = device.function(function)?.module.clone();
        let found = device.modules.find(|other| std::sync::Arc::ptr_eq(other, &of));
        put(module, found.ok_or(Error::INVALID_HANDLE)?)
    }

    fn cuFuncGetName | cuKernelGetName(name: *mut *const c_char, function: usize) {
        let mut device = device()?;
        put(name, lasting_name(&device.function(function)?.name))
    }

    fn cuFuncGetParamInfo | cuKernelGetParamInfo(
        function: usize,
        index: usize,
        offset: *mut usize,
        bytes: *mut usize,
    ) {
        let mut device = device()?;
        let kernel = device.function(function)?.kernel()?;
        let param = kernel.params.get(index).ok_or(Error::INVALID_VALUE)?;
        put(offset, param.offset as usize)?;
        offer(bytes, param.size as usize);
        Ok(())
    }

    fn cuFuncIsLoaded(state: *mut c_int, function: usize) {
        device()?.function(function)?;
        put(state, 1)
    }

    fn cuFuncLoad(function: usize) {
        device()?.function(function).map(drop)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: usize,
        threads: c_int,
        shared: usize,
    ) {
        put(blocks, occupancy::blocks(device()?.function(function)?, threads, shared)?)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        function: usize,
        threads: c_int,
        shared: usize,
        _flags: c_uint,
    ) {
        put(blocks, occupancy::blocks(device()?.function(function)?, threads, shared)?)
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: usize,
        shared_of: Option<unsafe extern "C" fn(c_int) -> usize>,
        shared: usize,
        limit: c_int,
    ) {
        let function = device()?.function(function)?.clone();
        let bytes = |threads| match shared_of {
            Some(of) => of(threads),
            None => shared,
        };
        let (least, best) = occupancy::best_block(&function, limit, bytes)?;
        put(grid, least)?;
        put(block, best)
    }

    fn cuOccupancyMaxActiveClusters(
        clusters: *mut c_int,
        function: usize,
        config: *const LaunchConfig,
    ) {
        let shape = config.as_ref().ok_or(Error::INVALID_VALUE)?.shape()?;
        put(clusters, occupancy::clusters(device()?.function(function)?, &shape)?)
    }

    fn cuOccupancyMaxPotentialClusterSize(
        size: *mut c_int,
        function: usize,
        _config: *const LaunchConfig,
    ) {
        put(size, occupancy::largest_cluster(device()?.function(function)?))
    }
}
