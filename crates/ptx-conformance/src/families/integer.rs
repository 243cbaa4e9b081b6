//! Integer and bit instructions.

use crate::case::Case;
use crate::elementwise::Elementwise;
use crate::values::Ty::{self, *};
use crate::values::{SplitMix, cross2, cross3};

const ALL: [(&str, Ty); 6] = [
    ("u16", U16),
    ("s16", S16),
    ("u32", U32),
    ("s32", S32),
    ("u64", U64),
    ("s64", S64),
];
const NARROW: [(&str, Ty, Ty); 4] = [
    ("u16", U16, U32),
    ("s16", S16, S32),
    ("u32", U32, U64),
    ("s32", S32, S64),
];
const SIGNED: [(&str, Ty); 3] = [("s16", S16), ("s32", S32), ("s64", S64)];
const BITS: [(&str, Ty); 3] = [("b16", U16), ("b32", U32), ("b64", U64)];
const PAIRS: [(&str, Ty); 2] = [("u16x2", U16x2), ("s16x2", S16x2)];

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        arithmetic(),
        products(),
        division(),
        logic(),
        fields(),
        permutes(),
        dot_products(),
        carries(),
        packing(),
    ]
    .concat()
}

fn arithmetic() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in ALL {
        for op in ["add", "sub", "min", "max"] {
            cases.push(Elementwise::op(&format!("{op}.{name}"), &[ty, ty], ty).case());
        }
        cases.push(Elementwise::op(&format!("sad.{name}"), &[ty, ty, ty], ty).case());
    }
    for op in ["add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32"] {
        cases.push(Elementwise::op(op, &[S32, S32], S32).case());
    }
    for (name, ty) in PAIRS {
        for op in ["add", "min", "max"] {
            cases.push(Elementwise::op(&format!("{op}.{name}"), &[ty, ty], ty).case());
        }
    }
    for op in ["min.relu.s16x2", "max.relu.s16x2"] {
        cases.push(Elementwise::op(op, &[S16x2, S16x2], S16x2).case());
    }
    for (name, ty) in SIGNED {
        for op in ["abs", "neg"] {
            cases.push(Elementwise::op(&format!("{op}.{name}"), &[ty], ty).case());
        }
    }
    cases
}

fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in ALL {
        for half in ["lo", "hi"] {
            cases.push(Elementwise::op(&format!("mul.{half}.{name}"), &[ty, ty], ty).case());
            cases.push(Elementwise::op(&format!("mad.{half}.{name}"), &[ty, ty, ty], ty).case());
        }
    }
    for (name, ty, wide) in NARROW {
        cases.push(Elementwise::op(&format!("mul.wide.{name}"), &[ty, ty], wide).case());
        cases.push(Elementwise::op(&format!("mad.wide.{name}"), &[ty, ty, wide], wide).case());
    }
    for (name, ty) in [("u32", U32), ("s32", S32)] {
        for half in ["lo", "hi"] {
            cases.push(Elementwise::op(&format!("mul24.{half}.{name}"), &[ty, ty], ty).case());
            cases.push(Elementwise::op(&format!("mad24.{half}.{name}"), &[ty, ty, ty], ty).case());
        }
    }
    for op in ["mad.hi.sat.s32", "mad24.hi.sat.s32"] {
        cases.push(Elementwise::op(op, &[S32, S32, S32], S32).case());
    }
    cases
}

/// Division by zero is left to the machine by the ISA, so zero divisors are dropped.
fn division() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in ALL {
        for op in ["div", "rem"] {
            let form = format!("{op}.{name}");
            cases.push(
                Elementwise::op(&form, &[ty, ty], ty)
                    .filtered(|v| v[1] != 0)
                    .case(),
            );
        }
    }
    cases
}

fn logic() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in BITS {
        for op in ["and", "or", "xor"] {
            cases.push(Elementwise::op(&format!("{op}.{name}"), &[ty, ty], ty).case());
        }
        for op in ["not", "cnot"] {
            cases.push(Elementwise::op(&format!("{op}.{name}"), &[ty], ty).case());
        }
    }
    for lut in [0x80, 0xfe, 0x96, 0xca, 0xe8, 0x1b, 0x6a, 0xf0, 0x3c, 0x01] {
        let form = "lop3.b32";
        cases.push(
            Elementwise::new(format!("{form}/lut-{lut:02x}"))
                .crossed(&[U32, U32, U32])
                .result(U32)
                .body(&format!("{form} %d, %a, %b, %c, 0x{lut:02x};"))
                .case(),
        );
    }
    for combine in ["and", "or"] {
        let form = format!("lop3.{combine}.b32");
        cases.push(
            Elementwise::new(form.clone())
                .crossed(&[U32, U32, U32])
                .result(U32)
                .result(U32)
                .body(&format!(
                    "setp.lt.s32 %p1, %c, 0;\n{form} %d|%p0, %a, %b, %c, 0x96, %p1;\nselp.u32 %d1, 1, 0, %p0;"
                ))
                .case(),
        );
    }
    cases.push(predicate_logic());
    cases
}

