//! `wgmma` over types, widths, operand sources, majors and swizzles.

mod multiply;

use self::multiply::{Data, Multiply};
use crate::case::{Case, Swizzle};
use crate::numbers::{Number, Number::*};
use crate::operand::Major;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        widths(),
        layouts(),
        register_operands(),
        types(),
        scales(),
        one_hot(),
        random(),
        sequences(),
    ]
    .concat()
}

/// The width from the narrowest to the widest.
fn widths() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [8, 16, 24, 32, 40, 96, 128, 176, 256] {
        cases.push(Multiply::new(n, F32, F16, F16).case());
    }
    for n in [8, 48, 256] {
        cases.push(Multiply::new(n, F16, F16, F16).case());
        cases.push(
            Multiply {
                a_layout: None,
                ..Multiply::new(n, F32, Bf16, Bf16)
            }
            .case(),
        );
    }
    for n in [8, 24, 32, 128, 256] {
        cases.push(Multiply::new(n, S32, S8, S8).case());
    }
    cases
}

/// Every pair of majors and swizzles of 16-bit operands, and later k steps of a swizzled row.
fn layouts() -> Vec<Case> {
    let mut cases = Vec::new();
    for swizzle in Swizzle::ALL {
        for a_major in [Major::K, Major::Mn] {
            for b_major in [Major::K, Major::Mn] {
                let plain = Multiply {
                    a_layout: Some((a_major, swizzle)),
                    b_layout: (b_major, swizzle),
                    ..Multiply::new(64, F32, F16, F16)
                };
                if a_major == Major::Mn || b_major == Major::Mn || swizzle != Swizzle::B128 {
                    cases.push(plain.case());
                }
                cases.push(
                    Multiply {
                        acc: F32,
                        a: Bf16,
                        b: Bf16,
                        n: 128,
                        ..plain
                    }
                    .case(),
                );
            }
        }
        for advance in [32, 64, 96] {
            if advance < swizzle.span() as usize && swizzle != Swizzle::None {
                let layout = (Major::K, swizzle);
                cases.push(
                    Multiply {
                        a_layout: Some(layout),
                        b_layout: layout,
                        advance,
                        ..Multiply::new(32, F32, F16, F16)
                    }
                    .case(),
                );
            }
        }
    }
    let mixed = Multiply {
        a_layout: Some((Major::K, Swizzle::B32)),
        b_layout: (Major::Mn, Swizzle::B128),
        ..Multiply::new(192, F32, F16, F16)
    };
    cases.push(mixed.case());
    cases
}

fn register_operands() -> Vec<Case> {
    let mut cases = Vec::new();
    for swizzle in Swizzle::ALL {
        for major in [Major::K, Major::Mn] {
            cases.push(
                Multiply {
                    a_layout: None,
                    b_layout: (major, swizzle),
                    ..Multiply::new(64, F32, F16, F16)
                }
                .case(),
            );
        }
    }
    cases
}

/// All operand types: `(accumulator, A, B)`.
const TYPES: [(Number, Number, Number); 17] = [
    (F32, F16, F16),
    (F16, F16, F16),
    (F32, Bf16, Bf16),
    (F32, Tf32, Tf32),
    (F32, E4m3, E4m3),
    (F32, E4m3, E5m2),
    (F32, E5m2, E4m3),
    (F32, E5m2, E5m2),
    (F16, E4m3, E4m3),
    (F16, E4m3, E5m2),
    (F16, E5m2, E4m3),
    (F16, E5m2, E5m2),
    (S32, S8, S8),
    (S32, S8, U8),
    (S32, U8, S8),
    (S32, U8, U8),
    (S32, B1, B1),
];

fn types() -> Vec<Case> {
    let mut cases = Vec::new();
    for (acc, a, b) in TYPES.into_iter().filter(|t| !matches!(t.1, F16 | Bf16)) {
        for swizzle in Swizzle::ALL {
            let layout = (Major::K, swizzle);
            cases.push(
                Multiply {
                    a_layout: Some(layout),
                    b_layout: layout,
                    ..Multiply::new(16, acc, a, b)
                }
                .case(),
            );
            cases.push(
                Multiply {
                    a_layout: None,
                    b_layout: layout,
                    ..Multiply::new(64, acc, a, b)
                }
                .case(),
            );
        }
    }
    cases
}

