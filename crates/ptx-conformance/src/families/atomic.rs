//! Atomics and reductions.
//!
//! Where the order of arrival could show, each thread has a cell of its own; contended
//! cases look only at what is left in the end.

use crate::case::{Case, Launch};
use crate::elementwise::Elementwise;
use crate::kernel::Kernel;
use crate::values::Ty::{self, *};

/// Operation and type of a read-modify-write, with the type of its cell.
const OPERATIONS: [(&str, &str, Ty); 31] = [
    ("add", "u32", U32),
    ("add", "s32", S32),
    ("add", "u64", U64),
    ("add", "f32", F32),
    ("add", "f64", F64),
    ("add.noftz", "f16", F16),
    ("add.noftz", "f16x2", F16x2),
    ("add.noftz", "bf16", Bf16),
    ("add.noftz", "bf16x2", Bf16x2),
    ("min", "u32", U32),
    ("min", "s32", S32),
    ("min", "u64", U64),
    ("min", "s64", S64),
    ("max", "u32", U32),
    ("max", "s32", S32),
    ("max", "u64", U64),
    ("max", "s64", S64),
    ("inc", "u32", U32),
    ("dec", "u32", U32),
    ("and", "b32", U32),
    ("and", "b64", U64),
    ("or", "b32", U32),
    ("or", "b64", U64),
    ("xor", "b32", U32),
    ("xor", "b64", U64),
    ("exch", "b32", U32),
    ("exch", "b64", U64),
    ("cas", "b16", U16),
    ("cas", "b32", U32),
    ("cas", "b64", U64),
    ("add.rn", "f32", F32),
];

const CELLS: &str =
    ".global .align 16 .b8 global_cells[65536];\n.shared .align 16 .b8 shared_cells[2048];\n";

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        private_cells(),
        ordered(),
        wide_cells(),
        vectors(),
        contended(),
    ]
    .concat()
}

/// Puts the address of the thread's own 16-byte cell into `%l0`.
fn cell(space: &str) -> &'static str {
    match space {
        "shared" => "mov.u64 %l0, shared_cells;\nmad.wide.u32 %l0, %thread, 16, %l0;\n",
        "generic" => {
            "mov.u64 %l0, shared_cells;\ncvta.shared.u64 %l0, %l0;\nmad.wide.u32 %l0, %thread, 16, %l0;\n"
        }
        _ => "mov.u64 %l0, global_cells;\nmad.wide.u32 %l0, %index, 16, %l0;\n",
    }
}

fn private_cells() -> Vec<Case> {
    let mut cases = Vec::new();
    for space in ["global", "shared", "generic"] {
        let q = if space == "generic" {
            String::new()
        } else {
            format!(".{space}")
        };
        // `.rn` is a spelling of the default and needs no second space.
        for (op, name, ty) in OPERATIONS.into_iter().filter(|(op, _, _)| *op != "add.rn") {
            // ptxas has no generic form of the half-word additions other than through both windows.
            let compare_and_swap = op == "cas";
            let form = format!("atom{q}.{op}.{name}");
            let operands = if compare_and_swap { "%b, %c" } else { "%b" };
            let mut case = Elementwise::new(format!("{form}/{space}")).crossed(&[ty, ty]);
            if compare_and_swap {
                // Every other comparison succeeds.
                let pairs = ty.random(61, 256);
                let same: Vec<u64> = pairs
                    .iter()
                    .enumerate()
                    .map(|(i, v)| if i % 2 == 0 { *v } else { v ^ 4 })
                    .collect();
                case = Elementwise::new(format!("{form}/{space}"))
                    .operand(ty, pairs)
                    .operand(ty, same)
                    .operand(ty, ty.random(62, 256));
            }
            let access = ty.access();
            let store = format!("{}st{q}.{access} [%l0], %a;\n", cell(space));
            cases.push(
                case.clone()
                    .module(CELLS)
                    .result(ty)
                    .result(ty)
                    .body(&format!(
                        "{store}{form} %d, [%l0], {operands};\nld{q}.{access} %d1, [%l0];"
                    ))
                    .case(),
            );
            if !matches!(op, "exch" | "cas") {
                let form = format!("red{q}.{op}.{name}");
                cases.push(
                    Elementwise::new(format!("{form}/{space}"))
                        .crossed(&[ty, ty])
                        .module(CELLS)
                        .result(ty)
                        .body(&format!(
                            "{store}{form} [%l0], {operands};\nld{q}.{access} %d, [%l0];"
                        ))
                        .case(),
                );
            }
        }
    }
    cases
}

