//! Barriers, at which warps and works meet, and what is known of their phases.

use std::collections::{HashMap, VecDeque};

use super::clock::{Clock, Knowledge};
use crate::exec::origin::Origin;

/// A barrier at which warps meet repeatedly.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    pub(super) over: u64,
    /// The knowledge of those that arrived in complete phases, and in the current one.
    settled: Knowledge,
    open: Knowledge,
}

impl Meeting {
    fn advance(&mut self, over: u64) {
        if over > self.over {
            self.over = over;
            self.settled.join(&std::mem::take(&mut self.open));
        }
    }

    /// An arrival, when `over` phases are complete.
    pub(super) fn arrive(&mut self, over: u64, known: &Knowledge) {
        self.advance(over);
        self.open.join(known);
    }

    /// An arrival of this phase also knows the progress of a strand.
    pub(super) fn tells(&mut self, (strand, number): (u32, u32)) {
        self.open.own.generic.raise(strand, number);
    }

    /// … and the progress of tensor cores.
    pub(super) fn tells_all(&mut self, done: &Clock) {
        self.open.own.generic.join(done);
    }

    /// The knowledge after waiting until `over` phases were complete.
    pub(super) fn passed(&mut self, over: u64) -> &Knowledge {
        self.advance(over);
        &self.settled
    }
}

/// A place for mbarriers, and their strands. A barrier that is initialised again continues the
/// numbers of the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    strand: u32,
    /// Phases of the barriers before it.
    base: u32,
    /// The strand of its initialisations, and how many there were.
    made: u32,
    turn: u32,
}

impl Seat {
    /// Strands of a place.
    pub(super) const STRANDS: u32 = 2;

    /// A place without a barrier yet.
    pub(super) fn new(strand: u32) -> Self {
        Self {
            strand,
            base: 0,
            made: strand + 1,
            turn: 0,
        }
    }

    /// A barrier is initialised there.
    pub(super) fn taken(&mut self) -> Self {
        self.turn += 1;
        *self
    }

    /// The barrier there ends; its incomplete phase has a number too.
    pub(super) fn left(&mut self, barrier: &Barrier) {
        self.base += barrier.meeting.over as u32 + 2;
    }

    /// The ticket that shows that this many phases are complete.
    pub(super) fn phase(self, over: u64) -> (u32, u32) {
        (self.strand, self.base + over as u32)
    }

    /// The number of complete phases that this clock knows of.
    pub(super) fn known_over(self, known: &Clock) -> u32 {
        known.at(self.strand).saturating_sub(self.base)
    }

    /// The ticket that shows that the barrier was initialised.
    pub(super) fn made(self) -> (u32, u32) {
        (self.made, self.turn)
    }
}

/// An mbarrier that was initialised.
#[derive(Debug)]
pub(super) struct Barrier {
    pub(super) seat: Seat,
    pub(super) made_at: Origin,
    /// A fence has made it visible to copies and other CTAs.
    pub(super) fenced: bool,
    pub(super) meeting: Meeting,
    /// The last step of each warp that used it.
    pub(super) users: HashMap<u32, (u32, Origin)>,
    /// Where bytes were last expected.
    pub(super) expecting: Option<Origin>,
    /// The warp and step that ended each of the last phases; `None` if bytes did.
    ended: VecDeque<(u64, Option<(u32, u32)>)>,
    /// The knowledge of the senders of the bytes of each of the last phases and all before it.
    senders: VecDeque<(u64, Clock)>,
}

/// Phases whose end is recorded.
const PHASES: usize = 8;

/// Records the result of a phase, replacing the one before.
fn remember<T>(phases: &mut VecDeque<(u64, T)>, phase: u64, what: T) {
    match phases.back_mut() {
        Some(last) if last.0 == phase => last.1 = what,
        _ => {
            phases.push_back((phase, what));
            if phases.len() > PHASES {
                phases.pop_front();
            }
        }
    }
}

impl Barrier {
    pub(super) fn new(seat: Seat, made_at: Origin) -> Self {
        Self {
            seat,
            made_at,
            fenced: false,
            meeting: Meeting::default(),
            users: HashMap::new(),
            expecting: None,
            ended: VecDeque::new(),
            senders: VecDeque::new(),
        }
    }

    /// An arrival in a phase; the last arrival has ended it.
    pub(super) fn comes(&mut self, over: u64, who: Option<(u32, u32)>) {
        remember(&mut self.ended, over, who);
    }

    /// Bytes arrive in a phase; `known` is their sender's knowledge.
    pub(super) fn sent(&mut self, over: u64, known: &Clock) {
        let mut all = self
            .senders
            .back()
            .map_or_else(Clock::default, |last| last.1.clone());
        all.join(known);
        remember(&mut self.senders, over, all);
    }

    /// The phase that another barrier must have reached, given known complete phases of this one:
    /// the bytes that ended a phase were sent with that knowledge.
    pub(super) fn implies(&self, known: &Clock, of: Seat) -> u32 {
        let phases = u64::from(self.seat.known_over(known));
        let sent = self.senders.iter().rev().find(|(phase, _)| *phase < phases);
        sent.map_or(0, |(_, known)| of.known_over(known))
    }

    /// The number of complete phases that are known: from a wait, or from knowing what the last
    /// arrival did.
    pub(super) fn known_over(&self, known: &Clock, over: u64) -> u64 {
        let ended = self.ended.iter().filter(|(phase, _)| *phase < over);
        let seen = ended.filter_map(|(phase, who)| {
            let (strand, step) = (*who)?;
            (known.at(strand) >= step).then_some(phase + 1)
        });
        seen.max()
            .unwrap_or(0)
            .max(self.seat.known_over(known).into())
    }
}
