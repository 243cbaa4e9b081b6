//! Honest ranks: contenders that cannot be distinguished share one.

use std::fmt;

/// A place in a ranking: `1`, or `2=` if several share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPosition {
    pub rank: usize,
    pub tied: bool,
}

impl fmt::Display for RankPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!(
            "{}{}",
            self.rank,
            if self.tied { "=" } else { "" }
        ))
    }
}

/// Places for entrants sorted best first. A group goes on while its members cannot be distinguished
/// from its *first*: comparing neighbours only would let a long row of small steps tie the best
/// with the worst.
pub fn places(count: usize, differ: impl Fn(usize, usize) -> bool) -> Vec<RankPosition> {
    let mut places = Vec::with_capacity(count);
    let mut first = 0;
    while first < count {
        let members = (first + 1..count)
            .take_while(|&i| !differ(first, i))
            .count()
            + 1;
        let place = RankPosition {
            rank: first + 1,
            tied: members > 1,
        };
        places.extend(std::iter::repeat_n(place, members));
        first += members;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(values: &[f64], threshold: f64) -> String {
        let places = places(values.len(), |a, b| {
            (values[a] - values[b]).abs() > threshold
        });
        let text: Vec<String> = places.iter().map(RankPosition::to_string).collect();
        text.join(" ")
    }

    #[test]
    fn ties_share_a_rank_and_the_next_skips() {
        assert_eq!(printed(&[9.0, 5.0, 4.9, 1.0], 0.2), "1 2= 2= 4");
        assert_eq!(printed(&[3.0, 2.0, 1.0], 0.0), "1 2 3");
        assert_eq!(printed(&[], 0.0), "");
    }

    #[test]
    fn small_steps_do_not_chain() {
        assert_eq!(printed(&[1.0, 0.9, 0.8, 0.7], 0.15), "1= 1= 3= 3=");
    }
}
