//! Functions of one and two numbers. True is 1, false is 0; as an argument, every value but 0 is
//! true.

use dgx_core::operator::{BinaryOp, ElementType, Number, UnaryOp};

use crate::operator::{rounded, silu};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))
}

/// Accurate to the last few bits: a series of positive terms near 0, a continued fraction beyond.
fn erf(x: f64) -> f64 {
    let (size, two_over_root_pi) = (x.abs(), std::f64::consts::FRAC_2_SQRT_PI);
    if size < 3.0 {
        let (mut term, mut sum, mut odd) = (x, x, 3.0);
        while term.abs() > 1e-17 * sum.abs() {
            term *= 2.0 * x * x / odd;
            sum += term;
            odd += 2.0;
        }
        return two_over_root_pi * (-x * x).exp() * sum;
    }
    let fraction = (1..=60)
        .rev()
        .fold(size, |below, k| size + 0.5 * f64::from(k) / below);
    let rest = 0.5 * two_over_root_pi * (-x * x).exp() / fraction;
    (1.0 - rest).copysign(x)
}

fn relu(x: f64) -> f64 {
    maximum(x, 0.0)
}

/// NaN has no sign.
fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() {
        x
    } else {
        x.signum()
    }
}

/// NaN if either is, as in numpy and torch.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

