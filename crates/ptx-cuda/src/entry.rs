//! Entry points by name, in versions of the API.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::null;
use std::sync::OnceLock;

use crate::call::has_own_stream;
use crate::device::VERSION;
use crate::error::{Error, Result};
use crate::refused;

/// Entry points whose newer forms have other parameters, with the version that introduced each. The
/// newer forms of the others are older than any program here.
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

/// Results of a search: found, no such name, and no form as old as the version.
const FOUND: c_int = 0;
const UNKNOWN: c_int = 1;
const TOO_NEW: c_int = 2;

/// Flag of a search for functions whose stream 0 is the thread's own.
const PER_THREAD: u64 = 2;

/// The function of a name in a version of the API, null if it is not supported, and the result of
/// the search.
pub(crate) fn find(name: &str, version: u32, flags: u64) -> Result<(*const c_void, c_int)> {
    if version / 1000 > VERSION as u32 / 1000 {
        return Err(Error::INVALID_VALUE);
    }
    let own = match flags & PER_THREAD != 0 || has_own_stream() {
        true => &["_ptsz", "_ptds", ""][..],
        false => &[""],
    };
    let (mut found, mut status) = (null(), UNKNOWN);
    if name.starts_with("cuda") {
        return Ok((found, status));
    }
    for form in ["_v4", "_v3", "_v2", ""] {
        let form = format!("{name}{form}");
        let Some(function) = own
            .iter()
            .find_map(|own| supported(&format!("{form}{own}")))
        else {
            continue;
        };
        let brought = BROUGHT.iter().find(|(known, _)| *known == form);
        if brought.is_none_or(|(_, since)| *since <= version) {
            (found, status) = (function, FOUND);
            break;
        }
        status = TOO_NEW;
    }
    Ok((found, status))
}

/// A function of this library that is not refused.
fn supported(name: &str) -> Option<*const c_void> {
    match refused::NAMES.contains(&name) {
        true => None,
        false => exported(name),
    }
}

/// A function of this library, but not one of those it depends on.
fn exported(name: &str) -> Option<*const c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: a handle that stays open, and text.
    let found = unsafe { libc::dlsym(own()? as *mut c_void, name.as_ptr()) };
    let is_ours = !found.is_null() && path_of(found) == own_path();
    is_ours.then_some(found.cast_const())
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
    path_of(own_path as *const c_void)
}

/// Where the loader found the library that an address belongs to.
fn path_of(address: *const c_void) -> Option<&'static CStr> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the loader looks the address up, and there is room for what it knows of it; the path
    // is text for as long as the library is loaded, and ours always is.
    unsafe {
        match libc::dladdr(address, info.as_mut_ptr()) {
            0 => None,
            _ => Some(CStr::from_ptr(info.assume_init().dli_fname)),
        }
    }
}
