//! `multimem` with one device: one copy, which every operation reads or writes.

use crate::{kernel, launch, module, run};

#[test]
fn one_copy_is_loaded_stored_and_reduced_into() {
    let out = run(
        &kernel(
            "setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
             multimem.st.weak.global.u32 [%rd1], 7;
             multimem.red.relaxed.gpu.global.add.u32 [%rd1], 5;
             multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd1];
             multimem.st.global.u32 [%rd1+4], %r2;
             mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;
             multimem.st.release.sys.global.v4.f32 [%rd1+16], {%f1, %f2, %f1, %f2};
             multimem.red.release.gpu.global.add.v4.f32 [%rd1+16], {%f1, %f1, %f2, %f2};
             multimem.ld_reduce.acquire.gpu.global.add.v4.f32 {%f3, %f4, %f5, %f6}, [%rd1+16];
             add.f32 %f7, %f3, %f4; add.f32 %f7, %f7, %f5; add.f32 %f7, %f7, %f6;
             st.global.f32 [%rd1+8], %f7;
             mov.b32 %r3, 0x3c003c00; multimem.st.global.v2.f16x2 [%rd1+32], {%r3, %r3};
             multimem.red.global.max.v2.f16x2 [%rd1+32], {0x40003800, %r3};
             multimem.ld_reduce.global.max.acc::f32.v2.bf16x2 {%r4, %r5}, [%rd1+32];
             st.global.u32 [%rd1+12], %r4;
             multimem.red.global.or.b32 [%rd1+40], 6;
             multimem.ld_reduce.global.min.v8.f16 {%rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7, %rs8},
                 [%rd1+32];
             DONE:",
        ),
        12,
    );
    assert_eq!(out[..2], [12, 12]);
    assert_eq!(f32::from_bits(out[2]), 2.0 + 3.0 + 3.0 + 4.0);
    assert_eq!(out[3], 0x4000_3c00);
    assert_eq!(out[10], 6);
}

#[test]
fn what_multimem_has_not_is_refused_and_bounds_hold() {
    for line in [
        "multimem.ld_reduce.global.min.f32 %f1, [%rd1];",
        "multimem.red.global.exch.b32 [%rd1], %r1;",
        "multimem.st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};",
        "multimem.red.acquire.global.add.u32 [%rd1], %r1;",
        "multimem.frob.u32 [%rd1], %r1;",
    ] {
        assert!(module(&kernel(line)).refused().contains_key("k"), "{line}");
    }
    let outside = module(&kernel("multimem.red.global.add.u32 [%rd1+64], 1;"));
    assert!(launch(&outside, 1).is_err());
}
