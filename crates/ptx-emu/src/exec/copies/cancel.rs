//! `clusterlaunchcontrol.try_cancel`: taking over a cluster that has not been launched.
//!
//! Which cluster gets the next one is decided among all of them, in the common order of accesses
//! that other CTAs see, so that it depends on the seed alone and no index is given out twice.

use crate::exec::checked::Checked;
use crate::exec::cluster::env::Env;
use crate::exec::cluster::jobs::{ANSWER, ByteSource, Job, Latency};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::origin::SharedAt;
use crate::exec::warp::{Wait, Warp};
use crate::fault::FaultKind;
use crate::op::{Addr, CANCELED};

/// What is asked for arrives as the three coordinates of the cluster's first CTA and a word that
/// says so. An answer of "none" has no coordinates.
fn answer(first: Option<[u32; 3]>) -> [u8; ANSWER as usize] {
    let [x, y, z] = first.unwrap_or([u32::MAX; 3]);
    let granted = if first.is_some() { CANCELED } else { 0 };
    let mut bytes = [0; ANSWER as usize];
    for (to, word) in bytes
        .as_chunks_mut::<4>()
        .0
        .iter_mut()
        .zip([x, y, z, granted])
    {
        *to = word.to_le_bytes();
    }
    bytes
}

impl Cluster<'_> {
    pub(crate) fn try_cancel(
        &mut self,
        w: &mut Warp,
        mask: u32,
        multicast: bool,
        dst: Addr,
        mbar: Addr,
    ) -> Checked<Flow> {
        if self.env.shared_grid && !w.granted {
            return Ok(Flow::Again(Wait::Communication));
        }
        for lane in lanes(mask) {
            let to = self.shared_operand(w, dst, lane, ANSWER.into(), true)?;
            if !to.offset.is_multiple_of(ANSWER) {
                return Err(Box::new(FaultKind::Misaligned {
                    space: "shared (try_cancel)",
                    address: to.offset.into(),
                    align: ANSWER.into(),
                }));
            }
            let barrier = self.barrier_at(w, mbar, lane)?;
            let at = |place: SharedAt, cta: u32| SharedAt { cta, ..place };
            let targets: Vec<_> = match multicast {
                false => vec![(to, barrier)],
                true => (0..self.ctas.len() as u32)
                    .map(|cta| (at(to, cta), at(barrier, cta)))
                    .collect(),
            };
            for (to, _) in &targets {
                self.in_flight(*to, ANSWER, w.pc);
            }
            let taken = self.env.take_waiting();
            let first = taken.map(|index| self.env.first_cta(index));
            let job = Job::ToShared {
                from: ByteSource::Given(answer(first)),
                bytes: ANSWER,
                targets,
                reduce: None,
            };
            self.schedule(w, 1 << lane, Latency::LOAD, job);
        }
        Ok(Flow::Next)
    }
}

impl Env<'_> {
    /// Takes the next cluster that has not been launched, to launch it or in its stead.
    pub(crate) fn take_waiting(&self) -> Option<u64> {
        use std::sync::atomic::Ordering::Relaxed;
        // One cluster at a time asks: between epochs, or alone.
        let next = self.begun.load(Relaxed);
        (next < self.running()).then(|| {
            self.begun.store(next + 1, Relaxed);
            self.nth_running(next)
        })
    }
}
