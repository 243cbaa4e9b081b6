use super::*;
use crate::front::ast::*;

const HEADER: &str = ".version 9.0\n.target sm_90a\n.address_size 64\n";

fn body(text: &str) -> Vec<Statement<'_>> {
    let mut module = parse(text).expect("valid PTX");
    module.functions.remove(0).body.expect("a body")
}

fn instruction<'a>(statement: &'a Statement<'a>) -> &'a Instruction<'a> {
    match statement {
        Statement::Instruction(instruction) => instruction,
        other => panic!("not an instruction: {other:?}"),
    }
}

#[test]
fn operands_of_every_kind() {
    let text = format!(
        "{HEADER}.entry k() {{\n\
         @!%p1 setp.lt.and.s32 %p2|_, %r1, -5, !%p3;\n\
         cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint \
         [%r1], [%rd1, {{%r2, 64}}], [%r3+-8], %rd2;\n\
         mov.b64 {{%r1, _}}, 0d3FF0000000000000;\n\
         mov.u32 %r1, %tid.x;\n\
         fma.rn.f32 %f1, 0f3F800000, -1.5, %f2;\n\
         call.uni (retval0), f, (param0, param1);\n\
         mov.u64 %rd1, table+(2*8);\n}}"
    );
    let body = body(&text);
    let setp = instruction(&body[0]);
    assert_eq!(
        setp.guard,
        Some(Guard {
            register: "%p1",
            negated: true
        })
    );
    assert_eq!(setp.modifiers, ["lt", "and", "s32"]);
    assert_eq!(
        setp.operands,
        [
            Operand::Pair(Box::new(Operand::Name("%p2")), Box::new(Operand::Sink)),
            Operand::Name("%r1"),
            Operand::Constant(Constant::Int(-5i64 as u64)),
            Operand::Not("%p3"),
        ]
    );
    let copy = instruction(&body[1]);
    assert_eq!(copy.modifiers[6], "mbarrier::complete_tx::bytes");
    assert_eq!(
        copy.operands[1],
        Operand::TensorAddress(
            Address {
                base: Some("%rd1"),
                offset: 0
            },
            vec![Operand::Name("%r2"), Operand::Constant(Constant::Int(64))]
        )
    );
    assert_eq!(
        copy.operands[2],
        Operand::Address(Address {
            base: Some("%r3"),
            offset: -8
        })
    );
    assert_eq!(
        instruction(&body[3]).operands[1],
        Operand::Member("%tid", "x")
    );
    assert_eq!(
        instruction(&body[4]).operands[2],
        Operand::Constant(Constant::Double((-1.5f64).to_bits()))
    );
    let call = instruction(&body[5]);
    assert_eq!(
        call.operands[2],
        Operand::List(vec![Operand::Name("param0"), Operand::Name("param1")])
    );
    assert_eq!(call.text, "call.uni (retval0), f, (param0, param1)");
    assert_eq!(
        instruction(&body[6]).operands[1],
        Operand::NameOffset("table", 16)
    );
}

#[test]
fn module_directives() {
    let text = format!(
        "{HEADER}\
         .extern .shared .align 1024 .b8 smem[];\n\
         .visible .global .align 8 .u64 table[2] = {{generic(other)+8, 7}};\n\
         .const .f32 c[2][2] = {{{{1.0, 2.0}}, {{0f3F800000, -1.0}}}};\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 map[128])\n\
         .maxntid 128, 1, 1\n.minnctapersm 1\n.explicitcluster\n.reqnctapercluster 2\n\
         .maxnreg 168\n.pragma \"nounroll\";\n\
         {{ .reg .pred %p<3>; .local .align 8 .b8 depot[64]; {{ .reg .b32 t; }} ret; }}\n\
         .alias a, k;"
    );
    let module = parse(&text).expect("valid");
    assert_eq!(module.version, (9, 0));
    assert_eq!(module.variables[0].dims, [None]);
    assert_eq!(module.variables[0].align, Some(1024));
    let Some(Initializer::List(items)) = &module.variables[1].init else {
        panic!("no list");
    };
    assert_eq!(
        items[0],
        Initializer::Address {
            symbol: "other",
            offset: 8,
            generic: true,
            byte: None
        }
    );
    assert!(module.functions[0].body.is_none());
    let kernel = &module.functions[1];
    assert_eq!(kernel.limits.required_cluster, Some([2, 1, 1]));
    assert_eq!(kernel.limits.max_registers, Some(168));
    assert!(kernel.limits.explicit_cluster);
    assert_eq!(kernel.params[0].align, None);
    assert_eq!(kernel.params[1].align, Some(64));
    assert_eq!(module.aliases.len(), 1);
}

#[test]
fn locations_keep_the_inlining_chain() {
    let text = format!(
        "{HEADER}.entry k() {{\n\
         .loc 1 10 3\n mov.u32 a, b;\n\
         .loc 2 5 1, function_name $s0, inlined_at 1 10 3\n mov.u32 a, b;\n\
         .loc 2 7 1, function_name $s0+4, inlined_at 2 5 1\n mov.u32 a, b;\n}}\n\
         .file 1 \"a.cu\"\n.file 2 \"b.h\", 12, 34\n\
         .section .debug_str {{\n$s0:\n.b8 102,111,111\n.b8 0,98,97,114,0\n}}\n\
         .section .debug_info {{ .b32 4 .b64 $s0 }}"
    );
    let module = parse(&text).expect("valid");
    let names: Vec<_> = module
        .locations
        .iter()
        .map(|l| l.function.as_deref())
        .collect();
    assert_eq!(names, [None, Some("foo"), Some("bar")]);
    assert_eq!(module.locations[2].inlined_at, Some(1));
    assert_eq!(module.locations[1].inlined_at, Some(0));
    assert_eq!(module.files[1].name, "b.h");
}

#[test]
fn errors_name_place_and_expectation() {
    let cases = [
        (
            "",
            "ptx line 1:1: expected `.version` at the start of a PTX module, found the end of the text",
        ),
        (
            ".version 9.0\n.bogus",
            "ptx line 2:1: expected `.entry`, `.func` or a variable's state space, found `.bogus`",
        ),
        (
            ".version 9.0\n.entry k() { add.s32 a b; }",
            "ptx line 2:24: expected `,` or `;`, found `b`",
        ),
        (
            ".version 9.0\n.entry k() { add.s32 a, (1/0); }",
            "ptx line 2:27: expected an operator that has a value here, found `/`",
        ),
        (
            ".version 9.0\n.entry k() {",
            "ptx line 2:13: expected an instruction, a label or `}`, found the end of the text",
        ),
        (
            ".version 9.0 é",
            "ptx line 1:14: expected a token, found `é`",
        ),
        (
            ".version 9.0 .global .align 3 .b8 x;",
            "ptx line 1:29: expected an alignment that is a power of two, found `3`",
        ),
    ];
    for (text, message) in cases {
        let error = match parse(text) {
            Err(error) => error,
            // An error in a body leaves the rest of the module intact.
            Ok(module) => {
                let mut broken = module.functions.into_iter().filter_map(|f| f.broken);
                broken.next().expect(text)
            }
        };
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn deep_nesting_is_refused() {
    let braces = format!("{HEADER}.entry k() {}", "{".repeat(100_000));
    let parens = format!("{HEADER}.global .b32 x = {}", "(".repeat(100_000));
    let minuses = format!("{HEADER}.global .b32 x = {}1;", "-".repeat(100_000));
    for text in [braces, parens, minuses] {
        let error = parse(&text).expect_err("too deep");
        assert!(error.expected.contains("levels of nesting"), "{error}");
    }
}
