//! What is refused, and in which words.

use ptx_emu::Problem;

use crate::{kernel, refusal};

/// What is refused, and what the message must say.
#[test]
fn refusals_name_the_cause() {
    let cases = [
        (
            "frobnicate.s32 %r1, %r2;",
            "instruction `frobnicate.s32` is not supported",
        ),
        (
            "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1, %r2}, [%r3];",
            "m16n16 has .x1 and .x2 only",
        ),
        (
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 %r20, [%r1];",
            "expected registers in braces, found `%r20`",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.ashift [%r1], [%r2], %rd1, %r3, [%r4], [%r5], %p1;",
            ".ashift does not go with block_scale",
        ),
        (
            "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 16;",
            "this field holds 0 to 15",
        ),
        (
            "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 4;",
            "this field holds 0 to 3",
        ),
        (
            "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 2;",
            "this field holds 0 to 1",
        ),
        (
            "multimem.ld_reduce.relaxed.gpu.global.add.v8.e4m3x4 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];",
            "multimem has no such operation for this type",
        ),
        (
            "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16 {%r1, %r2}, [%r3];",
            "missing modifier: b4x16_p64 or b6x16_p32",
        ),
        (
            "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [%r3];",
            "m16n16 is loaded, with .trans",
        ),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}, %r7, {0, 1}, %r8, {2, 0};",
            "this kind has no such scales",
        ),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}, %r7, {1, 1}, %r8, {2, 0};",
            "byte-id or thread-id names scales that are not there",
        ),
        (
            "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4}], [%r7], {%rs1, %rs2};",
            "instruction `cp.async.bulk.tensor in mode im2col::w` is not supported",
        ),
        (
            "cp.async.bulk.tensor.3d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];",
            "tile::gather4 loads and tile::scatter4 stores rows of a .2d tensor",
        ),
        (
            "cvt.rn.ue8m0x2.f32 %rs1, %f1, %f2;",
            "ue8m0 is rounded by .rz or .rp, without .relu",
        ),
        (
            "cvt.rs.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;",
            "missing modifier: satfinite",
        ),
        (
            "cvt.rn.f16x2.ue8m0x2 %r1, %rs1;",
            "ue8m0 becomes .bf16x2, without .relu",
        ),
        (
            "add.sat.f32x2 %rd1, %rd2, %rd3;",
            ".f32x2 has rounding and .ftz only",
        ),
        (
            "fma.f32x2 %rd1, %rd2, %rd3, %rd4;",
            "missing modifier: a rounding",
        ),
        (
            "ld.shared.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r9];",
            "32 bytes at once are for global memory",
        ),
        (
            "ld.global.L2::evict_first.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];",
            ".L2::evict_* goes with .v8.b32 and .v4.b64 only",
        ),
        (
            "add.wibble.s32 %r1, %r2, %r3;",
            "modifier `.wibble` is not supported here",
        ),
        ("add %r1, %r2, %r3;", "missing modifier: a type"),
        ("add.s32 %r1, %r2;", "expected 3 operands, found 2"),
        (
            "add.s32 %r1, %rd2, %r3;",
            "`%rd2` has 64 bits where 32 are needed",
        ),
        ("add.s32 %r1, %r2, %r999;", "`%r999` is not declared"),
        ("add.s32 nothing, %r2, %r3;", "`nothing` is not declared"),
        (
            "add.s32 5, %r2, %r3;",
            "expected a 32-bit register, found `5`",
        ),
        ("bra NOWHERE;", "`NOWHERE` is not declared"),
        ("{ L: } bra L;", "`L` is not declared"),
        ("L: L: bra L;", "`L` is declared twice"),
        (
            "@%r1 bra L; L:",
            "expected a predicate as guard, found `%r1`",
        ),
        ("mov.u32 %r1, %nonsense;", "`%nonsense` is not declared"),
        ("mov.u32 %r1, %tid.q;", "`%tid.q` is not declared"),
        (
            "mov.u32 %r1, table;",
            "the address of `table` needs 64 bits",
        ),
        (
            "ld.shared.u32 %r1, [table];",
            "`table` lies in another state space",
        ),
        (
            "ld.global.v4.u64 {%rd1, %rd2}, [%rd3];",
            "expected a vector of 4, found a vector of 2",
        ),
        (
            "st.const.u32 [factor], %r1;",
            "constant memory is not written",
        ),
        (
            "cvt.s32.f32 %r1, %f1;",
            "missing modifier: a rounding to integer",
        ),
        (
            "cvt.rn.e4m3x2.f32 %rs1, %f1, %f2;",
            "missing modifier: satfinite",
        ),
        (
            "setp.lo.f32 %p1, %f1, %f2;",
            "an unsigned comparison on a float type",
        ),
        (
            "setmaxnreg.inc.sync.aligned.u32 100;",
            "the register count is a multiple of 8 from 24 to 256",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "wgmma has no such shape for these types",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "expected 4 registers, found a vector of 2",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 2, 1, 0, 0;",
            "imm-scale must be 1 or -1",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "wgmma does not multiply these types",
        ),
        (
            "cp.async.cg.shared.global [%r1], [%rd1], 8;",
            "cp.async copies 4, 8 or 16 bytes, and .cg 16 only",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
            "2 coordinates are needed, found 1",
        ),
        (
            "cp.async.bulk.tensor.2d.global.global.bulk_group [%rd1, {%r1, %r2}], [%r3];",
            "no bulk copy goes from .global to .global",
        ),
        (
            "mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];",
            "an arrive in shared::cluster gives no state: use `_`",
        ),
        (
            "shfl.bfly.b32 %r1, %r2, 1, 31;",
            "missing modifier: sync (sm_70 and later have no other form)",
        ),
        (
            "atom.global.min.f32 %f1, [%rd1], %f2;",
            "this atomic operation does not exist for this type",
        ),
        ("call.uni absent, ();", "`absent` is not declared"),
        (
            "{ .param .b32 a; call.uni twice, (a, a); }",
            "call passes 2 arguments and takes 0 results where the function has 1 and 1",
        ),
        (".local .b8 huge[1000000];", "local memory is too large"),
        (".reg .b32 %r<5>;", "`%r` is declared twice"),
        (
            ".shared .b32 inner = 1;",
            "a variable of this space has no initial value",
        ),
    ];
    for (line, message) in cases {
        let error = refusal(&kernel(line)).unwrap_or_else(|| panic!("{line}: accepted"));
        assert_eq!(error.problem.to_string(), message, "{line}");
        assert!(error.ptx_line >= 13, "{line}: line {}", error.ptx_line);
    }
}

