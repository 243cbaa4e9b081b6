use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use sha2::{Digest, Sha256};

use super::fresh::{Axis, input_axes, moved, moved_back, moved_values, output_axes, product_axes};
use super::{GroupOperands, GroupOracle, Operands, Oracle, OutputValues, is_gated};
use dgx_core::domain::{Group, mix};
use dgx_core::operator::Operator;

/// Another problem with the same numbers. For gated products, the rows of A, those of B1 and B2
/// together, and the blocks along K are permuted, and whole rows change their sign: the result
/// follows from the products of the first problem, but not from its C, as silu(-x) is not -silu(x).
/// For others, whatever the symmetries of the operator allow. tools.cu does the same on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shuffle(u64);

/// The values drawn from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawnValue {
    SignsOfA = 0,
    SignsOfB1 = 1,
    SignsOfB2 = 2,
    RowsOfA = 3,
    RowsOfB = 4,
    Blocks = 5,
}

/// Separates these hashes from those of addresses.
const SHUFFLE: u64 = 1 << 63;

impl Shuffle {
    pub(crate) fn new(key: u64) -> Self {
        Self(key)
    }

    /// Whether a row changes its sign.
    pub(crate) fn negates(self, signs: u32, group: usize, row: u32) -> bool {
        self.hash(signs, group, row) & 1 == 1
    }

    /// The sources of a permutation of `count` items.
    pub(crate) fn order(self, of: u32, group: usize, count: usize) -> Vec<u32> {
        let permutation = Permutation::new(self.hash(of, group, 0), count as u32);
        (0..count as u32)
            .map(|index| permutation.at(index))
            .collect()
    }

    fn hash(self, what: u32, group: usize, row: u32) -> u64 {
        let what = u64::from(what) << 56 | (group as u64) << 32 | u64::from(row);
        mix(self.0 ^ mix(SHUFFLE | what))
    }
}

/// A permutation of the numbers below a count, one at a time: rounds of a bijection of the next
/// power of two, until a number is below the count.
struct Permutation {
    count: u32,
    mask: u32,
    shift: u32,
    rounds: [(u32, u32); 3],
}

impl Permutation {
    fn new(key: u64, count: u32) -> Self {
        let bits = u32::BITS - count.saturating_sub(1).leading_zeros();
        let round = |nth: u64| {
            let key = mix(key.wrapping_add(nth));
            (key as u32 | 1, (key >> 32) as u32)
        };
        Self {
            count,
            mask: (1_u64 << bits).wrapping_sub(1) as u32,
            shift: bits / 2 + 1,
            rounds: [1, 2, 3].map(round),
        }
    }

    fn at(&self, index: u32) -> u32 {
        let mut place = index;
        loop {
            for (factor, summand) in self.rounds {
                place = place.wrapping_mul(factor).wrapping_add(summand) & self.mask;
                place ^= place >> self.shift;
            }
            if place < self.count {
                return place;
            }
        }
    }
}

/// A generator for this name: the same in every process with the seed.
pub fn drawing(seed: u64, name: &str) -> ChaCha8Rng {
    let hash = Sha256::new().chain_update(seed.to_le_bytes());
    ChaCha8Rng::from_seed(hash.chain_update(name).finalize().into())
}

impl DrawnValue {
    /// The keys for the signs of the input at `place`, and for the order of its rows.
    pub(crate) fn of_input(place: usize) -> (Self, Self) {
        match place {
            0 => (Self::SignsOfA, Self::RowsOfA),
            1 => (Self::SignsOfB1, Self::RowsOfB),
            _ => (Self::SignsOfB2, Self::RowsOfB),
        }
    }
}

impl Operands {
    /// The operands of another problem.
    pub(crate) fn shuffled(&self, shuffle: Shuffle) -> Self {
        let groups = self.groups.iter().enumerate();
        Self {
            operator: Arc::clone(&self.operator),
            groups: groups
                .map(|(index, group)| group.shuffled(&self.operator, shuffle, index))
                .collect(),
        }
    }
}

impl GroupOperands {
    fn shuffled(&self, operator: &Operator, shuffle: Shuffle, index: usize) -> Self {
        let inputs = self.inputs.iter().enumerate();
        let inputs = inputs.map(|(place, tensor)| {
            let axes = input_axes(operator, place, &tensor.extents);
            moved(tensor, &axes, shuffle, index)
        });
        Self {
            group: self.group.clone(),
            inputs: inputs.collect(),
        }
    }
}

impl Oracle {
    /// The expected result for the shuffled operands of `groups`.
    pub(crate) fn shuffled(&self, shuffle: Shuffle, operator: &Operator, groups: &[Group]) -> Self {
        let outputs = operator.outputs.len();
        let answers = self.groups.iter().enumerate();
        let shuffled = answers.map(|(place, answer)| {
            let (group, output) = (place / outputs, place % outputs);
            let (gate, up, values) = match answer.is_gated() {
                true => {
                    let axes = |right| product_axes(answer.rows, answer.columns, right);
                    let moved =
                        |product, right| moved_values(product, &axes(right), shuffle, group);
                    (moved(&answer.gate, 1), moved(&answer.up, 2), Vec::new())
                }
                false => {
                    let axes = axes_of(operator, output, &groups[group]);
                    let values = moved_values(&answer.values, &axes, shuffle, group);
                    (Vec::new(), Vec::new(), values)
                }
            };
            GroupOracle {
                gate,
                up,
                values,
                ..*answer
            }
        });
        Self {
            groups: shuffled.collect(),
        }
    }
}

