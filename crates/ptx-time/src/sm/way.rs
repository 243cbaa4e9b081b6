//! What the time of the warp that ends last was made of, through all those it waited for.
//!
//! Each warp carries its way: for everything that can take time, how much of the way to where the
//! warp stands it has taken. One that was woken by another goes on with the other's way. So in the
//! end the last warp has the whole, added up, and nobody had to look back.

use super::{CYCLE, Sim, Ticks};
use crate::times::{Activity, Cause};

/// Ticks by cause; together they are the time it leads to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Way([Ticks; Cause::ALL.len()]);

impl Way {
    pub(super) fn go(&mut self, cause: Cause, long: Ticks) {
        self.0[cause as usize] += long;
    }

    pub(super) fn cycles(&self) -> [f64; Cause::ALL.len()] {
        self.0.map(|ticks| ticks as f64 / CYCLE)
    }
}

/// Ways of what is under way to a barrier, kept until it gets there.
#[derive(Debug, Default)]
pub(super) struct Ways {
    all: Vec<Way>,
    free: Vec<u32>,
}

impl Ways {
    pub(super) fn keep(&mut self, way: Way) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.all[place as usize] = way;
                place
            }
            None => {
                self.all.push(way);
                self.all.len() as u32 - 1
            }
        }
    }

    pub(super) fn take(&mut self, place: u32) -> Way {
        self.free.push(place);
        self.all[place as usize]
    }
}

/// What a warp's time goes to where nothing more is known of it.
pub(super) fn cause(activity: Activity) -> Cause {
    match activity {
        Activity::Issuing | Activity::Contending => Cause::Issue,
        Activity::Result => Cause::Arithmetic,
        Activity::Memory | Activity::Copies => Cause::Latency,
        Activity::Phase | Activity::Barrier => Cause::Barriers,
        Activity::Wgmma => Cause::Tensor,
        Activity::Launch => Cause::Launch,
    }
}

impl Sim<'_> {
    /// A warp's way to this moment. An instruction that does something now is told to the end of
    /// its turn already: what comes after now is taken back.
    pub(super) fn way(&self, index: usize, now: Ticks) -> Way {
        let warp = &self.warps[index];
        let mut way = warp.way;
        way.go(Cause::Issue, now.saturating_sub(warp.told));
        let issue = &mut way.0[Cause::Issue as usize];
        *issue = issue.saturating_sub(warp.told.saturating_sub(now));
        way
    }

    /// The warp stood still until another let it go on, whose way this is; it is told up to here.
    pub(super) fn adopt(&mut self, index: usize, way: Way, at: Ticks) {
        let warp = &mut self.warps[index];
        if warp.told == at {
            warp.way = way;
        }
    }
}
