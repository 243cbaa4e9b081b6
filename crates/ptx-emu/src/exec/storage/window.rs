//! The windows of generic addresses.

use crate::op::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};

/// Where a lane's address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    Global,
    Shared,
    Local,
    Param,
}

/// Bytes above a generic window's base that belong to it.
pub(crate) const WINDOW: u64 = 1 << 32;

/// The space a generic address lies in.
pub(crate) fn window_of(address: u64) -> Window {
    let within = |base: u64| address.wrapping_sub(base) < WINDOW;
    if within(SHARED_WINDOW) {
        Window::Shared
    } else if within(LOCAL_WINDOW) {
        Window::Local
    } else if within(PARAM_WINDOW) {
        Window::Param
    } else {
        Window::Global
    }
}
