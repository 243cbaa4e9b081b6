//! Options of the PTX compiler: those through which it returns values.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::c::{array, put_text};
use crate::error::Result;

/// `CU_JIT_…`: milliseconds, then a log and its size, for messages and for errors.
const WALL_TIME: c_int = 2;
const INFO: (c_int, c_int) = (3, 4);
const ERROR: (c_int, c_int) = (5, 6);

/// Options and their values, as C gives them.
pub(super) struct Options {
    pub(super) count: c_uint,
    pub(super) names: *const c_int,
    pub(super) values: *mut *mut c_void,
}

impl Options {
    /// Answers them: compiling takes no time and gives no message but an error.
    ///
    /// # Safety
    /// The arrays must have as many entries as `count` says.
    pub(super) unsafe fn answer(&self, error: &str) -> Result {
        // SAFETY: by this function's contract.
        unsafe {
            self.write(INFO, "")?;
            self.write(ERROR, error)?;
            if let Some(value) = self.value(WALL_TIME)? {
                *value = std::ptr::without_provenance_mut(0f32.to_bits() as usize);
            }
        }
        Ok(())
    }

    unsafe fn value(&self, name: c_int) -> Result<Option<*mut *mut c_void>> {
        // SAFETY: by the contract of `answer`.
        let names = unsafe { array(self.names, self.count as usize) }?;
        let found = names.iter().position(|known| *known == name);
        // SAFETY: as above.
        Ok(found.map(|index| unsafe { self.values.add(index) }))
    }

    /// Writes as much of a log as there is room for, and its size.
    unsafe fn write(&self, (buffer, size): (c_int, c_int), text: &str) -> Result {
        // SAFETY: by the contract of `answer`; the value of a size is the size itself.
        unsafe {
            let Some(size) = self.value(size)? else {
                return Ok(());
            };
            let room = i32::try_from((*size).addr()).unwrap_or(i32::MAX);
            let buffer = self.value(buffer)?.map(|buffer| (*buffer).cast::<c_char>());
            if let Some(buffer) = buffer
                && room > 0
            {
                put_text(buffer, room, text)?;
            }
            let written = text.len().min((room.max(1) - 1) as usize);
            *size = std::ptr::without_provenance_mut(written);
        }
        Ok(())
    }
}
