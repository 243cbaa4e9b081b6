//! Other libraries that the process has loaded.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// Whether the program was linked with the runtime of CUDA 12: some functions there have other
/// parameters under the same name.
pub(crate) fn is_twelve() -> bool {
    static TWELVE: OnceLock<bool> = OnceLock::new();
    *TWELVE.get_or_init(|| {
        let mut found = crate::static_runtime::is_twelve();
        // SAFETY: the callback keeps nothing, and `found` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
        found
    })
}

unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid object, whose name is null or text.
    let name = unsafe {
        match (*object).dlpi_name.is_null() {
            true => return 0,
            false => CStr::from_ptr((*object).dlpi_name),
        }
    };
    if name.to_bytes().ends_with(b"libcudart.so.12") {
        // SAFETY: the place that `is_twelve` gave.
        unsafe { *found.cast::<bool>() = true };
    }
    0
}
