//! Streams. Work is done when it is submitted, in the order of the host's calls, which is one of
//! the orders that every program must allow for. Streams therefore differ by name, and by what
//! they capture.

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::handles::Handles;
use crate::state::{Device, Locked};
use crate::work::{Work, perform};

/// Handles of the default streams.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// A stream.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    /// The capture it is part of.
    pub(crate) capture: Option<Captured>,
}

/// A stream's part in a capture.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) capture: usize,
    /// What its next node comes after.
    pub(crate) tail: Vec<usize>,
}

/// A capture that has begun.
pub(crate) struct Capture {
    pub(crate) graph: usize,
    pub(crate) origin: usize,
    pub(crate) invalid: bool,
}

/// Streams and captures.
#[derive(Default)]
pub(crate) struct Streams {
    made: Handles<Stream>,
    legacy: Stream,
    per_thread: Stream,
    pub(crate) captures: Handles<Capture>,
}

impl Streams {
    pub(crate) fn make(&mut self, flags: u32, priority: i32) -> usize {
        self.made.add(Stream {
            flags,
            priority,
            capture: None,
        })
    }

    pub(crate) fn destroy(&mut self, stream: usize) -> Result {
        self.made.remove(stream).map(drop)
    }

    pub(crate) fn get(&self, stream: usize) -> Result<&Stream> {
        match stream {
            0 | LEGACY => Ok(&self.legacy),
            PER_THREAD => Ok(&self.per_thread),
            _ => self.made.get(stream),
        }
    }

    pub(crate) fn get_mut(&mut self, stream: usize) -> Result<&mut Stream> {
        match stream {
            0 | LEGACY => Ok(&mut self.legacy),
            PER_THREAD => Ok(&mut self.per_thread),
            _ => self.made.get_mut(stream),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Stream> {
        self.made.values().chain([&self.legacy, &self.per_thread])
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.made
            .values_mut()
            .chain([&mut self.legacy, &mut self.per_thread])
    }
}

/// Does a piece of work in a stream, or writes it down if the stream is captured.
pub(crate) fn submit(mut locked: Locked, stream: usize, work: Work) -> Result {
    match locked.streams.get(stream)?.capture.is_some() {
        true => locked.note_work(stream, work),
        false => perform(locked, &work),
    }
}

impl Device {
    /// Adds a node to the graph that a stream is captured into.
    fn note_work(&mut self, stream: usize, work: Work) -> Result {
        let part = self.streams.get(stream)?.capture.clone();
        let Captured { capture, tail } = part.ok_or(Error::INVALID_VALUE)?;
        let capture = self.streams.captures.get(capture)?;
        if capture.invalid {
            return Err(Error::CAPTURE_INVALIDATED);
        }
        let node = self.graphs.get_mut(capture.graph)?.add(work, tail)?;
        if let Some(part) = &mut self.streams.get_mut(stream)?.capture {
            part.tail = vec![node];
        }
        Ok(())
    }

    pub(crate) fn begin_capture(
        &mut self,
        stream: usize,
        into: Option<usize>,
        tail: Vec<usize>,
    ) -> Result {
        if matches!(stream, 0 | LEGACY) {
            return Err(Error::CAPTURE_UNSUPPORTED);
        }
        if self.streams.get(stream)?.capture.is_some() {
            return Err(Error::INVALID_VALUE);
        }
        let graph = match into {
            Some(graph) => self.graphs.get(graph).map(|_| graph)?,
            None => self.graphs.add(Graph::default()),
        };
        let capture = self.streams.captures.add(Capture {
            graph,
            origin: stream,
            invalid: false,
        });
        self.streams.get_mut(stream)?.capture = Some(Captured { capture, tail });
        Ok(())
    }

    /// Ends a capture; its graph.
    pub(crate) fn end_capture(&mut self, stream: usize) -> Result<usize> {
        let part = self.streams.get(stream)?.capture.clone();
        let Captured { capture, tail } = part.ok_or(Error::INVALID_VALUE)?;
        if self.streams.captures.get(capture)?.origin != stream {
            return Err(Error::CAPTURE_UNMATCHED);
        }
        let Capture { graph, invalid, .. } = self.streams.captures.remove(capture)?;
        let of_capture = |part: &&Captured| part.capture == capture;
        let parts = self
            .streams
            .all()
            .filter_map(|stream| stream.capture.as_ref());
        let ends: Vec<usize> = parts
            .filter(of_capture)
            .flat_map(|part| part.tail.iter().copied())
            .collect();
        let joined = self.graphs.get(graph)?.before(&tail);
        for stream in self.streams.all_mut() {
            stream.capture.take_if(|part| part.capture == capture);
        }
        if invalid {
            return Err(Error::CAPTURE_INVALIDATED);
        }
        match ends.iter().all(|end| joined.contains(end)) {
            true => Ok(graph),
            false => Err(Error::CAPTURE_UNJOINED),
        }
    }

    /// Whether a stream is captured: a code of the API, the capture and its graph.
    pub(crate) fn capture_state(&self, stream: usize) -> Result<(i32, usize, usize)> {
        let Some(part) = &self.streams.get(stream)?.capture else {
            return Ok((0, 0, 0));
        };
        let capture = self.streams.captures.get(part.capture)?;
        let state = if capture.invalid { 2 } else { 1 };
        Ok((state, part.capture, capture.graph))
    }

    /// Changes what the next node of a captured stream comes after, or adds to it.
    pub(crate) fn set_tail(&mut self, stream: usize, nodes: &[usize], add: bool) -> Result {
        let part = self.streams.get_mut(stream)?.capture.as_mut();
        let tail = &mut part.ok_or(Error::INVALID_VALUE)?.tail;
        if !add {
            tail.clear();
        }
        tail.extend(nodes);
        Ok(())
    }

    /// Records an event in a stream.
    pub(crate) fn record_in(&mut self, stream: usize, event: usize) -> Result {
        match self.streams.get(stream)?.capture.clone() {
            None => self.record(event),
            Some(part) => {
                self.events.get_mut(event)?.captured = Some((part.capture, part.tail));
                Ok(())
            }
        }
    }

    /// Lets a stream wait for an event: what is done is done, but captures are joined.
    pub(crate) fn wait_in(&mut self, stream: usize, event: usize) -> Result {
        let captured = self.events.get(event)?.captured.clone();
        let captures = &self.streams.captures;
        let captured = captured.filter(|(capture, _)| captures.contains(*capture));
        let part = &mut self.streams.get_mut(stream)?.capture;
        match (captured, part) {
            (None, _) => Ok(()),
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

    /// Everything submitted is done; waiting for a capture makes no sense and ruins it.
    pub(crate) fn wait_for_stream(&mut self, stream: usize) -> Result {
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
