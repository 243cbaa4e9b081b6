//! Elements of arrays as operands, and addresses in initial values.

use crate::{kernel, module, run};

#[test]
fn an_element_is_an_operand() {
    let text = format!(
        ".global .u32 a[4] = {{10, 11, 12, 13}};\n\
         .global .u32 m[2][3] = {{{{0, 1, 2}}, {{3, 4, 5}}}};\n\
         .const .align 8 .v2 .u32 pairs[2] = {{{{1, 2}}, {{3, 4}}}};\n{}",
        kernel(
            ".local .align 8 .b32 local0[4]; .shared .u16 s[8];
             ld.global.u32 %r2, a[2]; st.global.u32 [%rd1], %r2;
             ld.global.u32 %r2, a[5-2]; st.global.u32 [%rd1+4], %r2;
             ld.global.u32 %r2, m[1][2]; st.global.u32 [%rd1+8], %r2;
             ld.const.v2.u32 {%r2, %r3}, pairs[1]; st.global.u32 [%rd1+12], %r3;
             mov.u64 %rd3, local0[0]; mov.u64 %rd4, local0[3]; sub.u64 %rd4, %rd4, %rd3;
             cvt.u32.u64 %r2, %rd4; st.global.u32 [%rd1+16], %r2;
             mov.u32 %r3, 1; ld.global.u32 %r2, a[%r3]; st.global.u32 [%rd1+20], %r2;
             mov.u64 %rd5, 4; ld.u32 %r2, a[%rd5-1]; st.global.u32 [%rd1+24], %r2;
             st.local.u32 local0[1], 77; ld.local.u32 %r2, [local0+4]; st.global.u32 [%rd1+28], %r2;
             mov.u32 %r4, s[3]; mov.u32 %r5, s; sub.u32 %r2, %r4, %r5; st.global.u32 [%rd1+32], %r2;
             mov.u32 %r4, s[%r3+2]; sub.u32 %r2, %r4, %r5; st.global.u32 [%rd1+36], %r2;
             st.shared.u16 s[%r3+1], 5; ld.shared.u16 %rs1, s[2]; cvt.u32.u16 %r2, %rs1;
             st.global.u32 [%rd1+40], %r2;
             cvta.global.u64 %rd6, a[1]; ld.u32 %r2, [%rd6]; st.global.u32 [%rd1+44], %r2;
             ld.global.u32 %r2, m[%r3][0]; st.global.u32 [%rd1+48], %r2;
             setp.eq.u32 %p1, %r1, 0; @%p1 red.global.add.u32 a[0], 5;
             bar.warp.sync -1; ld.volatile.global.u32 %r2, a[0]; st.global.u32 [%rd1+52], %r2;
             prefetch.global.L2 a[0];"
        )
    );
    let expected = [12, 13, 5, 4, 12, 11, 13, 77, 6, 6, 5, 11, 3, 15];
    assert_eq!(run(&text, expected.len()), expected);
}

#[test]
fn elements_of_what_has_none_are_refused() {
    for (line, message) in [
        (
            "ld.global.u32 %r2, missing[1];",
            "`missing` is not declared",
        ),
        ("mov.u32 %r2, %r1[1];", "`%r1` is no variable with elements"),
        ("ld.global.u32 %r2, a[1][1];", "`a` has 1 dimensions"),
        (
            "ld.global.u32 %r2, a[%p1];",
            "`%p1` is no register to index with",
        ),
        (
            "ld.shared.u32 %r2, a[1];",
            "`a` lies in another state space",
        ),
    ] {
        let text = format!(".global .u32 a[4];\n{}", kernel(line));
        let problem = module(&text).refused()["k"].problem.to_string();
        assert_eq!(problem, message, "{line}");
    }
}

/// Parameter arrays, of the kernel and of a function.
#[test]
fn elements_of_parameters() {
    let text = "
        .func (.param .b32 result[1]) pick(.param .align 4 .b32 x[3], .param .b32 at) {
            .reg .b32 %r<4>; ld.param.b32 %r1, [at]; ld.param.b32 %r2, x[%r1];
            ld.param.b32 %r3, x[0]; add.u32 %r2, %r2, %r3; st.param.b32 result[0], %r2; ret; }
        .visible .entry k(.param .u64 out[1]) {
            .reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, out[0];
            { .param .align 4 .b32 three[3]; .param .b32 at; .param .b32 back[1];
              st.param.b32 three[0], 100; st.param.b32 three[1], 20; st.param.b32 three[2], 3;
              st.param.b32 [at], 2;
              call (back), pick, (three, at); ld.param.b32 %r1, back[0]; }
            st.global.u32 [%rd1], %r1; ret; }";
    assert_eq!(run(text, 1), [103]);
}

#[test]
fn initial_values_hold_addresses_whole_and_by_the_byte() {
    let bytes = (0..8)
        .map(|byte| format!("0x{:x}(generic(a)+4)", 0xff_u64 << (8 * byte)))
        .collect::<Vec<_>>()
        .join(", ");
    let text = format!(
        ".global .u32 a[3] = {{5, 6, 7}};\n\
         .global .u64 whole[4] = {{a, a+4, generic(a)+8, generic(a+4)}};\n\
         .global .align 8 .b8 packed[8] = {{{bytes}}};\n{}",
        kernel(
            "ld.global.u64 %rd3, whole[0]; ld.global.u32 %r2, [%rd3]; st.global.u32 [%rd1], %r2;
             ld.global.u64 %rd3, whole[1]; ld.global.u32 %r2, [%rd3]; st.global.u32 [%rd1+4], %r2;
             ld.global.u64 %rd3, whole[2]; ld.u32 %r2, [%rd3]; st.global.u32 [%rd1+8], %r2;
             ld.global.u64 %rd3, whole[3]; ld.u32 %r2, [%rd3]; st.global.u32 [%rd1+12], %r2;
             ld.global.u64 %rd3, [packed]; ld.u32 %r2, [%rd3]; st.global.u32 [%rd1+16], %r2;"
        )
    );
    assert_eq!(run(&text, 5), [5, 6, 7, 6, 6]);
}
