//! NVRTC's machine code, which cannot run here: programs that ask for it get the PTX instead.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::library::COMPILERS;

/// `NVRTC_ERROR_INTERNAL_ERROR`.
const INTERNAL_ERROR: c_int = 11;

/// A function of the NVRTC that this process has loaded.
fn real(name: &CStr) -> Option<*mut c_void> {
    COMPILERS.iter().find_map(|file| {
        let file = CString::new(*file).ok()?;
        // SAFETY: both strings end in zero; nothing is loaded that was not.
        let found = unsafe {
            let library = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                return None;
            }
            libc::dlsym(library, name.as_ptr())
        };
        (!found.is_null()).then_some(found)
    })
}

macro_rules! instead {
    ($($name:ident as $ptx:literal ($type:ty))+) => {
        $(
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(program: *mut c_void, to: *mut $type) -> c_int {
                let Some(found) = real($ptx) else {
                    return INTERNAL_ERROR;
                };
                // SAFETY: both functions of NVRTC have this type, and callers keep its contract.
                unsafe {
                    let call: unsafe extern "C" fn(*mut c_void, *mut $type) -> c_int =
                        std::mem::transmute(found);
                    call(program, to)
                }
            }
        )+
    };
}

instead! {
    nvrtcGetCUBINSize as c"nvrtcGetPTXSize" (usize)
    nvrtcGetCUBIN as c"nvrtcGetPTX" (c_char)
}
