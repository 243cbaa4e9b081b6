//! The changes that each call makes to an operator's tensors, axis by axis: pieces of an axis are
//! permuted, and some indices change the sign. tools.cu does the same on a device.

use std::collections::BTreeMap;
use std::ops::Neg;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{NoUninit, Pod, Zeroable};
use rayon::prelude::*;

use super::shuffle::{DrawnValue, Shuffle};
use super::symmetry::{Symmetry, symmetries};
use super::{OutputValues, SCALE_BLOCK, Tensor, is_gated};
use dgx_core::operator::{Extent, MAX_RANK, Operator, Tensor as Declared};

/// One axis of a tensor; `Axis` of tools.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Axis {
    pub extent: u32,
    /// Indices that move together.
    pub unit: u32,
    /// Pieces of a unit that are permuted; 0 if the axis is not.
    pub count: u32,
    /// The number that their order is drawn from.
    pub order: u32,
    /// The number that signs are drawn from, a bit each.
    pub signs: u32,
}

/// The first number for symmetries of an operator; smaller ones are for gated products.
const FIRST: u32 = 8;
/// Maximum number of symmetries used: each has a bit.
const MOST: usize = 24;

impl Axis {
    fn still(extent: usize) -> Self {
        Self {
            extent: extent as u32,
            unit: 1,
            ..Self::default()
        }
    }

    fn moving(extent: usize, unit: u32, order: u32) -> Self {
        Self {
            unit,
            count: extent as u32 / unit,
            order,
            ..Self::still(extent)
        }
    }

    pub(crate) fn is_still(&self) -> bool {
        self.count == 0 && self.signs == 0
    }

    /// The source of each index.
    fn sources(&self, shuffle: Shuffle, group: usize) -> Vec<u32> {
        let order = shuffle.order(self.order, group, self.count as usize);
        let moved = order.iter().flat_map(|piece| {
            let first = piece * self.unit;
            first..first + self.unit
        });
        moved.chain(self.count * self.unit..self.extent).collect()
    }

    /// Whether each index changes its sign.
    fn negations(&self, shuffle: Shuffle, group: usize) -> Vec<bool> {
        let drawn = (0..u32::BITS).filter(|bit| self.signs >> bit & 1 == 1);
        let negates = |index: u32| {
            let signs = drawn.clone().map(|bit| shuffle.negates(bit, group, index));
            signs.fold(false, |negative, own| negative != own)
        };
        (0..self.extent).map(negates).collect()
    }
}

/// The changes of a call to a tensor of a group; `Moves` of tools.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, NoUninit)]
pub(crate) struct Moves {
    /// First axis first.
    axes: [Axis; MAX_RANK],
    rank: u32,
    group: u32,
    /// Of an element, or of a scale.
    bits: u32,
}

impl Moves {
    pub(crate) fn new(own: &[Axis], group: usize, bits: u64) -> Self {
        let mut axes = [Axis::default(); MAX_RANK];
        axes[..own.len()].copy_from_slice(own);
        Self {
            axes,
            rank: own.len() as u32,
            group: group as u32,
            bits: bits as u32,
        }
    }
}

/// Of an input, first axis first.
pub(crate) fn input_axes(operator: &Operator, input: usize, extents: &[usize]) -> Vec<Axis> {
    if is_gated(operator) {
        let blocks = Axis::moving(extents[1], SCALE_BLOCK as u32, DrawnValue::Blocks as u32);
        return vec![gated_rows(input, extents[0]), blocks];
    }
    let negated = |symmetry: &Symmetry| matches!(symmetry, Symmetry::Negate { inputs, .. } if inputs.contains(&input));
    axes(operator, &operator.inputs[input], extents, negated)
}

/// The rows of an input of a gated product.
fn gated_rows(input: usize, extent: usize) -> Axis {
    let (signs, order) = DrawnValue::of_input(input);
    Axis {
        signs: 1 << signs as u32,
        ..Axis::moving(extent, 1, order as u32)
    }
}

/// Of the product of A and the input `right` of a gated product.
pub(super) fn product_axes(rows: usize, columns: usize, right: usize) -> [Axis; 2] {
    [gated_rows(0, rows), gated_rows(right, columns)]
}

