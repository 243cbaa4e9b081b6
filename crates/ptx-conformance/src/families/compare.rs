//! Comparisons and selections.

use std::fmt::Write;

use crate::case::Case;
use crate::elementwise::Elementwise;
use crate::values::Ty::{self, *};
use crate::values::cross3;

const SIGNED: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge"];
const UNSIGNED: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"];
const BITS: &[&str] = &["eq", "ne"];
const FLOAT: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

const TYPES: &[(&str, Ty, &[&str])] = &[
    ("s16", S16, SIGNED),
    ("s32", S32, SIGNED),
    ("s64", S64, SIGNED),
    ("u16", U16, UNSIGNED),
    ("u32", U32, UNSIGNED),
    ("u64", U64, UNSIGNED),
    ("b16", U16, BITS),
    ("b32", U32, BITS),
    ("b64", U64, BITS),
    ("f32", F32, FLOAT),
    ("f64", F64, FLOAT),
];

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty, comparisons) in TYPES {
        cases.push(predicates(comparisons, "", name, *ty));
        cases.push(set(comparisons, name, *ty));
        cases.push(combined(name, *ty));
    }
    for (flush, name, ty) in [
        (".ftz", "f32", F32),
        ("", "f16", F16),
        (".ftz", "f16", F16),
        ("", "bf16", Bf16),
    ] {
        cases.push(predicates(FLOAT, flush, name, ty));
    }
    for (name, ty) in [("f16x2", F16x2), ("bf16x2", Bf16x2)] {
        cases.push(packed_predicates(name, ty));
    }
    cases.extend(half_sets());
    cases.extend(selections());
    cases
}

/// One bit of the result per comparison, so that one kernel covers a type.
fn predicates(comparisons: &[&str], flush: &str, name: &str, ty: Ty) -> Case {
    let mut body = String::from("mov.b32 %d, 0;\n");
    for (bit, comparison) in comparisons.iter().enumerate() {
        let _ = write!(
            body,
            "setp.{comparison}{flush}.{name} %p0, %a, %b;\nselp.u32 %r0, {}, 0, %p0;\nor.b32 %d, %d, %r0;\n",
            1 << bit
        );
    }
    Elementwise::new(format!("setp{flush}.{name}/all-comparisons"))
        .forms(
            comparisons
                .iter()
                .map(|c| format!("setp.{c}{flush}.{name}")),
        )
        .crossed(&[ty, ty])
        .result(U32)
        .body(&body)
        .case()
}

fn packed_predicates(name: &str, ty: Ty) -> Case {
    let mut body = String::from("mov.b32 %d, 0;\n");
    for (bit, comparison) in FLOAT.iter().enumerate() {
        let _ = write!(
            body,
            "setp.{comparison}.{name} %p0|%p1, %a, %b;\nselp.u32 %r0, {}, 0, %p0;\nselp.u32 %r1, {}, 0, %p1;\n\
             or.b32 %d, %d, %r0;\nor.b32 %d, %d, %r1;\n",
            1 << bit,
            1 << (bit + 16)
        );
    }
    Elementwise::new(format!("setp.{name}/all-comparisons"))
        .forms(FLOAT.iter().map(|c| format!("setp.{c}.{name}")))
        .crossed(&[ty, ty])
        .result(U32)
        .body(&body)
        .case()
}

/// `set` as a mask and as 1.0, folded into one word per comparison.
fn set(comparisons: &[&str], name: &str, ty: Ty) -> Case {
    let mut body = String::from("mov.b32 %d, 0;\n");
    let mut forms = Vec::new();
    for comparison in comparisons {
        for to in ["u32", "s32", "f32"] {
            let form = format!("set.{comparison}.{to}.{name}");
            let _ = write!(body, "{form} %r0, %a, %b;\nmad.lo.u32 %d, %d, 31, %r0;\n");
            forms.push(form);
        }
    }
    Elementwise::new(format!("set.{name}/all-comparisons"))
        .forms(forms)
        .crossed(&[ty, ty])
        .result(U32)
        .body(&body)
        .case()
}

/// Comparisons combined with a predicate, with and without the second destination.
fn combined(name: &str, ty: Ty) -> Case {
    let mut body = String::from("setp.ne.u32 %p2, %c, 0;\nmov.b32 %d, 0;\n");
    let mut forms = Vec::new();
    for (index, combine) in ["and", "or", "xor"].iter().enumerate() {
        let form = format!("setp.eq.{combine}.{name}");
        let _ = write!(
            body,
            "{form} %p0|%p1, %a, %b, %p2;\nselp.u32 %r0, {}, 0, %p0;\nselp.u32 %r1, {}, 0, %p1;\n\
             or.b32 %d, %d, %r0;\nor.b32 %d, %d, %r1;\n\
             setp.ne.{combine}.{name} %p0, %a, %b, !%p2;\nselp.u32 %r0, {}, 0, %p0;\nor.b32 %d, %d, %r0;\n\
             set.ne.{combine}.u32.{name} %r0, %a, %b, %p2;\nand.b32 %r0, %r0, {};\nor.b32 %d, %d, %r0;\n",
            1 << (4 * index),
            2 << (4 * index),
            4 << (4 * index),
            8 << (4 * index),
        );
        forms.extend([
            form,
            format!("setp.ne.{combine}.{name}"),
            format!("set.ne.{combine}.u32.{name}"),
        ]);
    }
    let [a, b, c] = cross3(&ty.few_edges(), &ty.few_edges(), &[0, 1]);
    Elementwise::new(format!("setp.{name}/combined"))
        .forms(forms)
        .operand(ty, a)
        .operand(ty, b)
        .operand(U32, c)
        .result(U32)
        .body(&body)
        .case()
}

fn half_sets() -> Vec<Case> {
    let mut cases = Vec::new();
    for (form, ty, result) in [
        ("set.lt.f16.f16", F16, F16),
        ("set.geu.u16.f16", F16, U16),
        ("set.ne.bf16.bf16", Bf16, Bf16),
        ("set.nan.u32.bf16", Bf16, U32),
        ("set.lt.f16x2.f16x2", F16x2, F16x2),
        ("set.gtu.ftz.f16x2.f16x2", F16x2, F16x2),
        ("set.le.u32.f16", F16, U32),
        ("set.eq.bf16x2.bf16x2", Bf16x2, Bf16x2),
        ("set.num.ftz.u32.f32", F32, U32),
    ] {
        cases.push(Elementwise::op(form, &[ty, ty], result).case());
    }
    cases
}

fn selections() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in [
        ("b16", U16),
        ("b32", U32),
        ("b64", U64),
        ("u16", U16),
        ("s32", S32),
        ("u32", U32),
        ("s64", S64),
        ("f32", F32),
        ("f64", F64),
    ] {
        let [a, b, c] = cross3(&ty.few_edges(), &ty.few_edges(), &[0, 1]);
        cases.push(
            Elementwise::new(format!("selp.{name}"))
                .operand(ty, a)
                .operand(ty, b)
                .operand(U32, c)
                .result(ty)
                .body(&format!(
                    "setp.ne.u32 %p0, %c, 0;\nselp.{name} %d, %a, %b, %p0;"
                ))
                .case(),
        );
        let mut selectors = vec![("s32", S32), ("f32", F32)];
        if name == "f32" {
            selectors.push(("ftz", F32));
        }
        for (selector, selector_ty) in selectors {
            let form = match selector {
                "ftz" => format!("slct.ftz.{name}.f32"),
                plain => format!("slct.{name}.{plain}"),
            };
            cases.push(Elementwise::op(&form, &[ty, ty, selector_ty], ty).case());
        }
    }
    cases
}
