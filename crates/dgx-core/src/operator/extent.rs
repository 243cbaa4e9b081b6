//! Whole numbers computed from sizes: extents of tensors, bounds of slices, requirements of an
//! operator. Python's rules: `//` rounds down, `%` has the divisor's sign.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::BinaryOp;

/// An integer expression of the operator's sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    Number(i64),
    /// By its place in [`super::Operator::sizes`].
    Size(usize),
    /// Arithmetic, a comparison (1 or 0), `and`, `or`, `maximum` or `minimum`.
    Of(BinaryOp, Arc<(Extent, Extent)>),
}

impl Extent {
    pub(super) fn of(op: BinaryOp, left: Self, right: Self) -> Self {
        Self::Of(op, Arc::new((left, right)))
    }

    /// The size and its divisor, if this is exactly the condition `size % divisor == 0`.
    pub fn multiple(&self) -> Option<(usize, i64)> {
        let Self::Of(BinaryOp::Equal, equal) = self else {
            return None;
        };
        match &**equal {
            (Self::Of(BinaryOp::Remainder, of), Self::Number(0)) => match &**of {
                (Self::Size(size), Self::Number(of @ 1..)) => Some((*size, *of)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The first size it names.
    pub fn first_size(&self) -> Option<usize> {
        match self {
            Self::Number(_) => None,
            Self::Size(size) => Some(*size),
            Self::Of(_, of) => of.0.first_size().or_else(|| of.1.first_size()),
        }
    }

    /// The value for `sizes`, which are in the operator's order; `None` on overflow and on division
    /// by zero.
    pub fn eval(&self, sizes: &[u64]) -> Option<i64> {
        let (op, of) = match self {
            Self::Number(value) => return Some(*value),
            Self::Size(size) => return i64::try_from(*sizes.get(*size)?).ok(),
            Self::Of(op, of) => (op, of),
        };
        let (a, b) = (of.0.eval(sizes)?, of.1.eval(sizes)?);
        match op {
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Subtract => a.checked_sub(b),
            BinaryOp::Multiply => a.checked_mul(b),
            BinaryOp::FloorDivide => floor_divide(a, b),
            BinaryOp::Remainder => a.checked_sub(floor_divide(a, b)?.checked_mul(b)?),
            BinaryOp::Maximum => Some(a.max(b)),
            BinaryOp::Minimum => Some(a.min(b)),
            BinaryOp::Less => Some((a < b).into()),
            BinaryOp::LessEqual => Some((a <= b).into()),
            BinaryOp::Greater => Some((a > b).into()),
            BinaryOp::GreaterEqual => Some((a >= b).into()),
            BinaryOp::Equal => Some((a == b).into()),
            BinaryOp::NotEqual => Some((a != b).into()),
            BinaryOp::And => Some((a != 0 && b != 0).into()),
            BinaryOp::Or => Some((a != 0 || b != 0).into()),
            BinaryOp::Divide | BinaryOp::Power => None,
        }
    }

    /// Names, numbers and operators in it.
    pub(super) fn words(&self) -> usize {
        match self {
            Self::Of(_, of) => 1 + of.0.words() + of.1.words(),
            _ => 1,
        }
    }

    /// Adds the sizes in it.
    pub(super) fn sizes(&self, found: &mut BTreeSet<usize>) {
        match self {
            Self::Number(_) => {}
            Self::Size(size) => _ = found.insert(*size),
            Self::Of(_, of) => {
                of.0.sizes(found);
                of.1.sizes(found);
            }
        }
    }

    /// As text, with sizes called `names`.
    pub fn shown(&self, names: &[String]) -> String {
        let (op, of) = match self {
            Self::Number(value) => return value.to_string(),
            Self::Size(size) => return names.get(*size).cloned().unwrap_or_default(),
            Self::Of(op, of) => (op, of),
        };
        let (a, b) = (of.0.shown(names), of.1.shown(names));
        let inner = |text: String| match text.contains(' ') {
            true => format!("({text})"),
            false => text,
        };
        match op {
            BinaryOp::Maximum | BinaryOp::Minimum => format!("{}({a}, {b})", op.symbol()),
            _ => format!("{} {} {}", inner(a), op.symbol(), inner(b)),
        }
    }
}

fn floor_divide(a: i64, b: i64) -> Option<i64> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    let below = rest != 0 && (rest < 0) != (b < 0);
    Some(quotient - i64::from(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_down_and_never_panics() {
        let of = |op, a, b| Extent::of(op, Extent::Number(a), Extent::Number(b)).eval(&[]);
        assert_eq!(of(BinaryOp::FloorDivide, -7, 2), Some(-4));
        assert_eq!(of(BinaryOp::Remainder, -7, 2), Some(1));
        assert_eq!(of(BinaryOp::Remainder, 7, -2), Some(-1));
        assert_eq!(of(BinaryOp::FloorDivide, 1, 0), None);
        assert_eq!(of(BinaryOp::FloorDivide, i64::MIN, -1), None);
        assert_eq!(of(BinaryOp::Remainder, i64::MIN, -1), None);
    }
}
