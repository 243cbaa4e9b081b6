//! The entry from C to all functions but two of NVRTC: panics stop here, and every error code is
//! returned from here.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::error::{Error, Result};
use crate::report;
use crate::say::{say, say_once};

thread_local! {
    /// The answer of `cudaGetLastError` in this thread.
    static LAST: Cell<u32> = const { Cell::new(0) };
    /// Whether stream 0 is this thread's own in the current call.
    static OWN_STREAM: Cell<bool> = const { Cell::new(false) };
    /// Whether a host function of the program runs for a stream: it may not call CUDA.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
    /// A number for this thread.
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The process that first used the device. A forked child has no device, as with the real driver;
/// after it executes a program it has one.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Exports functions of the driver API. Their bodies return a [`Result`]. A function may have
/// several names, as `fn a | b(…)`: the others are for programs with a default stream for each
/// thread.
macro_rules! driver {
    ($(fn $($name:ident)|+ ($($arg:ident: $type:ty),* $(,)?) $body:block)+) => {
        $($crate::call::export!(answer_driver [$($name)+] ($($arg: $type),*) $body);)+
    };
}

/// Exports functions of the runtime API likewise.
macro_rules! runtime {
    ($(fn $($name:ident)|+ ($($arg:ident: $type:ty),* $(,)?) $body:block)+) => {
        $($crate::call::export!(answer_runtime [$($name)+] ($($arg: $type),*) $body);)+
    };
}

macro_rules! export {
    ($answer:ident [$($name:ident)+] $args:tt $body:block) => {
        $($crate::call::export!($answer $name $args $body);)+
    };
    ($answer:ident $name:ident ($($arg:ident: $type:ty),*) $body:block) => {
        #[allow(non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
            $crate::call::$answer(stringify!($name), &mut || {
                // SAFETY: callers keep the contract of the C function.
                #[allow(unused_unsafe)]
                unsafe { $body }
            })
        }
    };
}

pub(crate) use {driver, export, runtime};

/// What a function does. Behind a pointer, because there are hundreds of functions: what is around
/// it is compiled once.
type Body<'a> = &'a mut dyn FnMut() -> Result;

/// Answers a call of the driver API.
pub(crate) fn answer_driver(name: &'static str, body: Body<'_>) -> c_int {
    match answer(name, body) {
        Ok(()) => 0,
        Err(error) => error.for_driver() as c_int,
    }
}

/// Answers a call of the runtime API, which remembers errors.
pub(crate) fn answer_runtime(name: &'static str, body: Body<'_>) -> c_int {
    match answer(name, body) {
        Ok(()) => 0,
        Err(Error::NOT_READY) => Error::NOT_READY.0 as c_int,
        Err(error) => {
            LAST.set(error.0);
            error.0 as c_int
        }
    }
}

fn answer(name: &'static str, body: Body<'_>) -> Result {
    let outer = OWN_STREAM.replace(name.ends_with("_ptsz") || name.ends_with("_ptds"));
    let result = catch_unwind(AssertUnwindSafe(body));
    OWN_STREAM.set(outer);
    match result {
        Ok(result) => result,
        Err(panic) => {
            say(&format!(
                "{name} failed inside the emulator: {}",
                words(panic.as_ref())
            ));
            Err(Error::UNKNOWN)
        }
    }
}

/// Runs a function that C calls for its effect, or for a handle.
pub(crate) fn shield<T: Default>(name: &'static str, mut body: impl FnMut() -> T) -> T {
    let mut value = T::default();
    let _ = answer(name, &mut || {
        value = body();
        Ok(())
    });
    value
}

fn words(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words")
}

/// The error that the next `cudaGetLastError` returns; clears it.
pub(crate) fn take_last() -> Error {
    Error(LAST.replace(0))
}

/// The same, without clearing it.
pub(crate) fn last() -> Error {
    Error(LAST.get())
}

/// Whether stream 0 of this call is the thread's own: programs compiled for that call functions
/// with other names.
pub(crate) fn has_own_stream() -> bool {
    OWN_STREAM.get()
}

/// Calls a function of the program, which may not call CUDA.
pub(crate) fn in_host_function(function: impl FnOnce()) {
    let outer = IN_HOST_FUNCTION.replace(true);
    function();
    IN_HOST_FUNCTION.set(outer);
}

pub(crate) fn check_permitted() -> Result {
    match IN_HOST_FUNCTION.get() {
        true => Err(Error::NOT_PERMITTED),
        false => Ok(()),
    }
}

/// A number that identifies this thread.
pub(crate) fn thread() -> u64 {
    static LAST_THREAD: AtomicU64 = AtomicU64::new(0);
    if THREAD.get() == 0 {
        THREAD.set(1 + LAST_THREAD.fetch_add(1, Relaxed));
    }
    THREAD.get()
}

/// Fails in a child of the process that used the device first.
pub(crate) fn check_process() -> Result {
    let id = std::process::id();
    match OWNER.compare_exchange(0, id, Relaxed, Relaxed) {
        Err(owner) if owner != id => Err(Error::NOT_INITIALIZED),
        _ => Ok(()),
    }
}

/// Refuses a call by its name.
pub(crate) fn refuse(name: &str) -> Error {
    say_once(&format!("{name} is not supported"));
    report::refused(name);
    Error::NOT_SUPPORTED
}

/// Refuses a part of a call's features.
pub(crate) fn refuse_part(name: &str, what: &str) -> Error {
    refuse(&format!("{name} with {what}"))
}

/// Answers a function that is missing.
pub(crate) fn refused_call(name: &'static str) -> c_int {
    match name.starts_with("cuda") || name.starts_with("__") {
        true => answer_runtime(name, &mut || Err(refuse(name))),
        false => answer_driver(name, &mut || Err(refuse(name))),
    }
}
