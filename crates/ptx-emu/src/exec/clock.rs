//! The three clocks of a cluster.
//!
//! They move together, but mean different things: a step limit must not run out because warps
//! slept, events need an order and nothing more, and what a kernel reads from `%clock` is the
//! device's business. Results depend on the first two only by the rules written here, and on no
//! model of time at all.

use std::ops::{Add, Sub};

use crate::op::Clock;

/// Warp instructions a cluster has executed: what the step limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Steps(pub(crate) u64);

/// A moment in the order of a cluster's events: when copies land and naps end. It passes with
/// every instruction, and leaps to the next event when nobody can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct EventTime(u64);

impl EventTime {
    /// Later than every event.
    pub(super) const NEVER: Self = Self(u64::MAX);
}

impl Add<u64> for EventTime {
    type Output = Self;

    fn add(self, wait: u64) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

impl Sub for EventTime {
    type Output = u64;

    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

/// What `%clock` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cycles(u64);

impl Cycles {
    /// `%globaltimer` when a cluster starts.
    const EPOCH_NANOS: u64 = 1_700_000_000_000_000_000;

    /// One cycle is one nanosecond: kernels that compare clocks see both move.
    fn nanos(self) -> u64 {
        Self::EPOCH_NANOS + self.0
    }
}

/// The clocks of one cluster, all at zero when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clocks {
    steps: Steps,
    now: EventTime,
    cycles: Cycles,
}

impl Clocks {
    /// A warp has executed so many instructions.
    pub(super) fn execute(&mut self, instructions: u32) {
        let n = u64::from(instructions);
        self.steps.0 += n;
        self.now = self.now + n;
        self.cycles.0 += n;
    }

    /// Nobody could run until `then`.
    pub(super) fn leap(&mut self, then: EventTime) {
        if then > self.now {
            self.cycles.0 += then - self.now;
            self.now = then;
        }
    }

    pub(super) fn steps(&self) -> Steps {
        self.steps
    }

    pub(super) fn now(&self) -> EventTime {
        self.now
    }

    /// A clock register. It is the same in every run with one seed.
    pub(super) fn read(&self, register: Clock) -> u64 {
        let (cycles, nanos) = (self.cycles.0, self.cycles.nanos());
        match register {
            Clock::Cycles => cycles,
            Clock::CyclesHi => cycles >> 32,
            Clock::Nanos => nanos,
            Clock::NanosLo => nanos & 0xffff_ffff,
            Clock::NanosHi => nanos >> 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_passes_time_but_executes_nothing() {
        let mut clocks = Clocks::default();
        clocks.execute(7);
        clocks.leap(clocks.now() + 1000);
        assert_eq!(clocks.steps(), Steps(7));
        assert_eq!(clocks.now(), EventTime(1007));
        assert_eq!(clocks.read(Clock::Cycles), 1007);
        clocks.leap(EventTime(5));
        assert_eq!(clocks.now(), EventTime(1007), "no clock goes back");
    }
}
