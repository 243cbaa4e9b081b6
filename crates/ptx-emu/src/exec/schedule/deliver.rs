//! When asynchronous work lands: copies are events, due at a time or when somebody waits for them.

use crate::exec::clock::EventTime;
use crate::exec::cluster::Cluster;
use crate::exec::cluster::adversary::Delivery;
use crate::exec::cluster::jobs::{Due, Job, Pending};
use crate::exec::warp::{State, Wait};
use crate::fault::Fault;

impl Cluster<'_> {
    /// Completes what is due.
    #[inline(always)]
    pub(crate) fn deliver(&mut self) -> Result<(), Box<Fault>> {
        match self.events.is_empty() {
            true => Ok(()),
            false => self.deliver_due(),
        }
    }

    #[inline(never)]
    fn deliver_due(&mut self) -> Result<(), Box<Fault>> {
        while let Some(event) = self.events.first_entry() {
            if event.key().0 > self.clocks.now() {
                break;
            }
            let event = event.remove();
            self.complete(event)?;
        }
        Ok(())
    }

    /// Completes one event, now or, where other CTAs could tell, in their common order.
    fn complete(&mut self, event: Pending) -> Result<(), Box<Fault>> {
        self.progress += 1;
        let reduces = match &event.job {
            Job::ToGlobal { reduce, .. } => reduce.is_some(),
            Job::Tensor(job) => job.reduce.is_some(),
            // Into shared memory, which no other cluster sees.
            Job::Lanes { .. } | Job::ToShared { .. } | Job::Remote { .. } => false,
            Job::TensorCore { .. } => false,
        };
        if reduces && self.env.shared_grid {
            self.ordered.push(event);
            return Ok(());
        }
        self.finish_ordered(event)
    }

    /// Completes one event, blaming faults on the instruction that issued it.
    pub(super) fn finish_ordered(&mut self, event: Pending) -> Result<(), Box<Fault>> {
        let Pending { from, job } = event;
        if let Job::TensorCore { pipe, .. } = job {
            return self.drain(pipe as usize, from.work);
        }
        self.finish(from, job)
            .map_err(|kind| self.fault(*kind, from.cta as usize, from.warp as usize, from.pc, 0))
    }

    /// Nobody can run: completes what one of the waiting warps lacks. False if nothing in flight
    /// would help any of them.
    pub(super) fn hand_over(&mut self) -> Result<bool, Box<Fault>> {
        if self.adversary.delivery != Delivery::Latest {
            return Ok(false);
        }
        let per_cta = self.ctas[0].warps.len();
        let total = per_cta * self.ctas.len();
        let start = self.adversary.draw(total as u64) as usize;
        for i in 0..total {
            let at = (start + i) % total;
            let (cta, warp) = (at / per_cta, at % per_cta);
            if let State::Waiting(wait) = self.ctas[cta].warps[warp].state
                && self.satisfy(cta, warp, wait)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Completes what a warp waits for, in any order, and no more than that.
    fn satisfy(&mut self, cta: usize, warp: usize, wait: Wait) -> Result<bool, Box<Fault>> {
        if let Wait::Wgmma { below } = wait {
            let retired = self.retire_wgmma(cta, warp, below)?;
            if retired {
                let w = &mut self.ctas[cta].warps[warp];
                w.state = State::Ready;
                let stopped = w.stopped;
                self.pass_wait(stopped, wait);
            }
            return Ok(retired);
        }
        let serves = |event: &&Pending| self.serves(event, (cta as u32, warp as u32), wait);
        let mut awaited: Vec<Due> = self
            .events
            .iter()
            .filter(|(_, event)| serves(event))
            .map(|(due, _)| *due)
            .collect();
        self.adversary.shuffle(&mut awaited);
        for due in &awaited {
            if let Wait::Bulk { read: true, .. } = wait {
                self.read_source(*due);
                continue;
            }
            if let Some(event) = self.events.remove(due) {
                self.complete(event)?;
            }
            // A barrier that was told to expect too little is passed too early.
            if let Wait::Mbar { at, phase } = wait
                && self.phase_done(at, phase)
            {
                break;
            }
        }
        Ok(!awaited.is_empty())
    }

    /// Whether a wait of a warp lacks this event.
    fn serves(&self, event: &Pending, warp: (u32, u32), wait: Wait) -> bool {
        let own = (event.from.cta, event.from.warp) == warp;
        match (wait, &event.job) {
            (Wait::Copies { below }, Job::Lanes { group, .. }) => own && *group < below,
            (Wait::Bulk { below, read }, job) => {
                let unread = |read_already: bool| !(read && read_already);
                let source = job.bulk_group();
                own && source.is_some_and(|(group, done)| group < below && unread(done))
            }
            (Wait::Mbar { at, .. }, job) => {
                let origin = &self.ctas[event.from.cta as usize].warps[event.from.warp as usize];
                let deferred = || {
                    let mut arrivals = origin.deferred.iter();
                    arrivals.any(|d| d.after >= event.from.work && d.targets.contains(&at))
                };
                match job {
                    Job::Lanes { .. } => deferred(),
                    job => job.signals(at),
                }
            }
            _ => false,
        }
    }

    /// Reads the source of a copy out of shared memory that has yet to be written.
    fn read_source(&mut self, due: Due) {
        let Some(mut event) = self.events.remove(&due) else {
            return;
        };
        let group = event.job.bulk_group().map(|(group, _)| group);
        if let (Some(source), Some(group)) = (event.job.shared_source(), group)
            && self.take_source(source, event.from)
        {
            let from = event.from;
            let warp = &mut self.ctas[from.cta as usize].warps[from.warp as usize];
            warp.bulk.was_read(group);
            self.progress += 1;
        }
        self.events.insert(due, event);
    }

    /// Lets time pass until the next event or the end of a nap; false if there is neither.
    pub(super) fn pass_time(&mut self) -> Result<bool, Box<Fault>> {
        let naps = self.warps().filter_map(|w| match w.state {
            State::Waiting(Wait::Sleep { until }) => Some(until),
            _ => None,
        });
        let nap = naps.min();
        let due = self.events.first_key_value().map(|(due, _)| due.0);
        match (nap, due) {
            (None, None) => return Ok(false),
            (None, Some(_)) if self.adversary.delivery == Delivery::Latest => {
                if let Some((_, event)) = self.events.pop_first() {
                    self.complete(event)?;
                }
            }
            (nap, due) => {
                let never = EventTime::NEVER;
                let next = nap.unwrap_or(never).min(due.unwrap_or(never));
                self.clocks.leap(next);
                self.deliver()?;
            }
        }
        Ok(true)
    }
}
