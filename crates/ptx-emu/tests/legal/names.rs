//! Names of registers.

use crate::{kernel, module, run};

#[test]
fn a_register_and_a_range_share_a_stem() {
    let out = run(
        &kernel(
            ".reg .b32 a; .reg .b16 a<2>; .reg .b32 %r77;
             mov.b32 a, 7; mov.b16 a0, 1; mov.b16 a1, 2; mov.b32 %r77, 100;
             cvt.u32.u16 %r2, a0; cvt.u32.u16 %r3, a1; mad.lo.u32 %r2, %r3, 10, %r2;
             mad.lo.u32 %r2, a, 1000, %r2; add.u32 %r2, %r2, %r77;
             st.global.u32 [%rd2], %r2;",
        ),
        32,
    );
    assert_eq!(out, [7121; 32]);
}

#[test]
fn an_inner_block_has_names_of_its_own() {
    let out = run(
        &kernel(
            "mov.u32 %r2, 1;
             { .reg .b32 %r<3>; .reg .b64 a; mov.u32 %r2, 50; mov.u64 a, 3;
               { .reg .b32 a; mov.u32 a, 9; st.global.u32 [%rd2], a; }
               cvt.u32.u64 %r1, a; st.global.u32 [%rd2+128], %r1; }
             { .reg .b32 a<2>; mov.u32 a1, %r2; st.global.u32 [%rd2+256], a1; }",
        ),
        96,
    );
    assert_eq!(out[..32], [9; 32]);
    assert_eq!(out[32..64], [3; 32]);
    assert_eq!(out[64..], [1; 32]);
}

#[test]
fn names_that_overlap_are_refused() {
    for (declarations, name) in [
        (".reg .b32 x<3>; .reg .b64 x2;", "x2"),
        (".reg .b64 x2; .reg .b32 x<3>;", "x"),
        (".reg .b32 x<20>; .reg .b32 x1<4>;", "x1"),
        (".reg .b32 x; .reg .f32 x;", "x"),
        (".local .b32 x1; .reg .b32 x<2>;", "x"),
        (".reg .b32 x<2>; x1:", "x"),
    ] {
        let module = module(&kernel(declarations));
        let problem = &module.refused()["k"].problem;
        assert_eq!(problem.to_string(), format!("`{name}` is declared twice"));
    }
}
