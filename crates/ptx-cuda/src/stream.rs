//! Streams. Work is done when it is submitted, in the order of the host's calls, which is one of
//! the orders every program must allow for. So streams differ only in name and in what they
//! capture.

use std::collections::HashMap;

use crate::call::{has_own_stream, thread};
use crate::capture::{Capture, Captured};
use crate::error::{Error, Result};
use crate::handles::Handles;
use crate::state::{Device, Locked};
use crate::work::{Work, perform};

/// Handles of the default streams.
pub(crate) const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// The highest priority; the lowest is 0.
pub(crate) const HIGHEST: i32 = -5;

/// Flag of a stream that does not wait for the legacy one.
const NON_BLOCKING: u32 = 1;

/// Flag of an event that a graph records, or waits for.
const EXTERNAL: u32 = 1;

/// The stream that a handle means in this call.
pub(crate) fn resolve(stream: usize) -> usize {
    match stream {
        0 if has_own_stream() => PER_THREAD,
        0 => LEGACY,
        _ => stream,
    }
}

/// A stream.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    /// The capture it is part of.
    pub(crate) capture: Option<Captured>,
}

/// Streams and captures.
#[derive(Default)]
pub(crate) struct Streams {
    made: Handles<Stream>,
    legacy: Stream,
    /// By thread, for those that have captured theirs.
    per_thread: HashMap<u64, Stream>,
    pub(crate) captures: Handles<Capture>,
}

impl Streams {
    pub(crate) fn make(&mut self, flags: u32, priority: i32) -> Result<usize> {
        if flags & !NON_BLOCKING != 0 {
            return Err(Error::INVALID_VALUE);
        }
        Ok(self.made.add(Stream {
            flags,
            priority: priority.clamp(HIGHEST, 0),
            capture: None,
        }))
    }

    /// Destroys a stream, and the capture that began in it.
    pub(crate) fn destroy(&mut self, stream: usize) -> Result {
        self.made.remove(stream)?;
        for capture in self.captures.find_all(|capture| capture.origin == stream) {
            self.captures.remove(capture)?;
        }
        self.leave_captures();
        Ok(())
    }

    pub(crate) fn remove_of(&mut self, context: usize) {
        self.made.remove_of(context);
        self.captures.remove_of(context);
        self.leave_captures();
    }

    /// Removes streams from captures that no longer exist.
    pub(crate) fn leave_captures(&mut self) {
        let captures = &self.captures;
        let streams = self.made.values_mut().chain(self.per_thread.values_mut());
        for stream in streams {
            let gone = |part: &mut Captured| !captures.contains(part.capture);
            stream.capture.take_if(gone);
        }
    }

    pub(crate) fn get(&self, stream: usize) -> Result<&Stream> {
        match resolve(stream) {
            LEGACY => Ok(&self.legacy),
            // A per-thread stream that was never captured is like the legacy one, which never is.
            PER_THREAD => Ok(self.per_thread.get(&thread()).unwrap_or(&self.legacy)),
            _ => self.made.get(stream),
        }
    }

    pub(crate) fn get_mut(&mut self, stream: usize) -> Result<&mut Stream> {
        match resolve(stream) {
            LEGACY => Ok(&mut self.legacy),
            PER_THREAD => Ok(self.per_thread.entry(thread()).or_default()),
            _ => self.made.get_mut(stream),
        }
    }

    /// Sets an attribute by its number: windows of L2, policies and domains are only hints.
    pub(crate) fn set_attribute(&mut self, stream: usize, attribute: i32, value: i32) -> Result {
        let stream = self.get_mut(stream)?;
        match attribute {
            1 | 3 | 9 | 10 => {}
            8 => stream.priority = value.clamp(HIGHEST, 0),
            _ => return Err(Error::INVALID_VALUE),
        }
        Ok(())
    }