/// Memory orders and scopes, which one thread on its own cell cannot see.
fn ordered() -> Vec<Case> {
    let mut cases = Vec::new();
    for semantics in ["relaxed", "acquire", "release", "acq_rel"] {
        for scope in ["cta", "cluster", "gpu", "sys"] {
            let form = format!("atom.{semantics}.{scope}.global.add.u32");
            cases.push(
                Elementwise::new(form.clone())
                    .operand(U32, U32.random(63, 64))
                    .operand(U32, U32.random(64, 64))
                    .module(CELLS)
                    .result(U32)
                    .result(U32)
                    .body(&format!("{}st.global.b32 [%l0], %a;\n{form} %d, [%l0], %b;\nld.global.b32 %d1, [%l0];", cell("global")))
                    .case(),
            );
        }
    }
    for form in [
        "red.relaxed.gpu.global.add.u32",
        "red.release.cta.shared.or.b32",
        "red.release.sys.global.max.s32",
    ] {
        let space = if form.contains("shared") {
            "shared"
        } else {
            "global"
        };
        cases.push(
            Elementwise::new(form)
                .operand(U32, U32.random(65, 64))
                .operand(U32, U32.random(66, 64))
                .module(CELLS)
                .result(U32)
                .body(&format!(
                    "{}st.{space}.b32 [%l0], %a;\n{form} [%l0], %b;\nld.{space}.b32 %d, [%l0];",
                    cell(space)
                ))
                .case(),
        );
    }
    cases
}

/// 128-bit exchange and compare-and-swap.
fn wide_cells() -> Vec<Case> {
    let mut cases = Vec::new();
    for space in ["global", "shared"] {
        for op in ["exch", "cas"] {
            let form = format!("atom.{space}.{op}.b128");
            let operands = if op == "cas" { "%q1, %q2" } else { "%q1" };
            let first = U64.random(67, 128);
            let second: Vec<u64> = first
                .iter()
                .enumerate()
                .map(|(i, v)| if i % 3 == 0 { *v } else { !v })
                .collect();
            cases.push(
                Elementwise::new(form.clone())
                    .operand(U64, first)
                    .operand(U64, second)
                    .module(CELLS)
                    .result(U64)
                    .result(U64)
                    .result(U64)
                    .result(U64)
                    .body(&format!(
                        ".reg .b128 %q<5>;\n{}mov.b128 %q0, {{%a, %a}};\nmov.b128 %q1, {{%b, %a}};\nmov.b128 %q2, {{%a, %b}};\n\
                         st.{space}.b128 [%l0], %q0;\n{form} %q3, [%l0], {operands};\nld.{space}.b128 %q4, [%l0];\n\
                         mov.b128 {{%d, %d1}}, %q3;\nmov.b128 {{%d2, %d3}}, %q4;",
                        cell(space)
                    ))
                    .case(),
            );
        }
    }
    cases
}

/// The vector forms of global memory.
fn vectors() -> Vec<Case> {
    let mut cases = Vec::new();
    for (lanes, name, ty, ops) in [
        (2, "f32", F32, &["add"][..]),
        (4, "f32", F32, &["add"]),
        (2, "f16", F16, &["add.noftz", "min.noftz", "max.noftz"]),
        (4, "f16", F16, &["add.noftz", "min.noftz", "max.noftz"]),
        (8, "f16", F16, &["add.noftz"]),
        (2, "bf16", Bf16, &["add.noftz", "min.noftz", "max.noftz"]),
        (4, "bf16", Bf16, &["add.noftz"]),
        (8, "bf16", Bf16, &["add.noftz", "max.noftz"]),
        (2, "f16x2", F16x2, &["add.noftz", "max.noftz"]),
        (4, "f16x2", F16x2, &["add.noftz"]),
        (2, "bf16x2", Bf16x2, &["add.noftz", "min.noftz"]),
        (4, "bf16x2", Bf16x2, &["add.noftz"]),
    ] {
        for op in ops {
            for instruction in ["atom", "red"] {
                cases.push(vector(instruction, lanes, name, ty, op));
            }
        }
    }
    cases
}

