//! Loads, stores and address conversions in every state space.

use std::fmt::Write;

use crate::case::{Case, Launch};
use crate::elementwise::Elementwise;
use crate::kernel::Kernel;
use crate::values::Ty::{self, *};

const THREADS: usize = 64;

/// Scalar access types, with the type that sizes their element.
const SCALARS: [(&str, Ty); 14] = [
    ("b8", U8),
    ("u8", U8),
    ("s8", S8),
    ("b16", U16),
    ("u16", U16),
    ("s16", S16),
    ("b32", U32),
    ("u32", U32),
    ("s32", S32),
    ("b64", U64),
    ("u64", U64),
    ("s64", S64),
    ("f32", F32),
    ("f64", F64),
];

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        scalars(),
        vectors(),
        tables(),
        qualified_loads(),
        qualified_stores(),
        policies(),
        addresses(),
        variables(),
    ]
    .concat()
}

/// Registers a value of `name` may be loaded into: integers extend to 64 bits.
fn wide(name: &str) -> &'static str {
    match name {
        "f32" => "%r0",
        _ => "%l0",
    }
}

/// How a space is reached: declaration, set-up of the byte address `%l10` of the thread's
/// 16-byte slot and `%l11` of its neighbour's, and the space's name in instructions.
struct Space {
    label: &'static str,
    qualifier: &'static str,
    declaration: &'static str,
    setup: &'static str,
}

const NEIGHBOUR: &str = "xor.b32 %r10, %thread, 1;\n";

const SPACES: [Space; 6] = [
    Space {
        label: "global",
        qualifier: ".global",
        declaration: "",
        setup: "mad.wide.u32 %l10, %thread, 16, %out1;\nmad.wide.u32 %l11, %r10, 16, %out1;\n",
    },
    Space {
        label: "shared",
        qualifier: ".shared",
        declaration: ".shared .align 16 .b8 slots[1024];",
        setup: "mov.u64 %l12, slots;\nmad.wide.u32 %l10, %thread, 16, %l12;\nmad.wide.u32 %l11, %r10, 16, %l12;\n",
    },
    Space {
        label: "shared::cta",
        qualifier: ".shared::cta",
        declaration: ".shared .align 16 .b8 slots[1024];",
        setup: "mov.u64 %l12, slots;\nmad.wide.u32 %l10, %thread, 16, %l12;\nmad.wide.u32 %l11, %r10, 16, %l12;\n",
    },
    Space {
        label: "local",
        qualifier: ".local",
        declaration: ".local .align 16 .b8 slots[64];",
        setup: "and.b32 %r11, %thread, 3;\nmov.u64 %l12, slots;\nmad.wide.u32 %l10, %r11, 16, %l12;\nmov.b64 %l11, %l10;\n",
    },
    Space {
        label: "generic-shared",
        qualifier: "",
        declaration: ".shared .align 16 .b8 slots[1024];",
        setup: "mov.u64 %l12, slots;\ncvta.shared.u64 %l12, %l12;\nmad.wide.u32 %l10, %thread, 16, %l12;\nmad.wide.u32 %l11, %r10, 16, %l12;\n",
    },
    Space {
        label: "generic-local",
        qualifier: "",
        declaration: ".local .align 16 .b8 slots[64];",
        setup: "and.b32 %r11, %thread, 3;\nmov.u64 %l12, slots;\ncvta.local.u64 %l12, %l12;\nmad.wide.u32 %l10, %r11, 16, %l12;\nmov.b64 %l11, %l10;\n",
    },
];

