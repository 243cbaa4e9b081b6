//! f32 and f64 arithmetic, over cross products of special values.

use crate::case::{Case, Compare, Element};
use crate::elementwise::Elementwise;
use crate::values::Ty::{self, *};
use crate::values::{dense_f32, dense_f64};

const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        single(),
        double(),
        divisions(),
        minmax(),
        classes(),
        approximations(),
    ]
    .concat()
}

fn single() -> Vec<Case> {
    let mut cases = Vec::new();
    for rounding in ROUNDINGS {
        for flush in ["", ".ftz"] {
            for saturate in ["", ".sat"] {
                for op in ["add", "sub", "mul"] {
                    let form = format!("{op}.{rounding}{flush}{saturate}.f32");
                    cases.push(Elementwise::op(&form, &[F32, F32], F32).case());
                }
                let form = format!("fma.{rounding}{flush}{saturate}.f32");
                cases.push(Elementwise::op(&form, &[F32, F32, F32], F32).case());
            }
        }
    }
    for op in ["add", "sub", "mul"] {
        cases.push(Elementwise::op(&format!("{op}.f32"), &[F32, F32], F32).case());
    }
    cases.push(Elementwise::op("mad.rn.f32", &[F32, F32, F32], F32).case());
    for form in ["abs.f32", "abs.ftz.f32", "neg.f32", "neg.ftz.f32"] {
        cases.push(Elementwise::op(form, &[F32], F32).case());
    }
    cases.push(Elementwise::op("copysign.f32", &[F32, F32], F32).case());
    cases
}

fn double() -> Vec<Case> {
    let mut cases = Vec::new();
    for rounding in ROUNDINGS {
        for op in ["add", "sub", "mul"] {
            cases.push(Elementwise::op(&format!("{op}.{rounding}.f64"), &[F64, F64], F64).case());
        }
        cases.push(Elementwise::op(&format!("fma.{rounding}.f64"), &[F64, F64, F64], F64).case());
    }
    for form in ["abs.f64", "neg.f64"] {
        cases.push(Elementwise::op(form, &[F64], F64).case());
    }
    cases.push(Elementwise::op("copysign.f64", &[F64, F64], F64).case());
    cases
}

/// Correctly rounded quotients, reciprocals and roots.
fn divisions() -> Vec<Case> {
    let mut cases = Vec::new();
    for rounding in ROUNDINGS {
        for flush in ["", ".ftz"] {
            cases.push(
                Elementwise::op(&format!("div.{rounding}{flush}.f32"), &[F32, F32], F32).case(),
            );
            for op in ["rcp", "sqrt"] {
                cases.push(unary(&format!("{op}.{rounding}{flush}.f32"), F32));
            }
        }
        cases.push(Elementwise::op(&format!("div.{rounding}.f64"), &[F64, F64], F64).case());
        for op in ["rcp", "sqrt"] {
            cases.push(unary(&format!("{op}.{rounding}.f64"), F64));
        }
    }
    cases
}

fn unary(form: &str, ty: Ty) -> Case {
    let values = if ty == F32 { dense_f32() } else { dense_f64() };
    Elementwise::op(form, &[ty], ty).with([values]).case()
}

fn minmax() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["min", "max"] {
        for flush in ["", ".ftz"] {
            for nan in ["", ".NaN"] {
                for sign in ["", ".xorsign.abs"] {
                    cases.push(
                        Elementwise::op(&format!("{op}{flush}{nan}{sign}.f32"), &[F32, F32], F32)
                            .case(),
                    );
                }
            }
        }
        cases.push(Elementwise::op(&format!("{op}.f64"), &[F64, F64], F64).case());
    }
    cases
}

fn classes() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in [("f32", F32), ("f64", F64)] {
        for class in [
            "finite",
            "infinite",
            "number",
            "notanumber",
            "normal",
            "subnormal",
        ] {
            let form = format!("testp.{class}.{name}");
            cases.push(
                Elementwise::new(form.clone())
                    .crossed(&[ty])
                    .result(U32)
                    .body(&format!("{form} %p0, %a;\nselp.u32 %d, 1, 0, %p0;"))
                    .case(),
            );
        }
    }
    cases
}

/// Results the ISA gives an error bound for. They are recorded bit for bit all the same,
/// so that a closer emulation can be judged against them.
fn approximations() -> Vec<Case> {
    let near = |relative: f64, absolute: f64| Compare::Near {
        element: Element::F32,
        relative,
        absolute,
    };
    let ulps = |n: f64| near(n * (2f64).powi(-23), 2e-45 * n);
    let mut cases = Vec::new();
    for flush in ["", ".ftz"] {
        for (op, compare) in [
            ("rcp.approx", ulps(1.0)),
            ("sqrt.approx", ulps(2.0)),
            ("rsqrt.approx", ulps(4.0)),
            ("ex2.approx", ulps(3.0)),
            ("lg2.approx", near(4.0 * (2f64).powi(-23), (2f64).powi(-22))),
        ] {
            cases.push(approximation(
                &format!("{op}{flush}.f32"),
                dense_f32(),
                compare,
            ));
        }
        for op in ["sin", "cos"] {
            let small = dense_f32()
                .into_iter()
                .filter(|&b| f32::from_bits(b as u32).abs() < 6.3)
                .collect();
            cases.push(approximation(
                &format!("{op}.approx{flush}.f32"),
                small,
                near(0.0, 6.0e-7),
            ));
        }
        for op in ["div.approx", "div.full"] {
            // Quotients of divisors beyond 2^126 are specified as zero or NaN by one form only.
            cases.push(
                Elementwise::op(&format!("{op}{flush}.f32"), &[F32, F32], F32)
                    .filtered(|v| v[1] & 0x7fff_ffff < 0x7e80_0000)
                    .compare(ulps(2.5))
                    .case(),
            );
        }
    }
    cases.push(approximation(
        "tanh.approx.f32",
        dense_f32(),
        near((2f64).powi(-16), 0.0),
    ));
    let double = |relative: f64| Compare::Near {
        element: Element::F64,
        relative,
        absolute: 0.0,
    };
    for form in [
        "rcp.approx.ftz.f64",
        "rsqrt.approx.ftz.f64",
        "rsqrt.approx.f64",
    ] {
        cases.push(
            Elementwise::op(form, &[F64], F64)
                .with([dense_f64()])
                .compare(double(2e-6))
                .case(),
        );
    }
    cases
}

fn approximation(form: &str, values: Vec<u64>, compare: Compare) -> Case {
    Elementwise::op(form, &[F32], F32)
        .with([values])
        .compare(compare)
        .case()
}
