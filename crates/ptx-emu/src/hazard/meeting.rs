//! Barriers, at which warps and works meet, and what is known of their phases.

use std::collections::{HashMap, VecDeque};

use super::clock::{Clock, Knowledge};
use crate::exec::origin::Origin;

/// Warps that meet again and again.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    pub(super) over: u64,
    /// What those knew who came to phases that are over, and to the one that is not.
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

    /// Somebody comes, when so many phases are over.
    pub(super) fn arrive(&mut self, over: u64, known: &Knowledge) {
        self.advance(over);
        self.open.join(known);
    }

    /// Somebody who came to this phase also knows that a strand has come so far.
    pub(super) fn tells(&mut self, (strand, number): (u32, u32)) {
        self.open.own.generic.raise(strand, number);
    }

    /// … and what tensor cores have done.
    pub(super) fn tells_all(&mut self, done: &Clock) {
        self.open.own.generic.join(done);
    }

    /// What somebody knows who has waited until so many phases were over.
    pub(super) fn passed(&mut self, over: u64) -> &Knowledge {
        self.advance(over);
        &self.settled
    }
}

/// A place for mbarriers, and the strands that tell of them. One that is initialised anew goes on
/// where the one before it ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    strand: u32,
    /// Phases of those before it.
    base: u32,
    /// The strand of its initialisations, and how many there were.
    made: u32,
    turn: u32,
}

impl Seat {
    /// How many strands a place takes.
    pub(super) const STRANDS: u32 = 2;

    /// A place where none was yet.
    pub(super) fn new(strand: u32) -> Self {
        Self {
            strand,
            base: 0,
            made: strand + 1,
            turn: 0,
        }
    }

    /// One is initialised there.
    pub(super) fn taken(&mut self) -> Self {
        self.turn += 1;
        *self
    }

    /// The one there is no more; the phase that was not over has a number as well.
    pub(super) fn left(&mut self, barrier: &Barrier) {
        self.base += barrier.meeting.over as u32 + 2;
    }

    /// Whoever knows this knows that so many phases are over.
    pub(super) fn phase(self, over: u64) -> (u32, u32) {
        (self.strand, self.base + over as u32)
    }

    /// How many phases are over as far as somebody knows.
    pub(super) fn known_over(self, known: &Clock) -> u32 {
        known.at(self.strand).saturating_sub(self.base)
    }

    /// Whoever knows this knows that the barrier was initialised.
    pub(super) fn made(self) -> (u32, u32) {
        (self.made, self.turn)
    }
}

/// An mbarrier that was initialised.
#[derive(Debug)]
pub(super) struct Barrier {
    pub(super) seat: Seat,
    pub(super) made_at: Origin,
    /// A fence has told copies and other CTAs.
    pub(super) fenced: bool,
    pub(super) meeting: Meeting,
    /// The last step of each warp that used it.
    pub(super) users: HashMap<u32, (u32, Origin)>,
    /// Where bytes were last expected.
    pub(super) expecting: Option<Origin>,
    /// By whom each of the last phases was ended, and in which step; nobody's step where bytes did.
    ended: VecDeque<(u64, Option<(u32, u32)>)>,
    /// What those knew who sent the bytes of each of the last phases and of those before it.
    senders: VecDeque<(u64, Clock)>,
}

/// Phases of which it is remembered who ended them.
const PHASES: usize = 8;

/// What became of a phase, in place of what was said of it before.
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

    /// Somebody comes to a phase; who comes last has ended it.
    pub(super) fn comes(&mut self, over: u64, who: Option<(u32, u32)>) {
        remember(&mut self.ended, over, who);
    }

    /// Bytes come to a phase that were sent by somebody who knew this.
    pub(super) fn sent(&mut self, over: u64, known: &Clock) {
        let mut all = self
            .senders
            .back()
            .map_or_else(Clock::default, |last| last.1.clone());
        all.join(known);
        remember(&mut self.senders, over, all);
    }

    /// How far another barrier must be for whoever knows that phases of this barrier are over: bytes that
    /// ended one were sent by somebody who knew.
    pub(super) fn implies(&self, known: &Clock, of: Seat) -> u32 {
        let phases = u64::from(self.seat.known_over(known));
        let sent = self.senders.iter().rev().find(|(phase, _)| *phase < phases);
        sent.map_or(0, |(_, known)| of.known_over(known))
    }

    /// How many phases are over as far as somebody knows: he waited for one, or knows what its
    /// last arrival did.
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