/// A value goes from the input into the thread's slot, across a barrier, and out of the
/// neighbour's slot with the form under test, widened to 64 bits.
fn scalars() -> Vec<Case> {
    let mut cases = Vec::new();
    for space in &SPACES {
        for (name, ty) in SCALARS {
            let q = space.qualifier;
            let register = wide(name);
            let widen = if register == "%r0" {
                "cvt.u64.u32 %l0, %r0;\n"
            } else {
                ""
            };
            let source = if register == "%r0" { "%r1" } else { "%l1" };
            let load_type = if source == "%r1" { "b32" } else { "b64" };
            let mut kernel = Kernel::new(
                format!("ld{q}.{name}/{}", space.label),
                Launch::single(THREADS as u32),
            )
            .forms([format!("ld{q}.{name}"), format!("st{q}.{name}")])
            .declare(space.declaration)
            .input(U64.pack(&U64.random(51, THREADS)))
            .output(THREADS * 8)
            .output(if space.label == "global" {
                THREADS * 16
            } else {
                16
            });
            let _ = ty;
            kernel = kernel.body(&format!(
                "{NEIGHBOUR}{}mad.wide.u32 %l2, %thread, 8, %in0;\nld.global.{load_type} {source}, [%l2];\n\
                 st{q}.{name} [%l10+8], {source};\nbar.sync 0;\nld{q}.{name} {register}, [%l11+8];\n{widen}\
                 mad.wide.u32 %l3, %thread, 8, %out0;\nst.global.b64 [%l3], %l0;",
                space.setup
            ));
            cases.push(kernel.case());
        }
    }
    cases
}

fn vectors() -> Vec<Case> {
    let mut cases = Vec::new();
    for space in &SPACES {
        for (name, ty, lanes) in [
            ("b8", U8, 2),
            ("u8", U8, 4),
            ("b16", U16, 2),
            ("u16", U16, 4),
            ("u32", U32, 2),
            ("b32", U32, 4),
            ("f32", F32, 4),
            ("b64", U64, 2),
            ("f64", F64, 2),
        ] {
            cases.push(vector(space, name, ty, lanes));
        }
    }
    for q in [".global", ".shared"] {
        cases.push(wide_scalar(q));
    }
    cases
}

fn vector(space: &Space, name: &str, ty: Ty, lanes: usize) -> Case {
    let q = space.qualifier;
    let class = match ty.bytes() {
        1 | 2 => 'h',
        4 => 'r',
        _ => 'l',
    };
    let list = |first: usize| {
        let names: Vec<String> = (first..first + lanes)
            .map(|i| format!("%{class}{i}"))
            .collect();
        format!("{{{}}}", names.join(", "))
    };
    let bytes = lanes * ty.bytes();
    let forms = [
        format!("ld{q}.v{lanes}.{name}"),
        format!("st{q}.v{lanes}.{name}"),
    ];
    let mut swapped: Vec<String> = (20..20 + lanes).map(|i| format!("%{class}{i}")).collect();
    swapped.reverse();
    let swapped = swapped.join(", ");
    Kernel::new(format!("{}/{}", forms[0], space.label), Launch::single(THREADS as u32))
        .forms(forms)
        .declare(space.declaration)
        .input(U64.pack(&U64.random(52, THREADS * 2)))
        .output(THREADS * bytes)
        .output(if space.label == "global" { THREADS * 16 } else { 16 })
        .body(&format!(
            "{NEIGHBOUR}{setup}mad.wide.u32 %l2, %thread, {bytes}, %in0;\nld.global.v{lanes}.{name} {first}, [%l2];\n\
             st{q}.v{lanes}.{name} [%l10], {first};\nbar.sync 0;\nld{q}.v{lanes}.{name} {second}, [%l11];\n\
             mad.wide.u32 %l3, %thread, {bytes}, %out0;\nst.global.v{lanes}.{name} [%l3], {{{swapped}}};",
            setup = space.setup,
            first = list(4),
            second = list(20),
        ))
        .case()
}

fn wide_scalar(q: &str) -> Case {
    let space = SPACES
        .iter()
        .find(|s| s.qualifier == q)
        .unwrap_or(&SPACES[0]);
    Kernel::new(format!("ld{q}.b128/{}", space.label), Launch::single(THREADS as u32))
        .forms([format!("ld{q}.b128"), format!("st{q}.b128")])
        .declare(space.declaration)
        .declare(".reg .b128 %q<2>;")
        .input(U64.pack(&U64.random(53, THREADS * 2)))
        .output(THREADS * 16)
        .output(THREADS * 16)
        .body(&format!(
            "{NEIGHBOUR}{}mad.wide.u32 %l2, %thread, 16, %in0;\nld.global.b128 %q0, [%l2];\nst{q}.b128 [%l10], %q0;\n\
             bar.sync 0;\nld{q}.b128 %q1, [%l11];\nmad.wide.u32 %l3, %thread, 16, %out0;\nst.global.b128 [%l3], %q1;",
            space.setup
        ))
        .case()
}

