//! Boxes of a tensor, and what a step needs of its inputs to fill one.

use std::ops::Range;

use dgx_core::operator::{Op, Value};

/// Indices along every axis, first axis first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Region(pub(super) Vec<Range<usize>>);

impl Region {
    /// The whole of a tensor.
    #[cfg(test)]
    pub(super) fn whole(extents: &[usize]) -> Self {
        Self(extents.iter().map(|extent| 0..*extent).collect())
    }

    pub(super) fn extents(&self) -> Vec<usize> {
        self.0.iter().map(Range::len).collect()
    }

    pub(super) fn volume(&self) -> usize {
        self.0.iter().map(Range::len).product()
    }

    pub(super) fn contains(&self, other: &Self) -> bool {
        let within = |(a, b): (&Range<usize>, &Range<usize>)| a.start <= b.start && b.end <= a.end;
        self.0.iter().zip(&other.0).all(within)
    }

    /// The smallest box around both.
    pub(super) fn around(&self, other: &Self) -> Self {
        let both = self.0.iter().zip(&other.0);
        Self(
            both.map(|(a, b)| a.start.min(b.start)..a.end.max(b.end))
                .collect(),
        )
    }

    /// The region of a tensor of these extents that is needed for this region, both aligned at the
    /// last axis and an extent of 1 stretched.
    pub(super) fn broadcast_to(&self, extents: &[usize]) -> Self {
        let skipped = self.0.len() - extents.len();
        let axes = extents.iter().zip(&self.0[skipped..]);
        Self(
            axes.map(|(extent, range)| match extent {
                1 => 0..1,
                _ => range.clone(),
            })
            .collect(),
        )
    }

    /// The range along an axis counted from the end.
    pub(super) fn axis(&self, axis: usize) -> &Range<usize> {
        &self.0[self.0.len() - 1 - axis]
    }

    pub(super) fn with(mut self, axis: usize, range: Range<usize>) -> Self {
        let last = self.0.len() - 1;
        self.0[last - axis] = range;
        self
    }
}

/// Boxes that together are the rows `rows` of a tensor, in order. A row is the whole last axis; all
/// axes before it are counted as one.
pub(super) fn boxes_of_rows(extents: &[usize], rows: Range<usize>) -> Vec<Region> {
    let Some((last, leading)) = extents.split_last() else {
        return vec![Region(Vec::new())];
    };
    let mut boxes = Vec::new();
    split_rows(leading, rows, &mut Vec::new(), &mut boxes);
    for region in &mut boxes {
        region.0.push(0..*last);
    }
    boxes
}

/// `fixed` are the axes before those of `leading`, one index each.
fn split_rows(
    leading: &[usize],
    rows: Range<usize>,
    fixed: &mut Vec<Range<usize>>,
    boxes: &mut Vec<Region>,
) {
    let Some((_, inner)) = leading.split_first() else {
        boxes.push(Region(fixed.clone()));
        return;
    };
    let each: usize = inner.iter().product();
    let mut at = rows.start;
    while at < rows.end {
        let index = at / each;
        let aligned = at.is_multiple_of(each) && rows.end - at >= each;
        if aligned {
            let count = (rows.end - at) / each;
            let mut ranges = fixed.clone();
            ranges.push(index..index + count);
            ranges.extend(inner.iter().map(|extent| 0..*extent));
            boxes.push(Region(ranges));
            at += count * each;
        } else {
            let end = rows.end.min((index + 1) * each);
            fixed.push(index..index + 1);
            split_rows(inner, at - index * each..end - index * each, fixed, boxes);
            fixed.pop();
            at = end;
        }
    }
}

/// The part of each input that node `id` needs for `region` of itself. `extents` are those of all
/// nodes, `begins` the first index of each slice.
pub(super) fn demands(
    value: &Value,
    id: usize,
    region: &Region,
    extents: &[Vec<usize>],
    begins: &[usize],
) -> Vec<Region> {
    let node = value.node(id);
    let of = |input: usize| &extents[node.inputs[input]];
    let broadcast = |input: usize| region.broadcast_to(of(input));
    match &node.op {
        Op::Input(_) | Op::Output(_) | Op::Constant(_) | Op::Size(_) | Op::Index(_) => Vec::new(),
        Op::Unary(_) | Op::Cast(_) => vec![broadcast(0)],
        Op::Binary(_) => vec![broadcast(0), broadcast(1)],
        Op::Where => vec![broadcast(0), broadcast(1), broadcast(2)],
        Op::MatMul => matrices(region, of(0), of(1)),
        Op::Transpose => {
            let (rows, columns) = (region.axis(1).clone(), region.axis(0).clone());
            vec![region.clone().with(0, rows).with(1, columns)]
        }
        Op::Permute(axes) => {
            let mut from = region.clone();
            for (to, axis) in axes.iter().enumerate() {
                from = from.with(*axis, region.axis(to).clone());
            }
            vec![from]
        }
        Op::Slice { axis, .. } => {
            let (range, begin) = (region.axis(*axis), begins[id]);
            let moved = range.start + begin..range.end + begin;
            vec![region.clone().with(*axis, moved)]
        }
        Op::Cumsum(axis) => {
            let end = region.axis(*axis).end;
            vec![region.clone().with(*axis, 0..end)]
        }
        Op::Reduce(_, axis) | Op::Softmax(axis) | Op::Argsort(axis) => {
            let extent = of(0)[of(0).len() - 1 - axis];
            vec![region.clone().with(*axis, 0..extent)]
        }
        Op::Take(axis) => {
            let extent = of(0)[of(0).len() - 1 - axis];
            vec![broadcast(0).with(*axis, 0..extent), broadcast(1)]
        }
    }
}

/// The part of both sides that `@` needs: all of the contracted axis.
fn matrices(region: &Region, left: &[usize], right: &[usize]) -> Vec<Region> {
    let batch = Region(region.0[..region.0.len() - 2].to_vec());
    let (rows, columns) = (region.axis(1).clone(), region.axis(0).clone());
    let contracted = 0..left[left.len() - 1];
    let side = |extents: &[usize], last_two: [Range<usize>; 2]| {
        let mut side = batch.broadcast_to(&extents[..extents.len() - 2]);
        side.0.extend(last_two);
        side
    };
    vec![
        side(left, [rows, contracted.clone()]),
        side(right, [contracted, columns]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every range of rows of some tensors consists of disjoint boxes in order.
    #[test]
    fn rows_are_cut_into_boxes() {
        for extents in [vec![7, 3], vec![2, 3, 4], vec![2, 2, 3, 5], vec![1, 4, 1]] {
            let leading = &extents[..extents.len() - 1];
            let count: usize = leading.iter().product();
            for start in 0..=count {
                for end in start..=count {
                    let mut rows = Vec::new();
                    for region in boxes_of_rows(&extents, start..end) {
                        assert_eq!(region.0.len(), extents.len());
                        assert_eq!(region.axis(0), &(0..extents[extents.len() - 1]));
                        rows.extend(flat(leading, &region.0[..leading.len()]));
                    }
                    assert_eq!(rows, (start..end).collect::<Vec<_>>(), "{extents:?}");
                }
            }
        }
    }

    fn flat(extents: &[usize], ranges: &[Range<usize>]) -> Vec<usize> {
        let mut all = vec![0];
        for (extent, range) in extents.iter().zip(ranges) {
            let next = |at: usize| range.clone().map(move |i| at * extent + i);
            all = all.into_iter().flat_map(next).collect();
        }
        all
    }
}