/// Of an output, if the operator is not a gated product, for which both products change.
pub(crate) fn output_axes(operator: &Operator, output: usize, extents: &[usize]) -> Vec<Axis> {
    let negated = |symmetry: &Symmetry| matches!(symmetry, Symmetry::Negate { outputs, .. } if outputs.contains(&output));
    axes(operator, &operator.outputs[output].tensor, extents, negated)
}

fn axes(
    operator: &Operator,
    tensor: &Declared,
    extents: &[usize],
    negated: impl Fn(&Symmetry) -> bool,
) -> Vec<Axis> {
    let known = known(operator);
    let axis = |(declared, extent): (&Extent, &usize)| {
        let mut axis = Axis::still(*extent);
        for (symmetry, what) in known.iter().zip(FIRST..) {
            match symmetry {
                Symmetry::Permute { size, unit } if *declared == Extent::Size(*size) => {
                    axis = Axis {
                        signs: axis.signs,
                        ..Axis::moving(*extent, *unit as u32, what)
                    };
                }
                Symmetry::Negate { size, .. }
                    if *declared == Extent::Size(*size) && negated(symmetry) =>
                {
                    axis.signs |= 1 << what;
                }
                _ => {}
            }
        }
        axis
    };
    tensor.extents.iter().zip(extents).map(axis).collect()
}

/// The symmetries of an operator; found once.
fn known(operator: &Operator) -> Arc<[Symmetry]> {
    static KNOWN: Mutex<BTreeMap<String, Arc<[Symmetry]>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{} {}", operator.name, operator.digest);
    let found = known.entry(key).or_insert_with(|| {
        let mut found = symmetries(operator);
        found.truncate(MOST);
        found.into()
    });
    Arc::clone(found)
}

/// The same for the scales of a tensor, one for each `block` along its last axis: they move with
/// their block, and do not change its sign.
pub(crate) fn of_scales(axes: &[Axis], block: u32) -> Vec<Axis> {
    let mut axes: Vec<Axis> = axes.iter().map(|axis| Axis { signs: 0, ..*axis }).collect();
    if let Some(last) = axes.last_mut() {
        last.extent = last.extent.div_ceil(block);
        last.unit = (last.unit / block).max(1);
    }
    axes
}

/// The sources of a tensor's elements in one call.
struct Origins {
    /// For all axes but the last: the source row, and whether its sign changes.
    rows: Vec<(usize, bool)>,
    /// The last.
    columns: Vec<(usize, bool)>,
}

impl Origins {
    fn new(axes: &[Axis], shuffle: Shuffle, group: usize) -> Self {
        let along = |axis: &Axis| -> Vec<(usize, bool)> {
            let sources = axis.sources(shuffle, group).into_iter();
            let negations = axis.negations(shuffle, group);
            sources.map(|from| from as usize).zip(negations).collect()
        };
        let (last, leading) = axes.split_last().expect("an axis");
        let mut rows = vec![(0, false)];
        for axis in leading {
            let own = along(axis);
            rows = rows
                .iter()
                .flat_map(|(row, negative)| {
                    let within = own.iter();
                    within.map(move |(from, own)| {
                        (row * axis.extent as usize + from, negative != own)
                    })
                })
                .collect();
        }
        Self {
            rows,
            columns: along(last),
        }
    }

    /// The destinations of elements. The sign is that of the destination.
    fn inverted(&self) -> Self {
        let inverted = |from: &[(usize, bool)]| {
            let mut to = vec![(0, false); from.len()];
            for (place, (from, negative)) in from.iter().enumerate() {
                to[*from] = (place, *negative);
            }
            to
        };
        Self {
            rows: inverted(&self.rows),
            columns: inverted(&self.columns),
        }
    }
}

/// An input as changed for a call.
pub(crate) fn moved(tensor: &Tensor, axes: &[Axis], shuffle: Shuffle, group: usize) -> Tensor {
    if axes.iter().all(Axis::is_still) {
        return tensor.clone();
    }
    let bits = tensor.element.bits() as usize;
    let origins = Origins::new(axes, shuffle, group);
    let elements = Rows::new(axes, origins, bits).moved(&tensor.elements);
    let scales = match tensor.element.scale() {
        Some(scale) => {
            let axes = of_scales(axes, scale.block as u32);
            let origins = Origins::new(&axes, shuffle, group);
            Rows::new(&axes, origins, 8).moved(&tensor.scales)
        }
        None => tensor.scales.clone(),
    };
    Tensor {
        name: tensor.name.clone(),
        extents: tensor.extents.clone(),
        elements,
        scales,
        ..*tensor
    }
}

