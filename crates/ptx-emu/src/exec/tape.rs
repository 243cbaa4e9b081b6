//! What one warp did, as it is written down.

use crate::op::Pc;
use crate::trace::{BarrierAt, Deed, Event};

/// What a loop that waits asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether a phase of this parity is over.
    Phase { barrier: BarrierAt, parity: u32 },
    /// What lies at addresses that others write, one of each lane: the same word, the same ones.
    Bytes { addresses: u64 },
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

/// How often a question was asked at a place, in whatever turns.
#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Pc,
    question: Question,
    times: u32,
}

/// The events of one warp.
#[derive(Debug, Default)]
pub(super) struct Tape {
    events: Vec<Event>,
    /// Oldest first.
    turns: Vec<Turn>,
    /// Oldest first, as many as turns.
    asked: Vec<Asked>,
}

impl Tape {
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

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
        self.count(at, question);
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

    fn count(&mut self, at: Pc, question: Question) {
        let same = |asked: &Asked| (asked.at, asked.question) == (at, question);
        let before = self.asked.iter().position(same);
        let times = before.map_or(0, |index| self.asked.remove(index).times);
        if self.asked.len() == TURNS {
            self.asked.remove(0);
        }
        self.asked.push(Asked {
            at,
            question,
            times: times + 1,
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
        let same = |asked: &Asked| (asked.at, asked.question) == (at, question);
        let Some(last) = self.asked.iter().position(same) else {
            return;
        };
        let since = &self.events[turn.before..];
        if !since.iter().all(|event| waits(event, &self.asked[last..])) {
            return;
        }
        self.events.truncate(turn.before);
        if let (Some(event), Some(last)) = (self.events.last_mut(), turn.last) {
            *event = last;
        }
        // Whatever was asked since is no longer there.
        self.turns.truncate(index);
    }
}

/// Whether an event may be part of waiting: nobody else can tell how often it happened. `asked` is
/// what was asked since, first of all what is now asked again. Who waits asks for the same in every
/// turn; a load that finds another address each time brings something to work on.
fn waits(event: &Event, asked: &[Asked]) -> bool {
    match event {
        Event::Run { .. } => true,
        Event::Did { at, deed } => match deed {
            Deed::Sleep(_) | Deed::Stamp | Deed::Fence { .. } => true,
            Deed::Global { .. } | Deed::Shared { .. } | Deed::Remote { .. } => {
                let bytes = |question| matches!(question, Question::Bytes { .. });
                let here = |index: usize| asked[index].at == *at && bytes(asked[index].question);
                let mut here = (0..asked.len()).filter(|&index| here(index)).peekable();
                here.peek().is_some() && here.all(|index| index == 0 || asked[index].times > 1)
            }
            _ => false,
        },
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

    /// A load at `at` that others may be waiting with, and an instruction behind it.
    fn polls(tape: &mut Tape, at: Pc, address: u64) {
        tape.ask(at, Question::Bytes { addresses: address });
        tape.did(at, Deed::load_of_word(address));
        tape.run(at + 1, at + 2);
    }

    #[test]
    fn a_loop_that_polls_flags_has_an_end() {
        let mut once = Tape::default();
        let mut both = Tape::default();
        for _ in 0..100 {
            polls(&mut once, 3, 64);
            polls(&mut both, 3, 64);
            polls(&mut both, 5, 128);
        }
        assert_eq!(once.len(), 2);
        assert!(both.len() < 8, "{}", both.len());
        // The next flag, by the same instruction.
        for _ in 0..100 {
            polls(&mut once, 3, 128);
        }
        assert_eq!(once.len(), 4);
    }

    #[test]
    fn a_loop_that_brings_something_each_turn_is_no_wait() {
        let mut tape = Tape::default();
        for turn in 0..100 {
            polls(&mut tape, 3, 64);
            polls(&mut tape, 5, 4096 + 8 * turn);
        }
        assert_eq!(tape.len(), 400);
    }
}