fn vector(instruction: &str, lanes: usize, name: &str, ty: Ty, op: &str) -> Case {
    let form = format!("{instruction}.global.v{lanes}.{name}.{op}");
    let class = if ty.bytes() == 2 { 'h' } else { 'r' };
    let list = |first: usize| {
        let names: Vec<String> = (first..first + lanes)
            .map(|i| format!("%{class}{i}"))
            .collect();
        format!("{{{}}}", names.join(", "))
    };
    let bytes = lanes * ty.bytes();
    let edges = ty.edges();
    let threads = 64;
    // Operands walk the edges at different strides, so that lanes meet many pairs.
    let values = |stride: usize| -> Vec<u64> {
        (0..threads * lanes)
            .map(|i| edges[i * stride % edges.len()])
            .collect()
    };
    let loads: String = (0..lanes)
        .map(|i| {
            format!(
                "ld.global.{} %{class}{i}, [%l1+{}];\n",
                ty.access(),
                i * ty.bytes()
            )
        })
        .collect();
    let stores: String = (0..lanes)
        .map(|i| {
            format!(
                "st.global.{} [%l2+{}], %{class}{};\n",
                ty.access(),
                i * ty.bytes(),
                8 + i
            )
        })
        .collect();
    let destination = if instruction == "atom" {
        format!("{}, ", list(8))
    } else {
        String::new()
    };
    Kernel::new(form.clone(), Launch::single(threads as u32))
        .input(ty.pack(&values(3)))
        .output_from(ty.pack(&values(1)))
        .output(threads * bytes)
        .body(&format!(
            "mad.wide.u32 %l0, %thread, {bytes}, %out0;\nmad.wide.u32 %l1, %thread, {bytes}, %in0;\nmad.wide.u32 %l2, %thread, {bytes}, %out1;\n\
             {loads}{form} {destination}[%l0], {};\n{}",
            list(0),
            if instruction == "atom" { stores } else { String::new() }
        ))
        .case()
}

/// Many threads on few cells; only the end is looked at, so every operand is exact and
/// the operation commutes.
fn contended() -> Vec<Case> {
    let mut cases = Vec::new();
    for (form, one, ty) in [
        ("atom.global.add.u32", "1", U32),
        ("red.global.add.f32", "0f3f800000", F32),
        ("red.global.add.f64", "0d3ff0000000000000", F64),
        ("red.global.add.u64", "1", U64),
        ("atom.global.inc.u32", "100", U32),
        ("red.global.xor.b32", "%thread", U32),
        ("red.global.max.u32", "%thread", U32),
    ] {
        let (result, cells) = (
            if form.starts_with("atom") {
                "%r0, "
            } else {
                ""
            },
            4,
        );
        cases.push(
            Kernel::new(format!("{form}/contended"), Launch::linear(8, 96))
                .output_from(vec![0; cells * ty.bytes()])
                .body(&format!(
                    "and.b32 %r1, %thread, 3;\nmad.wide.u32 %l0, %r1, {}, %out0;\n{form} {result}[%l0], {one};",
                    ty.bytes()
                ))
                .case(),
        );
    }
    cases.push(
        Kernel::new("atom.shared.cas.b32/lock", Launch::single(64))
            .forms(["atom.shared.cas.b32", "atom.shared.exch.b32"])
            .module(".shared .align 4 .b32 lock;\n.shared .align 4 .b32 total;")
            .output(8)
            .body(
                "setp.eq.u32 %p0, %thread, 0;\n@%p0 st.shared.b32 [lock], 0;\n@%p0 st.shared.b32 [total], 0;\nbar.sync 0;\n\
                 TAKE:\natom.acquire.cta.shared.cas.b32 %r0, [lock], 0, 1;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra TAKE;\n\
                 ld.volatile.shared.b32 %r1, [total];\nadd.u32 %r1, %r1, %thread;\nst.volatile.shared.b32 [total], %r1;\n\
                 membar.cta;\natom.release.cta.shared.exch.b32 %r2, [lock], 0;\nbar.sync 0;\n\
                 ld.shared.b32 %r3, [total];\nld.shared.b32 %r4, [lock];\n@%p0 st.global.b32 [%out0], %r3;\n@%p0 st.global.b32 [%out0+4], %r4;",
            )
            .case(),
    );
    cases
}
