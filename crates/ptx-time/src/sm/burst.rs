//! What an SM asks memory for before anything has come, when all SMs ask at the same time.

use super::Ticks;

/// The requests of an SM up to the first arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct Burst {
    /// When each was made, and the bytes of memory's time it takes.
    asked: Vec<(Ticks, f64)>,
    /// When the first of them is here.
    first_here: Option<Ticks>,
}

impl Burst {
    /// One more request, if nothing has come yet.
    pub(super) fn ask(&mut self, now: Ticks, bytes: f64, here: Ticks) {
        if !self.is_over(now) {
            self.asked.push((now, bytes));
            self.first_here.get_or_insert(here);
        }
    }

    pub(super) fn is_over(&self, now: Ticks) -> bool {
        self.first_here.is_some_and(|here| here <= now)
    }

    /// Bytes of memory's time asked for after `now`, and not after `end`.
    pub(super) fn asked_between(&self, now: Ticks, end: Ticks) -> f64 {
        let later = self.asked.iter().filter(|(at, _)| now < *at && *at <= end);
        later.map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_ends_with_the_first_arrival() {
        let mut burst = Burst::default();
        assert!(!burst.is_over(1000));
        for (at, here) in [(10, 500), (20, 900), (499, 950), (500, 960)] {
            burst.ask(at, 64.0, here);
        }
        assert!(burst.is_over(500));
        assert_eq!(burst.asked_between(0, 1000), 3.0 * 64.0);
        assert_eq!(burst.asked_between(10, 20), 64.0);
    }
}
