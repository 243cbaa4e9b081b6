//! Assigns tiles to CTAs in advance. A queue in the kernel gives the next tile to the next free
//! CTA, which leaves the end to chance if tiles differ in length; here the lengths are known, so
//! the CTAs can be made to end together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of exchanges that are examined.
const PATIENCE: usize = 20_000_000;
/// Maximum tiles per worker for which exchanges are tried: with more, the workers end within a few
/// per cent of each other anyway.
const FEW: usize = 32;

/// Tiles dealt out.
pub(super) struct TileAssignment {
    /// The tiles of each worker, ascending. Worker w begins with tile w, which is not listed.
    pub(super) tiles: Vec<Vec<u32>>,
    /// When the last worker is done.
    pub(super) makespan: u64,
    /// The cost of all tiles.
    pub(super) cost: u64,
    /// The number of examined exchanges.
    pub(super) looked_at: usize,
}

/// Tile i costs `costs[i]`.
pub(super) fn deal(costs: &[u64], workers: usize) -> TileAssignment {
    let mut hands: Vec<WorkerTiles> = (0..workers.min(costs.len()))
        .map(|tile| WorkerTiles::new(tile, costs))
        .collect();
    let alike = costs.iter().all(|cost| *cost == costs[0] && *cost > 0);
    match alike {
        true => in_turn(&mut hands, costs),
        false => longest_first(&mut hands, costs),
    }
    let looked_at = match !alike && costs.len() <= FEW.saturating_mul(workers) {
        true => even_out(&mut hands, costs),
        false => 0,
    };
    let makespan = hands.iter().map(|hand| hand.load).max().unwrap_or(0);
    let tiles = hands.into_iter().map(|mut hand| {
        hand.tiles.sort_unstable();
        hand.tiles
    });
    TileAssignment {
        tiles: tiles.collect(),
        makespan,
        cost: costs.iter().copied().fold(0, u64::saturating_add),
        looked_at,
    }
}

struct WorkerTiles {
    /// The first is the worker's fixed one.
    tiles: Vec<u32>,
    load: u64,
}

impl WorkerTiles {
    fn new(tile: usize, costs: &[u64]) -> Self {
        Self {
            tiles: vec![tile as u32],
            load: costs[tile],
        }
    }
}

/// What `longest_first` does with tiles of one length.
fn in_turn(hands: &mut [WorkerTiles], costs: &[u64]) {
    let workers = hands.len();
    for (tile, cost) in costs.iter().enumerate().skip(workers) {
        let hand = &mut hands[tile % workers];
        hand.tiles.push(tile as u32);
        hand.load = hand.load.saturating_add(*cost);
    }
}

/// The longest remaining tile to the least loaded worker, until none is left.
fn longest_first(hands: &mut [WorkerTiles], costs: &[u64]) {
    let mut rest: Vec<usize> = (hands.len()..costs.len()).collect();
    rest.sort_by_key(|tile| Reverse(costs[*tile]));
    let mut queue: BinaryHeap<_> = (0..hands.len())
        .map(|w| Reverse((hands[w].load, w)))
        .collect();
    for tile in rest {
        if let Some(Reverse((load, w))) = queue.pop() {
            hands[w].tiles.push(tile as u32);
            hands[w].load = load.saturating_add(costs[tile]);
            queue.push(Reverse((hands[w].load, w)));
        }
    }
}

/// Moves a tile of the busiest worker to another, or exchanges it for a shorter one, as long as
/// that helps. Returns the number of examined exchanges.
fn even_out(hands: &mut [WorkerTiles], costs: &[u64]) -> usize {
    let mut looked_at = 0;
    while looked_at < PATIENCE {
        let Some(busiest) = (0..hands.len()).max_by_key(|w| hands[*w].load) else {
            break;
        };
        let Some(trade) = best_trade(hands, costs, busiest, &mut looked_at) else {
            break;
        };
        let given = hands[busiest].tiles.swap_remove(trade.given);
        hands[trade.to].tiles.push(given);
        if let Some(taken) = trade.taken {
            let taken = hands[trade.to].tiles.swap_remove(taken);
            hands[busiest].tiles.push(taken);
        }
        for w in [busiest, trade.to] {
            let loads = hands[w].tiles.iter().map(|tile| costs[*tile as usize]);
            hands[w].load = loads.fold(0, u64::saturating_add);
        }
    }
    looked_at
}

/// Indices among the tiles of the two workers.
struct TileExchange {
    given: usize,
    to: usize,
    taken: Option<usize>,
}