fn predicate_logic() -> Case {
    Elementwise::new("and.pred/with-or-xor-not-mov")
        .forms(["and.pred", "or.pred", "xor.pred", "not.pred", "mov.pred"])
        .operand(U32, (0..4).collect())
        .result(U32)
        .body(
            "and.b32 %r0, %a, 1;\nsetp.ne.u32 %p0, %r0, 0;\nsetp.ge.u32 %p1, %a, 2;\n\
             and.pred %p2, %p0, %p1;\nor.pred %p3, %p0, %p1;\nxor.pred %p4, %p0, %p1;\nnot.pred %p5, %p0;\nmov.pred %p6, %p1;\n\
             selp.u32 %d, 1, 0, %p2;\nselp.u32 %r1, 2, 0, %p3;\nselp.u32 %r2, 4, 0, %p4;\nselp.u32 %r3, 8, 0, %p5;\nselp.u32 %r4, 16, 0, %p6;\n\
             or.b32 %d, %d, %r1;\nor.b32 %d, %d, %r2;\nor.b32 %d, %d, %r3;\nor.b32 %d, %d, %r4;",
        )
        .case()
}

fn shift_amounts() -> Vec<u64> {
    vec![
        0,
        1,
        2,
        7,
        8,
        15,
        16,
        17,
        31,
        32,
        33,
        47,
        63,
        64,
        65,
        127,
        128,
        255,
        256,
        0x8000_0000,
        0xffff_ffff,
    ]
}

fn fields() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in BITS {
        cases.push(shift(&format!("shl.{name}"), ty));
    }
    for (name, ty) in ALL {
        cases.push(shift(&format!("shr.{name}"), ty));
    }
    for direction in ["l", "r"] {
        for mode in ["clamp", "wrap"] {
            let form = format!("shf.{direction}.{mode}.b32");
            let [a, b, c] = cross3(&U32.few_edges(), &U32.few_edges(), &shift_amounts());
            cases.push(
                Elementwise::op(&form, &[U32, U32, U32], U32)
                    .with([a, b, c])
                    .case(),
            );
        }
    }
    for (name, ty) in [("b32", U32), ("b64", U64)] {
        cases.push(Elementwise::op(&format!("popc.{name}"), &[ty], U32).case());
        cases.push(Elementwise::op(&format!("clz.{name}"), &[ty], U32).case());
        cases.push(Elementwise::op(&format!("brev.{name}"), &[ty], ty).case());
        cases.push(insert(&format!("bfi.{name}"), ty));
    }
    for (name, ty) in [("u32", U32), ("s32", S32), ("u64", U64), ("s64", S64)] {
        cases.push(Elementwise::op(&format!("bfind.{name}"), &[ty], U32).case());
        cases.push(Elementwise::op(&format!("bfind.shiftamt.{name}"), &[ty], U32).case());
        let [a, b, c] = cross3(&ty.edges(), &field_positions(), &field_positions());
        cases.push(
            Elementwise::op(&format!("bfe.{name}"), &[ty, U32, U32], ty)
                .with([a, b, c])
                .case(),
        );
    }
    for mode in ["clamp", "wrap"] {
        let [a, b] = cross2(&shift_amounts(), &shift_amounts());
        cases.push(
            Elementwise::op(&format!("bmsk.{mode}.b32"), &[U32, U32], U32)
                .with([a, b])
                .case(),
        );
        for (name, ty) in [("u32", U32), ("s32", S32)] {
            let [a, b] = cross2(&ty.edges(), &shift_amounts());
            cases.push(
                Elementwise::op(&format!("szext.{mode}.{name}"), &[ty, U32], ty)
                    .with([a, b])
                    .case(),
            );
        }
    }
    let [a, b] = cross2(&U32.edges(), &[0, 1, 5, 16, 30, 31]);
    let [ab, offsets] = cross2(
        &(0..a.len() as u64).collect::<Vec<_>>(),
        &[
            0,
            1,
            2,
            5,
            -1i64 as u64 & 0xffff_ffff,
            -3i64 as u64 & 0xffff_ffff,
        ],
    );
    let pick = |list: &[u64]| ab.iter().map(|&i| list[i as usize]).collect::<Vec<_>>();
    cases.push(
        Elementwise::op("fns.b32", &[U32, U32, S32], U32)
            .with([pick(&a), pick(&b), offsets])
            .case(),
    );
    cases
}

fn shift(form: &str, ty: Ty) -> Case {
    let [a, b] = cross2(&ty.edges(), &shift_amounts());
    Elementwise::op(form, &[ty, U32], ty).with([a, b]).case()
}

fn field_positions() -> Vec<u64> {
    vec![0, 1, 5, 16, 31, 32, 33, 63, 64, 200, 255, 256 + 3]
}

fn insert(form: &str, ty: Ty) -> Case {
    let sources = ty.few_edges();
    let [a, position, length] = cross3(&sources, &field_positions(), &field_positions());
    let mut rng = SplitMix(11);
    let b: Vec<u64> = a
        .iter()
        .map(|_| sources[rng.below(sources.len() as u64) as usize])
        .collect();
    Elementwise::new(form)
        .operand(ty, a)
        .operand(ty, b)
        .operand(U32, position)
        .operand(U32, length)
        .result(ty)
        .body(&format!("{form} %d, %a, %b, %c, %e;"))
        .case()
}

