//! One step on a box: its inputs' boxes in, its own box out.

use dgx_core::operator::{BinaryOp, Op, UnaryOp};

use super::Problem;
use super::functions::{BinaryUse, UnaryUse, cast, with_binary, with_unary};
use super::lanes;
use super::region::Region;
use super::view::{View, each_run};

/// The value of `op` on `region`. `inputs` are those requested by [`super::region::demands`].
///
/// # Panics
/// For `@` and for a tensor, which are computed elsewhere.
pub(super) fn step(op: &Op, region: &Region, inputs: &[View], problem: &Problem<'_>) -> View {
    match op {
        Op::Constant(value) => number(region, *value),
        Op::Size(size) => number(region, problem.sizes[*size] as f64),
        Op::Index(axis) => {
            let range = region.axis(*axis).clone();
            View::new(region.clone(), range.map(|i| i as f64).collect())
        }
        Op::Unary(op) => unary(*op, region, &inputs[0]),
        Op::Cast(element) => mapped(region, &inputs[0], |x| cast(*element, x)),
        Op::Binary(op) => binary(*op, region, &inputs[0], &inputs[1]),
        Op::Where => choose(region, inputs),
        Op::Transpose | Op::Permute(_) => inputs[0].permuted(&order(op, region.0.len())),
        Op::Slice { .. } => inputs[0].clone().renumbered(region.clone()),
        Op::Reduce(op, axis) => lanes::reduce(*op, *axis, &inputs[0]),
        Op::Softmax(axis) => lanes::softmax(*axis, &inputs[0]).part(region),
        Op::Cumsum(axis) => lanes::cumsum(*axis, &inputs[0]).part(region),
        Op::Argsort(axis) => lanes::argsort(*axis, &inputs[0]).part(region),
        Op::Take(axis) => take(*axis, region, &inputs[0], &inputs[1]),
        Op::MatMul | Op::Input(_) | Op::Output(_) => unreachable!("made elsewhere"),
    }
}

fn number(region: &Region, value: f64) -> View {
    View::new(region.clone(), vec![value])
}

/// Axis `[a]` of the input becomes axis a, both from the front.
fn order(op: &Op, rank: usize) -> Vec<usize> {
    let from_end = |axis: usize| match op {
        Op::Permute(axes) => axes[axis],
        _ if axis < 2 => 1 - axis,
        _ => axis,
    };
    (0..rank)
        .map(|axis| rank - 1 - from_end(rank - 1 - axis))
        .collect()
}

fn unary(op: UnaryOp, region: &Region, input: &View) -> View {
    struct Map<'a>(&'a Region, &'a View);
    impl UnaryUse<View> for Map<'_> {
        fn call(self, function: impl Fn(f64) -> f64) -> View {
            mapped(self.0, self.1, function)
        }
    }
    with_unary(op, Map(region, input))
}

/// Numbers one after the other, and the step from one to the next.
type Row<'a> = (&'a [f64], usize);

/// A function of each number.
pub(super) fn mapped(region: &Region, input: &View, function: impl Fn(f64) -> f64) -> View {
    mapped_rows(region, input, &|out, (x, step)| match step {
        1 => {
            for (out, x) in out.iter_mut().zip(x) {
                *out = function(*x);
            }
        }
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = function(x[i * step]);
            }
        }
    })
}

/// All of [`mapped`] that is the same for every function.
fn mapped_rows(region: &Region, input: &View, row: &dyn Fn(&mut [f64], Row<'_>)) -> View {
    let mut out = vec![0.0; region.volume()];
    match input.contiguous() {
        Some(numbers) => row(&mut out, (numbers, 1)),
        None => each_run(&region.extents(), |outer, at, width| {
            row(&mut out[at..at + width], (input.run(outer), input.step()));
        }),
    }
    View::new(region.clone(), out)
}

fn binary(op: BinaryOp, region: &Region, left: &View, right: &View) -> View {
    struct Zip<'a>(&'a Region, &'a View, &'a View);
    impl BinaryUse<View> for Zip<'_> {
        fn call(self, function: impl Fn(f64, f64) -> f64) -> View {
            zipped(self.0, self.1, self.2, function)
        }
    }
    with_binary(op, Zip(region, left, right))
}

/// A function of each pair of numbers, both broadcast to the region.
pub(super) fn zipped(
    region: &Region,
    left: &View,
    right: &View,
    function: impl Fn(f64, f64) -> f64,
) -> View {
    zipped_rows(region, left, right, &|out, (a, l), (b, r)| match (l, r) {
        (1, 1) => {
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = function(*a, *b);
            }
        }
        (1, 0) => {
            for (out, a) in out.iter_mut().zip(a) {
                *out = function(*a, b[0]);
            }
        }
        (0, 1) => {
            for (out, b) in out.iter_mut().zip(b) {
                *out = function(a[0], *b);
            }
        }
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = function(a[i * l], b[i * r]);
            }
        }
    })
}

/// All of [`zipped`] that is the same for every function.
fn zipped_rows(
    region: &Region,
    left: &View,
    right: &View,
    row: &dyn Fn(&mut [f64], Row<'_>, Row<'_>),
) -> View {
    let (left, right) = (left.stretched(region), right.stretched(region));
    let (l, r) = (left.step(), right.step());
    let mut out = vec![0.0; region.volume()];
    each_run(&region.extents(), |outer, at, width| {
        let (a, b) = (left.run(outer), right.run(outer));
        row(&mut out[at..at + width], (a, l), (b, r));
    });
    View::new(region.clone(), out)
}

/// The second if the first is true, else the third.
fn choose(region: &Region, inputs: &[View]) -> View {
    let views: Vec<View> = inputs.iter().map(|view| view.stretched(region)).collect();
    let steps = [0, 1, 2].map(|input| views[input].step());
    let mut out = vec![0.0; region.volume()];
    each_run(&region.extents(), |outer, at, width| {
        let [condition, yes, no] = [0, 1, 2].map(|input| views[input].run(outer));
        for (i, out) in out[at..at + width].iter_mut().enumerate() {
            *out = match condition[i * steps[0]] != 0.0 {
                true => yes[i * steps[1]],
                false => no[i * steps[2]],
            };
        }
    });
    View::new(region.clone(), out)
}

/// The place of an index; `None` if it is not a whole number within the axis.
pub(super) fn place(index: f64, extent: usize) -> Option<usize> {
    let whole = index >= 0.0 && index < extent as f64 && index.fract() == 0.0;
    whole.then_some(index as usize)
}

/// `x` at the indices, NaN if an index lies outside the axis.
fn take(axis: usize, region: &Region, x: &View, index: &View) -> View {
    let extent = x.region.axis(axis).len();
    let index = index.stretched(region);
    let step = index.step();
    let rank = x.region.0.len();
    let shape = x.region.extents();
    let skipped = region.0.len() - rank;
    let mut out = vec![0.0; region.volume()];
    let mut at_x = vec![0; rank];
    each_run(&region.extents(), |outer, at, width| {
        let indices = index.run(outer);
        for (i, out) in out[at..at + width].iter_mut().enumerate() {
            let Some(chosen) = place(indices[i * step], extent) else {
                *out = f64::NAN;
                continue;
            };
            for (a, to) in at_x.iter_mut().enumerate() {
                let own = outer.get(skipped + a).copied().unwrap_or(i);
                *to = if shape[a] == 1 { 0 } else { own };
            }
            at_x[rank - 1 - axis] = chosen;
            *out = x.at(&at_x);
        }
    });
    View::new(region.clone(), out)
}
