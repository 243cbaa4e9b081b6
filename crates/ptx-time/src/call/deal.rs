//! Which clusters come one after another on an SM.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ptx_emu::trace::Trace;

use crate::classes::Class;

/// Clusters that are dealt out one by one; of more, one in so many is.
const DEALT: u64 = 1 << 20;

/// The clusters of one SM.
#[derive(Debug)]
pub(super) struct Dealt {
    /// How many there are.
    pub(super) all: u64,
    /// Their classes in the order they start, evenly many of each that is here.
    classes: Vec<u32>,
}

impl Dealt {
    /// The class of one of `of` that stand for all.
    pub(super) fn class(&self, number: u64, of: u64) -> usize {
        let place = number as usize * self.classes.len() / of.max(1) as usize;
        self.classes[place] as usize
    }
}

/// What the SM has that ends last. Each cluster goes, by its number, to the place that is free
/// first; those that were not traced are like the nearest that was. A cluster takes as long as the
/// longest of its warps has events: only how they compare matters. Clusters side by side on an SM
/// take its time from each other, so that the one ends last which has most.
pub(super) fn last_to_end(
    trace: &Trace,
    classes: &[Class],
    clusters: u64,
    groups: u64,
    resident: u64,
) -> Dealt {
    let in_rounds = clusters.div_ceil(groups);
    if in_rounds == 1 || classes.len() == 1 {
        return Dealt {
            all: in_rounds,
            classes: vec![0],
        };
    }
    let lengths: Vec<u64> = classes.iter().map(|class| length(trace, class)).collect();
    let mut known: Vec<(u64, u32)> = (0..)
        .zip(classes)
        .flat_map(|(class, of)| of.clusters.iter().map(move |&number| (number, class)))
        .collect();
    known.sort_unstable();
    // Every SM has one before any has two.
    let places = (0..resident).flat_map(|_| 0..groups);
    let mut free: BinaryHeap<Reverse<(u64, u64, u64)>> = (0..)
        .zip(places)
        .map(|(place, group)| Reverse((0, place, group)))
        .collect();
    let one_in = clusters.div_ceil(DEALT);
    let mut nearest = 0;
    let mut given = vec![0; groups as usize];
    let mut dealt: Vec<Vec<u32>> = vec![Vec::new(); groups as usize];
    for number in (0..clusters).step_by(one_in as usize) {
        while known
            .get(nearest + 1)
            .is_some_and(|next| next.0.abs_diff(number) <= known[nearest].0.abs_diff(number))
        {
            nearest += 1;
        }
        let class = known[nearest].1;
        let Some(Reverse((at, place, group))) = free.pop() else {
            break;
        };
        free.push(Reverse((at + lengths[class as usize], place, group)));
        given[group as usize] += lengths[class as usize];
        dealt[group as usize].push(class);
    }
    let last = (0..dealt.len()).max_by_key(|&group| (given[group], dealt[group].len()));
    let classes = last.map_or_else(Vec::new, |group| dealt.swap_remove(group));
    Dealt {
        all: classes.len() as u64 * one_in,
        classes,
    }
}

fn length(trace: &Trace, class: &Class) -> u64 {
    let ctas = class.members.iter().map(|&at| &trace.ctas[at]);
    let warps = ctas.flat_map(|cta| &cta.warps).map(Vec::len);
    warps.max().unwrap_or(0).max(1) as u64
}

#[cfg(test)]
mod tests {
    use ptx_emu::trace::{CtaTrace, Deed, Event};

    use super::*;
    use crate::classes::classes;

    /// Clusters of one warp each, by their numbers and lengths.
    fn traced(clusters: &[(u64, usize)]) -> Trace {
        let cta = |&(number, length): &(u64, usize)| CtaTrace {
            cta: number,
            cluster: number,
            rank: 0,
            warps: vec![vec![
                Event::Did {
                    at: 0,
                    deed: Deed::WgmmaCommit
                };
                length
            ]],
        };
        Trace {
            ctas: clusters.iter().map(cta).collect(),
            ..Trace::default()
        }
    }

    fn dealt(known: &[(u64, usize)], clusters: u64, groups: u64, resident: u64) -> Vec<usize> {
        let trace = traced(known);
        let classes = classes(&trace);
        let last = last_to_end(&trace, &classes, clusters, groups, resident);
        let class = |number: u64| &classes[last.class(number, last.all)];
        let lengths = (0..last.all).map(|number| length(&trace, class(number)) as usize);
        lengths.collect()
    }

    #[test]
    fn clusters_of_one_length_come_in_rounds() {
        let known = [(0, 5), (9, 5)];
        assert_eq!(dealt(&known, 10, 4, 1), [5, 5, 5]);
        assert_eq!(dealt(&known, 10, 4, 2), [5, 5, 5]);
        assert_eq!(dealt(&known, 10, 16, 1), [5]);
    }

    #[test]
    fn who_has_a_short_one_takes_the_next() {
        // Four short, four long, eight of middling length on four SMs.
        let known = [(0, 2), (3, 2), (4, 6), (7, 6), (8, 3), (15, 3)];
        // At 2 each begins a long one, at 8 one of the rest, at 11 the other.
        assert_eq!(dealt(&known, 16, 4, 1), [2, 6, 3, 3]);
        // On five the first of the long ones begins at once, and its SM takes two more.
        assert_eq!(dealt(&known, 16, 5, 1), [6, 3, 3]);
    }

    #[test]
    fn who_has_two_side_by_side_ends_after_who_has_one() {
        // Six on four SMs with two places each; the third, alone on its SM, is a little longer.
        let known = [(0, 5), (1, 5), (2, 6), (3, 5), (5, 5)];
        assert_eq!(dealt(&known, 6, 4, 2), [5, 5]);
    }

    #[test]
    fn a_grid_without_end_is_dealt_out_in_parts() {
        let known = [(0, 5), (1 << 33, 6)];
        let trace = traced(&known);
        let classes = classes(&trace);
        let last = last_to_end(&trace, &classes, 1 << 34, 4, 1);
        let even = (1_u64 << 34) / 4;
        assert!(last.all.abs_diff(even) < even / 8, "{last:?}");
    }
}
