//! Numbers in memory, read with strides: transposing, slicing and broadcasting cost nothing.

use std::sync::Arc;

use super::region::Region;

/// A box of a tensor. `strides` belong to the axes of `region`, and are 0 along broadcast axes.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) region: Region,
    strides: Vec<usize>,
    offset: usize,
    numbers: Arc<Vec<f64>>,
}

/// Row-major strides.
fn row_major(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis] * extents[axis];
    }
    strides
}

impl View {
    /// Numbers of `region` in row-major order.
    pub(super) fn new(region: Region, numbers: Vec<f64>) -> Self {
        debug_assert_eq!(region.volume(), numbers.len());
        Self::shared(region, Arc::new(numbers))
    }

    pub(super) fn shared(region: Region, numbers: Arc<Vec<f64>>) -> Self {
        Self {
            strides: row_major(&region.extents()),
            region,
            offset: 0,
            numbers,
        }
    }

    /// The part of this view at `region`; they have the same axes.
    pub(super) fn part(&self, region: &Region) -> Self {
        let starts = self.region.0.iter().zip(&region.0);
        let steps = starts.zip(&self.strides);
        let moved: usize = steps
            .map(|((own, asked), stride)| (asked.start - own.start) * stride)
            .sum();
        Self {
            region: region.clone(),
            strides: self.strides.clone(),
            offset: self.offset + moved,
            numbers: Arc::clone(&self.numbers),
        }
    }

    /// The same numbers under other axes: axis `a` of the result is axis
    /// `axes[a]` of this, both from the front.
    pub(super) fn permuted(&self, axes: &[usize]) -> Self {
        Self {
            region: Region(axes.iter().map(|a| self.region.0[*a].clone()).collect()),
            strides: axes.iter().map(|a| self.strides[*a]).collect(),
            offset: self.offset,
            numbers: Arc::clone(&self.numbers),
        }
    }

    /// The same numbers under indices that begin elsewhere along an axis.
    pub(super) fn renumbered(mut self, region: Region) -> Self {
        self.region = region;
        self
    }

    /// The view for a region with more axes, to which this one is broadcast.
    pub(super) fn stretched(&self, region: &Region) -> Self {
        let skipped = region.0.len() - self.region.0.len();
        let own = self.region.0.iter().zip(&self.strides);
        let mut strides = vec![0; skipped];
        strides.extend(
            own.zip(&region.0[skipped..])
                .map(
                    |((range, stride), asked)| match (range.len(), asked.len()) {
                        (1, _) => 0,
                        _ => *stride,
                    },
                ),
        );
        Self {
            region: region.clone(),
            strides,
            offset: self.offset,
            numbers: Arc::clone(&self.numbers),
        }
    }

    /// Stride along the last axis.
    pub(super) fn step(&self) -> usize {
        self.strides.last().copied().unwrap_or(0)
    }

    /// Numbers from `outer` on, the indices of all axes but the last counted from the region's
    /// start.
    pub(super) fn run(&self, outer: &[usize]) -> &[f64] {
        let steps = outer.iter().zip(&self.strides);
        let at: usize = steps.map(|(index, stride)| index * stride).sum();
        &self.numbers[self.offset + at..]
    }

    /// The number at indices counted from the region's start.
    pub(super) fn at(&self, indices: &[usize]) -> f64 {
        self.run(indices)[0]
    }

    /// The numbers, if they are contiguous in row-major order.
    pub(super) fn contiguous(&self) -> Option<&[f64]> {
        let extents = self.region.extents();
        let wanted = row_major(&extents);
        let mut axes = extents.iter().zip(&self.strides).zip(wanted);
        let straight = axes.all(|((extent, stride), wanted)| *extent == 1 || *stride == wanted);
        straight.then(|| &self.numbers[self.offset..][..self.region.volume()])
    }

    /// All numbers in row-major order.
    pub(super) fn copy_to(&self, out: &mut [f64]) {
        if let Some(numbers) = self.contiguous() {
            out.copy_from_slice(numbers);
            return;
        }
        let step = self.step();
        each_run(&self.region.extents(), |outer, at, width| {
            let run = self.run(outer);
            for (i, out) in out[at..at + width].iter_mut().enumerate() {
                *out = run[i * step];
            }
        });
    }

    pub(super) fn to_vec(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.region.volume()];
        self.copy_to(&mut out);
        out
    }
}

/// Calls `visit` for each run along the last axis of a box: the indices of the other axes, the
/// place of its first element in row-major order, its length.
pub(super) fn each_run(extents: &[usize], mut visit: impl FnMut(&[usize], usize, usize)) {
    let (width, leading) = match extents.split_last() {
        Some((width, leading)) => (*width, leading),
        None => (1, extents),
    };
    let runs: usize = leading.iter().product();
    let mut outer = vec![0; leading.len()];
    for run in 0..runs {
        visit(&outer, run * width, width);
        for axis in (0..leading.len()).rev() {
            outer[axis] += 1;
            if outer[axis] < leading[axis] {
                break;
            }
            outer[axis] = 0;
        }
    }
}
