//! f16 and bf16 arithmetic, single and packed.

use crate::case::{Case, Compare, Element};
use crate::elementwise::Elementwise;
use crate::values::Ty::{self, *};
use crate::values::all16;

const F16_TYPES: [(&str, Ty); 2] = [("f16", F16), ("f16x2", F16x2)];
const BF16_TYPES: [(&str, Ty); 2] = [("bf16", Bf16), ("bf16x2", Bf16x2)];

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [arithmetic(), fused(), signs(), minmax(), approximations()].concat()
}

fn arithmetic() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in F16_TYPES {
        for op in ["add", "sub", "mul"] {
            for modifiers in ["", ".rn", ".ftz", ".sat", ".rn.ftz.sat"] {
                cases.push(
                    Elementwise::op(&format!("{op}{modifiers}.{name}"), &[ty, ty], ty).case(),
                );
            }
        }
    }
    for (name, ty) in BF16_TYPES {
        for op in ["add", "sub", "mul"] {
            for modifiers in ["", ".rn"] {
                cases.push(
                    Elementwise::op(&format!("{op}{modifiers}.{name}"), &[ty, ty], ty).case(),
                );
            }
        }
    }
    cases
}

fn fused() -> Vec<Case> {
    let mut cases = Vec::new();
    let f16_modifiers = [
        "",
        ".ftz",
        ".sat",
        ".ftz.sat",
        ".relu",
        ".ftz.relu",
        ".oob",
        ".oob.relu",
    ];
    for (types, modifiers) in [
        (F16_TYPES, &f16_modifiers[..]),
        (BF16_TYPES, &["", ".relu", ".oob", ".oob.relu"]),
    ] {
        for (name, ty) in types {
            for modifier in modifiers {
                cases.push(
                    Elementwise::op(&format!("fma.rn{modifier}.{name}"), &[ty, ty, ty], ty).case(),
                );
            }
        }
    }
    cases
}

fn signs() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["abs", "neg"] {
        for (name, ty) in F16_TYPES {
            for flush in ["", ".ftz"] {
                cases.push(Elementwise::op(&format!("{op}{flush}.{name}"), &[ty], ty).case());
            }
        }
        for (name, ty) in BF16_TYPES {
            cases.push(Elementwise::op(&format!("{op}.{name}"), &[ty], ty).case());
        }
    }
    cases
}

fn minmax() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["min", "max"] {
        for nan in ["", ".NaN"] {
            for sign in ["", ".xorsign.abs"] {
                for (name, ty) in F16_TYPES {
                    for flush in ["", ".ftz"] {
                        let form = format!("{op}{flush}{nan}{sign}.{name}");
                        cases.push(Elementwise::op(&form, &[ty, ty], ty).case());
                    }
                }
                for (name, ty) in BF16_TYPES {
                    cases.push(
                        Elementwise::op(&format!("{op}{nan}{sign}.{name}"), &[ty, ty], ty).case(),
                    );
                }
            }
        }
    }
    cases
}

/// Over all 2^16 inputs; packed forms take each input beside its complement.
fn approximations() -> Vec<Case> {
    let near = |element, relative, absolute| Compare::Near {
        element,
        relative,
        absolute,
    };
    let f16_bound = near(Element::F16, (2f64).powi(-10), (2f64).powi(-24));
    let bf16_bound = near(Element::Bf16, (2f64).powi(-7), (2f64).powi(-126));
    let packed: Vec<u64> = all16()
        .iter()
        .step_by(4)
        .map(|v| v | (v ^ 0xffff) << 16)
        .collect();
    let mut cases = Vec::new();
    for (form, ty, compare) in [
        ("tanh.approx.f16", F16, f16_bound),
        ("tanh.approx.f16x2", F16x2, f16_bound),
        ("tanh.approx.bf16", Bf16, bf16_bound),
        ("tanh.approx.bf16x2", Bf16x2, bf16_bound),
        ("ex2.approx.f16", F16, Compare::Exact),
        ("ex2.approx.f16x2", F16x2, Compare::Exact),
        ("ex2.approx.ftz.bf16", Bf16, Compare::Exact),
        ("ex2.approx.ftz.bf16x2", Bf16x2, Compare::Exact),
    ] {
        let values = if ty.bytes() == 2 {
            all16()
        } else {
            packed.clone()
        };
        cases.push(
            Elementwise::op(form, &[ty], ty)
                .with([values])
                .compare(compare)
                .case(),
        );
    }
    cases
}
