//! Entry points by name: `cuGetProcAddress`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::c::{offer, put, text};
use crate::call::{driver, say_once};
use crate::error::Error;
use crate::refused;

/// A version that every entry point is older than.
pub(crate) const NEWEST: u32 = u32::MAX;

/// Entry points whose newer forms have other parameters: the version that brought each. The newer
/// forms of the others are as old as any program here.
const BROUGHT: &[(&str, u32)] = &[
    ("cuCtxCreate_v3", 11_040),
    ("cuCtxCreate_v4", 12_050),
    ("cuGetProcAddress_v2", 12_000),
    ("cuStreamGetCaptureInfo_v2", 11_030),
    ("cuStreamGetCaptureInfo_v3", 12_030),
    ("cuStreamUpdateCaptureDependencies_v2", 12_030),
    ("cuGraphAddKernelNode_v2", 12_000),
    ("cuGraphExecKernelNodeSetParams_v2", 12_000),
    ("cuGraphExecUpdate_v2", 12_000),
    ("cuGraphKernelNodeGetParams_v2", 12_000),
    ("cuMemAdvise_v2", 12_020),
    ("cuMemPrefetchAsync_v2", 12_020),
];

/// The function of a name in a version of the API, if it is supported.
pub(crate) fn find(name: &str, version: u32) -> Option<*const c_void> {
    let form = |suffix: &str| {
        let form = format!("{name}{suffix}");
        let brought = BROUGHT.iter().find(|(known, _)| *known == form);
        let old = brought.is_none_or(|(_, since)| *since <= version);
        (old && !refused::NAMES.contains(&form.as_str())).then(|| exported(&form))?
    };
    let forms = ["_v4", "_v3", "_v2", ""];
    forms.into_iter().find_map(form)
}

/// A function of this library.
fn exported(name: &str) -> Option<*const c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: a handle that stays open, and text.
    let found = unsafe { libc::dlsym(own()? as *mut c_void, name.as_ptr()) };
    (!found.is_null()).then_some(found.cast_const())
}

/// This library's handle.
fn own() -> Option<usize> {
    static OWN: OnceLock<Option<usize>> = OnceLock::new();
    *OWN.get_or_init(|| {
        let path = own_path()?;
        // SAFETY: the path is text.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then_some(handle as usize)
    })
}

/// Where the loader found this library.
pub(crate) fn own_path() -> Option<&'static CStr> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = own_path as *const c_void;
    // SAFETY: an address of this library, and room for what is known of it; the path is text for
    // as long as the library is loaded.
    unsafe {
        match libc::dladdr(here, info.as_mut_ptr()) {
            0 => None,
            _ => Some(CStr::from_ptr(info.assume_init().dli_fname)),
        }
    }
}

driver! {
    fn cuGetProcAddress(
        name: *const c_char,
        function: *mut *const c_void,
        version: c_int,
        _flags: u64,
    ) {
        let found = find(text(name)?, version as u32);
        put(function, found.unwrap_or(std::ptr::null()))?;
        found.map(drop).ok_or(Error::NOT_FOUND)
    }

    fn cuGetProcAddress_v2(
        name: *const c_char,
        function: *mut *const c_void,
        version: c_int,
        _flags: u64,
        status: *mut c_int,
    ) {
        let found = find(text(name)?, version as u32);
        offer(status, c_int::from(found.is_none()));
        put(function, found.unwrap_or(std::ptr::null()))?;
        found.map(drop).ok_or(Error::NOT_FOUND)
    }

    fn cuGetExportTable(table: *mut *const c_void, _id: *const c_void) {
        say_once(
            "a CUDA runtime inside the program or one of its libraries asks for private tables of the \
             driver: link with -cudart shared, or do not strip the program",
        );
        put(table, std::ptr::null())?;
        Err(Error::NOT_SUPPORTED)
    }
}