    /// Copies the one attribute that is stored from another stream.
    pub(crate) fn copy_attributes(&mut self, to: usize, from: usize) -> Result {
        let priority = self.get(from)?.priority;
        self.get_mut(to)?.priority = priority;
        Ok(())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Stream> {
        self.made.values().chain(self.per_thread.values())
    }

    /// Invalidates captures, which then fail when they are ended.
    pub(crate) fn invalidate(&mut self, captures: &[usize]) {
        for &capture in captures {
            if let Ok(capture) = self.captures.get_mut(capture) {
                capture.invalid = true;
            }
        }
    }

    /// Fails for the legacy stream while a stream that waits for it is captured.
    fn check_use(&mut self, stream: usize) -> Result {
        self.get(stream)?;
        if resolve(stream) != LEGACY || self.captures.is_empty() {
            return Ok(());
        }
        let blocking = |stream: &&Stream| stream.flags & NON_BLOCKING == 0;
        let parts = self.all().filter(blocking);
        let parts = parts.filter_map(|stream| stream.capture.as_ref());
        let captures: Vec<usize> = parts.map(|part| part.capture).collect();
        self.invalidate(&captures);
        match captures.is_empty() {
            true => Ok(()),
            false => Err(Error::CAPTURE_IMPLICIT),
        }
    }
}

/// Executes work in a stream, or records it if the stream is captured.
pub(crate) fn submit(mut locked: Locked, stream: usize, work: Work) -> Result {
    locked.streams.check_use(stream)?;
    match locked.streams.get(stream)?.capture.is_some() {
        true => locked.note_work(stream, work),
        false => perform(locked, &work),
    }
}

impl Device {
    /// Records an event in a stream. An event external to a capture is recorded by the graph.
    pub(crate) fn record_in(&mut self, stream: usize, event: usize, flags: u32) -> Result {
        self.streams.check_use(stream)?;
        self.events.get(event)?;
        match (self.streams.get(stream)?.capture.clone(), flags) {
            (None, 0) => self.record(event),
            (Some(part), 0) => {
                self.events.get_mut(event)?.captured = Some((part.capture, part.tail));
                Ok(())
            }
            (Some(_), EXTERNAL) => self.note_work(stream, Work::Record(event)),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// Records the events that a launch names, if any.
    pub(crate) fn record_all(&mut self, stream: usize, events: &[usize]) -> Result {
        (events.iter()).try_for_each(|&event| self.record_in(stream, event, 0))
    }

    /// Makes a stream wait for an event: all work is already done, but captures are joined.
    pub(crate) fn wait_in(&mut self, stream: usize, event: usize, flags: u32) -> Result {
        self.streams.check_use(stream)?;
        let captured = self.events.get(event)?.captured.clone();
        match (self.streams.get(stream)?.capture.is_some(), flags) {
            (_, 0) => {}
            (true, EXTERNAL) => return self.note_work(stream, Work::Wait),
            _ => return Err(Error::INVALID_VALUE),
        }
        let is_recorded = self.events.get(event)?.is_recorded();
        let captures = &self.streams.captures;
        let captured = captured.filter(|(capture, _)| captures.contains(*capture));
        let part = &mut self.streams.get_mut(stream)?.capture;
        match (captured, part) {
            // A graph cannot wait for unknown work.
            (None, Some(part)) if is_recorded => {
                let capture = part.capture;
                self.streams.invalidate(&[capture]);
                Err(Error::CAPTURE_ISOLATION)
            }
            (None, _) => Ok(()),
            // The legacy stream is never captured.
            (Some(_), None) if resolve(stream) == LEGACY => Err(Error::CAPTURE_IMPLICIT),
            (Some((capture, tail)), part @ None) => {
                *part = Some(Captured { capture, tail });
                Ok(())
            }
            (Some((capture, _)), Some(part)) if part.capture != capture => {
                Err(Error::CAPTURE_MERGE)
            }
            (Some((_, tail)), Some(part)) => {
                part.tail.extend(tail);
                part.tail.sort_unstable();
                part.tail.dedup();
                Ok(())
            }
        }
    }

    /// All submitted work is done; waiting for a capture makes no sense and invalidates it.
    pub(crate) fn wait_for_stream(&mut self, stream: usize) -> Result {
        self.streams.check_use(stream)?;
        match &self.streams.get(stream)?.capture {
            None => Ok(()),
            Some(part) => {
                let capture = part.capture;
                self.streams.captures.get_mut(capture)?.invalid = true;
                Err(Error::CAPTURE_UNSUPPORTED)
            }
        }
    }
}
