//! Conversions, over the whole range of their input where it is small and over every
//! rounding boundary where it is not.

use crate::case::Case;
use crate::elementwise::Elementwise;
use crate::values::Ty::{self, *};
use crate::values::{
    SplitMix, all8x2, all16, boundaries_f32, dense_f32, dense_f64, finite_bf16, finite_f16,
    finite_fp8, integer_boundaries_f32,
};

const INTEGERS: [(&str, Ty); 8] = [
    ("u8", U8),
    ("s8", S8),
    ("u16", U16),
    ("s16", S16),
    ("u32", U32),
    ("s32", S32),
    ("u64", U64),
    ("s64", S64),
];
const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        between_integers(),
        from_integers(),
        to_integers(),
        halves(),
        narrowing(),
        singles_and_doubles(),
        eight_bit(),
    ]
    .concat()
}

/// `form %d, %a;` over `values`. An 8-bit result is read from its 16-bit register's low byte.
fn unary(form: &str, from: Ty, to: Ty, values: Vec<u64>) -> Case {
    Elementwise::op(form, &[from], to).with([values]).case()
}

fn integer_values(ty: Ty) -> Vec<u64> {
    let mut values = ty.edges();
    values.extend(ty.random(41, 300));
    // Sums of few powers of two: the mantissas that decide ties.
    let mut rng = SplitMix(42);
    let bits = ty.bytes() as u64 * 8;
    for _ in 0..300 {
        let high = rng.below(bits);
        let value = (1u64 << high) | (1u64 << rng.below(bits)) | (1u64 << rng.below(high + 1));
        values.push(value);
    }
    values
}

fn between_integers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (from_name, from) in INTEGERS {
        for (to_name, to) in INTEGERS {
            if from_name == to_name {
                continue;
            }
            cases.push(unary(
                &format!("cvt.{to_name}.{from_name}"),
                from,
                to,
                integer_values(from),
            ));
            // `.sat` is refused where the target holds every value of the source.
            let signed = |name: &str| name.starts_with('s');
            let holds = if signed(from_name) == signed(to_name) {
                to.bytes() >= from.bytes()
            } else {
                signed(to_name) && to.bytes() > from.bytes()
            };
            if !holds {
                cases.push(unary(
                    &format!("cvt.sat.{to_name}.{from_name}"),
                    from,
                    to,
                    integer_values(from),
                ));
            }
        }
    }
    cases
}

fn from_integers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, from) in INTEGERS {
        for (to_name, to) in [("f32", F32), ("f64", F64)] {
            for rounding in ROUNDINGS {
                cases.push(unary(
                    &format!("cvt.{rounding}.{to_name}.{name}"),
                    from,
                    to,
                    integer_values(from),
                ));
            }
        }
        // ptxas has no conversion between bf16 and 8-bit integers.
        let halves = [("f16", F16), ("bf16", Bf16)];
        for (to_name, to) in halves
            .into_iter()
            .take(if from.bytes() == 1 { 1 } else { 2 })
        {
            for rounding in ["rn", "rz"] {
                cases.push(unary(
                    &format!("cvt.{rounding}.{to_name}.{name}"),
                    from,
                    to,
                    integer_values(from),
                ));
            }
        }
    }
    cases
}

fn to_integers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, to) in INTEGERS {
        for rounding in ["rni", "rzi", "rmi", "rpi"] {
            let single = format!("cvt.{rounding}.{name}.f32");
            cases.push(unary(&single, F32, to, integer_boundaries_f32()));
            cases.push(unary(
                &format!("cvt.{rounding}.{name}.f64"),
                F64,
                to,
                dense_f64(),
            ));
        }
        let flushing = format!("cvt.rpi.ftz.{name}.f32");
        cases.push(unary(&flushing, F32, to, dense_f32()));
        for rounding in ["rni", "rzi"] {
            cases.push(unary(
                &format!("cvt.{rounding}.{name}.f16"),
                F16,
                to,
                all16(),
            ));
            if to.bytes() > 1 {
                cases.push(unary(
                    &format!("cvt.{rounding}.{name}.bf16"),
                    Bf16,
                    to,
                    all16(),
                ));
            }
        }
    }
    cases
}

/// From f16 and bf16, over all 2^16 inputs.
fn halves() -> Vec<Case> {
    let mut cases = Vec::new();
    for (form, from, to) in [
        ("cvt.f32.f16", F16, F32),
        ("cvt.ftz.f32.f16", F16, F32),
        ("cvt.sat.f32.f16", F16, F32),
        ("cvt.f64.f16", F16, F64),
        ("cvt.f32.bf16", Bf16, F32),
        ("cvt.f64.bf16", Bf16, F64),
        ("cvt.rni.f16.f16", F16, F16),
        ("cvt.rzi.f16.f16", F16, F16),
        ("cvt.rmi.f16.f16", F16, F16),
        ("cvt.rpi.f16.f16", F16, F16),
        ("cvt.sat.f16.f16", F16, F16),
        ("cvt.rn.f16.bf16", Bf16, F16),
        ("cvt.rn.bf16.f16", F16, Bf16),
        ("cvt.rni.bf16.bf16", Bf16, Bf16),
        ("cvt.rpi.bf16.bf16", Bf16, Bf16),
    ] {
        cases.push(unary(form, from, to, all16()));
    }
    cases
}