pub(super) fn minimum(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

/// From the remainder, because a / b may round up to the next whole number.
fn floor_divide(a: f64, b: f64) -> f64 {
    let rest = remainder(a, b);
    match rest.is_finite() {
        true => ((a - rest) / b).round(),
        false => (a / b).floor(),
    }
}

/// With the sign of the divisor, as in numpy.
fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

/// Calls `with` with a function of one number, so that each has its own loop.
pub(super) fn with_unary<R>(op: UnaryOp, with: impl UnaryUse<R>) -> R {
    match op {
        UnaryOp::Negate => with.call(|x| -x),
        UnaryOp::Exp => with.call(f64::exp),
        UnaryOp::Exp2 => with.call(f64::exp2),
        UnaryOp::Log => with.call(f64::ln),
        UnaryOp::Log2 => with.call(f64::log2),
        UnaryOp::Sqrt => with.call(f64::sqrt),
        UnaryOp::Rsqrt => with.call(|x| 1.0 / x.sqrt()),
        UnaryOp::Abs => with.call(f64::abs),
        UnaryOp::Tanh => with.call(f64::tanh),
        UnaryOp::Sigmoid => with.call(sigmoid),
        UnaryOp::Silu => with.call(silu),
        UnaryOp::Gelu => with.call(gelu),
        UnaryOp::Relu => with.call(relu),
        UnaryOp::Erf => with.call(erf),
        UnaryOp::Sin => with.call(f64::sin),
        UnaryOp::Cos => with.call(f64::cos),
        UnaryOp::Floor => with.call(f64::floor),
        UnaryOp::Round => with.call(f64::round_ties_even),
        UnaryOp::Sign => with.call(sign),
    }
}

/// A use of a function of one number.
pub(super) trait UnaryUse<R> {
    fn call(self, function: impl Fn(f64) -> f64) -> R;
}

/// Like [`with_unary`], for two numbers.
pub(super) fn with_binary<R>(op: BinaryOp, with: impl BinaryUse<R>) -> R {
    let truth = |holds: bool| f64::from(u8::from(holds));
    match op {
        BinaryOp::Add => with.call(|a, b| a + b),
        BinaryOp::Subtract => with.call(|a, b| a - b),
        BinaryOp::Multiply => with.call(|a, b| a * b),
        BinaryOp::Divide => with.call(|a, b| a / b),
        BinaryOp::FloorDivide => with.call(floor_divide),
        BinaryOp::Remainder => with.call(remainder),
        BinaryOp::Power => with.call(f64::powf),
        BinaryOp::Maximum => with.call(maximum),
        BinaryOp::Minimum => with.call(minimum),
        BinaryOp::Less => with.call(|a, b| truth(a < b)),
        BinaryOp::LessEqual => with.call(|a, b| truth(a <= b)),
        BinaryOp::Greater => with.call(|a, b| truth(a > b)),
        BinaryOp::GreaterEqual => with.call(|a, b| truth(a >= b)),
        BinaryOp::Equal => with.call(|a, b| truth(a == b)),
        BinaryOp::NotEqual => with.call(|a, b| truth(a != b)),
        BinaryOp::And => with.call(|a, b| truth(a != 0.0 && b != 0.0)),
        BinaryOp::Or => with.call(|a, b| truth(a != 0.0 || b != 0.0)),
    }
}

/// A use of a function of two numbers.
pub(super) trait BinaryUse<R> {
    fn call(self, function: impl Fn(f64, f64) -> f64) -> R;
}

/// A cast of the language: floats to the nearest, integers towards zero.
pub(super) fn cast(element: ElementType, value: f64) -> f64 {
    match element.number() {
        Number::Integer => rounded(element, value.trunc()),
        Number::Real | Number::Truth => rounded(element, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Of1(f64);
    impl UnaryUse<f64> for Of1 {
        fn call(self, function: impl Fn(f64) -> f64) -> f64 {
            function(self.0)
        }
    }
    struct Of2(f64, f64);
    impl BinaryUse<f64> for Of2 {
        fn call(self, function: impl Fn(f64, f64) -> f64) -> f64 {
            function(self.0, self.1)
        }
    }

    #[test]
    fn functions_have_their_values() {
        let cases = [
            (UnaryOp::Negate, 2.0, -2.0),
            (UnaryOp::Exp, 1.0, std::f64::consts::E),
            (UnaryOp::Exp2, 3.0, 8.0),
            (UnaryOp::Log, 1.0, 0.0),
            (UnaryOp::Log2, 8.0, 3.0),
            (UnaryOp::Sqrt, 9.0, 3.0),
            (UnaryOp::Rsqrt, 4.0, 0.5),
            (UnaryOp::Rsqrt, 0.0, f64::INFINITY),
            (UnaryOp::Abs, -3.0, 3.0),
            (UnaryOp::Tanh, 0.5, 0.46211715726000976),
            (UnaryOp::Sigmoid, 0.0, 0.5),
            (UnaryOp::Silu, 1.0, 0.7310585786300049),
            (UnaryOp::Gelu, 1.0, 0.8413447460685429),
            (UnaryOp::Relu, -1.0, 0.0),
            (UnaryOp::Erf, 1.0, 0.8427007929497149),
            (UnaryOp::Erf, -0.001, -0.0011283787909692365),
            (UnaryOp::Erf, 2.999, 0.9999777698314002),
            (UnaryOp::Erf, 3.001, 0.9999780483390822),
            (UnaryOp::Erf, -40.0, -1.0),
            (UnaryOp::Erf, f64::INFINITY, 1.0),
            (UnaryOp::Sin, 1.0, 0.8414709848078965),
            (UnaryOp::Cos, 1.0, 0.5403023058681398),
            (UnaryOp::Floor, -1.5, -2.0),
            (UnaryOp::Round, 2.5, 2.0),
            (UnaryOp::Sign, -7.0, -1.0),
            (UnaryOp::Sign, 0.0, 0.0),
        ];
        for (op, x, wanted) in cases {
            let found = with_unary(op, Of1(x));
            let near = (found - wanted).abs() <= 1e-15 * wanted.abs();
            assert!(found == wanted || near, "{op:?}({x}) = {found}");
        }
        assert!(with_unary(UnaryOp::Sign, Of1(f64::NAN)).is_nan());
        assert!(with_unary(UnaryOp::Relu, Of1(f64::NAN)).is_nan());
    }

    #[test]
    fn division_floors_and_the_rest_has_the_divisors_sign() {
        for (a, b, quotient, rest) in [
            (7.0, 2.0, 3.0, 1.0),
            (-7.0, 2.0, -4.0, 1.0),
            (7.0, -2.0, -4.0, -1.0),
            (-7.0, -2.0, 3.0, -1.0),
            (-6.0, 3.0, -2.0, 0.0),
            (9007199254740991.0, 2.0, 4503599627370495.0, 1.0),
        ] {
            assert_eq!(with_binary(BinaryOp::FloorDivide, Of2(a, b)), quotient);
            assert_eq!(with_binary(BinaryOp::Remainder, Of2(a, b)), rest);
        }
    }

    #[test]
    fn the_larger_and_the_smaller_propagate_nan() {
        for op in [BinaryOp::Maximum, BinaryOp::Minimum] {
            assert!(with_binary(op, Of2(f64::NAN, 1.0)).is_nan());
            assert!(with_binary(op, Of2(1.0, f64::NAN)).is_nan());
        }
        assert_eq!(with_binary(BinaryOp::Maximum, Of2(1.0, 2.0)), 2.0);
        assert_eq!(with_binary(BinaryOp::Minimum, Of2(1.0, 2.0)), 1.0);
        assert_eq!(with_binary(BinaryOp::Equal, Of2(f64::NAN, f64::NAN)), 0.0);
    }

    #[test]
    fn casts_to_integers_go_towards_zero() {
        assert_eq!(cast(ElementType::I8, -2.9), -2.0);
        assert_eq!(cast(ElementType::I32, 2.9), 2.0);
        assert_eq!(cast(ElementType::U8, 300.7), 255.0);
        assert_eq!(cast(ElementType::E2m1, 2.4), 2.0);
        assert_eq!(cast(ElementType::E4m3, 1e9), 448.0);
    }
}
