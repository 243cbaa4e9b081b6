//! Launches.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use crate::attributes::{Attribute, apply, events};
use crate::call::driver;
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::launch::{KernelCall, Shape, gather, gather_extra};
use crate::stream::submit;
use crate::work::{HostCall, Work};

/// `CUlaunchConfig`
#[repr(C)]
pub(super) struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: usize,
    attributes: *const Attribute,
    count: c_uint,
}

impl LaunchConfig {
    /// The shape of the launch, with its attributes applied.
    ///
    /// # Safety
    /// The attributes must be valid.
    pub(super) unsafe fn shape(&self) -> Result<Shape> {
        let mut shape = Shape {
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            ..Shape::default()
        };
        // SAFETY: by this function's contract.
        apply(&mut shape, unsafe {
            crate::c::array(self.attributes, self.count as usize)
        }?)?;
        Ok(shape)
    }
}

/// The arguments of a kernel: pointers to its parameters, or a buffer of them.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    pub(super) each: *const *const c_void,
    pub(super) extra: *const *mut c_void,
}

/// The work of a launch.
///
/// # Safety
/// The kernel's parameters must be valid.
pub(super) unsafe fn kernel_work(
    device: &mut crate::state::Device,
    handle: usize,
    shape: Shape,
    arguments: Arguments,
) -> Result<Work> {
    let function = device
        .function(handle)
        .map_err(|_| Error::INVALID_HANDLE)?
        .clone();
    // SAFETY: by this function's contract.
    let params = unsafe {
        match (arguments.each.is_null(), arguments.extra.is_null()) {
            (true, false) => gather_extra(&function, arguments.extra)?,
            (false, false) => return Err(Error::INVALID_VALUE),
            _ => gather(&function, arguments.each)?,
        }
    };
    let call = KernelCall::new(handle, function, shape, params);
    Ok(Work::Kernel(Arc::new(call)))
}

unsafe fn launch(function: usize, shape: Shape, stream: usize, arguments: Arguments) -> Result {
    let mut device = in_context()?;
    // SAFETY: by the caller's contract.
    let work = unsafe { kernel_work(&mut device, function, shape, arguments) }?;
    submit(device, stream, work)
}

driver! {
    fn cuLaunchKernel | cuLaunchKernel_ptsz(
        function: usize,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: usize,
        each: *const *const c_void,
        extra: *const *mut c_void,
    ) {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            ..Shape::default()
        };
        launch(function, shape, stream, Arguments { each, extra })
    }

    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz(
        function: usize,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: usize,
        each: *const *const c_void,
    ) {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            cooperative: true,
            ..Shape::default()
        };
        let extra = std::ptr::null();
        launch(function, shape, stream, Arguments { each, extra })
    }

    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz(
        config: *const LaunchConfig,
        function: usize,
        each: *const *const c_void,
        extra: *const *mut c_void,
    ) {
        let config = config.as_ref().ok_or(Error::INVALID_VALUE)?;
        let attributes = crate::c::array(config.attributes, config.count as usize)?;
        let events = events(&*in_context()?, attributes)?;
        launch(function, config.shape()?, config.stream, Arguments { each, extra })?;
        in_context()?.record_all(config.stream, &events)
    }

    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz(
        stream: usize,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        let function = function.ok_or(Error::INVALID_VALUE)?;
        submit(in_context()?, stream, Work::Host(HostCall { function, data }))
    }
}
