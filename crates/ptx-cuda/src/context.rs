//! Contexts of the driver API: one device, so they differ by name alone.

use std::cell::RefCell;

use crate::call::check_process;
use crate::error::{Error, Result};
use crate::handles::{Handles, fresh};
use crate::state::{Locked, device, lock};

thread_local! {
    /// The stack of contexts of this thread, the current one last.
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Contexts of the process.
#[derive(Default)]
pub(crate) struct Contexts {
    /// The primary one, once it was asked for, and how often it is retained.
    primary: Option<usize>,
    pub(crate) retained: u32,
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

    pub(crate) fn make(&mut self, flags: u32) -> usize {
        self.made.add(flags)
    }

    pub(crate) fn destroy(&mut self, context: usize) -> Result {
        let gone = self
            .made
            .remove(context)
            .map_err(|_| Error::INVALID_CONTEXT);
        STACK.with_borrow_mut(|stack| stack.retain(|&held| held != context));
        gone.map(drop)
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
}

/// The context of this thread; 0 for none.
pub(crate) fn current() -> usize {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

pub(crate) fn push(context: usize) {
    STACK.with_borrow_mut(|stack| stack.push(context));
}

pub(crate) fn pop() -> Result<usize> {
    STACK
        .with_borrow_mut(Vec::pop)
        .ok_or(Error::INVALID_CONTEXT)
}

/// Replaces the current context; 0 takes it away.
pub(crate) fn set(context: usize) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
}

/// The device, for a call of the driver API that needs a context.
pub(crate) fn in_context() -> Result<Locked> {
    check_process()?;
    match current() {
        0 => Err(Error::INVALID_CONTEXT),
        _ => device(),
    }
}

/// The device, for a call of the runtime API, which makes the primary context current where there
/// is none.
pub(crate) fn in_runtime() -> Result<Locked> {
    if current() == 0 {
        push(lock()?.contexts.primary());
    }
    device()
}
