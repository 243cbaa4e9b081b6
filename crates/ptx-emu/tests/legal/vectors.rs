//! Vector registers, and constants added to registers.

use super::{kernel, launch, module, run};

#[test]
fn all_elements_are_read_before_one_is_written() {
    let lines = ".reg .u16 t<5>;\n\
         mov.u16 t1, 1; mov.u16 t2, 2; mov.u16 t3, 3; mov.u16 t4, 4;\n\
         mov.v4.u16 {t4, t1, t2, t3}, {t3, t4, t1, t2};\n\
         cvt.u32.u16 %r2, t4; cvt.u32.u16 %r3, t1; cvt.u32.u16 %r4, t2; cvt.u32.u16 %r5, t3;\n\
         st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};";
    assert_eq!(run(&kernel(lines), 4), [3, 4, 1, 2]);
    let swap = "mov.u64 %rd4, 7; mov.u64 %rd5, 8;\n\
         mov.v2.u64 {%rd4, %rd5}, {%rd5, %rd4};\nst.global.v2.u64 [%rd1], {%rd4, %rd5};";
    assert_eq!(run(&kernel(swap), 4), [8, 0, 7, 0]);
    let guarded = "mov.u32 %r2, 1; mov.u32 %r3, 2; setp.eq.u32 %p1, %r1, 0;\n\
         @%p1 mov.v2.u32 {%r2, %r3}, {%r3, %r2};\n\
         mad.wide.u32 %rd2, %r1, 8, %rd1;\nst.global.v2.u32 [%rd2], {%r2, %r3};";
    assert_eq!(run(&kernel(guarded), 64)[..4], [2, 1, 1, 2]);
}

#[test]
fn a_vector_register_is_the_vector_of_its_elements() {
    let lines = ".reg .v4 .u32 v; .reg .v2 .u32 w<2>; .reg .v4 .b16 h;\n\
         mov.v4.u32 v, {1, 2, 3, 4};\n\
         mov.v4.u32 {v.w, v.x, v.y, v.z}, v;\n\
         add.u32 v.x, v.x, v.y;\nst.global.v4.u32 [%rd1], v;\n\
         mov.u64 %rd3, 0x0004000300020001;\nmov.b64 w1, %rd3;\nst.global.v2.u32 [%rd1+16], w1;\n\
         mov.b64 h, %rd3;\nmov.b64 %rd4, w1;\nst.global.u64 [%rd1+24], %rd4;\n\
         cvt.u32.u16 %r2, h.w;\nst.global.u32 [%rd1+32], %r2;";
    assert_eq!(
        run(&kernel(lines), 9),
        [5, 3, 4, 1, 0x20001, 0x40003, 0x20001, 0x40003, 4]
    );
    let matrix = ".reg .v2 .b32 v; .shared .align 16 .b32 tile[32];\n\
         mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;\n\
         bar.warp.sync -1; and.b32 %r4, %r1, 7; mad.lo.u32 %r4, %r4, 16, %r2;\n\
         ldmatrix.sync.aligned.m8n8.x2.shared.b16 v, [%r4];\n\
         add.u32 v.x, v.x, v.y; st.global.u32 [%rd2], v.x;";
    let twice: Vec<u32> = (0..32).map(|lane| 2 * lane).collect();
    assert_eq!(run(&kernel(matrix), 32), twice);
}

#[test]
fn a_function_takes_and_gives_vector_registers() {
    let function = ".func (.reg .v2 .u32 o, .reg .u32 sum) f(.reg .u32 scale, .reg .v2 .u32 i) {\n\
         mov.v2.u32 o, {i.y, i.x}; add.u32 sum, i.x, i.y; mul.lo.u32 sum, sum, scale; ret; }\n";
    let lines = ".reg .v2 .u32 v; mov.v2.u32 v, {3, 4}; call (v, %r2), f, (10, v);\n\
         st.global.v2.u32 [%rd1], v; st.global.u32 [%rd1+8], %r2;";
    assert_eq!(run(&format!("{function}{}", kernel(lines)), 3), [4, 3, 70]);
}

#[test]
fn results_may_be_the_arguments() {
    let function = ".func (.reg .u32 o, .reg .u32 p) f(.reg .u32 i, .reg .u32 j) {\n\
         mov.u32 o, j; mov.u32 p, i; ret; }\n";
    let lines = "mov.u32 %r2, 1; mov.u32 %r3, 2; call (%r2, %r3), f, (%r2, %r3);\n\
         st.global.v2.u32 [%rd1], {%r2, %r3};";
    assert_eq!(run(&format!("{function}{}", kernel(lines)), 2), [2, 1]);
}

#[test]
fn a_constant_is_added_to_a_register() {
    let lines = "mov.u32 %r2, 5; mov.u64 %rd3, 6; mov.u16 %rs1, 0xffff;\n\
         st.global.u64 [%rd1], %rd3 + 1;\nst.global.u32 [%rd1+8], %r2+2*4;\n\
         add.u32 %r3, %r2+1, %r2+-3;\nst.global.u32 [%rd1+12], %r3;\n\
         st.global.u32 [%rd1+16], 0;\nst.global.u16 [%rd1+16], %rs1 + 1;\n\
         mov.u32 %r2, %r2+1;\nst.global.u32 [%rd1+20], %r2;";
    assert_eq!(run(&kernel(lines), 6), [7, 0, 13, 8, 0, 6]);
    for refused in [
        "mov.f32 %f1, 0f3f800000; add.f32 %f2, %f1+1, %f1;",
        "add.u32 %r2+1, %r1, %r1;",
        "ld.global.u32 %r2+1, [%rd1];",
    ] {
        launch(&module(&kernel(refused)), 1).expect_err(refused);
    }
}

#[test]
fn packed_halves_are_compared_to_masks() {
    let lines = "mov.u32 %r2, 0x3c004000; mov.u32 %r3, 0x40003c00;\n\
         set.gt.u32.f16x2 %r4, %r2, %r3; set.le.s32.f16x2 %r5, %r2, %r3;\n\
         setp.eq.u32 %p1, %r2, %r3; set.neu.and.u32.bf16x2 %r6, %r2, %r3, %p1;\n\
         set.neu.or.u32.bf16x2 %r7, %r2, %r2, !%p1;\n\
         st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};";
    assert_eq!(run(&kernel(lines), 4), [0xffff, 0xffff_0000, 0, u32::MAX]);
}