/// Outputs of a call, changed back to those for the unshuffled data, if that is one to one: every
/// element was written, and belongs to an output.
pub(crate) fn unshuffled(
    outputs: &[OutputValues],
    shuffle: Shuffle,
    operator: &Operator,
    groups: &[Group],
) -> Option<Vec<OutputValues>> {
    if is_gated(operator) || !outputs.iter().all(OutputValues::is_whole) {
        return None;
    }
    let count = operator.outputs.len();
    let moved = outputs.iter().enumerate().map(|(place, written)| {
        let axes = axes_of(operator, place % count, &groups[place / count]);
        moved_back(written, &axes, shuffle, place / count)
    });
    Some(moved.collect())
}

/// The changes of calls to an output of a group.
pub(crate) fn axes_of(operator: &Operator, output: usize, group: &Group) -> Vec<Axis> {
    let sizes = operator.sizes_in(group).unwrap_or_default();
    let extents = operator.outputs[output].tensor.extents(&sizes);
    let extents: Vec<usize> = extents.iter().flatten().map(|e| *e as usize).collect();
    output_axes(operator, output, &extents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::Distribution;
    use dgx_core::domain::Shape;
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::group;

    #[test]
    fn everything_comes_from_somewhere_and_from_elsewhere_each_time() {
        for count in [1, 2, 3, 5, 16, 17, 40, 100, 128, 448, 4096, 7168] {
            let order = |key| Shuffle::new(key).order(DrawnValue::RowsOfB as u32, 2, count);
            let mut sorted = order(1);
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count as u32).collect::<Vec<_>>());
            if count > 10 {
                let stay = order(1).into_iter().zip(order(2)).filter(|(a, b)| a == b);
                assert!(stay.count() < 8, "{count}");
            }
        }
        // Every place is reached from about everywhere.
        let mut seen = [[0_u32; 5]; 5];
        for key in 0..1000 {
            let order = Shuffle::new(mix(key)).order(DrawnValue::RowsOfA as u32, 0, 5);
            order
                .iter()
                .enumerate()
                .for_each(|(to, from)| seen[to][*from as usize] += 1);
        }
        let counts = seen.as_flattened();
        assert!(counts.iter().all(|n| (100..320).contains(n)), "{seen:?}");
    }

    /// The products are those of the operands, and C differs from that with another sign.
    #[test]
    fn the_answer_to_shuffled_operands_is_the_shuffled_answer() {
        let groups = [(3, 128, 256), (37, 144, 512)].map(|(m, n, k)| group(m, n, k));
        let shape = Shape {
            name: "t".to_owned(),
            groups: groups.to_vec(),
        };
        for distribution in Distribution::ALL {
            let operands = Operands::draw(default_operator(), &shape, distribution, 7);
            let oracle = Oracle::compute(&operands);
            let shuffle = Shuffle::new(99);
            let (posed, answer) = {
                let answer = oracle.shuffled(shuffle, default_operator(), &shape.groups);
                (operands.shuffled(shuffle), answer)
            };
            let mut rng = rand::rng();
            for (group, wanted) in Oracle::compute(&posed).groups.iter().zip(&answer.groups) {
                let same = |a: &[f32], b: &[f32]| {
                    let near = |(a, b): (&f32, &f32)| {
                        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * a.abs()
                    };
                    a.iter().zip(b).all(near)
                };
                assert!(same(&group.gate, &wanted.gate), "{distribution}");
                assert!(same(&group.up, &wanted.up), "{distribution}");
            }
            assert_ne!(posed, operands);
            assert!(answer.spot_check(&operands, &mut rng).is_err());
        }
        let operands = Operands::draw(default_operator(), &shape, Distribution::Benchmark, 7);
        let oracle = Oracle::compute(&operands);
        let sizes = |shuffle| -> Vec<u64> {
            let c = |g: &GroupOracle| (0..g.gate.len()).map(|i| g.c(i).abs()).collect::<Vec<_>>();
            let groups = oracle
                .shuffled(shuffle, default_operator(), &shape.groups)
                .groups;
            let mut sizes: Vec<u64> = groups.iter().flat_map(c).map(f64::to_bits).collect();
            sizes.sort_unstable();
            sizes
        };
        let (one, other) = (sizes(Shuffle::new(1)), sizes(Shuffle::new(2)));
        let known = one.iter().filter(|size| other.binary_search(size).is_ok());
        let share = known.count() as f64 / one.len() as f64;
        assert!(share < 0.6, "{share} of all |C| were there before");
    }
}