const TABLE: &str = ".const .align 16 .b8 table[64] = {1, 2, 3, 250, 128, 127, 0, 9, 17, 200, 201, 202, 3, 5, 8, 13, \
    255, 254, 253, 252, 64, 65, 66, 67, 90, 91, 92, 93, 10, 11, 12, 14, 160, 161, 162, 163, 33, 34, 35, 36, \
    99, 98, 97, 96, 240, 241, 15, 16, 77, 78, 79, 80, 18, 19, 20, 21, 170, 85, 170, 85, 1, 0, 0, 128};\n\
    .const .f32 numbers[4] = {0f3f800000, 0fc0000000, 0f7f800000, 0f00000001};\n\
    .const .u64 where = generic(table);";

fn tables() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, ty) in SCALARS.iter().filter(|(name, _)| !name.starts_with('f')) {
        let size = ty.bytes();
        cases.push(
            Elementwise::new(format!("ld.const.{name}"))
                .operand(U32, (0..64 / size as u64).collect())
                .result(U64)
                .module(TABLE)
                .body(&format!("mov.u64 %l0, table;\nmad.wide.u32 %l0, %a, {size}, %l0;\nld.const.{name} %d, [%l0];"))
                .case(),
        );
    }
    let vector = "mov.u64 %l0, table;\nand.b32 %r0, %a, 3;\nmad.wide.u32 %l0, %r0, 16, %l0;\nld.const.v4.u32 {%r1, %r2, %r3, %r4}, [%l0];\n\
        mad.lo.u32 %d, %r1, 3, %r2;\nmad.lo.u32 %d, %d, 3, %r3;\nmad.lo.u32 %d, %d, 3, %r4;";
    let float = "mov.u64 %l0, numbers;\nmad.wide.u32 %l0, %a, 4, %l0;\nld.const.f32 %d, [%l0];";
    let generic = "ld.const.u64 %l0, [where];\nmad.wide.u32 %l0, %a, 4, %l0;\nld.u32 %d, [%l0+16];";
    for (name, body, count) in [
        ("ld.const.v4.u32", vector, 4),
        ("ld.const.f32", float, 4),
        ("ld.u32/generic-const", generic, 8),
    ] {
        cases.push(
            Elementwise::new(name)
                .operand(U32, (0..count).collect())
                .result(U32)
                .module(TABLE)
                .body(body)
                .case(),
        );
    }
    cases
}

/// Loads whose qualifiers change ordering or caching but not the value.
fn qualified_loads() -> Vec<Case> {
    let mut forms: Vec<String> = [
        "weak.global",
        "volatile.global",
        "global.ca",
        "global.cg",
        "global.cs",
        "global.lu",
        "global.cv",
        "global.nc",
        "global.L2::64B",
        "global.L2::128B",
        "global.L2::256B",
        "global.nc.L2::128B",
        "global.L1::no_allocate",
        "global.L1::evict_last",
        "global.L1::evict_first",
        "global.L1::evict_unchanged",
        "global.nc.L1::no_allocate.L2::256B",
        "mmio.relaxed.sys.global",
    ]
    .map(|q| format!("ld.{q}.b32"))
    .into();
    for semantics in ["relaxed", "acquire"] {
        for scope in ["cta", "cluster", "gpu", "sys"] {
            forms.push(format!("ld.{semantics}.{scope}.global.b32"));
        }
    }
    forms.push("ldu.global.b32".to_owned());
    let load = |form: &String| {
        Elementwise::new(form.clone())
            .operand(U32, U32.random(54, 96))
            .result(U32)
            .body(&format!(
                "mad.wide.u32 %l0, %index, 4, %in0;\n{form} %d, [%l0];"
            ))
            .case()
    };
    forms.iter().map(load).collect()
}

