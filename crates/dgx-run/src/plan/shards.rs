//! Distributes a round's shapes over shards or cards. All contenders of a shape stay together,
//! since they are compared with each other.

use std::cmp::Reverse;

use super::deal::deal;
use dgx_core::domain::{Group, Shape, Timing};
use dgx_core::operator::Operator;

/// Rows to which a tile pads a group.
const TILE_ROWS: usize = 64;

/// Approximate time of a contender on a shape, relative to other shapes: its products, with padded
/// rows, and a constant for every call.
pub fn cost(operator: &Operator, shape: &Shape, timing: Timing) -> f64 {
    let products = |group: &Group| {
        let work = operator.work_of(std::slice::from_ref(group));
        let rows = operator
            .output_extents(0, group)
            .map_or(1, |(rows, _)| rows);
        // Four operations for each place of two products.
        let padded = work.tensor_flops() / 4.0 * rows.max(TILE_ROWS) as f64 / rows as f64;
        padded.max(work.memory_bytes)
    };
    // Before a card is timed its operands are drawn and uploaded, its cache is flushed, its output
    // compared: about a millisecond a call on an H200, which could compute this many products in
    // that time.
    let call = match timing.sampled() {
        true => 6e10,
        false => 1e6,
    };
    shape.groups.iter().map(products).sum::<f64>() + call
}

/// The shapes of each shard, by their indices, in order; fewer shards if there are fewer shapes.
/// The result depends only on the shapes: every node computes the same.
pub fn shards(
    operator: &Operator,
    shapes: &[Shape],
    count: usize,
    timing: Timing,
) -> Vec<Vec<usize>> {
    let cost = |shape: &Shape| (cost(operator, shape, timing) / 1e3).ceil() as u64;
    let costs: Vec<u64> = shapes.iter().map(cost).collect();
    let mut order: Vec<usize> = (0..shapes.len()).collect();
    order.sort_by_key(|place| (Reverse(costs[*place]), *place));
    let sorted: Vec<u64> = order.iter().map(|place| costs[*place]).collect();
    let shares = deal(&sorted, count.max(1)).tiles.into_iter();
    shares
        .map(|share| {
            let mut places: Vec<usize> = share.iter().map(|t| order[*t as usize]).collect();
            places.sort_unstable();
            places
        })
        .collect()
}

/// The time of the longest shard over the mean.
pub fn imbalance(
    operator: &Operator,
    shapes: &[Shape],
    shards: &[Vec<usize>],
    timing: Timing,
) -> f64 {
    let cost = |place: &usize| cost(operator, &shapes[*place], timing);
    let load = |shard: &Vec<usize>| -> f64 { shard.iter().map(cost).sum() };
    let loads: Vec<f64> = shards.iter().map(load).collect();
    let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
    loads.into_iter().fold(0.0, f64::max) / mean.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::group;

    /// Very different shapes: from one row to 8192, in turn.
    fn field(count: u32) -> Vec<Shape> {
        let shape = |i: u32| Shape {
            name: format!("s{i}"),
            groups: vec![group(
                1 << (i * 7 % 14),
                512 * (1 + i * 5 % 16),
                256 * (1 + i * 3 % 28),
            )],
        };
        (0..count).map(shape).collect()
    }

    #[test]
    fn every_shape_is_in_one_shard_and_every_node_finds_the_same() {
        let shapes = field(100);
        for count in [1, 3, 8, 100] {
            let dealt = shards(default_operator(), &shapes, count, Timing::Modelled);
            assert_eq!(
                dealt,
                shards(default_operator(), &shapes, count, Timing::Modelled)
            );
            assert_eq!(dealt.len(), count);
            let mut all: Vec<usize> = dealt.concat();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
        }
        assert_eq!(
            shards(default_operator(), &shapes[..3], 8, Timing::Measured).len(),
            3
        );
    }

    #[test]
    fn sixty_four_cards_end_within_a_tenth_of_each_other() {
        // Ten thousand cells: 1000 shapes of 10 contenders, or 500 of 20.
        for (shapes, timing) in [
            (field(1000), Timing::Measured),
            (field(500), Timing::Measured),
            (field(1000), Timing::Modelled),
        ] {
            let dealt = shards(default_operator(), &shapes, 64, timing);
            let over = imbalance(default_operator(), &shapes, &dealt, timing);
            assert!(over <= 1.1, "{} shapes: {over}", shapes.len());
        }
    }
}
