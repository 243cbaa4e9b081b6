//! What one warp did, as it is written down.

use crate::op::Pc;
use crate::trace::{BarrierAt, Deed, Event};

/// What a loop that waits asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether a phase of this parity is over.
    Phase { barrier: BarrierAt, parity: u32 },
    /// What lies at an address that others write.
    Bytes { address: u64 },
}

/// The last turn of a loop that may be waiting, and what had happened before it.
#[derive(Debug, Clone, Copy)]
struct Turn {
    at: Pc,
    question: Question,
    before: usize,
    last: Option<Event>,
}

/// Turns that are remembered: loops that wait are not nested deeper.
const TURNS: usize = 8;

/// The events of one warp.
#[derive(Debug, Default)]
pub(super) struct Tape {
    events: Vec<Event>,
    /// Oldest first.
    turns: Vec<Turn>,
}

impl Tape {
    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// Instructions `first..end` that are no deeds.
    pub(super) fn run(&mut self, first: Pc, end: Pc) {
        match self.events.last_mut() {
            Some(Event::Run { end: last, .. }) if *last == first => *last = end,
            _ => self.events.push(Event::Run { first, end }),
        }
    }

    pub(super) fn did(&mut self, at: Pc, deed: Deed) {
        self.events.push(Event::Did { at, deed });
    }

    /// A question is asked at `at`, which may have to be asked again: if nothing but asking has
    /// happened since it was asked last, it takes that turn's place.
    pub(super) fn ask(&mut self, at: Pc, question: Question) {
        self.ask_again(at, question);
        self.turns
            .retain(|turn| (turn.at, turn.question) != (at, question));
        if self.turns.len() == TURNS {
            self.turns.remove(0);
        }
        self.turns.push(Turn {
            at,
            question,
            before: self.events.len(),
            last: self.events.last().copied(),
        });
    }

    /// The question that is asked at `at` has its answer.
    pub(super) fn answered(&mut self, at: Pc, question: Question) {
        self.ask_again(at, question);
        self.turns.retain(|turn| turn.question != question);
    }

    /// Goes back to before a question was asked in vain.
    fn ask_again(&mut self, at: Pc, question: Question) {
        let same = |turn: &Turn| (turn.at, turn.question) == (at, question);
        let Some(index) = self.turns.iter().position(same) else {
            return;
        };
        let turn = self.turns[index];
        if !self.events[turn.before..].iter().all(|e| self.waits(e)) {
            return;
        }
        self.events.truncate(turn.before);
        if let (Some(event), Some(last)) = (self.events.last_mut(), turn.last) {
            *event = last;
        }
        // Whatever was asked since is no longer there.
        self.turns.truncate(index);
    }

    /// Whether an event may be part of waiting: nobody else can tell how often it happened.
    fn waits(&self, event: &Event) -> bool {
        match event {
            Event::Run { .. } => true,
            Event::Did { at, deed } => match deed {
                Deed::Sleep(_) | Deed::Stamp | Deed::Fence { .. } => true,
                Deed::Global { .. } | Deed::Shared { .. } | Deed::Remote { .. } => {
                    let polls = |turn: &Turn| {
                        turn.at == *at && matches!(turn.question, Question::Bytes { .. })
                    };
                    self.turns.iter().any(polls)
                }
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: BarrierAt = BarrierAt {
        rank: 0,
        address: 1024,
    };

    fn phase(parity: u32) -> Question {
        Question::Phase {
            barrier: BARRIER,
            parity,
        }
    }

    fn run(first: Pc, end: Pc) -> Event {
        Event::Run { first, end }
    }

    #[test]
    fn runs_that_follow_one_another_are_one() {
        let mut tape = Tape::default();
        tape.run(0, 4);
        tape.run(4, 6);
        tape.run(2, 6);
        assert_eq!(tape.into_events(), [run(0, 6), run(2, 6)]);
    }

    #[test]
    fn a_loop_that_only_waits_is_there_once() {
        let mut tape = Tape::default();
        tape.run(0, 3);
        for _ in 0..5 {
            tape.ask(3, phase(0));
            tape.run(3, 5);
            tape.did(5, Deed::Sleep(20));
            tape.run(2, 3);
        }
        tape.answered(3, phase(0));
        tape.run(3, 4);
        assert_eq!(tape.into_events(), [run(0, 4)]);
    }

    #[test]
    fn what_others_may_have_seen_stays() {
        let mut tape = Tape::default();
        tape.ask(3, phase(0));
        tape.run(3, 5);
        tape.did(5, Deed::WgmmaCommit);
        tape.answered(3, phase(0));
        tape.run(3, 4);
        let commit = Event::Did {
            at: 5,
            deed: Deed::WgmmaCommit,
        };
        assert_eq!(tape.into_events(), [run(3, 5), commit, run(3, 4)]);
    }

    #[test]
    fn a_phase_that_went_through_elsewhere_is_not_asked_for_again() {
        let mut tape = Tape::default();
        tape.ask(3, phase(0));
        tape.run(3, 8);
        tape.answered(8, phase(0));
        tape.run(8, 10);
        // The ring has come round twice, and nothing was to be done meanwhile.
        tape.answered(3, phase(0));
        tape.run(3, 8);
        assert_eq!(tape.into_events(), [run(3, 10), run(3, 8)]);
    }

    #[test]
    fn questions_asked_in_turn_are_one_loop() {
        let mut tape = Tape::default();
        for _ in 0..3 {
            for (at, parity) in [(1, 0), (2, 1)] {
                tape.ask(at, phase(parity));
                tape.run(at, at + 1);
            }
        }
        assert_eq!(tape.into_events(), [run(1, 3)]);
    }
}
