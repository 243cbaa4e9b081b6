//! Parameters of graph nodes, in structs that both APIs share.

use std::ffi::{c_uint, c_void};

use crate::error::{Error, Result};
use crate::memory::Rows;
use crate::work::{Fill, HostCall, Work};

/// `cudaMemsetParams`, `CUDA_MEMSET_NODE_PARAMS`
#[repr(C)]
pub(crate) struct FillParams {
    to: u64,
    pitch: usize,
    value: c_uint,
    /// Bytes of the value.
    element: c_uint,
    width: usize,
    height: usize,
}

impl FillParams {
    pub(crate) fn work(&self) -> Result<Work> {
        let to = Rows::planar(self.to, self.pitch as u64);
        let extent = [self.width, self.height];
        Fill::new(to, self.value, self.element, extent).map(Work::Fill)
    }

    pub(crate) fn of(work: &Work) -> Result<Self> {
        match work {
            Work::Fill(fill) => Ok(Self {
                to: fill.to.start,
                pitch: fill.to.pitch as usize,
                value: fill.value,
                element: fill.width,
                width: fill.extent[0] as usize / fill.width as usize,
                height: fill.extent[1] as usize,
            }),
            _ => Err(Error::INVALID_VALUE),
        }
    }
}

/// `cudaHostNodeParams`, `CUDA_HOST_NODE_PARAMS`
#[repr(C)]
pub(crate) struct HostParams {
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

impl HostParams {
    pub(crate) fn work(&self) -> Result<Work> {
        let function = self.function.ok_or(Error::INVALID_VALUE)?;
        let data = self.data;
        Ok(Work::Host(HostCall { function, data }))
    }

    pub(crate) fn of(work: &Work) -> Result<Self> {
        match work {
            Work::Host(HostCall { function, data }) => Ok(Self {
                function: Some(*function),
                data: *data,
            }),
            _ => Err(Error::INVALID_VALUE),
        }
    }
}