/// Packed rows of a tensor, and their sources.
struct Rows {
    origins: Origins,
    bits: usize,
    row_bytes: usize,
    pieces: Option<Pieces>,
}

/// Bytes of a row that stay together, and share their sign.
struct Pieces {
    length: usize,
    /// The first byte of each one's source.
    sources: Vec<usize>,
}

impl Rows {
    fn new(axes: &[Axis], origins: Origins, bits: usize) -> Self {
        let last = axes.last().expect("an axis");
        let row_bytes = (last.extent as usize * bits).div_ceil(8);
        let length = match last.count {
            0 => row_bytes,
            _ => last.unit as usize * bits / 8,
        };
        // Single elements may have signs.
        let pieces = (last.signs == 0).then(|| {
            let columns = origins.columns.iter();
            let firsts = columns.step_by((length * 8 / bits).max(1));
            Pieces {
                length: length.max(1),
                sources: firsts.map(|(from, _)| from * bits / 8).collect(),
            }
        });
        Self {
            origins,
            bits,
            row_bytes,
            pieces,
        }
    }

    fn moved(&self, from: &[u8]) -> Vec<u8> {
        let mut moved = vec![0; from.len()];
        let rows = moved.par_chunks_mut(self.row_bytes.max(1));
        rows.zip(&self.origins.rows)
            .for_each(|(to, (row, negative))| {
                let row = &from[row * self.row_bytes..][..self.row_bytes];
                match (&self.pieces, self.bits) {
                    (Some(pieces), _) => pieces.copy(row, to),
                    (None, 4) => self.move_nibbles(row, to),
                    (None, bits) => self.move_words(row, to, bits / 8),
                }
                if *negative {
                    self.negate(to);
                }
            });
        moved
    }

    /// Elements of whole bytes. The sign is the highest bit.
    fn move_words(&self, row: &[u8], to: &mut [u8], width: usize) {
        for (to, (from, negative)) in to.chunks_exact_mut(width).zip(&self.origins.columns) {
            to.copy_from_slice(&row[from * width..][..width]);
            to[width - 1] ^= u8::from(*negative) << 7;
        }
    }

    /// Elements of half a byte. Pairs stay together.
    fn move_nibbles(&self, row: &[u8], to: &mut [u8]) {
        for (to, pair) in to.iter_mut().zip(self.origins.columns.chunks(2)) {
            let high = pair.get(1).is_some_and(|(_, negative)| *negative);
            let signs = u8::from(pair[0].1) << 3 | u8::from(high) << 7;
            *to = row[pair[0].0 / 2] ^ signs;
        }
    }

    fn negate(&self, row: &mut [u8]) {
        match self.bits {
            4 => row.iter_mut().for_each(|byte| *byte ^= 0x88),
            8 => row.iter_mut().for_each(|byte| *byte ^= 0x80),
            bits => row
                .chunks_exact_mut(bits / 8)
                .for_each(|word| word[bits / 8 - 1] ^= 0x80),
        }
    }
}

impl Pieces {
    /// A copy of a length that is not known to the compiler is a call, which takes longer than
    /// moving a few bytes.
    fn copy(&self, row: &[u8], to: &mut [u8]) {
        match self.length {
            1 => self.copy_known::<1>(row, to),
            2 => self.copy_known::<2>(row, to),
            4 => self.copy_known::<4>(row, to),
            8 => self.copy_known::<8>(row, to),
            16 => self.copy_known::<16>(row, to),
            32 => self.copy_known::<32>(row, to),
            length => {
                for (to, from) in to.chunks_mut(length).zip(&self.sources) {
                    to.copy_from_slice(&row[*from..][..to.len()]);
                }
            }
        }
    }

