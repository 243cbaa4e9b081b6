//! Steps that read a whole axis: reductions, softmax, running sums, sorting.

use dgx_core::operator::ReduceOp;

use super::functions::{maximum, minimum};
use super::view::{View, each_run};

/// A permutation that moves one axis, counted from the end, to the last place; and its inverse.
fn to_last(rank: usize, axis: usize) -> (Vec<usize>, Vec<usize>) {
    let moved = rank - 1 - axis;
    let mut order: Vec<usize> = (0..rank).filter(|a| *a != moved).collect();
    order.push(moved);
    let mut back = vec![0; rank];
    for (to, from) in order.iter().enumerate() {
        back[*from] = to;
    }
    (order, back)
}

/// Calls `lane` with the numbers along the axis, once for each place of the others, and `width`
/// numbers to fill.
fn each_lane(
    axis: usize,
    input: &View,
    reduced: bool,
    mut lane: impl FnMut(&[f64], &mut [f64]),
) -> View {
    let (order, back) = to_last(input.region.0.len(), axis);
    let input = input.permuted(&order);
    let extents = input.region.extents();
    let region = match reduced {
        true => input.region.clone().with(0, 0..1),
        false => input.region.clone(),
    };
    let mut out = vec![0.0; region.volume()];
    let mut gathered = Vec::new();
    let step = input.step();
    let filled = if reduced {
        1
    } else {
        extents[extents.len() - 1]
    };
    let mut outs = out.chunks_mut(filled.max(1));
    each_run(&extents, |outer, _, width| {
        let run = input.run(outer);
        let out = outs.next().expect("as many lanes as runs");
        if step == 1 {
            return lane(&run[..width], out);
        }
        gathered.clear();
        gathered.extend((0..width).map(|i| run[i * step]));
        lane(&gathered, out);
    });
    View::new(region, out).permuted(&back)
}

/// In eight sums, which the compiler vectorises.
pub(super) fn sum(numbers: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (eights, rest) = numbers.as_chunks::<8>();
    for eight in eights {
        for (sum, number) in sums.iter_mut().zip(eight) {
            *sum += number;
        }
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

pub(super) fn reduce(op: ReduceOp, axis: usize, input: &View) -> View {
    each_lane(axis, input, true, |lane, out| {
        out[0] = match op {
            ReduceOp::Sum => sum(lane),
            ReduceOp::Mean => sum(lane) / lane.len() as f64,
            ReduceOp::Max => lane.iter().copied().fold(f64::NEG_INFINITY, maximum),
            ReduceOp::Min => lane.iter().copied().fold(f64::INFINITY, minimum),
        };
    })
}

pub(super) fn softmax(axis: usize, input: &View) -> View {
    each_lane(axis, input, false, |lane, out| {
        let most = lane.iter().copied().fold(f64::NEG_INFINITY, maximum);
        for (out, x) in out.iter_mut().zip(lane) {
            *out = (x - most).exp();
        }
        let total = sum(out);
        for out in out {
            *out /= total;
        }
    })
}

pub(super) fn cumsum(axis: usize, input: &View) -> View {
    each_lane(axis, input, false, |lane, out| {
        let mut total = 0.0;
        for (out, x) in out.iter_mut().zip(lane) {
            total += x;
            *out = total;
        }
    })
}

/// NaN comes last, as in numpy.
pub(super) fn argsort(axis: usize, input: &View) -> View {
    each_lane(axis, input, false, |lane, out| {
        let mut order: Vec<usize> = (0..lane.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (lane[*a], lane[*b]);
            let nan_last = || a.is_nan().cmp(&b.is_nan());
            a.partial_cmp(&b).unwrap_or_else(nan_last)
        });
        for (out, place) in out.iter_mut().zip(order) {
            *out = place as f64;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::evaluate::region::Region;

    fn view(extents: &[usize], numbers: &[f64]) -> View {
        View::new(Region::whole(extents), numbers.to_vec())
    }

    #[test]
    fn any_axis_is_reduced_and_stays() {
        let x = view(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(reduce(ReduceOp::Sum, 0, &x).to_vec(), [6.0, 15.0]);
        let columns = reduce(ReduceOp::Mean, 1, &x);
        assert_eq!(columns.region, Region::whole(&[1, 3]));
        assert_eq!(columns.to_vec(), [2.5, 3.5, 4.5]);
        assert_eq!(reduce(ReduceOp::Max, 1, &x).to_vec(), [4.0, 5.0, 6.0]);
        assert_eq!(reduce(ReduceOp::Min, 0, &x).to_vec(), [1.0, 4.0]);
    }

    #[test]
    fn nan_spreads_and_comes_last_in_order() {
        let x = view(&[1, 4], &[3.0, f64::NAN, 1.0, 3.0]);
        assert!(reduce(ReduceOp::Max, 0, &x).to_vec()[0].is_nan());
        assert!(reduce(ReduceOp::Min, 0, &x).to_vec()[0].is_nan());
        assert_eq!(argsort(0, &x).to_vec(), [2.0, 0.0, 3.0, 1.0]);
        assert!(softmax(0, &x).to_vec()[0].is_nan());
    }

    #[test]
    fn running_sums_go_along_their_axis() {
        let x = view(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(cumsum(1, &x).to_vec(), [1.0, 2.0, 4.0, 6.0]);
        assert_eq!(cumsum(0, &x).to_vec(), [1.0, 3.0, 3.0, 7.0]);
    }
}
