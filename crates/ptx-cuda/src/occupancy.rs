//! How many CTAs of a kernel fit on the device at once. PTX does not state the register count of
//! the machine code, so registers limit nothing here.

use ptx_emu::Kernel;

use crate::call::refuse_part;
use crate::device::settings;
use crate::error::{Error, Result};
use crate::launch::Shape;
use crate::module::Function;

/// Registers per thread that functions report: the maximum live at once in the PTX.
pub(crate) fn registers(kernel: &Kernel<'_>) -> i32 {
    (kernel.registers_32 + 2 * kernel.registers_64).clamp(8, 255) as i32
}

/// Maximum threads of a block.
pub(crate) fn max_threads(kernel: &Kernel<'_>) -> i32 {
    let limit = kernel
        .max_block
        .map_or(1024, |block| block.iter().product());
    limit.min(1024) as i32
}

/// Blocks of one multiprocessor.
pub(crate) fn blocks(function: &Function, threads: i32, shared: usize) -> Result<i32> {
    let threads = u32::try_from(threads).map_err(|_| Error::INVALID_VALUE)?;
    if threads == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let Ok(shared) = u32::try_from(shared) else {
        return Ok(0);
    };
    if threads as i32 > max_threads(&function.kernel()?) {
        return Ok(0);
    }
    let kernel = function.kernel()?;
    let both = kernel.static_shared.saturating_add(shared);
    if both > settings().properties.shared_per_block {
        return Ok(0);
    }
    let shape = Shape {
        grid: [1; 3],
        block: [threads, 1, 1],
        shared,
        ..Shape::default()
    };
    let mut launch = shape.launch(&function.name);
    launch.cluster = Some([1; 3]);
    let resident = launch.resident(&function.module.emu);
    Ok(resident.map_or(0, |(blocks, _)| blocks as i32))
}

/// The smallest grid that fills the device, and its block size.
pub(crate) fn best_block(
    function: &Function,
    limit: i32,
    shared: impl Fn(i32) -> usize,
) -> Result<(i32, i32)> {
    let kernel = function.kernel()?;
    let most = match limit {
        0 => max_threads(&kernel),
        limit => limit.min(max_threads(&kernel)),
    };
    let mut best = (0, 0, 0);
    let mut size = most;
    while size > 0 {
        let blocks = blocks(function, size, shared(size))?;
        if blocks * size > best.0 {
            best = (blocks * size, blocks, size);
        }
        size = (size - 1) / 32 * 32;
    }
    Ok((best.1 * settings().properties.sms as i32, best.2))
}

/// Clusters that the device holds.
pub(crate) fn clusters(function: &Function, shape: &Shape) -> Result<i32> {
    let resident = shape.launch(&function.name).resident(&function.module.emu);
    let (_, clusters) = resident.map_err(|_| Error::INVALID_CLUSTER)?;
    Ok(clusters as i32)
}

/// The largest cluster that can be launched.
pub(crate) fn largest_cluster(function: &Function) -> i32 {
    match function.large_clusters {
        true => settings().config.limits.max_cluster as i32,
        false => 8,
    }
}

/// An attribute by its `CU_FUNC_ATTRIBUTE_…`.
pub(crate) fn attribute(function: &Function, attribute: i32) -> Result<i32> {
    let kernel = function.kernel()?;
    let width = |index: usize| kernel.cluster.map_or(0, |sizes| sizes[index] as i32);
    Ok(match attribute {
        0 => max_threads(&kernel),
        1 => kernel.static_shared as i32,
        2 => 0,
        3 => kernel.local_bytes as i32,
        4 => registers(&kernel),
        5 => function.module.ptx_version,
        6 => settings().properties.capability as i32,
        7 => 0,
        8 => function.max_dynamic_shared as i32,
        9 => function.carveout,
        10 => 0,
        11..=13 => width(attribute as usize - 11),
        14 => i32::from(function.large_clusters),
        15 => 0,
        _ => return Err(Error::INVALID_VALUE),
    })
}

/// Sets one.
pub(crate) fn set_attribute(function: &mut Function, attribute: i32, value: i32) -> Result {
    match attribute {
        8 => {
            let bytes = u32::try_from(value).map_err(|_| Error::INVALID_VALUE)?;
            let fixed = function.kernel()?.static_shared;
            if bytes.saturating_add(fixed) > settings().properties.shared_per_block {
                return Err(Error::INVALID_VALUE);
            }
            // Programs also set less than they use later, which the driver allows.
            let plain = crate::device::SHARED_PLAIN.saturating_sub(fixed);
            function.max_dynamic_shared = bytes.max(plain);
        }
        9 if !(-1..=100).contains(&value) => return Err(Error::INVALID_VALUE),
        9 => function.carveout = value,
        14 => function.large_clusters = value != 0,
        15 => {}
        10..=13 => return Err(refuse_part("cuFuncSetAttribute", "the size of a cluster")),
        _ => return Err(Error::INVALID_VALUE),
    }
    Ok(())
}
