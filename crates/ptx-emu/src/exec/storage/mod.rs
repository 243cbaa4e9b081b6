//! Memory and barriers, each by itself: none of them knows of warps or clusters.

pub(crate) mod banks;
pub(crate) mod bytes;
pub(crate) mod draft;
pub(crate) mod mbarrier;
pub(crate) mod named;
pub(crate) mod overlap;
pub(crate) mod page;
pub(crate) mod pointers;
#[cfg(target_arch = "x86_64")]
pub(crate) mod quick;
pub(crate) mod region;
pub(crate) mod span;
pub(crate) mod stores;
pub(crate) mod tmem;
pub(crate) mod touched;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors;
pub(crate) mod window;