fn qualified_stores() -> Vec<Case> {
    let mut forms: Vec<String> = [
        "weak.global",
        "volatile.global",
        "global.wb",
        "global.cg",
        "global.cs",
        "global.wt",
        "global.L1::no_allocate",
        "global.L1::evict_last",
    ]
    .map(|q| format!("st.{q}.b32"))
    .into();
    for semantics in ["relaxed", "release"] {
        for scope in ["cta", "cluster", "gpu", "sys"] {
            forms.push(format!("st.{semantics}.{scope}.global.b32"));
        }
    }
    for q in [
        "volatile.shared",
        "relaxed.cta.shared",
        "release.cta.shared::cta",
    ] {
        forms.push(format!("st.{q}.b32"));
    }
    let store = |form: &String| {
        let shared = form.contains("shared");
        let body = if shared {
            format!(
                "mov.u64 %l0, cell;\nmad.wide.u32 %l0, %thread, 4, %l0;\n{form} [%l0], %a;\nld.shared.b32 %d, [%l0];"
            )
        } else {
            format!(
                "mad.wide.u32 %l0, %index, 4, %out0;\n{form} [%l0], %a;\nld.global.b32 %d, [%l0];\nadd.u32 %d, %d, 1;"
            )
        };
        Elementwise::new(form.clone())
            .operand(U32, U32.random(55, 96))
            .result(U32)
            .module(".shared .align 4 .b8 cell[512];")
            .body(&body)
            .case()
    };
    forms.iter().map(store).collect()
}

/// Cache policies and prefetches: hints that must be accepted and change nothing.
fn policies() -> Vec<Case> {
    let address = "mad.wide.u32 %l0, %index, 4, %in0;\n";
    let fractional = |rest: &str| {
        format!(
            "createpolicy.fractional.{rest} %l1;\n{address}ld.global.L2::cache_hint.b32 %d, [%l0], %l1;"
        )
    };
    let table = [
        ("createpolicy.fractional.L2::evict_last.b64", fractional("L2::evict_last.b64")),
        ("createpolicy.fractional.L2::evict_first.b64", "createpolicy.fractional.L2::evict_first.b64 %l1, 0f3f000000;\nmad.wide.u32 %l0, %index, 4, %in0;\nld.global.nc.L2::cache_hint.b32 %d, [%l0], %l1;".to_owned()),
        ("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64", fractional("L2::evict_last.L2::evict_unchanged.b64")),
        ("createpolicy.range.global.L2::evict_last.b64", format!("createpolicy.range.global.L2::evict_last.b64 %l1, [%in0], 128, 4096;\n{address}ld.global.L2::cache_hint.b32 %d, [%l0], %l1;")),
        ("createpolicy.cvt.L2.b64", format!("createpolicy.cvt.L2.b64 %l1, 0x10c0000000000000;\n{address}ld.global.L2::cache_hint.b32 %d, [%l0], %l1;")),
        ("prefetch.global.L1", format!("{address}prefetch.global.L1 [%l0];\nld.global.b32 %d, [%l0];")),
        ("prefetch.global.L2", format!("{address}prefetch.global.L2 [%l0];\nld.global.b32 %d, [%l0];")),
        ("prefetch.global.L2::evict_last", format!("{address}prefetch.global.L2::evict_last [%l0];\nld.global.b32 %d, [%l0];")),
        ("prefetchu.L1", format!("{address}cvta.global.u64 %l1, %l0;\nprefetchu.L1 [%l1];\nld.global.b32 %d, [%l0];")),
        ("applypriority.global.L2::evict_normal", format!("applypriority.global.L2::evict_normal [%in0], 128;\n{address}ld.global.b32 %d, [%l0];")),
    ];
    let case = |(name, body): &(&str, String)| {
        Elementwise::new(*name)
            .operand(U32, U32.random(56, 96))
            .result(U32)
            .body(body)
            .case()
    };
    table.iter().map(case).collect()
}