    fn copy_known<const LENGTH: usize>(&self, row: &[u8], to: &mut [u8]) {
        let (pieces, rest) = to.as_chunks_mut::<LENGTH>();
        let last = pieces.len();
        for (to, from) in pieces.iter_mut().zip(&self.sources) {
            *to = *row[*from..].first_chunk().expect("a whole piece");
        }
        if let Some(from) = self.sources.get(last) {
            rest.copy_from_slice(&row[*from..][..rest.len()]);
        }
    }
}

/// An output of a call, changed back to that for the original data.
pub(crate) fn moved_back(
    output: &OutputValues,
    axes: &[Axis],
    shuffle: Shuffle,
    group: usize,
) -> OutputValues {
    let bits = output.element.bits() as usize;
    let origins = Origins::new(axes, shuffle, group).inverted();
    let rows = Rows::new(axes, origins, bits);
    output.with_bytes(rows.moved(output.bytes()))
}

/// The expected elements of an output of a call.
pub(crate) fn moved_values<T>(values: &[T], axes: &[Axis], shuffle: Shuffle, group: usize) -> Vec<T>
where
    T: Copy + Default + Neg<Output = T> + Send + Sync,
{
    if axes.iter().all(Axis::is_still) {
        return values.to_vec();
    }
    let origins = Origins::new(axes, shuffle, group);
    let width = origins.columns.len();
    let mut to = vec![T::default(); values.len()];
    let rows = to.par_chunks_mut(width.max(1)).zip(&origins.rows);
    rows.for_each(|(to, (row, negative))| {
        let row = &values[row * width..][..width];
        for (to, (from, own)) in to.iter_mut().zip(&origins.columns) {
            let value = row[*from];
            *to = if negative != own { -value } else { value };
        }
    });
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::{Operands, Oracle};
    use dgx_core::domain::{Distribution, Group, Shape};
    use dgx_core::operator::{built_in, names};

    fn small(operator: &Operator) -> Shape {
        let group = |sizes: &Vec<u64>| {
            let sizes = sizes.iter().map(|size| *size as u32);
            Group::new(operator.sizes.iter().cloned().zip(sizes))
        };
        Shape {
            name: "t".to_owned(),
            groups: operator
                .small
                .iter()
                .take(if operator.groups { 2 } else { 1 })
                .map(group)
                .collect(),
        }
    }

    #[test]
    fn the_answer_to_moved_data_is_the_moved_answer_and_not_what_it_was() {
        for name in names() {
            let operator = Arc::new(built_in(name).unwrap().clone());
            let shape = small(&operator);
            let operands = Operands::draw(&operator, &shape, Distribution::Benchmark, 7);
            let oracle = Oracle::compute(&operands);
            let shuffle = Shuffle::new(99);
            let posed = operands.shuffled(shuffle);
            let answer = oracle.shuffled(shuffle, &operator, &shape.groups);
            assert_ne!(posed, operands, "{name}");
            let (mut near, mut stay) = (0, 0);
            for ((found, wanted), before) in Oracle::compute(&posed)
                .groups
                .iter()
                .zip(&answer.groups)
                .zip(&oracle.groups)
            {
                let most = (0..found.len())
                    .map(|i| found.c(i).abs())
                    .fold(0.0, f64::max);
                for i in 0..found.len() {
                    let (found, wanted) = (found.c(i), wanted.c(i));
                    assert!(
                        (found - wanted).abs() <= 1e-5 * most,
                        "{name}: {found} {wanted}"
                    );
                    near += 1;
                    stay += usize::from((found - before.c(i)).abs() <= 1e-5 * most);
                }
            }
            assert!(
                2 * stay < near,
                "{name}: {stay} of {near} are what they were"
            );
        }
    }

    #[test]
    fn a_piece_that_is_not_whole_stays() {
        let axis = Axis::moving(40, 16, 9);
        let sources = axis.sources(Shuffle::new(3), 0);
        assert_eq!(sources[32..], (32..40).collect::<Vec<u32>>());
        let scales = of_scales(&[axis], 16)[0];
        assert_eq!((scales.extent, scales.unit, scales.count), (3, 1, 2));
        let moved = scales.sources(Shuffle::new(3), 0);
        assert_eq!(moved[2], 2);
        assert_eq!(moved[0], sources[0] / 16);
    }
}
