use std::rc::Rc;
use std::time::{Duration, Instant};

use super::driver::{CudaError, DeviceMemory, Event, Flag, Graph, LaunchConfig, Stream, cu};
use super::prepared::PreparedCall;
use super::scrub::Scrub;
use super::timed::TimedCall;
use super::tools::{Tools, launch};
use crate::backend::{CallData, Observation, RunFailure, Timed, proven};
use crate::validate::Passed;
use dgx_core::domain::{Device, KernelTime, Micros};

/// A timed call that takes longer will never end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A cycle count and a time for each SM; their numbers may have gaps, so there is room for more
/// than any device has. Keep in step with tools.cu.
const STAMP_BYTES: u64 = 1024 * 16;
/// After the stamps: the lowest changed address and the count of wrong elements.
const FINDINGS: u64 = 2 * STAMP_BYTES;

/// Times calls one at a time on an otherwise idle stream: memory is prepared, the remains of
/// launches in SMs are overwritten, L2 is flushed, the stream is held while everything is queued,
/// events stand around the graph and clock stamps around the events, and every output is judged
/// before the next call.
pub(super) struct Timer {
    stream: Rc<Stream>,
    tools: Rc<Tools>,
    scrub: Rc<Scrub>,
    flag: Flag,
    ticket: u32,
    start: Event,
    stop: Event,
    /// Written before each sample; twice as large as the L2.
    flush: Option<DeviceMemory>,
    /// Two sets of stamps and the findings.
    stamps: DeviceMemory,
    sms: u32,
}

impl Timer {
    pub(super) fn new(
        device: &Device,
        scrub: &Rc<Scrub>,
        cold_l2: bool,
    ) -> Result<Self, CudaError> {
        let tools = Rc::clone(&scrub.tools);
        let flush = match cold_l2 {
            true => Some(DeviceMemory::new((2 * device.limits.l2.0).max(64 << 20))?),
            false => None,
        };
        Ok(Self {
            stream: Rc::clone(&tools.stream),
            tools,
            scrub: Rc::clone(scrub),
            flag: Flag::new()?,
            ticket: 0,
            start: Event::new()?,
            stop: Event::new()?,
            flush,
            stamps: DeviceMemory::new(FINDINGS + 16)?,
            sms: device.limits.sms,
        })
    }

    /// Times one call of the entry that the proof is for, and consumes the proof. Errors say
    /// whether the device survived.
    pub(super) fn time(
        &mut self,
        passed: Passed,
        entries: &[TimedCall],
        data: CallData,
    ) -> Result<Timed, RunFailure> {
        let entry = proven(entries, TimedCall::subject, passed.subject())?;
        let queued = self.queue(entry, data);
        // Also after a refusal: the kernel that holds the stream must end.
        self.flag.set(self.ticket);
        queued?;
        self.wait()?;
        let micros = self
            .stop
            .micros_since(&self.start)
            .map_err(CudaError::crashed)?;
        let (clock_mhz, suspect) = self.read_back().map_err(CudaError::crashed)?;
        self.scrub.verify(entry.local_bytes())?;
        Ok(Timed {
            micros: Micros(micros),
            clock_mhz,
            spent: passed.spend(suspect),
        })
    }

    /// Calls an entry once without timing, and returns whether the device suspects an error. Values
    /// that earlier calls left in the module's variables stay there.
    pub(super) fn rehearse(&self, entry: &TimedCall, data: CallData) -> Result<bool, RunFailure> {
        self.lay(entry, data, false)?;
        self.stream
            .fill(self.stamps.address, 0, self.stamps.bytes)?;
        entry.graph().launch(&self.stream)?;
        self.stop.record(&self.stream)?;
        self.look(entry, data)?;
        self.wait()?;
        let (_, suspect) = self.read_back().map_err(CudaError::crashed)?;
        self.scrub.verify(entry.local_bytes())?;
        Ok(suspect)
    }

    /// Calls an entry once with an event between its kernels.
    pub(super) fn dissect(
        &mut self,
        entry: &TimedCall,
        data: CallData,
    ) -> Result<Vec<KernelTime>, RunFailure> {
        let Some(prepared) = entry.prepared() else {
            return Ok(Vec::new());
        };
        let events = prepared.kernels().map(|_| Event::new());
        let events = events.collect::<Result<Vec<_>, _>>()?;
        let queued = self.queue_apart(entry, prepared, &events, data);
        // Also after a refusal: the kernel that holds the stream must end.
        self.flag.set(self.ticket);
        queued?;
        self.wait()?;
        let ends = events.iter().skip(1).chain([&self.stop]);
        let kernels = prepared.kernels().zip(&events).zip(ends);
        let times = kernels.map(|((name, began), ended)| {
            Ok(KernelTime {
                name: name.to_owned(),
                start: Micros(began.micros_since(&events[0])?),
                micros: Micros(ended.micros_since(began)?),
            })
        });
        times.collect::<Result<_, _>>().map_err(CudaError::crashed)
    }

