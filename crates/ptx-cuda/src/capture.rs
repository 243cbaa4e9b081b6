//! Captures: work submitted to streams becomes nodes of a graph, and calls that a capture cannot
//! record are refused.

use std::cell::Cell;
use std::ffi::c_int;

use crate::c::{offer, put};
use crate::call::thread;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::state::{Device, Locked};
use crate::stream::{LEGACY, resolve};
use crate::work::Work;

/// Modes of captures and threads.
const GLOBAL: i32 = 0;
const RELAXED: i32 = 2;

thread_local! {
    /// The mode that restricts this thread while streams are captured.
    static MODE: Cell<i32> = const { Cell::new(GLOBAL) };
}

/// Changes the mode of this thread; returns the previous one.
pub(crate) fn exchange_mode(mode: i32) -> Result<i32> {
    match mode {
        GLOBAL..=RELAXED => Ok(MODE.replace(mode)),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// A stream's part in a capture.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) capture: usize,
    /// The nodes that its next node depends on.
    pub(crate) tail: Vec<usize>,
}

/// A capture that has begun.
pub(crate) struct Capture {
    pub(crate) graph: usize,
    /// Whether the graph was made for this capture.
    is_new: bool,
    pub(crate) origin: usize,
    pub(crate) invalid: bool,
    mode: i32,
    /// The thread that began it.
    thread: u64,
}

/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`
const CAPTURED: c_int = 1;

/// Answers about a capture; a program may omit any of them.
pub(crate) struct Answers {
    pub id: *mut u64,
    pub graph: *mut usize,
    pub after: *mut *const usize,
    pub count: *mut usize,
}

/// Returns the answers about a stream's capture, and whether there is one.
///
/// # Safety
/// Each answer must be null or have room.
pub(crate) unsafe fn capture_info(
    device: Locked,
    stream: usize,
    status: *mut c_int,
    to: Answers,
) -> Result<bool> {
    let (state, capture, graph) = device.capture_state(stream)?;
    // SAFETY: by this function's contract.
    unsafe {
        put(status, state)?;
        if state == CAPTURED {
            let part = device.streams.get(stream)?.capture.as_ref();
            let tail = part.map_or(&[][..], |part| &part.tail);
            offer(to.id, capture as u64);
            offer(to.graph, graph);
            offer(to.after, tail.as_ptr());
            offer(to.count, tail.len());
        }
    }
    Ok(state == CAPTURED)
}

impl Device {
    /// Adds a node to the graph that a stream is captured into.
    pub(crate) fn note_work(&mut self, stream: usize, work: Work) -> Result {
        let part = self.streams.get(stream)?.capture.clone();
        let Captured { capture, tail } = part.ok_or(Error::INVALID_VALUE)?;
        let capture = self.streams.captures.get(capture)?;
        if capture.invalid {
            return Err(Error::CAPTURE_INVALIDATED);
        }
        if let Work::Kernel(call) = &work {
            call.check()?;
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
        mode: i32,
        into: Option<usize>,
        tail: Vec<usize>,
    ) -> Result {
        if resolve(stream) == LEGACY {
            return Err(Error::CAPTURE_UNSUPPORTED);
        }
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(Error::INVALID_VALUE);
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
            is_new: into.is_none(),
            origin: resolve(stream),
            invalid: false,
            mode,
            thread: thread(),
        });
        self.streams.get_mut(stream)?.capture = Some(Captured { capture, tail });
        Ok(())
    }

    /// Ends a capture; returns its graph.
    pub(crate) fn end_capture(&mut self, stream: usize) -> Result<usize> {
        let part = self.streams.get(stream)?.capture.clone();
        let Captured { capture, tail } = part.ok_or(Error::ILLEGAL_STATE)?;
        let begun = self.streams.captures.get(capture)?;
        if begun.origin != resolve(stream) {
            return Err(Error::CAPTURE_UNMATCHED);
        }
        if begun.mode != RELAXED && begun.thread != thread() {
            return Err(Error::WRONG_THREAD);
        }
        let begun = self.streams.captures.remove(capture)?;
        let of_capture = |part: &&Captured| part.capture == capture;
        let parts = self
            .streams
            .all()
            .filter_map(|stream| stream.capture.as_ref());
        let ends: Vec<usize> = parts
            .filter(of_capture)
            .flat_map(|part| part.tail.iter().copied())
            .collect();
        let joined = self.graphs.get(begun.graph)?.before(&tail);
        self.streams.leave_captures();
        let error = match ends.iter().all(|end| joined.contains(end)) {
            _ if begun.invalid => Error::CAPTURE_INVALIDATED,
            true => return Ok(begun.graph),
            false => Error::CAPTURE_UNJOINED,
        };
        if begun.is_new {
            self.destroy_graph(begun.graph)?;
        }
        Err(error)
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

    /// Changes the dependencies of the next node of a captured stream, or adds to them.
    pub(crate) fn set_tail(&mut self, stream: usize, nodes: &[usize], add: bool) -> Result {
        let part = self.streams.get_mut(stream)?.capture.as_mut();
        let tail = &mut part.ok_or(Error::INVALID_VALUE)?.tail;
        if !add {
            tail.clear();
        }
        tail.extend(nodes);
        Ok(())
    }

    /// Waits for everything, which a capture does not allow in any mode.
    pub(crate) fn wait_for_all(&mut self) -> Result {
        let captures = self.streams.captures.find_all(|_| true);
        self.refuse_in(&captures)
    }

    /// Fails for a call that captures cannot record, unless their modes and that of the thread
    /// allow it.
    pub(crate) fn check_unseen(&mut self) -> Result {
        let (own, mode) = (thread(), MODE.get());
        let forbids = |capture: &Capture| match (mode, capture.thread == own) {
            (RELAXED, _) => false,
            (_, true) => capture.mode != RELAXED,
            (_, false) => mode == GLOBAL && capture.mode == GLOBAL,
        };
        let captures = self.streams.captures.find_all(forbids);
        self.refuse_in(&captures)
    }

    fn refuse_in(&mut self, captures: &[usize]) -> Result {
        self.streams.invalidate(captures);
        match captures.is_empty() {
            true => Ok(()),
            false => Err(Error::CAPTURE_UNSUPPORTED),
        }
    }
}
