//! `@`, in blocks: as many rows and columns of the operands as the memory limit allows, multiplied
//! in f64 on all cores.

use std::ops::Range;

use dgx_core::operator::{ElementType, NodeId, Op};
use gemm_common::Parallelism;
use rayon::prelude::*;

use super::Evaluator;
use super::fill::Scope;
use super::region::Region;
use crate::operator::format::Packed;

/// Maximum rows and columns of a product that are computed together.
const ROWS: usize = 1024;
const COLUMNS: usize = 512;
/// Approximate numbers of the left and of the right operand in memory.
const LEFT: usize = 1 << 23;
const RIGHT: usize = 1 << 22;
/// The same for a right operand that is expensive to recompute.
const COSTLY_RIGHT: usize = 1 << 25;
/// Multiplications below which a product is not worth more than one core.
const SMALL: usize = 1 << 21;

/// One matrix of a product: which one, and its place in the result.
struct ProductMatrix {
    id: NodeId,
    /// Of the product, one index for each leading axis.
    region: Region,
    alone: bool,
}

/// Numbers with their strides along rows and columns.
struct StridedMatrix {
    numbers: Vec<f64>,
    row: usize,
    column: usize,
}

impl Evaluator<'_> {
    /// `region` of a product, row-major.
    pub(super) fn product(&self, scope: &Scope<'_>, id: NodeId, region: &Region, out: &mut [f64]) {
        let rank = region.0.len();
        let matrix = region.0[rank - 2].len() * region.0[rank - 1].len();
        if matrix == 0 || out.is_empty() {
            return;
        }
        let batch = region.extents()[..rank - 2].to_vec();
        let contracted = self.contracted(id);
        let alone = out.len() == matrix || matrix * contracted > SMALL;
        let place = |index: usize| {
            let (mut rest, mut own) = (index, region.clone());
            for (axis, extent) in batch.iter().enumerate().rev() {
                let start = region.0[axis].start + rest % extent;
                own.0[axis] = start..start + 1;
                rest /= extent;
            }
            ProductMatrix {
                id,
                region: own,
                alone,
            }
        };
        if alone {
            for (index, out) in out.chunks_mut(matrix).enumerate() {
                self.matrix(scope, &place(index), out);
            }
        } else {
            let matrices = out.par_chunks_mut(matrix).enumerate();
            matrices.for_each(|(index, out)| self.matrix(scope, &place(index), out));
        }
    }

    /// The extent that a product sums over.
    pub(super) fn contracted(&self, id: NodeId) -> usize {
        let left = &self.extents[self.value.node(id).inputs[0]];
        left[left.len() - 1]
    }

    fn matrix(&self, scope: &Scope<'_>, place: &ProductMatrix, out: &mut [f64]) {
        let blocks = self.both_nvfp4(place.id);
        #[cfg(target_arch = "x86_64")]
        if let Some([left, right]) = blocks
            && super::blocks::worth(&place.region)
        {
            return self.by_blocks(left, right, &place.region, out);
        }
        let [left, right] = [0, 1].map(|side| self.value.node(place.id).inputs[side]);
        let contracted = self.contracted(place.id).max(1);
        let rows = place.region.axis(1).clone();
        let columns = place.region.axis(0).clone();
        let some = |most: usize, numbers: usize| most.min(numbers / contracted).max(1);
        if self.costly[right] {
            let at_once = some(columns.len(), COSTLY_RIGHT);
            for columns in cut(&columns, at_once) {
                let b = self.operand(scope, right, self.side(place, 1, columns.clone()));
                for rows in cut(&rows, some(ROWS, LEFT)) {
                    let a = self.operand(scope, left, self.side(place, 0, rows.clone()));
                    place.multiply(&a, &b, contracted, [rows, columns.clone()], out);
                }
            }
        } else {
            for rows in cut(&rows, some(ROWS, LEFT)) {
                let a = self.operand(scope, left, self.side(place, 0, rows.clone()));
                for columns in cut(&columns, some(COLUMNS, RIGHT)) {
                    let b = self.operand(scope, right, self.side(place, 1, columns.clone()));
                    place.multiply(&a, &b, contracted, [rows.clone(), columns], out);
                }
            }
        }
        if blocks.is_some() {
            // Rounded like the computation by whole numbers, so that both have the same bits.
            for number in out {
                *number = f64::from(*number as f32);
            }
        }
    }

    /// The part of one side that some rows, or columns, of a product need.
    fn side(&self, place: &ProductMatrix, side: usize, range: Range<usize>) -> Region {
        let region = place.region.clone().with(1 - side, range);
        let mut both =
            super::region::demands(self.value, place.id, &region, &self.extents, &self.begins);
        both.swap_remove(side)
    }

    /// Swapped axes are expressed by strides.
    fn operand(&self, scope: &Scope<'_>, id: NodeId, region: Region) -> StridedMatrix {
        let node = self.value.node(id);
        if matches!(node.op, Op::Transpose) {
            let swapped = region
                .clone()
                .with(0, region.axis(1).clone())
                .with(1, region.axis(0).clone());
            let inner = self.operand(scope, node.inputs[0], swapped);
            return StridedMatrix {
                row: inner.column,
                column: inner.row,
                numbers: inner.numbers,
            };
        }
        StridedMatrix {
            row: region.axis(0).len(),
            column: 1,
            numbers: self.make(scope, id, &region),
        }
    }

    /// The tensors of a product of an nvfp4 tensor and another's transpose.
    pub(super) fn both_nvfp4(&self, id: NodeId) -> Option<[&Packed<'_>; 2]> {
        let [left, right] = [0, 1].map(|side| self.value.node(id).inputs[side]);
        let right = self.value.node(right);
        let under = match right.op {
            Op::Transpose => right.inputs[0],
            _ => return None,
        };
        let sides = [self.tensor(left)?, self.tensor(under)?];
        let nvfp4 = |side: &&Packed<'_>| {
            side.element == ElementType::Nvfp4 && side.width().is_multiple_of(16)
        };
        sides.iter().all(nvfp4).then_some(sides)
    }
}

