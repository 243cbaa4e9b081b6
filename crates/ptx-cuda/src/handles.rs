//! Numbers that programs hold in place of pointers to their objects.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::context::current;
use crate::error::{Error, Result};

/// Numbers are never reused, for any kind of object, so that stale ones are noticed.
static NEXT: AtomicUsize = AtomicUsize::new(0x1000);

/// A number that no other handle has. It is a multiple of 16, as a pointer would be.
pub(crate) fn fresh() -> usize {
    NEXT.fetch_add(16, Relaxed)
}

/// Objects of one kind by their handles, each with the context it was made in.
pub(crate) struct Handles<T>(HashMap<usize, (usize, T)>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Handles<T> {
    pub(crate) fn add(&mut self, thing: T) -> usize {
        let handle = fresh();
        self.0.insert(handle, (current(), thing));
        handle
    }

    pub(crate) fn get(&self, handle: usize) -> Result<&T> {
        let found = self.0.get(&handle).map(|(_, thing)| thing);
        found.ok_or(Error::INVALID_HANDLE)
    }

    pub(crate) fn get_mut(&mut self, handle: usize) -> Result<&mut T> {
        let found = self.0.get_mut(&handle).map(|(_, thing)| thing);
        found.ok_or(Error::INVALID_HANDLE)
    }

    pub(crate) fn remove(&mut self, handle: usize) -> Result<T> {
        let found = self.0.remove(&handle).map(|(_, thing)| thing);
        found.ok_or(Error::INVALID_HANDLE)
    }

    /// The objects made in a context.
    pub(crate) fn of(&self, context: usize) -> Vec<usize> {
        let of = self
            .0
            .iter()
            .filter(|(_, (made_in, _))| *made_in == context);
        of.map(|(&handle, _)| handle).collect()
    }

    pub(crate) fn remove_of(&mut self, context: usize) {
        self.0.retain(|_, (made_in, _)| *made_in != context);
    }

    pub(crate) fn contains(&self, handle: usize) -> bool {
        self.0.contains_key(&handle)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The handle of the first that fits.
    pub(crate) fn find(&self, fits: impl Fn(&T) -> bool) -> Option<usize> {
        let found = self.0.iter().find(|(_, (_, thing))| fits(thing));
        found.map(|(&handle, _)| handle)
    }

    /// The handles of all that fit.
    pub(crate) fn find_all(&self, fits: impl Fn(&T) -> bool) -> Vec<usize> {
        let found = self.0.iter().filter(|(_, (_, thing))| fits(thing));
        found.map(|(&handle, _)| handle).collect()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values().map(|(_, thing)| thing)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut().map(|(_, thing)| thing)
    }
}
