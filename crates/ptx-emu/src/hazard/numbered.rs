//! Accesses by number, so that a word of memory needs four bytes for each of them.

/// The number of an access; 0 means none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Number(pub(super) u32);

impl Number {
    pub(super) const NOBODY: Self = Self(0);
}

/// Slots for the last numbered accesses: a warp mostly repeats its own.
const RECENT: usize = 256;

/// Numbered accesses. Two equal ones may have two numbers.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    all: Vec<T>,
    /// Empty until there is one: most memories are never used.
    recent: Vec<Number>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            recent: Vec::new(),
        }
    }
}

impl<T: Copy + PartialEq> Numbered<T> {
    /// The number of an access, and whether it is new. Accesses with the same `hint` replace each
    /// other among the recent ones.
    pub(super) fn number(&mut self, access: T, hint: u32) -> (Number, bool) {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, Number::NOBODY);
        }
        let recent = &mut self.recent[hint as usize % RECENT];
        if *recent != Number::NOBODY && self.all[recent.0 as usize - 1] == access {
            return (*recent, false);
        }
        self.all.push(access);
        *recent = Number(self.all.len() as u32);
        (*recent, true)
    }

    /// The access of a number, if there is one.
    #[inline]
    pub(super) fn get(&self, number: Number) -> Option<&T> {
        self.all.get((number.0 as usize).wrapping_sub(1))
    }

    /// Whether two numbers mean equal accesses.
    pub(super) fn alike(&self, one: Number, other: Number) -> bool {
        one == other || self.get(one) == self.get(other)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Renumbers the accesses that are still needed.
pub(super) struct Renumbering<'o, T> {
    old: &'o Numbered<T>,
    new: Numbered<T>,
    /// The new number for each old one; 0 if it was not requested.
    moved: Vec<Number>,
}

impl<'o, T: Copy + PartialEq> Renumbering<'o, T> {
    pub(super) fn of(old: &'o Numbered<T>) -> Self {
        Self {
            old,
            new: Numbered::default(),
            moved: vec![Number::NOBODY; old.all.len() + 1],
        }
    }

    /// The new number of an access.
    pub(super) fn keep(&mut self, number: Number) -> Number {
        let Some(access) = self.old.get(number) else {
            return Number::NOBODY;
        };
        let moved = &mut self.moved[number.0 as usize];
        if *moved == Number::NOBODY {
            self.new.all.push(*access);
            *moved = Number(self.new.all.len() as u32);
        }
        *moved
    }

    pub(super) fn done(self) -> Numbered<T> {
        self.new
    }
}

/// Answers whether earlier accesses (writes, if so) are complete for the current one. Neighbouring
/// words were mostly used together, so the last answers are cached.
pub(super) struct CompletionCache<F> {
    over: F,
    last: [(Number, bool); 2],
}

impl<F> CompletionCache<F> {
    pub(super) fn new(over: F) -> Self {
        Self {
            over,
            last: [(Number::NOBODY, true); 2],
        }
    }

    /// A missing access counts as complete.
    #[inline(always)]
    pub(super) fn over<T>(&mut self, all: &Numbered<T>, number: Number, write: bool) -> bool
    where
        T: Copy + PartialEq,
        F: Fn(&T, bool) -> bool,
    {
        let last = &mut self.last[usize::from(write)];
        if last.0 != number {
            let over = &self.over;
            *last = (number, all.get(number).is_none_or(|old| over(old, write)));
        }
        last.1
    }
}

/// Whether all of some words are equal.
#[inline]
pub(super) fn same<T: Copy + PartialEq>(words: &[T]) -> bool {
    // Without an early exit, which would prevent vectorisation.
    let first = words[0];
    words
        .iter()
        .fold(true, |same, word| same & (*word == first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_keeps_its_number_until_another_takes_its_place() {
        let mut all = Numbered::default();
        let (first, new) = all.number('a', 7);
        assert!(new && first != Number::NOBODY);
        assert_eq!(all.number('a', 7), (first, false));
        let (other, _) = all.number('b', 7);
        let (again, new) = all.number('a', 7);
        assert!(new && all.alike(first, again) && !all.alike(first, other));
        assert_eq!(
            (all.get(other), all.get(Number::NOBODY)),
            (Some(&'b'), None)
        );
        let mut kept = Renumbering::of(&all);
        assert_eq!(kept.keep(Number::NOBODY), Number::NOBODY);
        let moved = [other, again, other].map(|number| kept.keep(number));
        let kept = kept.done();
        assert_eq!(
            moved.map(|number| kept.get(number).copied()),
            [Some('b'), Some('a'), Some('b')]
        );
        assert_eq!(kept.len(), 2);
    }

    #[test]
    fn each_is_asked_of_once_in_a_row() {
        let mut all = Numbered::default();
        let (one, _) = all.number(1, 0);
        let (two, _) = all.number(2, 1);
        let times = std::cell::Cell::new(0);
        let mut asked = CompletionCache::new(|old: &i32, write: bool| {
            times.set(times.get() + 1);
            (*old == 1) == write
        });
        assert!(asked.over(&all, Number::NOBODY, true));
        for _ in 0..3 {
            assert!(asked.over(&all, one, true) && !asked.over(&all, one, false));
        }
        assert_eq!(times.get(), 2);
        assert!(!asked.over(&all, two, true));
        assert_eq!(times.get(), 3);
    }
}