/// Which space a generic address is in, and the way there and back.
fn addresses() -> Vec<Case> {
    let mut body = String::from(
        "mov.u64 %l0, here;\ncvta.shared.u64 %l1, %l0;\nmov.u64 %l2, mine;\ncvta.local.u64 %l3, %l2;\ncvta.global.u64 %l4, %in0;\n\
         mov.u64 %l5, fixed;\ncvta.const.u64 %l6, %l5;\nmov.b32 %d, 0;\n",
    );
    let spaces = [
        "global",
        "shared",
        "local",
        "const",
        "shared::cta",
        "shared::cluster",
    ];
    let mut bit = 0;
    for space in spaces {
        for address in ["%l1", "%l3", "%l4", "%l6"] {
            let _ = write!(
                body,
                "isspacep.{space} %p0, {address};\nselp.u32 %r0, {}, 0, %p0;\nor.b32 %d, %d, %r0;\n",
                1u32 << bit
            );
            bit += 1;
        }
    }
    body.push_str(
        "cvta.to.shared.u64 %l7, %l1;\nsetp.eq.u64 %p0, %l7, %l0;\nselp.u32 %d1, 1, 0, %p0;\n\
         cvta.to.local.u64 %l7, %l3;\nsetp.eq.u64 %p0, %l7, %l2;\nselp.u32 %r0, 2, 0, %p0;\nor.b32 %d1, %d1, %r0;\n\
         cvta.to.global.u64 %l7, %l4;\nsetp.eq.u64 %p0, %l7, %in0;\nselp.u32 %r0, 4, 0, %p0;\nor.b32 %d1, %d1, %r0;\n\
         cvta.to.const.u64 %l7, %l6;\nsetp.eq.u64 %p0, %l7, %l5;\nselp.u32 %r0, 8, 0, %p0;\nor.b32 %d1, %d1, %r0;",
    );
    let forms = spaces.iter().map(|s| format!("isspacep.{s}")).chain(
        ["shared", "local", "global", "const"]
            .iter()
            .flat_map(|s| [format!("cvta.{s}.u64"), format!("cvta.to.{s}.u64")]),
    );
    let case = Elementwise::new("isspacep/every-space")
        .forms(forms)
        .operand(U32, vec![0; 4])
        .result(U32)
        .result(U32)
        .module(".shared .align 4 .b8 here[64];\n.const .align 4 .b32 fixed[2] = {1, 2};")
        .body(&format!(
            ".local .align 4 .b8 mine[64];\nst.local.b32 [mine], %a;\n{body}"
        ));
    vec![case.case()]
}

/// Module variables: initialised globals, pointers to them, symbol offsets, dynamic shared memory.
fn variables() -> Vec<Case> {
    let globals = ".global .align 8 .b32 words[4] = {11, 22, 33, 44};\n.global .u64 link = generic(words)+4;\n.global .align 4 .f32 real = 0f40490fdb;\n.global .align 2 .u16 zeros[4];";
    let read = "ld.global.b32 %r0, [words+8];\nld.global.u64 %l0, [link];\nld.u32 %r1, [%l0+4];\nld.global.f32 %r2, [real];\nld.global.u16 %r3, [zeros+2];\n\
        xor.b32 %d, %r0, %r1;\nadd.u32 %d, %d, %r2;\nadd.u32 %d, %d, %r3;\nmad.lo.u32 %d, %a, 7, %d;";
    let dynamic = Kernel::new("ld.shared.b32/dynamic-beside-static", Launch::single(64).with_shared(1024))
        .module(".extern .shared .align 16 .b8 tail[];\n.shared .align 8 .b8 head[256];")
        .output(64 * 4)
        .output(64 * 4)
        .body(
            "mov.u32 %r0, tail;\nmov.u32 %r1, head;\nmad.lo.u32 %r2, %thread, 16, %r0;\nmad.lo.u32 %r3, %thread, 4, %r1;\n\
             mul.lo.u32 %r4, %thread, 3;\nst.shared.b32 [%r2+4], %r4;\nst.shared.b32 [%r3], %thread;\nbar.sync 0;\n\
             xor.b32 %r5, %thread, 9;\nmad.lo.u32 %r2, %r5, 16, %r0;\nmad.lo.u32 %r3, %r5, 4, %r1;\n\
             ld.shared.b32 %r6, [%r2+4];\nld.shared.b32 %r7, [%r3];\nmad.wide.u32 %l0, %thread, 4, %out0;\nmad.wide.u32 %l1, %thread, 4, %out1;\n\
             st.global.b32 [%l0], %r6;\nst.global.b32 [%l1], %r7;",
        )
        .case();
    vec![
        Elementwise::new("ld.global.b32/module-variables")
            .operand(U32, (0..16).collect())
            .result(U32)
            .module(globals)
            .body(read)
            .case(),
        dynamic,
    ]
}
