//! Limits of the device that programs set and query.

use crate::call::refuse_part;
use crate::error::{Error, Result};

/// The default of a limit: stack, printf's buffer, heap, depth, calls, L2's granularity.
pub(crate) fn limit(limit: u32) -> Result<usize> {
    match limit {
        0 => Ok(1024),
        1 => Ok(1 << 20),
        HEAP => Ok(8 << 20),
        3 => Ok(2),
        4 => Ok(2048),
        5 => Ok(64),
        6 => Ok(0),
        _ => Err(Error::UNSUPPORTED_LIMIT),
    }
}

const HEAP: u32 = 2;
/// Maximum that kernels can allocate: half of the emulator's heap, whose blocks are rounded up.
const MOST_HEAP: usize = 128 << 20;

/// Checks the new value of a limit.
pub(crate) fn check_limit(which: u32, value: usize) -> Result {
    match limit(which) {
        Ok(_) if which == HEAP && value > MOST_HEAP => {
            Err(refuse_part("the heap of kernels", "more than 128 MiB"))
        }
        known => known.map(drop),
    }
}
