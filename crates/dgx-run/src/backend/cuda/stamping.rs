//! Calls a contender with and without stamps in its kernels: the recorded stamps, and the time that
//! stamping costs.

use super::prepared::PreparedCall;
use super::timer::Timer;
use super::{CudaBackend, CudaError};
use crate::backend::{CallInput, Job, RunFailure};
use crate::plan::STAMPS;
use dgx_core::domain::Micros;

/// The results of some calls.
#[derive(Clone, Debug)]
pub struct StampedCalls {
    /// The stamps of the last call.
    pub stamps: Vec<u8>,
    /// The time of the last call.
    pub last: Micros,
    /// The times of all calls with stamps, and of those without.
    pub stamped: Vec<Micros>,
    pub plain: Vec<Micros>,
}

impl CudaBackend {
    /// Calls both in turn, each time as in a sweep: memory prepared, L2 flushed, events around a
    /// graph. The first turn does not count.
    pub fn stamped(
        &mut self,
        plain: &Job<'_>,
        stamped: &Job<'_>,
        data: &CallInput<'_>,
        times: usize,
    ) -> Result<StampedCalls, RunFailure> {
        let both = [
            self.prepare(plain, data.operands)?,
            self.prepare(stamped, data.operands)?,
        ];
        let set = self.set(data)?;
        let mut timer = Timer::new(&self.device, &self.scrub, true)?;
        let graphs = [both[0].capture()?, both[1].capture()?];
        let program = |prepared: &PreparedCall| prepared.call_buffers().program(&set);
        let programs = [program(&both[0])?, program(&both[1])?];
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..=times {
            for which in 0..2 {
                programs[which].lay(&self.tools, data.call_seed, false)?;
                took[which].push(Micros(timer.trial(&graphs[which])?));
            }
        }
        let stamps = both[1].call_buffers().scratch(STAMPS);
        let stamps = stamps.map_err(CudaError::crashed)?;
        let [plain, stamped] = took.map(|all| all[1..].to_vec());
        Ok(StampedCalls {
            stamps,
            last: stamped.last().copied().unwrap_or(Micros(0.0)),
            stamped,
            plain,
        })
    }
}
