//! Events: points in time between pieces of work.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::state::Device;

/// Flags: the host sleeps while it waits; no clock; for several processes.
const BLOCKING: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

/// An event.
#[derive(Default)]
pub(crate) struct Event {
    flags: u32,
    /// When it was recorded last.
    at: Option<Instant>,
    /// The capture it was last recorded in, and the nodes it stands for there.
    pub(crate) captured: Option<(usize, Vec<usize>)>,
}

impl Event {
    /// Whether it was recorded outside captures.
    pub(crate) fn is_recorded(&self) -> bool {
        self.at.is_some()
    }
}

impl Device {
    pub(crate) fn make_event(&mut self, flags: u32) -> Result<usize> {
        // An event for several processes has no clock.
        let is_known = flags & !(BLOCKING | DISABLE_TIMING | INTERPROCESS) == 0;
        if !is_known || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(self.events.add(Event {
            flags,
            ..Event::default()
        }))
    }

    /// All work before it is already done.
    pub(crate) fn record(&mut self, event: usize) -> Result {
        let event = self.events.get_mut(event)?;
        event.at = Some(Instant::now());
        event.captured = None;
        Ok(())
    }

    /// Fails for an event that was recorded in a capture.
    pub(crate) fn check_event(&mut self, event: usize) -> Result {
        match self.events.get(event)?.captured {
            Some(_) => Err(Error::CAPTURED_EVENT),
            None => self.check_unseen(),
        }
    }

    /// Milliseconds between two events, in the host's time: emulation takes longer than the device
    /// would.
    pub(crate) fn elapsed(&self, from: usize, to: usize) -> Result<f32> {
        let (from, to) = (self.events.get(from)?, self.events.get(to)?);
        if (from.flags | to.flags) & DISABLE_TIMING != 0 {
            return Err(Error::INVALID_HANDLE);
        }
        let (Some(from), Some(to)) = (from.at, to.at) else {
            return Err(Error::INVALID_HANDLE);
        };
        let span = to.saturating_duration_since(from).as_secs_f32()
            - from.saturating_duration_since(to).as_secs_f32();
        Ok(span * 1e3)
    }
}
