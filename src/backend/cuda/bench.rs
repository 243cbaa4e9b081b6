use std::rc::Rc;
use std::time::{Duration, Instant};

use super::cublas::Yardstick;
use super::driver::{
    CudaError, DeviceMemory, Event, Flag, Function, Graph, Launch, Module, Stream, cu,
};
use super::prepared::Prepared;
use crate::backend::{Observation, RunFailure};
use crate::record::schema::Device;

/// A timed call that has not ended by now never will.
const PATIENCE: Duration = Duration::from_secs(20);

/// A cycle count and a time for each SM; their numbers may have gaps, so there
/// is room for more than any device has. Keep in step with tools.cu.
const STAMP_BYTES: u64 = 1024 * 16;

/// Something to time: a contender's call, or the yardstick, as a graph.
#[derive(Debug)]
pub enum Entry {
    Contender(Box<Prepared>, Graph),
    Yardstick(Box<Yardstick>, Graph),
}

impl Entry {
    pub fn contender(prepared: Prepared) -> Result<Self, RunFailure> {
        let graph = prepared.capture()?;
        Ok(Self::Contender(Box::new(prepared), graph))
    }

    pub fn yardstick(yardstick: Yardstick) -> Result<Self, RunFailure> {
        let graph = yardstick.capture()?;
        Ok(Self::Yardstick(Box::new(yardstick), graph))
    }

    fn graph(&self) -> &Graph {
        match self {
            Self::Contender(_, graph) | Self::Yardstick(_, graph) => graph,
        }
    }

    fn poison(&self) -> Result<(), CudaError> {
        match self {
            Self::Contender(prepared, _) => prepared.poison(),
            Self::Yardstick(yardstick, _) => yardstick.poison(),
        }
    }
}

/// One timed call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    pub micros: f64,
    /// Mean SM clock over the call, where it could be read.
    pub clock_mhz: Option<f64>,
}

/// Times calls one at a time on an otherwise idle stream: output poisoned, L2
/// flushed, the stream held while everything is queued, events around the
/// graph, clock stamps around the events.
pub struct Bench {
    stream: Rc<Stream>,
    tools: Rc<Module>,
    hold: Function,
    stamp: Function,
    flag: Flag,
    ticket: u32,
    start: Event,
    stop: Event,
    /// Written before each sample; as large as twice the L2.
    flush: Option<DeviceMemory>,
    stamps: DeviceMemory,
    sms: u32,
}

impl Bench {
    pub fn new(
        device: &Device,
        tools: &Rc<Module>,
        stream: Rc<Stream>,
        cold_l2: bool,
    ) -> Result<Self, CudaError> {
        let flush = match cold_l2 {
            true => Some(DeviceMemory::new((2 * device.l2.0).max(64 << 20))?),
            false => None,
        };
        Ok(Self {
            hold: tools.function("dgx_hold")?,
            stamp: tools.function("dgx_stamp")?,
            tools: Rc::clone(tools),
            flag: Flag::new()?,
            ticket: 0,
            start: Event::new()?,
            stop: Event::new()?,
            flush,
            stamps: DeviceMemory::new(STAMP_BYTES * 2)?,
            sms: device.sms,
            stream,
        })
    }

    /// Times one call. Errors say whether the device survived.
    pub fn sample(&mut self, entry: &Entry) -> Result<Timed, RunFailure> {
        self.queue(entry)?;
        self.flag.set(self.ticket);
        self.wait()?;
        let micros = self
            .stop
            .micros_since(&self.start)
            .map_err(CudaError::crashed)?;
        let clock_mhz = self.clock().map_err(CudaError::crashed)?;
        Ok(Timed { micros, clock_mhz })
    }

    /// Reads back what the last sample of this entry left in memory.
    pub fn observe(&self, entry: &Entry) -> Result<Observation, RunFailure> {
        match entry {
            Entry::Contender(prepared, _) => prepared.observe(&self.tools),
            Entry::Yardstick(yardstick, _) => yardstick.observe(),
        }
        .map_err(CudaError::crashed)
    }

    fn queue(&mut self, entry: &Entry) -> Result<(), RunFailure> {
        entry.poison()?;
        cu!(cuCtxResetPersistingL2Cache())?;
        self.stream
            .fill(self.stamps.address, 0, self.stamps.bytes)?;
        if let Some(flush) = &self.flush {
            let byte = self.ticket as u8;
            self.stream.fill(flush.address, byte, flush.bytes)?;
        }
        self.ticket = self.ticket.wrapping_add(1);
        let (mut flag, mut ticket) = (self.flag.device, self.ticket);
        let mut parameters = [(&raw mut flag).cast(), (&raw mut ticket).cast()];
        self.hold
            .launch(&self.stream, &Launch::flat(1, 1), &mut parameters)?;
        self.stamp_at(0)?;
        self.start.record(&self.stream)?;
        entry.graph().launch(&self.stream)?;
        self.stop.record(&self.stream)?;
        self.stamp_at(1)?;
        Ok(())
    }

    fn stamp_at(&self, place: u64) -> Result<(), CudaError> {
        let mut address = self.stamps.address + place * STAMP_BYTES;
        let launch = Launch::flat(self.sms, 32);
        self.stamp
            .launch(&self.stream, &launch, &mut [(&raw mut address).cast()])
    }

    fn wait(&self) -> Result<(), RunFailure> {
        let began = Instant::now();
        while !self.stop.reached().map_err(CudaError::crashed)? {
            if began.elapsed() > PATIENCE {
                return Err(RunFailure::hung(format!(
                    "a timed call did not end within {} s",
                    PATIENCE.as_secs()
                )));
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Median over the SMs of cycles passed per time passed.
    fn clock(&self) -> Result<Option<f64>, CudaError> {
        let mut bytes = vec![0; self.stamps.bytes as usize];
        self.stream.download(&mut bytes, self.stamps.address)?;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|w| u64::from_le_bytes(w.try_into().unwrap_or_default()))
            .collect();
        let (before, after) = words.split_at(words.len() / 2);
        let mut clocks: Vec<f64> = before
            .chunks_exact(2)
            .zip(after.chunks_exact(2))
            .filter(|(b, a)| b[1] != 0 && a[1] > b[1] && a[0] > b[0])
            .map(|(b, a)| (a[0] - b[0]) as f64 * 1e3 / (a[1] - b[1]) as f64)
            .collect();
        clocks.sort_by(f64::total_cmp);
        Ok(clocks.get(clocks.len() / 2).copied())
    }
}