    /// Reads back memory after the last call.
    pub(super) fn observe(
        &self,
        entry: &TimedCall,
        data: CallData,
    ) -> Result<Observation, RunFailure> {
        entry.observe(&self.tools, data).map_err(CudaError::crashed)
    }

    /// Lets L2 give up what calls marked to stay, and queues writing the data to their one place and
    /// overwriting what launches left elsewhere.
    fn lay(&self, entry: &TimedCall, data: CallData, forget: bool) -> Result<(), CudaError> {
        // Before the data, not after them: a call soon behind it takes 0.8 µs longer.
        cu!(cuCtxResetPersistingL2Cache())?;
        entry.lay(&self.tools, data, forget)?;
        self.scrub.queue(data.call_seed, entry.local_bytes())
    }

    /// Times the harness's own work like a call.
    pub(super) fn trial(&mut self, graph: &Graph) -> Result<f64, RunFailure> {
        cu!(cuCtxResetPersistingL2Cache())?;
        let queued = self.queue_timed(graph);
        self.flag.set(self.ticket);
        queued?;
        self.wait()?;
        let micros = self.stop.micros_since(&self.start);
        micros.map_err(CudaError::crashed)
    }

    /// The same, with the SM clock around it.
    pub(super) fn clocked_trial(
        &mut self,
        graph: &Graph,
    ) -> Result<(f64, Option<f64>), RunFailure> {
        let micros = self.trial(graph)?;
        let (clock_mhz, _) = self.read_back().map_err(CudaError::crashed)?;
        Ok((micros, clock_mhz))
    }

    fn queue(&mut self, entry: &TimedCall, data: CallData) -> Result<(), RunFailure> {
        self.lay(entry, data, true)?;
        self.queue_timed(entry.graph())?;
        self.look(entry, data)?;
        Ok(())
    }

    fn queue_apart(
        &mut self,
        entry: &TimedCall,
        prepared: &PreparedCall,
        events: &[Event],
        data: CallData,
    ) -> Result<(), RunFailure> {
        self.lay(entry, data, true)?;
        self.hold()?;
        prepared.queue_apart(events)?;
        self.stop.record(&self.stream)?;
        Ok(())
    }

    fn queue_timed(&mut self, graph: &Graph) -> Result<(), CudaError> {
        self.hold()?;
        self.stamp_at(0)?;
        self.start.record(&self.stream)?;
        graph.launch(&self.stream)?;
        self.stop.record(&self.stream)?;
        self.stamp_at(1)
    }

    /// Flushes L2, and makes the stream wait until the flag is set, so that work queued next runs
    /// without waiting for the host.
    fn hold(&mut self) -> Result<(), CudaError> {
        self.stream
            .fill(self.stamps.address, 0, self.stamps.bytes)?;
        if let Some(flush) = &self.flush {
            let byte = self.ticket as u8;
            self.stream.fill(flush.address, byte, flush.bytes)?;
        }
        self.ticket = self.ticket.wrapping_add(1);
        let one = LaunchConfig::flat(1, 1);
        let (flag, ticket) = (self.flag.device, self.ticket);
        launch!(self.tools.hold, &self.stream, &one, [flag, ticket])
    }

    fn look(&self, entry: &TimedCall, data: CallData) -> Result<(), CudaError> {
        let findings = self.stamps.address + FINDINGS;
        entry.look(&self.tools, data, findings)
    }

    fn stamp_at(&self, place: u64) -> Result<(), CudaError> {
        let address = self.stamps.address + place * STAMP_BYTES;
        let launch = LaunchConfig::flat(self.sms, 32);
        launch!(self.tools.stamp, &self.stream, &launch, [address])
    }

    fn wait(&self) -> Result<(), RunFailure> {
        let began = Instant::now();
        while !self.stop.reached().map_err(CudaError::crashed)? {
            if began.elapsed() > PATIENCE {
                return Err(RunFailure::hung(format!(
                    "a call did not end within {} s",
                    PATIENCE.as_secs()
                )));
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// The clock of the sample, and whether a finding was reported.
    fn read_back(&self) -> Result<(Option<f64>, bool), CudaError> {
        let mut bytes = vec![0; self.stamps.bytes as usize];
        self.stream.download(&mut bytes, self.stamps.address)?;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|w| u64::from_le_bytes(w.try_into().unwrap_or_default()))
            .collect();
        let (stamps, findings) = words.split_at(FINDINGS as usize / 8);
        Ok((clock(stamps), findings.iter().any(|word| *word != 0)))
    }
}

/// Median over the SMs of cycles passed per time passed, in MHz.
fn clock(stamps: &[u64]) -> Option<f64> {
    let (before, after) = stamps.split_at(stamps.len() / 2);
    let mut clocks: Vec<f64> = before
        .chunks_exact(2)
        .zip(after.chunks_exact(2))
        .filter(|(b, a)| b[1] != 0 && a[1] > b[1] && a[0] > b[0])
        .map(|(b, a)| (a[0] - b[0]) as f64 * 1e3 / (a[1] - b[1]) as f64)
        .collect();
    clocks.sort_by(f64::total_cmp);
    clocks.get(clocks.len() / 2).copied()
}
