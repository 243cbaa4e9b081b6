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

/// What a device's clocks showed when a cluster began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Began {
    pub(crate) cycles: u64,
    pub(crate) nanos: u64,
}

/// Cycles of a nanosecond.
const PER_NANO: u64 = 2;

/// Cycles from one instruction of a warp to its next.
const PER_INSTRUCTION: u64 = 4;

/// Nanoseconds in which `%globaltimer` moves on.
const TIMER_STEP: u64 = 32;

/// The clocks of one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clocks {
    steps: Steps,
    now: EventTime,
    began: Began,
    /// Cycles since then.
    cycles: u64,
}

/// What a warp has seen of the clock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    cycles: u64,
    instructions: u64,
}

impl Clocks {
    pub(super) fn since(began: Began) -> Self {
        Self {
            began,
            ..Self::default()
        }
    }

    /// A warp has executed so many instructions.
    pub(super) fn execute(&mut self, instructions: u32) {
        let n = u64::from(instructions);
        self.steps.0 += n;
        self.now = self.now + n;
        self.cycles += n * PER_NANO;
    }

    /// Nobody could run until `then`.
    pub(super) fn leap(&mut self, then: EventTime) {
        if then > self.now {
            self.cycles += (then - self.now) * PER_NANO;
            self.now = then;
        }
    }

    pub(super) fn steps(&self) -> Steps {
        self.steps
    }

    pub(super) fn now(&self) -> EventTime {
        self.now
    }

    /// A clock register, as a warp reads it that has executed so many instructions. It is the same in
    /// every run with one seed, and never earlier than another reading of it.
    pub(super) fn read(&mut self, register: Clock, seen: &mut Seen, instructions: u64) -> u64 {
        // The instructions of a turn are told when it ends.
        let own = (instructions - seen.instructions) * PER_INSTRUCTION;
        if seen.instructions > 0 {
            self.cycles = self.cycles.max(seen.cycles + own);
        }
        *seen = Seen {
            cycles: self.cycles,
            instructions,
        };
        let cycles = self.began.cycles.wrapping_add(self.cycles);
        let nanos = (self.began.nanos + self.cycles / PER_NANO) / TIMER_STEP * TIMER_STEP;
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
        let (cycles, mut seen) = (Clock::Cycles, Seen::default());
        assert_eq!(clocks.read(cycles, &mut seen, 7), 2014);
        // Two instructions on, in the same turn.
        assert_eq!(clocks.read(cycles, &mut seen, 9), 2022);
        clocks.leap(EventTime(5));
        assert_eq!(clocks.now(), EventTime(1007), "no clock goes back");
    }
}