/// f32 values at and around every (thinned) rounding boundary of f16 and bf16.
fn half_boundaries() -> Vec<u64> {
    let mut values = dense_f32();
    values.extend(boundaries_f32(&finite_f16(61)));
    values.extend(boundaries_f32(&finite_bf16(61)));
    values
}

fn narrowing() -> Vec<Case> {
    let values = half_boundaries();
    let mut reversed = values.clone();
    reversed.reverse();
    let mut cases = Vec::new();
    for (name, to, pair) in [("f16", F16, F16x2), ("bf16", Bf16, Bf16x2)] {
        for rounding in ["rn", "rz"] {
            for relu in ["", ".relu"] {
                for finite in ["", ".satfinite"] {
                    let form = format!("cvt.{rounding}{relu}{finite}.{name}.f32");
                    cases.push(unary(&form, F32, to, values.clone()));
                    let form = format!("cvt.{rounding}{relu}{finite}.{name}x2.f32");
                    let [a, b] = [values.clone(), reversed.clone()];
                    cases.push(
                        Elementwise::op(&form, &[F32, F32], pair)
                            .with([a, b])
                            .case(),
                    );
                }
            }
        }
    }
    for form in [
        "cvt.rm.f16.f32",
        "cvt.rp.f16.f32",
        "cvt.rn.ftz.f16.f32",
        "cvt.rn.sat.f16.f32",
    ] {
        cases.push(unary(form, F32, F16, values.clone()));
    }
    for form in [
        "cvt.rna.tf32.f32",
        "cvt.rn.tf32.f32",
        "cvt.rn.relu.tf32.f32",
        "cvt.rz.tf32.f32",
        "cvt.rz.relu.tf32.f32",
        "cvt.rna.satfinite.tf32.f32",
    ] {
        cases.push(unary(form, F32, F32, values.clone()));
    }
    cases
}

fn singles_and_doubles() -> Vec<Case> {
    let mut cases = Vec::new();
    for rounding in ROUNDINGS {
        for modifiers in ["", ".ftz", ".sat"] {
            cases.push(unary(
                &format!("cvt.{rounding}{modifiers}.f32.f64"),
                F64,
                F32,
                dense_f64(),
            ));
        }
        cases.push(unary(
            &format!("cvt.{rounding}.f16.f64"),
            F64,
            F16,
            dense_f64(),
        ));
    }
    cases.push(unary("cvt.rn.bf16.f64", F64, Bf16, dense_f64()));
    for form in ["cvt.f64.f32", "cvt.ftz.f64.f32", "cvt.sat.f64.f32"] {
        cases.push(unary(form, F32, F64, dense_f32()));
    }
    for rounding in ["rni", "rzi", "rmi", "rpi"] {
        for modifiers in ["", ".ftz", ".sat"] {
            let form = format!("cvt.{rounding}{modifiers}.f32.f32");
            cases.push(unary(&form, F32, F32, integer_boundaries_f32()));
        }
        cases.push(unary(
            &format!("cvt.{rounding}.f64.f64"),
            F64,
            F64,
            dense_f64(),
        ));
    }
    for form in ["cvt.sat.f32.f32", "cvt.ftz.f32.f32", "cvt.ftz.sat.f32.f32"] {
        cases.push(unary(form, F32, F32, dense_f32()));
    }
    cases.push(unary("cvt.sat.f64.f64", F64, F64, dense_f64()));
    cases
}

fn eight_bit() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, mantissa) in [("e4m3x2", 3), ("e5m2x2", 2)] {
        let mut values = dense_f32();
        values.extend(boundaries_f32(&finite_fp8(mantissa)));
        let mut reversed = values.clone();
        reversed.reverse();
        // All f16 inputs, each beside its complement.
        let packed: Vec<u64> = all16().iter().map(|v| v | (v ^ 0xffff) << 16).collect();
        for relu in ["", ".relu"] {
            let form = format!("cvt.rn.satfinite{relu}.{name}.f32");
            let lists = [values.clone(), reversed.clone()];
            cases.push(Elementwise::op(&form, &[F32, F32], U16).with(lists).case());
            let form = format!("cvt.rn.satfinite{relu}.{name}.f16x2");
            cases.push(unary(&form, F16x2, U16, packed.clone()));
            cases.push(unary(
                &format!("cvt.rn{relu}.f16x2.{name}"),
                U16,
                F16x2,
                all8x2(),
            ));
        }
    }
    cases
}
