//! What one warp did, as it is written down.

use crate::op::Pc;
use crate::trace::{BarrierAt, Deed, Event};

/// What a loop that waits asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether a phase of this parity is over.
    Phase { barrier: BarrierAt, parity: u32 },
    /// What lies at addresses that others write, one of each lane: the same word, the same ones.
    Bytes { addresses: u64 },
}

/// Turns of a loop, each with how often it came.
type LeftOut = Vec<(Vec<Event>, usize)>;

/// The last turn of a loop that may be waiting, and what had happened before it.
#[derive(Debug, Clone)]
struct Turn {
    at: Pc,
    question: Question,
    before: usize,
    last: Option<Event>,
    /// When it was asked, counted in questions.
    when: u64,
    /// Turns that found the same value, left out so far.
    left_out: LeftOut,
}

impl Turn {
    /// Events that are left out.
    fn hidden(&self) -> usize {
        let turns = self.left_out.iter();
        turns.map(|(events, times)| events.len() * times).sum()
    }

    fn leave_out(&mut self, events: Vec<Event>) {
        match self.left_out.last_mut() {
            Some((before, times)) if *before == events => *times += 1,
            _ => self.left_out.push((events, 1)),
        }
    }
}

/// Turns that are remembered: loops that wait are not nested deeper.
const TURNS: usize = 8;

/// How often a question was asked at a place, in whatever turns.
#[derive(Debug, Clone, Copy)]
struct Answered {
    at: Pc,
    question: Question,
    times: u32,
    /// What was found the last time, and when that was.
    value: u64,
    when: u64,
}

/// The events of one warp.
///
/// A wait ends because what it asks for has changed. So the turns of a loop that asks for the same
/// bytes again and again are left out only once it has found something else there; a loop that ends
/// by its own count keeps all of them.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    events: Vec<Event>,
    /// Oldest first.
    turns: Vec<Turn>,
    /// Oldest first, as many as turns.
    asked: Vec<Answered>,
    /// Turns of loops that have ended by themselves, with their places among the events.
    kept: Vec<(usize, LeftOut)>,
    /// Events of all turns that are left out so far or kept aside.
    aside: usize,
    questions: u64,
}

impl Tape {
    pub(crate) fn len(&self) -> usize {
        self.events.len() + self.aside
    }

    pub(crate) fn into_events(mut self) -> Vec<Event> {
        for turn in std::mem::take(&mut self.turns) {
            self.keep(turn);
        }
        self.whole_from(0)
    }

    /// Instructions `first..end` that are no deeds.
    pub(crate) fn run(&mut self, first: Pc, end: Pc) {
        match self.events.last_mut() {
            Some(Event::Run { end: last, .. }) if *last == first => *last = end,
            _ => self.events.push(Event::Run { first, end }),
        }
    }

    pub(crate) fn did(&mut self, at: Pc, deed: Deed) {
        self.events.push(Event::Did { at, deed });
    }

    /// A question is asked at `at`, which may have to be asked again, and `value` is found: if nothing
    /// but asking has happened since it was asked last, it takes that turn's place.
    pub(crate) fn ask(&mut self, at: Pc, question: Question, value: u64) {
        self.ask_again(at, question);
        self.questions += 1;
        let before = self.count(at, question, value);
        if let Some(before) = before
            && before.value != value
        {
            self.forget_waits(before.when);
        }
        let same = |turn: &Turn| (turn.at, turn.question) == (at, question);
        let left_out = match self.turns.iter().position(same) {
            // It went on to something else meanwhile.
            Some(index) if self.turns[index].before != self.events.len() => {
                let turn = self.turns.remove(index);
                self.keep(turn);
                Vec::new()
            }
            Some(index) => self.turns.remove(index).left_out,
            None => Vec::new(),
        };
        if self.turns.len() == TURNS {
            let oldest = self.turns.remove(0);
            self.keep(oldest);
        }
        self.turns.push(Turn {
            at,
            question,
            before: self.events.len(),
            last: self.events.last().copied(),
            when: self.questions,
            left_out,
        });
    }