impl ProductMatrix {
    /// `[rows, columns]` of the answer = a · b.
    fn multiply(
        &self,
        a: &StridedMatrix,
        b: &StridedMatrix,
        contracted: usize,
        [rows, columns]: [Range<usize>; 2],
        out: &mut [f64],
    ) {
        let [all_rows, all_columns] = [1, 0].map(|axis| self.region.axis(axis));
        let width = all_columns.len();
        let first = (rows.start - all_rows.start) * width + columns.start - all_columns.start;
        let sizes = [rows.len(), columns.len(), contracted];
        let out = &mut out[first..];
        multiply(sizes, [a, b], out, width, self.alone);
    }
}

/// A range cut into pieces of at most `at_once`.
fn cut(range: &Range<usize>, at_once: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .clone()
        .step_by(at_once)
        .map(move |start| start..(start + at_once).min(end))
}

/// `out`, whose rows are `width` apart, = a · b; `sizes` are rows, columns and the length of the
/// sum.
fn multiply(
    [rows, columns, contracted]: [usize; 3],
    [a, b]: [&StridedMatrix; 2],
    out: &mut [f64],
    width: usize,
    on_all_cores: bool,
) {
    let reach = |operand: &StridedMatrix, rows: usize, columns: usize| {
        (rows - 1) * operand.row + (columns - 1) * operand.column < operand.numbers.len()
    };
    assert!(rows > 0 && columns > 0 && contracted > 0);
    assert!(reach(a, rows, contracted) && reach(b, contracted, columns));
    assert!(columns <= width && (rows - 1) * width + columns <= out.len());
    let parallelism = match on_all_cores {
        true => Parallelism::Rayon(0),
        false => Parallelism::None,
    };
    let kernel = gemm_f64::gemm::f64::get_gemm_fn();
    // The kernel writes columns fastest, so it is given the transpose: outᵀ = bᵀ · aᵀ.
    // SAFETY: the strides stay inside the three slices, as was asserted, and
    // `out` does not overlap the others.
    unsafe {
        kernel(
            columns,
            rows,
            contracted,
            out.as_mut_ptr(),
            width as isize,
            1,
            false,
            b.numbers.as_ptr(),
            b.row as isize,
            b.column as isize,
            a.numbers.as_ptr(),
            a.row as isize,
            a.column as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}
