//! Work that a stream can execute, now or when a graph is launched.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::call::in_host_function;
use crate::error::{Error, Result};
use crate::launch::KernelCall;
use crate::memory::{Extent, Rows};
use crate::state::{Device, Locked, device};

/// A function of the program, and its argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostCall {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

// SAFETY: the program promises that its function may be called from another thread.
unsafe impl Send for HostCall {}
// SAFETY: as above.
unsafe impl Sync for HostCall {}

/// A strided copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy {
    pub(crate) to: Rows,
    pub(crate) from: Rows,
    pub(crate) extent: Extent,
}

impl Copy {
    /// Of bytes in one piece.
    pub(crate) fn flat(to: u64, from: u64, bytes: u64) -> Self {
        Self {
            to: Rows::at(to),
            from: Rows::at(from),
            extent: [bytes, 1, 1],
        }
    }
}

/// A strided fill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill {
    pub(crate) to: Rows,
    pub(crate) value: u32,
    /// Bytes of the value: 1, 2 or 4.
    pub(crate) width: u32,
    pub(crate) extent: Extent,
}

impl Fill {
    /// Of elements and rows of elements.
    pub(crate) fn new(to: Rows, value: u32, width: u32, elements: [usize; 2]) -> Result<Self> {
        let [columns, rows] = elements.map(|n| n as u64);
        let bytes = columns.checked_mul(u64::from(width));
        match width {
            1 | 2 | 4 => Ok(Self {
                to,
                value,
                width,
                extent: [bytes.ok_or(Error::INVALID_VALUE)?, rows, 1],
            }),
            _ => Err(Error::INVALID_VALUE),
        }
    }
}

/// One piece of work.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Kernel(Arc<KernelCall>),
    Copy(Copy),
    Fill(Fill),
    Host(HostCall),
    /// Records an event.
    Record(usize),
    /// Waits for an event, whose work is already done.
    Wait,
    /// Does nothing: joins others.
    Nothing,
    /// Work in an order that respects its dependencies.
    Graph(Arc<Vec<Work>>),
    /// A graph allocates the memory at this address.
    Allocate(Arc<u64>),
    /// Frees an allocation.
    Free(u64),
    /// An allocation that a graph frees: it is kept until nothing can replay the graph.
    FreeLast(Arc<u64>),
}

/// `cudaGraphNodeType…` of a piece of work.
pub(crate) fn kind(work: &Work) -> c_int {
    match work {
        Work::Kernel(_) => 0,
        Work::Copy(_) => 1,
        Work::Fill(_) => 2,
        Work::Host(_) => 3,
        Work::Graph(_) => 4,
        Work::Nothing => 5,
        Work::Wait => 6,
        Work::Record(_) => 7,
        Work::Allocate(_) => 10,
        Work::Free(_) | Work::FreeLast(_) => 11,
    }
}

/// Executes work. The device is not locked while a function of the program runs.
pub(crate) fn perform(mut locked: Locked, work: &Work) -> Result {
    match work {
        Work::Host(call) => {
            drop(locked);
            // SAFETY: the program gave the function and its data for this.
            in_host_function(|| unsafe { (call.function)(call.data) });
            Ok(())
        }
        Work::Graph(works) => {
            drop(locked);
            works.iter().try_for_each(|work| perform(device()?, work))
        }
        _ => locked.perform(work),
    }
}

impl Device {
    fn perform(&mut self, work: &Work) -> Result {
        match work {
            Work::Kernel(call) => self.launch(call),
            // SAFETY: the program gave the addresses, and keeps its own memory valid.
            Work::Copy(copy) => unsafe { self.copy(copy.to, copy.from, copy.extent) },
            Work::Fill(fill) => {
                let bytes = fill.value.to_le_bytes();
                // SAFETY: as above.
                unsafe { self.fill(fill.to, &bytes[..fill.width as usize], fill.extent) }
            }
            Work::Record(event) => self.record(*event),
            Work::Allocate(ptr) => self.own(**ptr),
            Work::Free(ptr) => self.free_in_order(*ptr),
            Work::Wait | Work::Nothing | Work::Host(_) | Work::Graph(_) | Work::FreeLast(_) => {
                Ok(())
            }
        }
    }
}