    /// An attempt at `at` has changed what it asked for in vain before.
    pub(crate) fn succeeded(&mut self, at: Pc, question: Question) {
        let same = |asked: &&Answered| (asked.at, asked.question) == (at, question);
        if let Some(when) = self.asked.iter().find(same).map(|asked| asked.when) {
            self.forget_waits(when);
        }
    }

    /// What was asked at `when` or since was a wait, which is over.
    fn forget_waits(&mut self, when: u64) {
        for turn in self.turns.iter_mut().filter(|turn| turn.when >= when) {
            self.aside -= turn.hidden();
            turn.left_out.clear();
        }
    }

    /// What was found before, if anything was.
    fn count(&mut self, at: Pc, question: Question, value: u64) -> Option<Answered> {
        let same = |asked: &Answered| (asked.at, asked.question) == (at, question);
        let before = self.asked.iter().position(same);
        let before = before.map(|index| self.asked.remove(index));
        if self.asked.len() == TURNS {
            self.asked.remove(0);
        }
        self.asked.push(Answered {
            at,
            question,
            times: before.map_or(0, |asked| asked.times) + 1,
            value,
            when: self.questions,
        });
        before
    }

    /// The question that is asked at `at` has its answer.
    pub(crate) fn answered(&mut self, at: Pc, question: Question) {
        self.ask_again(at, question);
        self.turns.retain(|turn| turn.question != question);
    }

    /// Goes back to before a question was asked in vain.
    fn ask_again(&mut self, at: Pc, question: Question) {
        let same = |turn: &Turn| (turn.at, turn.question) == (at, question);
        let Some(index) = self.turns.iter().position(same) else {
            return;
        };
        let (before, end) = (self.turns[index].before, self.turns[index].last);
        let same = |asked: &Answered| (asked.at, asked.question) == (at, question);
        let Some(last) = self.asked.iter().position(same) else {
            return;
        };
        let since = &self.events[before..];
        if !since.iter().all(|event| waits(event, &self.asked[last..])) {
            return;
        }
        // Whatever was asked since is part of this turn.
        for turn in self.turns.split_off(index + 1) {
            self.keep(turn);
        }
        let mut turn = self.whole_from(before);
        if let (Some(event), Some(last)) = (self.events.last_mut(), end) {
            if let (Event::Run { end: to, .. }, Event::Run { end: from, .. }) = (*event, last)
                && from < to
            {
                turn.insert(
                    0,
                    Event::Run {
                        first: from,
                        end: to,
                    },
                );
            }
            *event = last;
        }
        if matches!(question, Question::Bytes { .. }) {
            self.aside += turn.len();
            self.turns[index].leave_out(turn);
        } else {
            self.turns.truncate(index);
        }
    }

    /// A loop that has not been seen to wait: what was left out of it belongs to the events.
    fn keep(&mut self, turn: Turn) {
        if !turn.left_out.is_empty() {
            self.kept.push((turn.before, turn.left_out));
        }
    }

    /// Takes away the events from there on, with all that was kept of loops among them.
    fn whole_from(&mut self, first: usize) -> Vec<Event> {
        let among = |kept: &mut (usize, _)| kept.0 >= first;
        let mut kept: Vec<_> = self.kept.extract_if(.., among).collect();
        kept.sort_by_key(|kept| kept.0);
        let mut whole = Vec::with_capacity(self.events.len() - first);
        let mut next = first;
        for (place, turns) in kept {
            whole.extend_from_slice(&self.events[next..place]);
            next = place;
            for (events, times) in turns {
                self.aside -= events.len() * times;
                (0..times).for_each(|_| whole.extend_from_slice(&events));
            }
        }
        whole.extend_from_slice(&self.events[next..]);
        self.events.truncate(first);
        whole
    }
}

