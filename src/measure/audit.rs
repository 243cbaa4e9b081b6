use std::collections::HashMap;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Within so many calls of a contender the first is judged by the host; the
/// stretches after that grow.
const FIRST_STRETCH: u64 = 16;
const GROWTH: u64 = 4;

/// Which data each call gets, and which calls the host judges. The kernel
/// cannot know: the generator lives in host memory and its key comes from the
/// operating system.
#[derive(Debug)]
pub struct Audit {
    rng: ChaCha20Rng,
    sets: usize,
    /// The data set of each entry's last call.
    last: HashMap<String, usize>,
    plans: HashMap<String, Plan>,
}

/// One entry's calls.
#[derive(Clone, Copy, Debug)]
struct Plan {
    calls: u64,
    /// The call that will be judged next.
    next: u64,
    stretch: u64,
}

/// One call's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// Which data set.
    pub set: usize,
    /// What the call's memory is salted with.
    pub salt: u64,
    /// Whether the host judges this call, whatever the device finds.
    pub judged: bool,
}

impl Audit {
    /// Over so many data sets, with a key nobody knows.
    pub fn secret(sets: usize) -> Self {
        Self::with_rng(sets, ChaCha20Rng::from_seed(rand::random()))
    }

    fn with_rng(sets: usize, rng: ChaCha20Rng) -> Self {
        assert!(sets > 0, "there is something to compute");
        Self {
            rng,
            sets,
            last: HashMap::new(),
            plans: HashMap::new(),
        }
    }

    /// A key nobody knows either.
    pub fn key(&mut self) -> u64 {
        self.rng.random()
    }

    /// What the next call of this entry gets: never the data set it had last.
    pub fn deal(&mut self, entry: &str) -> Dealt {
        let set = match self.last.get(entry) {
            Some(last) if self.sets > 1 => {
                let other = self.rng.random_range(0..self.sets - 1);
                other + usize::from(other >= *last)
            }
            _ => self.rng.random_range(0..self.sets),
        };
        self.last.insert(entry.to_owned(), set);
        Dealt {
            set,
            salt: self.rng.random(),
            judged: self.judged(entry),
        }
    }

    fn judged(&mut self, entry: &str) -> bool {
        let rng = &mut self.rng;
        let plan = self.plans.entry(entry.to_owned()).or_insert_with(|| Plan {
            calls: 0,
            next: rng.random_range(0..FIRST_STRETCH),
            stretch: FIRST_STRETCH,
        });
        let judged = plan.calls == plan.next;
        plan.calls += 1;
        if judged {
            plan.stretch *= GROWTH;
            plan.next = plan.calls + rng.random_range(0..plan.stretch);
        }
        judged
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn audit(seed: u64) -> Audit {
        Audit::with_rng(3, ChaCha20Rng::seed_from_u64(seed))
    }

    #[test]
    fn data_change_with_every_call_and_every_set_comes_up() {
        let mut audit = audit(1);
        let dealt: Vec<Dealt> = (0..200).map(|_| audit.deal("x")).collect();
        assert!(dealt.windows(2).all(|w| w[0].set != w[1].set));
        let sets: BTreeSet<usize> = dealt.iter().map(|d| d.set).collect();
        assert_eq!(sets, BTreeSet::from([0, 1, 2]));
        let salts: BTreeSet<u64> = dealt.iter().map(|d| d.salt).collect();
        assert_eq!(salts.len(), 200);
    }

    #[test]
    fn any_call_may_be_judged_and_some_always_are() {
        let mut places = BTreeSet::new();
        for seed in 0..400 {
            let mut audit = audit(seed);
            let judged: Vec<usize> = (0..100).filter(|_| audit.deal("x").judged).collect();
            assert!(
                judged.first().is_some_and(|first| *first < 16),
                "{judged:?}"
            );
            assert!((2..=6).contains(&judged.len()), "{judged:?}");
            places.extend(judged);
        }
        // No call is safe: over 400 runs nearly each of the hundred was judged.
        assert!(places.len() > 90, "{}", places.len());
    }

    #[test]
    fn a_single_set_is_dealt_all_the_same() {
        let mut audit = Audit::with_rng(1, ChaCha20Rng::seed_from_u64(1));
        assert!((0..10).all(|_| audit.deal("x").set == 0));
    }

    #[test]
    fn two_audits_differ() {
        let (mut one, mut other) = (Audit::secret(3), Audit::secret(3));
        assert_ne!(one.deal("x").salt, other.deal("x").salt);
        assert_ne!(one.key(), other.key());
    }
}
