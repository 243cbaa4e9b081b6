//! Numbers that programs hold in place of pointers to what is theirs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::error::{Error, Result};

/// Numbers are never given twice, whatever they are for: a stale one is noticed.
static NEXT: AtomicUsize = AtomicUsize::new(0x1000);

/// A number that no other handle has. It is a multiple of 16, as a pointer would be.
pub(crate) fn fresh() -> usize {
    NEXT.fetch_add(16, Relaxed)
}

/// Things of one kind by their handles.
pub(crate) struct Handles<T>(HashMap<usize, T>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Handles<T> {
    pub(crate) fn add(&mut self, thing: T) -> usize {
        let handle = fresh();
        self.0.insert(handle, thing);
        handle
    }

    pub(crate) fn get(&self, handle: usize) -> Result<&T> {
        self.0.get(&handle).ok_or(Error::INVALID_HANDLE)
    }

    pub(crate) fn get_mut(&mut self, handle: usize) -> Result<&mut T> {
        self.0.get_mut(&handle).ok_or(Error::INVALID_HANDLE)
    }

    pub(crate) fn remove(&mut self, handle: usize) -> Result<T> {
        self.0.remove(&handle).ok_or(Error::INVALID_HANDLE)
    }

    pub(crate) fn contains(&self, handle: usize) -> bool {
        self.0.contains_key(&handle)
    }

    /// The handle of the first that fits.
    pub(crate) fn find(&self, fits: impl Fn(&T) -> bool) -> Option<usize> {
        let found = self.0.iter().find(|(_, thing)| fits(thing));
        found.map(|(&handle, _)| handle)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }
}
