//! Contexts of the driver API. There is one device, so they differ only in name and in the objects
//! made in them.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::call::{check_permitted, check_process};
use crate::error::{Error, Result};
use crate::handles::{Handles, fresh};
use crate::state::{Device, Locked, lock};

thread_local! {
    /// The stack of contexts of this thread, the current one last. It is never dropped: destructors
    /// of a program's globals run after those of its thread, and may call CUDA.
    static STACK: ManuallyDrop<RefCell<Vec<usize>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Whether `cuInit` was called.
pub(crate) static INITIALISED: AtomicBool = AtomicBool::new(false);

fn stack<T>(of: impl FnOnce(&mut Vec<usize>) -> T) -> T {
    STACK.with(|stack| of(&mut stack.borrow_mut()))
}

/// Contexts of the process.
#[derive(Default)]
pub(crate) struct Contexts {
    /// The primary one, once it was requested, and how often it is retained.
    primary: Option<usize>,
    pub(crate) retained: u32,
    /// The runtime API uses the primary one too, without counting.
    pub(crate) in_runtime: bool,
    pub(crate) flags: u32,
    /// Those that `cuCtxCreate` made, with their flags.
    made: Handles<u32>,
}

impl Contexts {
    pub(crate) fn primary(&mut self) -> usize {
        *self.primary.get_or_insert_with(fresh)
    }

    pub(crate) fn is_primary(&self, context: usize) -> bool {
        self.primary == Some(context)
    }

    /// Whether the primary one exists.
    pub(crate) fn is_active(&self) -> bool {
        self.retained > 0 || self.in_runtime
    }

    pub(crate) fn make(&mut self, flags: u32) -> usize {
        self.made.add(flags)
    }

    pub(crate) fn set_flags(&mut self, context: usize, flags: u32) {
        match self.made.get_mut(context) {
            Ok(own) => *own = flags,
            Err(_) => self.flags = flags,
        }
    }

    pub(crate) fn flags_of(&self, context: usize) -> u32 {
        self.made.get(context).copied().unwrap_or(self.flags)
    }

    pub(crate) fn check(&self, context: usize) -> Result {
        match self.is_primary(context) || self.made.contains(context) {
            true => Ok(()),
            false => Err(Error::INVALID_CONTEXT),
        }
    }

    /// Fails for a context that another thread destroyed, or a primary one that does not exist.
    fn check_alive(&self, context: usize) -> Result {
        match self.made.contains(context) || (self.is_primary(context) && self.is_active()) {
            true => Ok(()),
            false => Err(Error::CONTEXT_DESTROYED),
        }
    }
}

impl Device {
    /// Destroys a context that `cuCtxCreate` made, and everything made in it.
    pub(crate) fn destroy_context(&mut self, context: usize) -> Result {
        let gone = self.contexts.made.remove(context);
        gone.map_err(|_| Error::INVALID_CONTEXT)?;
        stack(|stack| stack.retain(|&held| held != context));
        self.release_of(context)
    }
}

/// The context of this thread; 0 for none.
pub(crate) fn current() -> usize {
    stack(|stack| stack.last().copied().unwrap_or(0))
}

pub(crate) fn push(context: usize) {
    stack(|stack| stack.push(context));
}

pub(crate) fn pop() -> Result<usize> {
    stack(Vec::pop).ok_or(Error::INVALID_CONTEXT)
}

/// Replaces the current context; 0 removes it.
pub(crate) fn set(context: usize) {
    stack(|stack| {
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
}

/// Why a thread has no context.
fn without_context() -> Error {
    match INITIALISED.load(Relaxed) {
        true => Error::INVALID_CONTEXT,
        false => Error::NOT_INITIALIZED,
    }
}

/// The device, for a call of the driver API that needs a context.
pub(crate) fn in_context() -> Result<Locked> {
    check_process()?;
    check_permitted()?;
    match current() {
        0 => Err(without_context()),
        context => {
            let device = lock()?;
            device.contexts.check_alive(context)?;
            device.unless_lost()
        }
    }
}

/// The device, for a call of the runtime API, which makes the primary context current if there is
/// none.
pub(crate) fn in_runtime() -> Result<Locked> {
    check_permitted()?;
    let mut device = lock()?;
    let context = match current() {
        0 => {
            let primary = device.contexts.primary();
            push(primary);
            primary
        }
        context => context,
    };
    if device.contexts.is_primary(context) {
        device.contexts.in_runtime = true;
    }
    device.contexts.check_alive(context)?;
    device.unless_lost()
}