fn best_trade(
    hands: &[WorkerTiles],
    costs: &[u64],
    busiest: usize,
    looked_at: &mut usize,
) -> Option<TileExchange> {
    let cost = |hand: &WorkerTiles, place: usize| costs[hand.tiles[place] as usize];
    let from = &hands[busiest];
    let all: usize = hands.iter().map(|hand| hand.tiles.len()).sum();
    let mut best: Option<(u64, TileExchange)> = None;
    for given in 1..from.tiles.len() {
        *looked_at += all - from.tiles.len();
        let long = cost(from, given);
        // Another tile of that length makes the same trades.
        if (1..given).any(|earlier| cost(from, earlier) == long) {
            continue;
        }
        for (to, hand) in hands.iter().enumerate().filter(|(w, _)| *w != busiest) {
            // After a trade the longer of the two lasts at least as long as their mean.
            let least = best.as_ref().map_or(from.load, |(least, _)| *least);
            if from.load.midpoint(hand.load) >= least {
                continue;
            }
            for taken in std::iter::once(None).chain((1..hand.tiles.len()).map(Some)) {
                let short = taken.map_or(0, |place| cost(hand, place));
                if short >= long {
                    continue;
                }
                let loads = (
                    from.load.saturating_sub(long - short),
                    hand.load.saturating_add(long - short),
                );
                let worse = loads.0.max(loads.1);
                if worse < best.as_ref().map_or(from.load, |(least, _)| *least) {
                    best = Some((worse, TileExchange { given, to, taken }));
                }
            }
        }
    }
    best.map(|(_, trade)| trade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_once_and_the_first_its_own() {
        let costs: Vec<u64> = (0..500).map(|i| 1 + (i * 7919) % 97).collect();
        let TileAssignment {
            tiles,
            makespan,
            cost,
            ..
        } = deal(&costs, 132);
        assert_eq!(cost, costs.iter().sum::<u64>());
        let mut all: Vec<u32> = tiles.concat();
        all.sort_unstable();
        assert_eq!(all, (0..500).collect::<Vec<u32>>());
        for (worker, hand) in tiles.iter().enumerate() {
            assert_eq!(hand[0], worker as u32);
            assert!(hand.is_sorted());
            let load: u64 = hand.iter().map(|tile| costs[*tile as usize]).sum();
            assert!(load <= makespan);
        }
    }

    #[test]
    fn tiles_of_one_length_go_round_in_turn() {
        for tiles in [1, 131, 132, 133, 1000] {
            let costs = vec![7; tiles];
            let dealt = |deal: fn(&mut [WorkerTiles], &[u64])| {
                let hands = 0..tiles.min(132);
                let mut hands: Vec<WorkerTiles> =
                    hands.map(|tile| WorkerTiles::new(tile, &costs)).collect();
                deal(&mut hands, &costs);
                let hands = hands.into_iter();
                hands.map(|h| (h.tiles, h.load)).collect::<Vec<_>>()
            };
            assert_eq!(dealt(in_turn), dealt(longest_first));
        }
    }

    #[test]
    fn fewer_tiles_than_workers() {
        assert_eq!(deal(&[3, 2], 132).tiles, [[0], [1]]);
        assert!(deal(&[], 132).tiles.is_empty());
    }

    #[test]
    fn absurd_costs_and_counts_end() {
        assert_eq!(deal(&[u64::MAX; 3], 1).makespan, u64::MAX);
        let many = vec![7; 1_000_000];
        assert_eq!(deal(&many, 132).makespan, 7 * 1_000_000_u64.div_ceil(132));
    }

    #[test]
    fn no_trade_is_better_than_the_best() {
        let costs: Vec<u64> = (0..60).map(|i| 1 + (i * 7919) % 97).collect();
        let mut hands: Vec<WorkerTiles> =
            (0..7).map(|tile| WorkerTiles::new(tile, &costs)).collect();
        longest_first(&mut hands, &costs);
        let loads =
            |hands: &[WorkerTiles]| hands.iter().map(|hand| hand.load).collect::<Vec<u64>>();
        for busiest in 0..hands.len() {
            let from = &hands[busiest];
            let longer = |to: usize, moved: u64| (from.load - moved).max(hands[to].load + moved);
            let mut least = from.load;
            for to in (0..hands.len()).filter(|to| *to != busiest) {
                let taken = hands[to].tiles[1..]
                    .iter()
                    .map(|tile| costs[*tile as usize]);
                for short in taken.chain([0]) {
                    let given = from.tiles[1..].iter().map(|tile| costs[*tile as usize]);
                    let shorter = given.filter(|long| *long > short);
                    let ends = shorter.map(|long| longer(to, long - short));
                    least = ends.fold(least, u64::min);
                }
            }
            let trade = best_trade(&hands, &costs, busiest, &mut 0);
            let found = trade.map_or(from.load, |trade| {
                let cost = |hand: &WorkerTiles, place: usize| costs[hand.tiles[place] as usize];
                let short = trade.taken.map_or(0, |place| cost(&hands[trade.to], place));
                longer(trade.to, cost(from, trade.given) - short)
            });
            assert_eq!(found, least, "{busiest} of {:?}", loads(&hands));
        }
    }

    #[test]
    fn trades_beat_longest_first() {
        // Eight groups of 64 tiles on 132 SMs, whose width determines their cost.
        let widths = [248_u64, 176, 160, 128, 96, 80, 72, 64];
        let costs: Vec<u64> = widths
            .iter()
            .flat_map(|t| [(4 * t).max(290 + 2 * t) * 112; 64])
            .collect();
        let even = costs.iter().sum::<u64>() as f64 / 132.0;
        let mut hands: Vec<WorkerTiles> = (0..132)
            .map(|tile| WorkerTiles::new(tile, &costs))
            .collect();
        longest_first(&mut hands, &costs);
        let before = hands.iter().map(|hand| hand.load).max().unwrap_or(0);
        assert!(before as f64 > 1.04 * even);
        assert!((deal(&costs, 132).makespan as f64) < 1.02 * even);
    }
}