/// Whether an event may be part of waiting: nobody else can tell how often it happened. `asked` is
/// what was asked since, first of all what is now asked again. Who waits asks for the same in every
/// turn; a load that finds another address each time brings something to work on.
fn waits(event: &Event, asked: &[Answered]) -> bool {
    match event {
        Event::Run { .. } => true,
        Event::Did { at, deed } => match deed {
            Deed::Sleep(_) | Deed::Stamp | Deed::Fence { .. } => true,
            Deed::Global { .. }
            | Deed::Update { .. }
            | Deed::Shared { .. }
            | Deed::Remote { .. } => {
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
            tape.ask(3, phase(0), 0);
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
        tape.ask(3, phase(0), 0);
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
        tape.ask(3, phase(0), 0);
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
                tape.ask(at, phase(parity), 0);
                tape.run(at, at + 1);
            }
        }
        assert_eq!(tape.into_events(), [run(1, 3)]);
    }

    /// A load at `at` that others may be waiting with, and an instruction behind it.
    fn polls(tape: &mut Tape, at: Pc, address: u64, value: u64) {
        tape.ask(at, Question::Bytes { addresses: address }, value);
        tape.did(at, Deed::load_of_word(address));
        tape.run(at + 1, at + 2);
    }

    #[test]
    fn a_loop_that_polls_flags_has_an_end() {
        let mut once = Tape::default();
        let mut both = Tape::default();
        for turn in 0..100 {
            polls(&mut once, 3, 64, u64::from(turn == 99));
            polls(&mut both, 3, 64, u64::from(turn > 50));
            polls(&mut both, 5, 128, u64::from(turn == 99));
        }
        assert_eq!(once.len(), 2);
        // The next flag, by the same instruction.
        for turn in 0..100 {
            polls(&mut once, 3, 128, u64::from(turn == 99));
        }
        assert_eq!((once.len(), once.into_events().len()), (4, 4));
        let both = both.into_events().len();
        assert!(both < 8, "{both}");
    }

    #[test]
    fn a_loop_that_ends_by_its_own_count_is_no_wait() {
        let mut tape = Tape::default();
        tape.run(0, 3);
        for _ in 0..100 {
            polls(&mut tape, 3, 64, 7);
            tape.run(2, 3);
        }
        let counted = tape.len();
        // A wait behind it takes none of it along.
        for turn in 0..50 {
            polls(&mut tape, 8, 128, u64::from(turn == 49));
        }
        assert_eq!(counted, 1 + 300);
        let events = tape.into_events();
        assert_eq!(events.len(), counted + 2);
        let loads = events.iter().filter(|event| match event {
            Event::Did { at, .. } => *at == 3,
            Event::Run { .. } => false,
        });
        assert_eq!(loads.count(), 100);
    }

    #[test]
    fn attempts_in_vain_are_a_wait_only_if_one_succeeds() {
        let taken = |succeeds: bool| {
            let mut tape = Tape::default();
            for _ in 0..100 {
                polls(&mut tape, 3, 64, 1);
            }
            if succeeds {
                tape.succeeded(3, Question::Bytes { addresses: 64 });
                tape.did(3, Deed::load_of_word(64));
            }
            tape.into_events().len()
        };
        assert_eq!((taken(true), taken(false)), (3, 200));
    }

    #[test]
    fn a_count_within_a_wait_is_part_of_it() {
        let mut tape = Tape::default();
        for turn in 0..10 {
            polls(&mut tape, 3, 64, u64::from(turn == 9));
            for _ in 0..4 {
                polls(&mut tape, 6, 128, 0);
            }
        }
        // The last turn has its four.
        assert_eq!(tape.into_events().len(), 2 + 8);
    }

    #[test]
    fn a_loop_that_brings_something_each_turn_is_no_wait() {
        let mut tape = Tape::default();
        for turn in 0..100 {
            polls(&mut tape, 3, 64, 0);
            polls(&mut tape, 5, 4096 + 8 * turn, 0);
        }
        assert_eq!(tape.len(), 400);
    }
}
