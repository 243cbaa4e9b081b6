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
pub(super) fn deal(costs: &[u64], count: usize) -> TileAssignment {
    let mut workers: Vec<WorkerTiles> = (0..count.min(costs.len()))
        .map(|tile| WorkerTiles::new(tile, costs))
        .collect();
    let alike = costs.iter().all(|cost| *cost == costs[0] && *cost > 0);
    match alike {
        true => in_turn(&mut workers, costs),
        false => longest_first(&mut workers, costs),
    }
    let looked_at = match !alike && costs.len() <= FEW.saturating_mul(count) {
        true => even_out(&mut workers, costs),
        false => 0,
    };
    let makespan = workers.iter().map(|worker| worker.load).max().unwrap_or(0);
    let tiles = workers.into_iter().map(|mut worker| {
        worker.tiles.sort_unstable();
        worker.tiles
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
fn in_turn(workers: &mut [WorkerTiles], costs: &[u64]) {
    let count = workers.len();
    for (tile, cost) in costs.iter().enumerate().skip(count) {
        let worker = &mut workers[tile % count];
        worker.tiles.push(tile as u32);
        worker.load = worker.load.saturating_add(*cost);
    }
}

/// The longest remaining tile to the least loaded worker, until none is left.
fn longest_first(workers: &mut [WorkerTiles], costs: &[u64]) {
    let mut rest: Vec<usize> = (workers.len()..costs.len()).collect();
    rest.sort_by_key(|tile| Reverse(costs[*tile]));
    let mut queue: BinaryHeap<_> = (0..workers.len())
        .map(|w| Reverse((workers[w].load, w)))
        .collect();
    for tile in rest {
        if let Some(Reverse((load, w))) = queue.pop() {
            workers[w].tiles.push(tile as u32);
            workers[w].load = load.saturating_add(costs[tile]);
            queue.push(Reverse((workers[w].load, w)));
        }
    }
}

/// Moves a tile of the busiest worker to another, or exchanges it for a shorter one, as long as
/// that helps. Returns the number of examined exchanges.
fn even_out(workers: &mut [WorkerTiles], costs: &[u64]) -> usize {
    let mut looked_at = 0;
    while looked_at < PATIENCE {
        let Some(busiest) = (0..workers.len()).max_by_key(|w| workers[*w].load) else {
            break;
        };
        let Some(exchange) = best_exchange(workers, costs, busiest, &mut looked_at) else {
            break;
        };
        let given = workers[busiest].tiles.swap_remove(exchange.given);
        workers[exchange.to].tiles.push(given);
        if let Some(taken) = exchange.taken {
            let taken = workers[exchange.to].tiles.swap_remove(taken);
            workers[busiest].tiles.push(taken);
        }
        for w in [busiest, exchange.to] {
            let loads = workers[w].tiles.iter().map(|tile| costs[*tile as usize]);
            workers[w].load = loads.fold(0, u64::saturating_add);
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

fn best_exchange(
    workers: &[WorkerTiles],
    costs: &[u64],
    busiest: usize,
    looked_at: &mut usize,
) -> Option<TileExchange> {
    let from = &workers[busiest];
    let all: usize = workers.iter().map(|worker| worker.tiles.len()).sum();
    let mut best = None;
    let mut least = from.load;
    for given in 1..from.tiles.len() {
        *looked_at += all - from.tiles.len();
        let long = costs[from.tiles[given] as usize];
        // Another tile of that length makes the same trades.
        let mut earlier = from.tiles[1..given].iter();
        if earlier.any(|tile| costs[*tile as usize] == long) {
            continue;
        }
        for (to, worker) in workers.iter().enumerate() {
            // After an exchange the longer of the two lasts at least as long as their mean.
            if to == busiest || from.load.midpoint(worker.load) >= least {
                continue;
            }
            for (place, tile) in worker.tiles.iter().enumerate() {
                // The first tile stays: in its place nothing is taken.
                let taken = (place > 0).then_some(place);
                let short = if place > 0 { costs[*tile as usize] } else { 0 };
                if short >= long {
                    continue;
                }
                let moved = long - short;
                let left = from.load.saturating_sub(moved);
                let worse = left.max(worker.load.saturating_add(moved));
                if worse < least {
                    least = worse;
                    best = Some(TileExchange { given, to, taken });
                }
            }
        }
    }
    best
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
        for (number, worker) in tiles.iter().enumerate() {
            assert_eq!(worker[0], number as u32);
            assert!(worker.is_sorted());
            let load: u64 = worker.iter().map(|tile| costs[*tile as usize]).sum();
            assert!(load <= makespan);
        }
    }

    #[test]
    fn tiles_of_one_length_go_round_in_turn() {
        for tiles in [1, 131, 132, 133, 1000] {
            let costs = vec![7; tiles];
            let dealt = |deal: fn(&mut [WorkerTiles], &[u64])| {
                let workers = 0..tiles.min(132);
                let mut workers: Vec<WorkerTiles> =
                    workers.map(|tile| WorkerTiles::new(tile, &costs)).collect();
                deal(&mut workers, &costs);
                let workers = workers.into_iter();
                workers.map(|w| (w.tiles, w.load)).collect::<Vec<_>>()
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
        let mut workers: Vec<WorkerTiles> =
            (0..7).map(|tile| WorkerTiles::new(tile, &costs)).collect();
        longest_first(&mut workers, &costs);
        let loads = |workers: &[WorkerTiles]| {
            workers
                .iter()
                .map(|worker| worker.load)
                .collect::<Vec<u64>>()
        };
        for busiest in 0..workers.len() {
            let from = &workers[busiest];
            let longer = |to: usize, moved: u64| (from.load - moved).max(workers[to].load + moved);
            let mut least = from.load;
            for to in (0..workers.len()).filter(|to| *to != busiest) {
                let taken = workers[to].tiles[1..]
                    .iter()
                    .map(|tile| costs[*tile as usize]);
                for short in taken.chain([0]) {
                    let given = from.tiles[1..].iter().map(|tile| costs[*tile as usize]);
                    let shorter = given.filter(|long| *long > short);
                    let ends = shorter.map(|long| longer(to, long - short));
                    least = ends.fold(least, u64::min);
                }
            }
            let exchange = best_exchange(&workers, &costs, busiest, &mut 0);
            let found = exchange.map_or(from.load, |exchange| {
                let cost = |worker: &WorkerTiles, place: usize| costs[worker.tiles[place] as usize];
                let short = exchange
                    .taken
                    .map_or(0, |place| cost(&workers[exchange.to], place));
                longer(exchange.to, cost(from, exchange.given) - short)
            });
            assert_eq!(found, least, "{busiest} of {:?}", loads(&workers));
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
        let mut workers: Vec<WorkerTiles> = (0..132)
            .map(|tile| WorkerTiles::new(tile, &costs))
            .collect();
        longest_first(&mut workers, &costs);
        let before = workers.iter().map(|worker| worker.load).max().unwrap_or(0);
        assert!(before as f64 > 1.04 * even);
        assert!((deal(&costs, 132).makespan as f64) < 1.02 * even);
    }
}
