//! Variables in global and constant memory that a function's body declares.

use super::{kernel, run};

#[test]
fn a_function_declares_global_and_constant_variables() {
    let lines = ".global .u32 table[4] = {1, 2, 3, 4};\n.const .u32 scale = 10;\n\
         .global .u64 at = table;\n\
         ld.global.u64 %rd3, [at]; ld.global.u32 %r2, [%rd3+8]; ld.const.u32 %r3, [scale];\n\
         mul.lo.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2;";
    assert_eq!(run(&kernel(lines), 1), [30]);
}

#[test]
fn the_innermost_name_is_meant() {
    let lines = "{ .global .u32 x = 2;\n\
         { .global .u32 x = 3; .global .u64 p = x;\n\
         ld.global.u32 %r2, [x]; ld.global.u64 %rd3, [p]; ld.global.u32 %r3, [%rd3]; }\n\
         ld.global.u32 %r4, [x]; }\nld.global.u32 %r5, [x];\n\
         st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};";
    let text = format!(".global .u32 x = 1;\n{}", kernel(lines));
    assert_eq!(run(&text, 4), [3, 3, 2, 1]);
}
