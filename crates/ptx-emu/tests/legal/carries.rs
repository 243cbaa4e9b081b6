//! Chains through the carry flag that mix additions and subtractions.

use super::{kernel, run};

/// The words some lines leave in `%r10`, `%r11`, ….
#[track_caller]
fn words<const N: usize>(lines: &str) -> [u32; N] {
    let mut body = lines.to_owned();
    for at in 0..N {
        body.push_str(&format!(
            "st.global.u32 [%rd1+{}], %r{};\n",
            4 * at,
            10 + at
        ));
    }
    run(&kernel(&body), N).try_into().expect("as many words")
}

/// Sets the flag, then 10 - 3 with it.
fn ten_less_three(first: &str) -> u32 {
    words::<1>(&format!("{first}\nsubc.u32 %r10, 10, 3;"))[0]
}

#[test]
fn a_flag_of_one_borrows_nothing() {
    assert_eq!(ten_less_three("add.cc.u32 %r2, -1, 1;"), 7);
    assert_eq!(ten_less_three("add.cc.u32 %r2, 1, 1;"), 6);
    assert_eq!(ten_less_three("sub.cc.u32 %r2, 5, 4;"), 7);
    assert_eq!(ten_less_three("sub.cc.u32 %r2, 4, 5;"), 6);
    assert_eq!(ten_less_three("mad.lo.cc.u32 %r2, -1, 1, 1;"), 7);
    assert_eq!(ten_less_three("mad.hi.cc.u32 %r2, -1, -1, 1;"), 6);
    assert_eq!(ten_less_three("add.cc.u64 %rd3, -1, 1;"), 7);
    assert_eq!(ten_less_three("sub.cc.u64 %rd3, 4, 5;"), 6);
}

#[test]
fn an_addition_takes_what_a_subtraction_left() {
    let after = |first: &str| words::<1>(&format!("{first}\naddc.u32 %r10, 0, 0;"))[0];
    assert_eq!(after("sub.cc.u32 %r2, 5, 4;"), 1);
    assert_eq!(after("sub.cc.u32 %r2, 4, 4;"), 1);
    assert_eq!(after("sub.cc.u32 %r2, 4, 5;"), 0);
    assert_eq!(after("sub.cc.s64 %rd3, 5, 4;"), 1);
    assert_eq!(after("sub.cc.s64 %rd3, 4, 5;"), 0);
    let wide = "sub.cc.u64 %rd3, 4, 5;\naddc.u64 %rd4, 0, 0;\ncvt.u32.u64 %r10, %rd4;";
    assert_eq!(words::<1>(wide), [0]);
    let product = "sub.cc.u32 %r2, 5, 4;\nmadc.lo.u32 %r10, 3, 4, 5;";
    assert_eq!(words::<1>(product), [18]);
}

#[test]
fn chains_of_one_kind_are_long_sums_and_differences() {
    let difference = "sub.cc.u32 %r10, 0, 1;\nsubc.cc.u32 %r11, 0, 0;\nsubc.u32 %r12, 1, 0;";
    assert_eq!(words::<3>(difference), [u32::MAX, u32::MAX, 0]);
    let sum = "add.cc.u32 %r10, -1, 1;\naddc.cc.u32 %r11, -1, 0;\naddc.u32 %r12, 1, 0;";
    assert_eq!(words::<3>(sum), [0, 0, 2]);
    let both = "sub.cc.u64 %rd3, 0, 1;\nsubc.u64 %rd4, 5, 0;\n\
                mov.b64 {%r10, %r11}, %rd3;\nmov.b64 {%r12, %r13}, %rd4;";
    assert_eq!(words::<4>(both), [u32::MAX, u32::MAX, 4, 0]);
}
