//! Who runs next, for how long, and when copies land: what hardware leaves open, drawn from the
//! seed so that code which relies on luck loses it.
//!
//! A bug of order shows when one warp runs far ahead of another, or stops in the middle of what it
//! took for one step. So warps run by priorities that are drawn anew now and then, the first warp
//! of a CTA, which often prepares things for the others, last half of the time. From one wait to
//! the next a warp is fast, and runs as far as it can, or slow: it begins late, stops after few
//! instructions that others can tell (accesses, arrivals, whatever does more than compute), and
//! lets turns pass. No seed is special. Of a large grid a few clusters, drawn too, are like this;
//! the others are calm: they seldom have slow warps, keep an order for some rounds, in which warps
//! follow each other forwards or backwards, and each has its turn in every round.
//!
//! Copies land as late as the program allows under an even seed: when nobody can go on without
//! one of them. Under an odd seed they land at once, or after a drawn time, cluster by cluster.

use super::jobs::Latency;
use crate::exec::clock::EventTime;
use crate::exec::warp::pace::Pace;

/// When asynchronous work becomes visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// When some warp waits for it and no other can run.
    Latest,
    /// At the end of the turn that issued it.
    Earliest,
    /// After a time of its own.
    Drawn,
}

/// Event time after which even the latest copy lands: a warp may spin on the bytes themselves.
const PATIENCE: u64 = 100_000;

/// Waits after which a warp or a cluster is mostly fast.
const SLOW_WAITS: u64 = 16;

/// Of so many later waits, or waits of a calm cluster, one makes a warp slow.
const SLOW_LATER: u64 = 16;

/// Turns that a slow warp lets pass before it begins, and one more.
const LATEST_START: u64 = 16;

/// Clusters of a grid that are slow, on average. Slow turns cost host time.
const SLOW_CLUSTERS: u64 = 16;

/// Rounds between two orders of a calm cluster, on average.
const CALM_ROUNDS: u64 = 16;

/// 2^64 over each number from 2 on, rounded down: as many as a CTA has warps, and some more.
const RECIPROCALS: [u64; 65] = {
    let mut all = [0; 65];
    let mut n = 2;
    while n < all.len() {
        all[n] = ((1 << 64) / n as u128) as u64;
        n += 1;
    }
    all
};

/// `drawn % below`, of which the reciprocal is known.
#[inline(always)]
fn by_reciprocal(drawn: u64, below: u64, reciprocal: u64) -> u64 {
    let quotient = (u128::from(drawn) * u128::from(reciprocal)) >> 64;
    let rest = drawn - quotient as u64 * below;
    rest.min(rest.wrapping_sub(below))
}

/// `drawn % below`. Small divisors are not divided by, which takes longer: a quotient by the
/// reciprocal is right or one too small.
#[inline(always)]
fn remainder(drawn: u64, below: u64) -> u64 {
    match RECIPROCALS.get(below as usize) {
        Some(reciprocal) if below > 1 => by_reciprocal(drawn, below, *reciprocal),
        _ if below.is_power_of_two() => drawn & (below - 1),
        _ => drawn % below.max(1),
    }
}

