use std::collections::{BTreeSet, HashMap};

use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::ChaCha20Rng;
use rand::seq::index::sample;

use crate::backend::{CallData, CallSeed};
use crate::worker::MeasureJob;

/// Of the guaranteed calls of a contender, the host judges this many.
const SURE: usize = 2;
/// Of the calls after them it judges one per stretch, and the stretches grow.
const FIRST_STRETCH: u64 = 64;
const GROWTH: u64 = 4;

/// Which data each call gets, and which calls the host judges. The kernel cannot know: the
/// generator is in host memory and its key comes from the operating system.
#[derive(Debug)]
pub(super) struct CallSchedule {
    rng: ChaCha20Rng,
    sets: usize,
    /// Warm-ups, and timed calls that every contender is guaranteed to get.
    calls: (u32, u32),
    /// The data set of each contender's last call.
    last: HashMap<String, usize>,
    plans: HashMap<String, Plan>,
}

/// One contender's calls.
#[derive(Clone, Debug)]
struct Plan {
    calls: u64,
    /// The calls that will be judged, as far as they are drawn.
    due: BTreeSet<u64>,
    stretch: u64,
}

impl Plan {
    /// Some of the guaranteed timed calls, and one of the warm-ups.
    fn draw((warmup, timed): (u32, u32), rng: &mut ChaCha20Rng) -> Self {
        let (warmup, timed) = (u64::from(warmup), timed as usize);
        let picked = sample(rng, timed, SURE.min(timed)).into_iter();
        let mut due: BTreeSet<u64> = picked.map(|place| warmup + place as u64).collect();
        if warmup > 0 {
            due.insert(rng.random_range(0..warmup));
        }
        due.insert(warmup + timed as u64 + rng.random_range(0..FIRST_STRETCH));
        Self {
            calls: 0,
            due,
            stretch: FIRST_STRETCH,
        }
    }

    /// Whether the next call is judged.
    fn next(&mut self, rng: &mut ChaCha20Rng) -> bool {
        let judged = self.due.remove(&self.calls);
        self.calls += 1;
        if self.due.is_empty() {
            self.stretch *= GROWTH;
            let further = self.calls + rng.random_range(0..self.stretch);
            self.due.insert(further);
        }
        judged
    }
}

impl CallSchedule {
    /// For this many data sets, with a secret key.
    pub(super) fn secret(sets: usize, job: &MeasureJob) -> Self {
        let calls = (job.warmup, job.settings.share());
        Self::with_rng(sets, calls, ChaCha20Rng::from_seed(rand::random()))
    }

    fn with_rng(sets: usize, calls: (u32, u32), rng: ChaCha20Rng) -> Self {
        assert!(sets > 0, "there is something to compute");
        Self {
            rng,
            sets,
            calls,
            last: HashMap::new(),
            plans: HashMap::new(),
        }
    }

    /// Another secret key.
    pub(super) fn key(&mut self) -> u64 {
        self.rng.random()
    }

    /// The data of the next timed call of a contender, never those of its last call; and whether
    /// the host judges the call, whatever the device finds.
    pub(super) fn time(&mut self, contender: &str) -> (CallData, bool) {
        let judged = self.judged(contender);
        (self.rehearse(contender), judged)
    }

    /// The same for a rehearsal: it consumes none of the judged calls.
    pub(super) fn rehearse(&mut self, contender: &str) -> CallData {
        let set = match self.last.get(contender) {
            Some(last) if self.sets > 1 => {
                let other = self.rng.random_range(0..self.sets - 1);
                other + usize::from(other >= *last)
            }
            _ => self.rng.random_range(0..self.sets),
        };
        self.last.insert(contender.to_owned(), set);
        CallData {
            set,
            call_seed: CallSeed(self.rng.random()),
        }
    }

    fn judged(&mut self, contender: &str) -> bool {
        let (rng, calls) = (&mut self.rng, self.calls);
        let plan = self.plans.entry(contender.to_owned());
        plan.or_insert_with(|| Plan::draw(calls, rng)).next(rng)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    const CALLS: (u32, u32) = (3, 10);

    fn audit(seed: u64) -> CallSchedule {
        CallSchedule::with_rng(3, CALLS, ChaCha20Rng::seed_from_u64(seed))
    }

    #[test]
    fn data_change_with_every_call_and_every_set_comes_up() {
        let mut audit = audit(1);
        let dealt: Vec<CallData> = (0..200).map(|_| audit.time("x").0).collect();
        assert!(dealt.windows(2).all(|w| w[0].set != w[1].set));
        let sets: BTreeSet<usize> = dealt.iter().map(|d| d.set).collect();
        assert_eq!(sets, BTreeSet::from([0, 1, 2]));
        let call_seeds: BTreeSet<u64> = dealt.iter().map(|d| d.call_seed.0).collect();
        assert_eq!(call_seeds.len(), 200);
    }

    #[test]
    fn any_call_may_be_judged_and_some_always_are() {
        let mut places = BTreeSet::new();
        for seed in 0..400 {
            let mut audit = audit(seed);
            let judged: Vec<usize> = (0..100).filter(|_| audit.time("x").1).collect();
            let among = |calls: Range<usize>| judged.iter().filter(|c| calls.contains(c)).count();
            assert_eq!((among(0..3), among(3..13)), (1, 2), "{judged:?}");
            assert!((4..=6).contains(&judged.len()), "{judged:?}");
            places.extend(judged);
        }
        // Every call may be judged: over 400 runs nearly each of the hundred was.
        assert!(places.len() > 90, "{}", places.len());
        let sure: BTreeSet<usize> = (0..13).collect();
        assert!(places.is_superset(&sure), "{places:?}");
    }

    #[test]
    fn rehearsals_use_up_no_judgement() {
        let judged = |rehearsals: usize| -> usize {
            let mut audit = audit(7);
            for _ in 0..rehearsals {
                audit.rehearse("x");
            }
            (0..13).filter(|_| audit.time("x").1).count()
        };
        assert_eq!([0, 2, 16, 200].map(judged), [3; 4]);
    }

    #[test]
    fn a_process_of_two_blocks_is_judged_throughout() {
        let mut audit = CallSchedule::with_rng(1, (0, 2), ChaCha20Rng::seed_from_u64(1));
        assert!(audit.time("x").1 && audit.time("x").1);
        assert!(audit.time("another").1);
    }

    #[test]
    fn a_single_set_is_dealt_all_the_same() {
        let mut audit = CallSchedule::with_rng(1, CALLS, ChaCha20Rng::seed_from_u64(1));
        assert!((0..10).all(|_| audit.time("x").0.set == 0));
    }

    #[test]
    fn two_audits_differ() {
        let job = MeasureJob::sample();
        let (mut one, mut other) = (CallSchedule::secret(3, &job), CallSchedule::secret(3, &job));
        assert_ne!(one.rehearse("x").call_seed, other.rehearse("x").call_seed);
        assert_ne!(one.key(), other.key());
    }
}