fn permutes() -> Vec<Case> {
    let mut selectors = vec![
        0x3210, 0x7654, 0x0123, 0xba98, 0xfedc, 0x8765, 0x5410, 0x7632, 0x3276,
    ];
    selectors.extend(U16.random(21, 200));
    let words = [(0x8070_6050, 0xf1e2_d3c4), (0x0123_4567, 0x89ab_cdef)];
    let mut cases = Vec::new();
    for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
        let choices = if mode.is_empty() {
            selectors.clone()
        } else {
            (0..16).collect()
        };
        let [index, selector] = cross2(&[0, 1], &choices);
        let pick = |f: fn(&(u64, u64)) -> u64| {
            index
                .iter()
                .map(|&i| f(&words[i as usize]))
                .collect::<Vec<_>>()
        };
        cases.push(
            Elementwise::op(&format!("prmt.b32{mode}"), &[U32, U32, U32], U32)
                .with([pick(|w| w.0), pick(|w| w.1), selector])
                .case(),
        );
    }
    cases
}

fn dot_products() -> Vec<Case> {
    let mut cases = Vec::new();
    for a in ["u32", "s32"] {
        for b in ["u32", "s32"] {
            for op in ["dp4a", "dp2a.lo", "dp2a.hi"] {
                cases.push(Elementwise::op(&format!("{op}.{a}.{b}"), &[U32, U32, U32], U32).case());
            }
        }
    }
    cases
}

/// Carry chains: four-word additions and subtractions, and a 64×64 product by words.
fn carries() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in [("u32", U32), ("s32", S32), ("u64", U64), ("s64", S64)] {
        for (op, extended) in [("add", "addc"), ("sub", "subc")] {
            cases.push(
                Elementwise::new(format!("{op}.cc.{name}/chain"))
                    .forms([format!("{op}.cc.{name}"), format!("{extended}.cc.{name}"), format!("{extended}.{name}")])
                    .crossed(&[ty, ty, ty])
                    .result(ty)
                    .result(ty)
                    .result(ty)
                    .body(&format!(
                        "{op}.cc.{name} %d, %a, %b;\n{extended}.cc.{name} %d1, %c, %b;\n{extended}.{name} %d2, %a, %c;"
                    ))
                    .case(),
            );
        }
    }
    for (name, ty) in [("u32", U32), ("s32", S32), ("u64", U64), ("s64", S64)] {
        cases.push(
            Elementwise::new(format!("mad.lo.cc.{name}/chain"))
                .forms(
                    ["mad.lo.cc", "mad.hi.cc", "madc.lo.cc", "madc.hi.cc", "madc.lo", "madc.hi"]
                        .map(|op| format!("{op}.{name}")),
                )
                .crossed(&[ty, ty, ty])
                .result(ty)
                .result(ty)
                .result(ty)
                .result(ty)
                .body(&format!(
                    "mad.lo.cc.{name} %d, %a, %b, %c;\nmadc.hi.cc.{name} %d1, %a, %b, %c;\nmadc.lo.{name} %d2, %b, %c, %a;\n\
                     mad.hi.cc.{name} %d3, %a, %c, %b;\nmadc.lo.cc.{name} %d3, %d3, %b, %c;\nmadc.hi.{name} %d3, %d3, %a, %c;"
                ))
                .case(),
        );
    }
    cases
}

fn packing() -> Vec<Case> {
    let pack = Elementwise::new("mov.b64/pack-and-unpack")
        .forms(["mov.b64", "mov.b32", "mov.u32", "mov.u64", "mov.b16"])
        .crossed(&[U32, U32])
        .result(U64)
        .result(U32)
        .result(U64)
        .body(
            "mov.b64 %d, {%a, %b};\nmov.b32 {%h0, %h1}, %a;\nmov.b32 %d1, {%h1, %h0};\n\
             mov.b64 {%h2, %h3, %h4, %h5}, %d;\nmov.b16 %h6, %h5;\nmov.b64 %d2, {%h6, %h4, %h3, %h2};",
        );
    let wide = Elementwise::new("mov.b128/pack-and-unpack")
        .crossed(&[U64, U64])
        .result(U64)
        .result(U64)
        .body("{\n.reg .b128 %q;\nmov.b128 %q, {%a, %b};\nmov.b128 {%d1, %d}, %q;\n}");
    let mut cases = vec![pack.case(), wide.case()];
    for to in ["u16", "s16"] {
        cases.push(Elementwise::op(&format!("cvt.pack.sat.{to}.s32"), &[S32, S32], U32).case());
    }
    for to in ["u8", "s8", "u4", "s4", "u2", "s2"] {
        cases.push(
            Elementwise::op(&format!("cvt.pack.sat.{to}.s32.b32"), &[S32, S32, U32], U32).case(),
        );
    }
    cases
}
