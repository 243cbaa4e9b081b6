//! How far each step moves when its inputs do.

use dgx_core::operator::{BinaryOp, ReduceOp, UnaryOp};

use super::{Arithmetic, MovingBox};
use crate::operator::{
    evaluate::functions::{BinaryUse, UnaryUse, with_binary, with_unary},
    evaluate::lanes,
    evaluate::region::Region,
    evaluate::step::{mapped, zipped},
    evaluate::view::View,
};

/// The larger change of a function's value at both ends of its argument's range.
pub(super) fn ends(region: &Region, input: &MovingBox, function: impl Fn(f64) -> f64) -> View {
    zipped(region, &input.value, &input.by, |x, by| {
        if by == 0.0 {
            return 0.0;
        }
        let here = function(x);
        apart(function(x - by), here).max(apart(function(x + by), here))
    })
}

/// The distance of two numbers; 0 if they are the same infinity.
fn apart(a: f64, b: f64) -> f64 {
    if a == b { 0.0 } else { (a - b).abs() }
}

pub(super) fn unary(
    op: UnaryOp,
    region: &Region,
    input: &MovingBox,
    arithmetic: Arithmetic,
) -> View {
    struct Ends<'a>(&'a Region, &'a MovingBox, f64);
    impl UnaryUse<View> for Ends<'_> {
        fn call(self, function: impl Fn(f64) -> f64) -> View {
            let moved = ends(self.0, self.1, &function);
            let own = mapped(self.0, &self.1.value, |x| self.2 * function(x).abs());
            with_own(self.0, &moved, &own)
        }
    }
    let exact = matches!(
        op,
        UnaryOp::Negate
            | UnaryOp::Abs
            | UnaryOp::Relu
            | UnaryOp::Floor
            | UnaryOp::Round
            | UnaryOp::Sign
    );
    let unit = if exact { 0.0 } else { arithmetic.function() };
    with_unary(op, Ends(region, input, unit))
}

/// Not a closure in [`unary`], where it would be compiled for every function.
fn with_own(region: &Region, moved: &View, own: &View) -> View {
    zipped(region, moved, own, |moved, own| moved + finite(own))
}

/// An infinite value does not move.
fn finite(by: f64) -> f64 {
    if by.is_finite() { by } else { 0.0 }
}

/// The largest change of a function's value at the four corners of its arguments' ranges.
pub(super) fn binary(
    op: BinaryOp,
    region: &Region,
    inputs: [&MovingBox; 2],
    arithmetic: Arithmetic,
) -> View {
    struct Corners<'a>(&'a Region, [&'a MovingBox; 2], f64);
    impl BinaryUse<View> for Corners<'_> {
        fn call(self, function: impl Fn(f64, f64) -> f64) -> View {
            let Self(region, [a, b], unit) = self;
            let (da, db) = (
                a.by.stretched(region).to_vec(),
                b.by.stretched(region).to_vec(),
            );
            let at = std::cell::Cell::new(0);
            // `zipped` goes in row-major order, like the movements.
            zipped(region, &a.value, &b.value, |x, y| {
                let (dx, dy) = (da[at.get()], db[at.get()]);
                at.set(at.get() + 1);
                let here = function(x, y);
                let corners = [(-dx, -dy), (-dx, dy), (dx, -dy), (dx, dy)];
                let farthest = corners
                    .iter()
                    .map(|(dx, dy)| apart(function(x + dx, y + dy), here))
                    .fold(0.0, f64::max);
                farthest + finite(unit * here.abs())
            })
        }
    }
    let rounds = matches!(
        op,
        BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Power
    );
    let moves = |pair: &MovingBox| pair.by.to_vec().iter().any(|by| *by != 0.0);
    // Whole numbers and masks are exact, and so are values without sums.
    let unit = match rounds && inputs.iter().any(|pair| moves(pair)) {
        true => arithmetic.function(),
        false => 0.0,
    };
    with_binary(op, Corners(region, inputs, unit))
}

/// The movement of the chosen value; also of the other, if the condition moves.
pub(super) fn chosen(region: &Region, inputs: &[MovingBox]) -> View {
    let condition = &inputs[0];
    let by = [1, 2].map(|side| &inputs[side].by);
    let [yes, no] = [1, 2].map(|side| &inputs[side].value);
    let swing = zipped(region, yes, no, apart);
    let unsure = zipped(region, &condition.by, &swing, |by, swing| {
        if by == 0.0 { 0.0 } else { swing }
    });
    let [first, second] = [(by[0], true), (by[1], false)].map(|(by, when)| {
        zipped(region, &condition.value, by, move |holds, by| {
            if (holds != 0.0) == when { by } else { 0.0 }
        })
    });
    let own = zipped(region, &first, &second, |a, b| a + b);
    zipped(region, &own, &unsure, |a, b| a + b)
}

pub(super) fn reduced(
    op: ReduceOp,
    axis: usize,
    input: &MovingBox,
    arithmetic: Arithmetic,
) -> View {
    let region = &input.value.region;
    let count = region.axis(axis).len();
    if matches!(op, ReduceOp::Max | ReduceOp::Min) {
        return lanes::reduce(ReduceOp::Max, axis, &input.by);
    }
    let squares =
        |view: &View| lanes::reduce(ReduceOp::Sum, axis, &mapped(region, view, |x| x * x));
    let total = lanes::reduce(ReduceOp::Sum, axis, &input.value);
    let out = total.region.clone();
    let own = zipped(&out, &total, &squares(&input.value), |sum, squares| {
        arithmetic.sum(count, sum.abs(), squares.sqrt())
    });
    let moved = zipped(&out, &own, &squares(&input.by), |own, by| own + by.sqrt());
    let share = if op == ReduceOp::Mean {
        count as f64
    } else {
        1.0
    };
    mapped(&out, &moved, |by| by / share)
}

/// p moves with its own argument and, by the sum, with all the others.
pub(super) fn softmax(axis: usize, input: &MovingBox, arithmetic: Arithmetic) -> View {
    let region = &input.value.region;
    let count = region.axis(axis).len();
    let p = lanes::softmax(axis, &input.value);
    let weighted = zipped(region, &p, &input.by, |p, by| {
        if p == 0.0 { 0.0 } else { (p * by).powi(2) }
    });
    let together = lanes::reduce(ReduceOp::Sum, axis, &weighted);
    let root = lanes::reduce(ReduceOp::Sum, axis, &mapped(region, &p, |p| p * p));
    let sum = zipped(&together.region, &together, &root, |moved, root| {
        moved.sqrt() + arithmetic.sum(count, 1.0, root.sqrt()) + arithmetic.function()
    });
    let own = zipped(
        region,
        &p,
        &input.by,
        |p, by| if p == 0.0 { 0.0 } else { p * by },
    );
    let shared = zipped(region, &p, &sum, |p, by| p * by);
    zipped(region, &own, &shared, |a, b| a + b)
}

pub(super) fn cumsum(axis: usize, input: &MovingBox, arithmetic: Arithmetic) -> View {
    let region = &input.value.region;
    let count = region.axis(axis).len();
    let running = |view: &View| lanes::cumsum(axis, &mapped(region, view, |x| x * x));
    let total = lanes::cumsum(axis, &input.value);
    let own = zipped(region, &total, &running(&input.value), |sum, squares| {
        arithmetic.sum(count, sum.abs(), squares.sqrt())
    });
    zipped(region, &own, &running(&input.by), |own, by| own + by.sqrt())
}
