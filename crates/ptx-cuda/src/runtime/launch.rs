//! Launches.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::attributes::{Attribute, apply, events};
use crate::c::Dim3;
use crate::call::{in_host_function, runtime};
use crate::context::in_runtime;
use crate::error::{Error, Result};
use crate::launch::{KernelCall, Shape, gather};
use crate::stream::submit;
use crate::work::{HostCall, Work};

/// `cudaLaunchConfig_t`
#[repr(C)]
pub(super) struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared: usize,
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
            grid: self.grid.into(),
            block: self.block.into(),
            shared: u32::try_from(self.shared).map_err(|_| Error::INVALID_VALUE)?,
            ..Shape::default()
        };
        // SAFETY: by this function's contract.
        let attributes = unsafe { crate::c::array(self.attributes, self.count as usize) }?;
        apply(&mut shape, attributes)?;
        Ok(shape)
    }
}

/// Launches the kernel of a host function.
///
/// # Safety
/// `args` must have a pointer to each parameter.
pub(super) unsafe fn launch(
    kernel: usize,
    (grid, block): (Dim3, Dim3),
    args: *const *const c_void,
    shared: usize,
    stream: usize,
    cooperative: bool,
) -> Result {
    let shape = Shape {
        grid: grid.into(),
        block: block.into(),
        shared: u32::try_from(shared).map_err(|_| Error::INVALID_VALUE)?,
        cluster: None,
        cooperative,
    };
    // SAFETY: by this function's contract.
    unsafe { launch_shape(kernel, shape, args, stream) }
}

unsafe fn launch_shape(
    kernel: usize,
    shape: Shape,
    args: *const *const c_void,
    stream: usize,
) -> Result {
    let mut device = in_runtime()?;
    let function = device.function(kernel)?.clone();
    // SAFETY: by the caller's contract.
    let params = unsafe { gather(&function, args) }?;
    let call = KernelCall::new(kernel, function, shape, params);
    submit(device, stream, Work::Kernel(Arc::new(call)))
}

runtime! {
    fn cudaLaunchKernel | cudaLaunchKernel_ptsz | __cudaLaunchKernel | __cudaLaunchKernel_ptsz(
        kernel: usize,
        grid: Dim3,
        block: Dim3,
        args: *const *const c_void,
        shared: usize,
        stream: usize,
    ) {
        launch(kernel, (grid, block), args, shared, stream, false)
    }

    fn cudaLaunchCooperativeKernel | cudaLaunchCooperativeKernel_ptsz(
        kernel: usize,
        grid: Dim3,
        block: Dim3,
        args: *const *const c_void,
        shared: usize,
        stream: usize,
    ) {
        launch(kernel, (grid, block), args, shared, stream, true)
    }

    fn cudaLaunchKernelExC | cudaLaunchKernelExC_ptsz(
        config: *const LaunchConfig,
        kernel: usize,
        args: *const *const c_void,
    ) {
        let config = config.as_ref().ok_or(Error::INVALID_VALUE)?;
        let attributes = crate::c::array(config.attributes, config.count as usize)?;
        let events = events(&*in_runtime()?, attributes)?;
        launch_shape(kernel, config.shape()?, args, config.stream)?;
        in_runtime()?.record_all(config.stream, &events)
    }

    fn cudaLaunchHostFunc | cudaLaunchHostFunc_ptsz(
        stream: usize,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        let function = function.ok_or(Error::INVALID_VALUE)?;
        submit(in_runtime()?, stream, Work::Host(HostCall { function, data }))
    }

    fn cudaStreamAddCallback | cudaStreamAddCallback_ptsz(
        stream: usize,
        function: Option<unsafe extern "C" fn(usize, c_int, *mut c_void)>,
        data: *mut c_void,
        _flags: c_uint,
    ) {
        let function = function.ok_or(Error::INVALID_VALUE)?;
        let mut device = in_runtime()?;
        device.wait_for_stream(stream)?;
        drop(device);
        in_host_function(|| function(stream, 0, data));
        Ok(())
    }
}