/// How far the state of a sequence goes on for each of its numbers.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of a state.
#[inline(always)]
fn mixed(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The choices of one cluster.
pub(crate) struct Adversary {
    random: u64,
    pub(crate) delivery: Delivery,
    /// Whether half of its first waits make a warp slow.
    slow: bool,
}

impl Adversary {
    /// Those of a cluster of so many.
    pub(crate) fn new(seed: u64, cluster: u64, clusters: u64) -> Self {
        let mut adversary = Self {
            random: seed ^ cluster.wrapping_mul(0xd134_2543_de82_ef95),
            delivery: Delivery::Latest,
            slow: true,
        };
        // Neighbouring seeds and clusters must not begin alike.
        adversary.random = adversary.next();
        if clusters > SLOW_CLUSTERS {
            adversary.slow = adversary.draw(clusters) < SLOW_CLUSTERS;
        }
        if seed % 2 == 1 {
            adversary.delivery = match adversary.heads() {
                true => Delivery::Earliest,
                false => Delivery::Drawn,
            };
        }
        adversary
    }

    /// The choices between clusters.
    pub(crate) fn of_grid(seed: u64) -> Self {
        Self::new(seed, u64::MAX, 1)
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(STEP);
        mixed(self.random)
    }

    /// The next number of the seed's sequence, below `below`.
    #[inline]
    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        remainder(self.next(), below)
    }

    pub(crate) fn heads(&mut self) -> bool {
        self.next() >> 63 == 1
    }

    /// Shuffles an order.
    pub(crate) fn shuffle<T>(&mut self, order: &mut [T]) {
        if let Some(reciprocals) = RECIPROCALS.get(2..=order.len()) {
            let mut state = self.random;
            for (left, reciprocal) in (1..order.len()).zip(reciprocals).rev() {
                state = state.wrapping_add(STEP);
                let chosen = by_reciprocal(mixed(state), left as u64 + 1, *reciprocal);
                order.swap(left, chosen as usize);
            }
            self.random = state;
            return;
        }
        for left in (1..order.len()).rev() {
            order.swap(left, self.draw(left as u64 + 1) as usize);
        }
    }

    /// Whether the order of priorities changes.
    pub(crate) fn reorders(&mut self) -> bool {
        let most = if self.slow { 4 } else { CALM_ROUNDS };
        self.draw(most) == 0
    }

    /// Whether the first ones are offered a turn again before the last ones have had theirs.
    pub(crate) fn insists(&mut self) -> bool {
        self.slow && self.draw(4) > 0
    }

    /// Draws the order in which warps are offered their turns.
    pub(crate) fn reorder(&mut self, order: &mut [(u32, u32)]) {
        match self.slow {
            true => self.shuffle(order),
            // Neighbours stay neighbours, whose bytes often lie at equal distances.
            false => {
                order.rotate_left(self.draw(order.len() as u64) as usize);
                if self.heads() {
                    order.reverse();
                }
            }
        }
        if !self.heads() {
            return;
        }
        let first = |&(_, warp): &(u32, u32)| warp == 0;
        match order.iter().position(first) {
            // Usually there is one, which is moved more quickly than all are sorted.
            Some(at) if !order[at + 1..].iter().any(first) => order[at..].rotate_left(1),
            _ => order.sort_by_key(first),
        }
    }

    /// Whether to be slow after so many waits. That costs host time, so it becomes rare in long
    /// kernels.
    pub(crate) fn dawdles(&mut self, waits: u64) -> bool {
        match waits {
            0..SLOW_WAITS if self.slow => self.heads(),
            _ => self.draw(SLOW_LATER) == 0,
        }
    }

    /// The pace of a warp that has waited so often; none is as fast as it can be.
    pub(crate) fn pace(&mut self, waits: u32) -> Option<Pace> {
        self.dawdles(u64::from(waits)).then(|| Pace {
            turns: 0,
            late: match waits {
                0 => self.draw(LATEST_START) as u32,
                _ => 0,
            },
        })
    }

    /// Observable instructions of a turn at a pace; none lets the turn pass.
    pub(crate) fn turn(&mut self, pace: &mut Option<Pace>) -> u32 {
        let Some(pace) = pace else {
            return u32::MAX;
        };
        if pace.late > 0 {
            pace.late -= 1;
            return 0;
        }
        pace.turns += 1;
        let most = match pace.turns {
            0..8 => 4,
            // Any length is as likely as its double.
            _ => 4 << self.draw(8),
        };
        match self.draw(16) {
            0..6 => 0,
            6..11 => 1,
            _ => 1 + self.draw(most) as u32,
        }
    }

    /// When a copy issued `now` lands unless somebody waits for it before.
    pub(crate) fn due(&mut self, now: EventTime, latency: Latency) -> EventTime {
        now + match self.delivery {
            Delivery::Latest => PATIENCE,
            Delivery::Earliest => 0,
            Delivery::Drawn => latency.least + self.draw(latency.spread),
        }
    }

    /// Whether a `try_wait` or `test_wait` that has to wait says "not yet" first.
    pub(crate) fn refuses(&mut self) -> bool {
        self.delivery == Delivery::Latest || self.heads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_seeds_and_clusters_differ() {
        let orders: Vec<Vec<u8>> = (0..8)
            .flat_map(|seed| (0..4).map(move |cluster| (seed, cluster)))
            .map(|(seed, cluster)| {
                let mut order: Vec<u8> = (0..16).collect();
                Adversary::new(seed, cluster, 1).shuffle(&mut order);
                order
            })
            .collect();
        let distinct: std::collections::HashSet<_> = orders.iter().collect();
        assert_eq!(distinct.len(), orders.len());
    }

    #[test]
    fn a_remainder_is_that_of_a_division() {
        let mut adversary = Adversary::of_grid(3);
        for below in 0..100 {
            let ends = [0, 1, below, u64::MAX, u64::MAX - below];
            let drawn = std::iter::repeat_with(|| adversary.next()).take(1000);
            for n in ends.into_iter().chain(drawn) {
                assert_eq!(remainder(n, below), n % below.max(1), "{n} % {below}");
            }
        }
    }

    #[test]
    fn of_a_large_grid_a_few_clusters_are_slow() {
        let slow = |clusters| (0..clusters).filter(move |&c| Adversary::new(7, c, clusters).slow);
        assert_eq!(slow(16).count(), 16);
        assert!((4..64).contains(&slow(10_000).count()));
    }

    #[test]
    fn warps_of_calm_clusters_follow_each_other_forwards_or_backwards() {
        let step = |seed| {
            let mut adversary = Adversary::new(seed, 0, 1);
            adversary.slow = false;
            let mut order: Vec<(u32, u32)> = (0..8).map(|warp| (0, warp)).collect();
            adversary.reorder(&mut order);
            // The first warp may be last instead.
            order.retain(|&(_, warp)| warp != 0);
            let steps: std::collections::HashSet<u32> = (order.windows(2))
                .map(|pair| (pair[1].1 + 7 - pair[0].1) % 7)
                .collect();
            Vec::from_iter(steps)
        };
        assert!((0..64).all(|seed| matches!(step(seed)[..], [1 | 6])));
        assert!((0..64).any(|seed| step(seed) == [1]) && (0..64).any(|seed| step(seed) == [6]));
    }

    #[test]
    fn even_seeds_deliver_last_and_odd_ones_both_at_once_and_later() {
        let of = |seed| (0..16).map(move |cluster| Adversary::new(seed, cluster, 1).delivery);
        assert!(of(0).chain(of(6)).all(|d| d == Delivery::Latest));
        assert!(of(1).any(|d| d == Delivery::Earliest));
        assert!(of(1).any(|d| d == Delivery::Drawn));
        assert!(of(1).all(|d| d != Delivery::Latest));
    }
}