#[test]
fn an_error_names_instruction_and_both_lines() {
    let text = ".version 9.0\n.target sm_90a\n.file 1 \"kernel.cu\"\n.entry k() {\n\
                .reg .b32 %r<4>;\n.loc 1 42 5\nadd.odd.s32  %r1,\n %r2, %r3;\n}";
    let error = refusal(text).expect("an unknown modifier");
    assert_eq!(
        error.to_string(),
        "ptx line 7 (kernel.cu:42): modifier `.odd` is not supported here \
         in `add.odd.s32 %r1, %r2, %r3`"
    );
}

#[test]
fn recursion_in_registers_and_missing_bodies_are_refused() {
    let recursive = ".version 9.0\n.func f(.reg .b32 x) { call f, (x); ret; }\n\
                     .entry k() { call f, (1); ret; }";
    let missing = ".version 9.0\n.extern .func g();\n.entry k() { call g; ret; }";
    let problem = |text: &str| refusal(text).expect("refused").problem;
    assert_eq!(problem(recursive), Problem::Recursion("f".into()));
    assert_eq!(problem(missing), Problem::NoBody("g".into()));
}

#[test]
fn what_is_younger_than_the_module_is_refused() {
    let text = |line: &str, version: &str| kernel(line).replace("version 9.2", version);
    let line = "cvt.rn.satfinite.e2m1x2.f16x2 %c1, %r1;";
    let error = refusal(&text(line, "version 9.0")).expect("it is younger");
    assert_eq!(
        error.problem.to_string(),
        "this conversion needs .version 9.1 or later, and the module has 9.0"
    );
    assert_eq!(refusal(&text(line, "version 9.1")), None);
    let hopper = text(
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 13;",
        "version 9.2",
    );
    assert_eq!(refusal(&hopper), None);
    let error = refusal(&hopper.replace("sm_100a", "sm_90a")).expect("a type of Blackwell");
    assert_eq!(error.problem.to_string(), "this field holds 0 to 12");
}