fn scales() -> Vec<Case> {
    let mut cases = Vec::new();
    for scales in [[1, -1], [-1, 1], [-1, -1]] {
        for (acc, a) in [(F32, F16), (F16, F16), (F32, Tf32), (F32, E4m3)] {
            cases.push(
                Multiply {
                    scales,
                    ..Multiply::new(16, acc, a, a)
                }
                .case(),
            );
        }
    }
    for (acc, a, b) in TYPES {
        cases.push(
            Multiply {
                accumulate: false,
                ..Multiply::new(24, acc, a, b)
            }
            .case(),
        );
    }
    for (a, b) in [(S8, S8), (U8, U8), (S8, U8)] {
        let extreme = Multiply {
            data: Data::Random,
            ..Multiply::new(32, S32, a, b)
        };
        cases.push(
            Multiply {
                saturate: true,
                ..extreme
            }
            .case(),
        );
        cases.push(extreme.case());
    }
    cases
}

fn one_hot() -> Vec<Case> {
    let mut cases = Vec::new();
    for (acc, a, b) in TYPES {
        let hot = Multiply {
            data: Data::OneHot,
            accumulate: false,
            ..Multiply::new(64, acc, a, b)
        };
        cases.push(hot.case());
        cases.push(
            Multiply {
                a_layout: None,
                ..hot
            }
            .case(),
        );
    }
    cases
}

/// One case per type in which the order and width of the sum show.
fn random() -> Vec<Case> {
    TYPES
        .into_iter()
        .filter(|t| t.0.is_float())
        .flat_map(|(acc, a, b)| {
            let random = Multiply {
                data: Data::Random,
                ..Multiply::new(40, acc, a, b)
            };
            [
                random.case(),
                Multiply {
                    a_layout: None,
                    accumulate: false,
                    ..random
                }
                .case(),
            ]
        })
        .collect()
}

/// Two multiplications in one group, and two groups of which one is still in flight.
fn sequences() -> Vec<Case> {
    let base = Multiply::new(16, F32, F16, F16).case();
    let form = Multiply::new(16, F32, F16, F16).form();
    let list = |first: usize| {
        (first..first + 8)
            .map(|i| format!("%d{i}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let one = |first: usize| {
        format!(
            "{form} {{{}}}, %desc0, %desc1, %p2, 1, 1, 0, 0;\n",
            list(first)
        )
    };
    let single = format!(
        "{}wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
        one(0)
    );
    let chain = format!(
        "{}{}wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
        one(0),
        one(0)
    );
    let flight = format!(
        "{}wgmma.commit_group.sync.aligned;\n{}wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n",
        one(0),
        one(8)
    );
    let rest: String = std::iter::once(
        "wgmma.wait_group.sync.aligned 0;\nmad.wide.u32 %l0, %thread, 4, %out0;\n".to_owned(),
    )
    .chain((8..16).map(|i| format!("st.global.b32 [%l0+{}], %d{i};\n", 512 * i)))
    .collect();
    let second: String = (8..16)
        .map(|i| format!("mov.b32 %d{i}, %d{};\n", i - 8))
        .collect();
    let edit = |label: &str, ptx: String, outputs: Vec<Vec<u8>>| Case {
        name: format!("{form}/{label}"),
        ptx,
        outputs,
        ..base.clone()
    };
    let chained = base.ptx.replace(&single, &chain);
    let overlapped = base
        .ptx
        .replace(".reg .b32 %d<8>;", ".reg .b32 %d<16>;")
        .replace("setp.ne.u32 %p2", &format!("{second}setp.ne.u32 %p2"))
        .replace(&single, &flight)
        .replace("ret;\n}", &format!("{rest}ret;\n}}"));
    vec![
        edit("two-in-one-group", chained, base.outputs.clone()),
        edit(
            "one-group-in-flight",
            overlapped,
            vec![vec![0xcd; 16 * 512]],
        ),
    ]
}
