use super::*;

fn by(warp: u32, step: u32, bytes: u8) -> Trace {
    Trace {
        actor: Actor::Warp(warp),
        step,
        pc: warp,
        branch: Branch::default(),
        lane: 0,
        bytes,
        strength: 0,
    }
}

/// Only a warp's own accesses are complete.
fn own(old: &Trace, warp: u32) -> bool {
    old.actor == Actor::Warp(warp)
}

/// One access of one word.
struct Once<'s> {
    shadow: &'s mut Shadow,
    access: Trace,
    bytes: u8,
}

impl Once<'_> {
    fn comes(
        self,
        act: Act,
        word: u32,
        over: impl Fn(&Trace, bool) -> bool,
    ) -> (Option<Met>, Option<Trace>) {
        let Self {
            shadow,
            access,
            bytes,
        } = self;
        let mut caller = shadow.call(act, access, over);
        match bytes {
            WHOLE => shadow.touch(&mut caller, word..word + 1, Lanes::one(0)),
            _ => shadow.touch_part(&mut caller, word, bytes, 0),
        }
        (caller.met.map(|met| met.0), caller.lost.map(|lost| lost.0))
    }
}

fn once(shadow: &mut Shadow, (warp, step, bytes): (u32, u32, u8)) -> Once<'_> {
    let access = by(warp, step, 0);
    Once {
        shadow,
        access,
        bytes,
    }
}

impl Shadow {
    /// Reads by a warp for which its own accesses are complete.
    fn reads(&mut self, word: u32, who: (u32, u32, u8)) -> Option<Met> {
        let over = |old: &Trace, _: bool| own(old, who.0);
        once(self, who).comes(Act::Read, word, over).0
    }

    fn writes(&mut self, word: u32, who: (u32, u32, u8)) -> Option<Met> {
        let over = |old: &Trace, _: bool| own(old, who.0);
        once(self, who).comes(Act::Write, word, over).0
    }
}

#[test]
fn a_read_meets_the_last_write_and_a_write_all_reads() {
    let mut shadow = Shadow::default();
    assert_eq!(shadow.reads(9, (0, 1, WHOLE)), Some(Met::Nothing));
    shadow.writes(3, (0, 1, WHOLE));
    assert_eq!(shadow.reads(3, (0, 1, WHOLE)), None);
    let met = shadow.reads(3, (1, 1, WHOLE));
    assert_eq!(met, Some(Met::Write(by(0, 1, WHOLE))));
    once(&mut shadow, (2, 1, WHOLE)).comes(Act::Read, 3, |_, _| true);
    let met = shadow.writes(3, (0, 2, WHOLE));
    assert_eq!(met, Some(Met::Read(by(2, 1, WHOLE))));
    assert_eq!(shadow.writes(3, (0, 3, WHOLE)), None);
}

#[test]
fn what_an_update_reads_and_writes_meets_both() {
    let mut shadow = Shadow::default();
    let mut update = |who: (u32, u32, u8)| {
        let over = |old: &Trace, _: bool| own(old, who.0);
        once(&mut shadow, who).comes(Act::Update, 5, over).0
    };
    assert_eq!(update((0, 1, WHOLE)), Some(Met::Nothing));
    assert_eq!(update((0, 1, WHOLE)), None);
    assert_eq!(update((1, 1, WHOLE)), Some(Met::Write(by(0, 1, WHOLE))));
    shadow.reads(5, (1, 2, WHOLE));
    let over = |old: &Trace, write: bool| write || own(old, 2);
    let met = once(&mut shadow, (2, 1, WHOLE)).comes(Act::Update, 5, over);
    assert_eq!(met.0, Some(Met::Read(by(1, 2, WHOLE))));
}

#[test]
fn words_together_are_as_words_one_by_one() {
    let (mut together, mut apart) = (Shadow::default(), Shadow::default());
    let acts = [Act::Write, Act::Read, Act::Update, Act::Read, Act::Write];
    let mut draws = 1u32;
    let mut draw = |below: u32| {
        draws = draws.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (draws >> 16) % below
    };
    for step in 1..4000 {
        let (warp, act) = (draw(4), acts[draw(5) as usize]);
        let (first, words) = (draw(60), 1 + draw(70));
        let access = by(warp, step, 0);
        let known = step.saturating_sub(draw(8));
        let over = |old: &Trace, _: bool| own(old, warp) || old.step <= known;
        if draw(8) == 0 {
            for shadow in [&mut together, &mut apart] {
                let mut caller = shadow.call(act, access, over);
                shadow.touch_part(&mut caller, first, 1 + step as u8 % 14, 3);
            }
            continue;
        }
        let lanes = Lanes::from(0, [1, 3, 4, u32::MAX][draw(4) as usize]);
        let mut caller = together.call(act, access, over);
        together.touch(&mut caller, first..first + words, lanes);
        let mut single = apart.call(act, access, over);
        for word in first..first + words {
            let lane = lanes.after(word - first).first;
            apart.touch_part(&mut single, word, WHOLE, lane);
        }
        assert_eq!(caller.met, single.met);
        assert_eq!((caller.lost, caller.kept), (single.lost, single.kept));
    }
}

#[test]
fn reads_that_no_word_remembers_are_forgotten() {
    let mut shadow = Shadow::default();
    for step in 0..200_000 {
        let over = |_: &Trace, _: bool| step % 3 != 0;
        once(&mut shadow, (step % 7, step, WHOLE)).comes(Act::Read, step % 64, over);
        assert!(shadow.sets.len() + shadow.accesses.len() <= SWEEP + 3);
    }
}

#[test]
fn halves_of_a_word_are_apart() {
    let mut shadow = Shadow::default();
    shadow.writes(0, (0, 1, 0b0011));
    assert_eq!(shadow.writes(0, (1, 1, 0b1100)), None);
    assert_eq!(shadow.reads(0, (0, 2, 0b0011)), None);
    let met = shadow.reads(0, (0, 2, WHOLE));
    assert!(matches!(met, Some(Met::Write(write)) if write.actor == Actor::Warp(1)));
    let met = once(&mut shadow, (0, 3, WHOLE)).comes(Act::Write, 0, |_, _| true);
    assert_eq!(met.0, None);
    assert_eq!(shadow.reads(0, (0, 3, WHOLE)), None);
}

#[test]
fn what_a_copy_brought_and_nobody_read_is_lost() {
    let mut shadow = Shadow::default();
    let copy = |work, bytes| Trace {
        actor: Actor::Work(work),
        ..by(0, 0, bytes)
    };
    let mut writes = |work| {
        let once = Once {
            shadow: &mut shadow,
            access: copy(work, 0),
            bytes: WHOLE,
        };
        once.comes(Act::Write, 0, |_, _| true).1
    };
    assert_eq!(writes(1), None);
    assert_eq!(writes(2), Some(copy(1, WHOLE)));
    once(&mut shadow, (0, 1, WHOLE)).comes(Act::Read, 0, |_, _| true);
    let once = Once {
        shadow: &mut shadow,
        access: copy(3, 0),
        bytes: WHOLE,
    };
    assert_eq!(once.comes(Act::Write, 0, |_, _| true).1, None);
}
